/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/parse.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const char *const type_names[] = {
	[XPT_TYPE_U64] = "u64", [XPT_TYPE_U32] = "u32", [XPT_TYPE_S32] = "s32",
	[XPT_TYPE_U16] = "u16", [XPT_TYPE_U8] = "u8",	[XPT_TYPE_STRING] = "string",
};

#if defined(__x86_64__)
#define ARCHITECTURE "x86_64"
#elif defined(__aarch64__)
#define ARCHITECTURE "aarch64"
#else
#error "unknown architecture"
#endif

struct scanner {
	const char *at;
	char *reason;
	size_t size;
};

static int __attribute__((format(printf, 2, 3))) bad(struct scanner *scanner, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(scanner->reason, scanner->size, format, arguments);
	va_end(arguments);
	return -EINVAL;
}

static bool take(struct scanner *scanner, const char *word)
{
	size_t length = strlen(word);

	if (strncmp(scanner->at, word, length) != 0)
		return false;
	scanner->at += length;
	return true;
}

static int digit_value(char digit, unsigned int base)
{
	int value = -1;

	if (digit >= '0' && digit <= '9')
		value = digit - '0';
	else if (digit >= 'a' && digit <= 'f')
		value = digit - 'a' + 10;
	else if (digit >= 'A' && digit <= 'F')
		value = digit - 'A' + 10;
	return value < (int)base ? value : -1;
}

static int number(struct scanner *scanner, bool negative, __s32 *result)
{
	unsigned int base = take(scanner, "0x") || take(scanner, "0X") ? 16 : 10;
	const char *first = scanner->at;
	long long value = 0;

	for (int digit; (digit = digit_value(*scanner->at, base)) >= 0; scanner->at++) {
		value = value * base + digit;
		if (value > INT_MAX)
			return bad(scanner, "number is out of range (-2147483647 to 2147483647)");
	}
	if (scanner->at == first)
		return bad(scanner, "number expected before '%.16s'", scanner->at);
	*result = negative ? -value : value;
	return 0;
}

static int source(struct scanner *scanner, struct xpt_fetch *fetch)
{
	__s32 argument = 0;
	int error;

	if (digit_value(*scanner->at, 10) >= 0) {
		fetch->source = XPT_SOURCE_CONSTANT;
		return number(scanner, false, &fetch->last);
	}
	if (take(scanner, "return")) {
		fetch->source = XPT_SOURCE_RETURN;
		return 0;
	}
	if (take(scanner, "result")) {
#if defined(__aarch64__)
		fetch->source = XPT_SOURCE_RESULT;
#else
		fetch->source = 0;
#endif
		return 0;
	}
	if (!take(scanner, "arg"))
		return bad(scanner, "must begin with 'arg' and a number, with 'return' or 'result', or be a number");
	error = number(scanner, false, &argument);
	if (error)
		return error;
	if (argument > FETCH_ARGUMENT_MAX)
		return bad(scanner, "argument %d is out of range (0 to %d)", argument, FETCH_ARGUMENT_MAX);
	fetch->source = argument;
	return 0;
}

static int dereferences(struct scanner *scanner, struct xpt_fetch *fetch)
{
	int error;

	while (take(scanner, "[")) {
		if (fetch->derefs == XPT_DEREF_MAX)
			return bad(scanner, "more than %d dereferences", XPT_DEREF_MAX);
		error = number(scanner, take(scanner, "-"), &fetch->offset[fetch->derefs]);
		if (error)
			return error;
		if (!take(scanner, "]"))
			return bad(scanner, "']' expected before '%.16s'", scanner->at);
		fetch->derefs++;
	}
	return 0;
}

/* What is made of the value in the end. */
static int tests(struct scanner *scanner, struct xpt_fetch *fetch)
{
	__s32 operand = 0;
	int error = 0;

	if (take(scanner, "&")) {
		fetch->tests |= XPT_TEST_MASK;
		error = number(scanner, false, &operand);
		fetch->mask = operand;
	}
	if (!error && take(scanner, "=")) {
		fetch->tests |= XPT_TEST_EQUAL;
		error = number(scanner, false, &operand);
		fetch->equal = operand;
	}
	if (!error && fetch->tests && fetch->type == XPT_TYPE_STRING)
		return bad(scanner, "a string cannot be compared");
	return error;
}

static int type(struct scanner *scanner, struct xpt_fetch *fetch)
{
	size_t length = strcspn(scanner->at, "@&=");

	for (size_t i = 0; i < COUNT_OF(type_names); i++) {
		if (strlen(type_names[i]) == length && strncmp(scanner->at, type_names[i], length) == 0) {
			fetch->type = i;
			scanner->at += length;
			return 0;
		}
	}
	return bad(scanner, "unknown type '%.*s' (known: u64 u32 s32 u16 u8 string)", length < 16 ? (int)length : 16,
		   scanner->at);
}

int fetch_expression_parse(const char *text, struct xpt_fetch *fetch, char *reason, size_t size)
{
	struct scanner scanner = { text, reason, size };
	int error;

	memset(fetch, 0, sizeof(*fetch));
	error = source(&scanner, fetch);
	if (error || (fetch->source == XPT_SOURCE_CONSTANT && !*scanner.at))
		return error;
	if (fetch->source == XPT_SOURCE_CONSTANT)
		return bad(&scanner, "unexpected '%.16s' at the end", scanner.at);
	error = dereferences(&scanner, fetch);
	if (error)
		return error;
	if (*scanner.at == '+' || *scanner.at == '-') {
		bool negative = *scanner.at++ == '-';

		error = number(&scanner, negative, &fetch->last);
		if (error)
			return error;
	}
	if (take(&scanner, ":")) {
		error = type(&scanner, fetch);
		if (error)
			return error;
	}
	error = tests(&scanner, fetch);
	if (error)
		return error;
	fetch->at_return = fetch->source == XPT_SOURCE_RETURN;
	if (take(&scanner, "@return")) {
		fetch->at_return = 1;
	} else if (take(&scanner, "@entry")) {
		if (fetch->source == XPT_SOURCE_RETURN)
			return bad(&scanner, "the return value is not there at entry");
	}
	if (*scanner.at)
		return bad(&scanner, "unexpected '%.16s' at the end", scanner.at);
	return 0;
}

/* ---- members ---- */

static void parse_member(struct reader *reader, const struct member *member, fetch_check_fn check, void *context,
			 struct xpt_fetch *fetch, int meaning)
{
	char reason[128];

	if (!cJSON_IsString(member->value)) {
		reader_error(reader, &member->place, "must be a string");
	} else if (fetch_expression_parse(member->value->valuestring, fetch, reason, sizeof(reason))) {
		reader_error(reader, &member->place, "%s", reason);
	} else {
		fetch->meaning = meaning;
		check(reader, context, &member->place, fetch);
	}
}

bool fetch_member_parse(struct reader *reader, const struct member *member, int meaning, fetch_check_fn check,
			void *context, struct xpt_fetch *fetch)
{
	struct member architectures[] = { { .key = "x86_64" }, { .key = "aarch64" } };
	struct xpt_fetch other;
	bool given = false;

	if (!cJSON_IsObject(member->value)) {
		parse_member(reader, member, check, context, fetch, meaning);
		return !reader->error;
	}
	reader_members(reader, member->value, &member->place, architectures, 2);
	for (size_t i = 0; i < 2 && !reader->error; i++) {
		bool here = strcmp(architectures[i].key, ARCHITECTURE) == 0;

		if (!architectures[i].value)
			continue;
		parse_member(reader, &architectures[i], check, context, here ? fetch : &other, meaning);
		given = given || here;
	}
	return given && !reader->error;
}

#define MEANING_COUNT (XPT_MEANING_CALLBACK + 1)
#define INTERNAL (XPT_MEANING_INFERENCE - XPT_MEANING_LENGTH) /* meanings that descriptions do not have */
#define MEMBER_COUNT (MEANING_COUNT - 1 - INTERNAL)
#define OPERATOR_ARGUMENT_MAX 5 /* in a register on every architecture */
#define BIT(meaning) (1u << XPT_MEANING_##meaning)

/* What a role asks of the fetches. */
struct rule {
	__u32 needs;	 /* all of these meanings */
	__u32 needs_one; /* at least one of these */
	bool at_entry;	 /* the program has to be known when the call begins */
	bool nothing;	 /* nothing is fetched */
	bool place;	 /* of the call, only that its place was reached counts: entry_only, program and name alone */
	__u16 flags;	 /* XPT_SPEC_* */
};

static const struct rule rules[] = {
	[XPT_ROLE_PROGRAM_LOAD] = { .needs = BIT(PROGRAM), .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_PROGRAM_NAME] = { .needs = BIT(PROGRAM),
				    .needs_one = BIT(NAME) | BIT(PARENT),
				    .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_PROGRAM_UNLOAD] = { .needs = BIT(PROGRAM), .at_entry = true, .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_PROGRAM_READY] = { .needs = BIT(PROGRAM), .at_entry = true, .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_EXECUTE] = { .needs = BIT(PROGRAM), .at_entry = true, .flags = XPT_SPEC_SAMPLED },
	[XPT_ROLE_ENQUEUE] = { .needs = BIT(PROGRAM), .at_entry = true, .flags = XPT_SPEC_SAMPLED },
	[XPT_ROLE_LAUNCH] = { .at_entry = true, .flags = XPT_SPEC_SAMPLED },
	[XPT_ROLE_ALLOC] = { .needs_one = BIT(SIZE) | BIT(ADDRESS) },
	[XPT_ROLE_FREE] = { .needs = BIT(ADDRESS) },
	[XPT_ROLE_SELECT] = { .needs = BIT(CORE) },
	[XPT_ROLE_REGION_BEGIN] = { .needs_one = BIT(PROGRAM) | BIT(NAME), .place = true },
	[XPT_ROLE_REGION_END] = { .needs_one = BIT(PROGRAM) | BIT(NAME), .place = true },
	[XPT_ROLE_REGION_NAME] = { .needs = BIT(PROGRAM) | BIT(NAME), .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_REGION_RELEASE] = { .needs = BIT(PROGRAM), .at_entry = true, .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_CODEOBJ_LOAD] = { .needs = BIT(PROGRAM), .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_CODEOBJ_UNLOAD] = { .needs = BIT(PROGRAM), .flags = XPT_SPEC_CONTROL },
	[XPT_ROLE_RESOLVE] = { .needs = BIT(NAME) | BIT(ADDRESS), .flags = XPT_SPEC_CONTROL | XPT_SPEC_WAIT },
	[XPT_ROLE_REGION] = { .nothing = true },
	[XPT_ROLE_MARK] = { .needs = BIT(KEY) | BIT(STREAM) },
	[XPT_ROLE_FOLLOW] = { .needs = BIT(KEY) | BIT(STREAM) },
	[XPT_ROLE_STREAM] = { .needs = BIT(STREAM) | BIT(ORDERED) },
	[XPT_ROLE_CALLBACK] = { .needs = BIT(CALLBACK) },
};

struct parser {
	struct reader *reader;
	struct member members[MEMBER_COUNT];
	struct call_spec *call;
	bool success_given; /* the call defines success */
};

static const struct member *member_of(const struct parser *parser, int meaning)
{
	return &parser->members[meaning - 1 - (meaning > XPT_MEANING_LENGTH ? INTERNAL : 0)];
}

static int meaning_of(size_t member)
{
	return (int)member + 1 + (member >= XPT_MEANING_LENGTH ? INTERNAL : 0);
}

static void check_status(struct reader *reader, const struct call_spec *call, const struct json_place *place,
			 const struct xpt_fetch *fetch)
{
	if (!call->has_status)
		reader_error(reader, place, "needs success \"zero\" or \"null\"");
	if (!fetch->at_return && call->locate != LOCATE_CALLBACK)
		reader_error(reader, place, "must be read at the return");
}

/* Checks what does not depend on the other fetches of the call. */
static void check_fetch(struct reader *reader, void *context, const struct json_place *place,
			const struct xpt_fetch *fetch)
{
	const struct parser *parser = context;
	const struct xpt_spec *spec = &parser->call->wire;

	if (fetch->meaning == XPT_MEANING_NAME && fetch->type != XPT_TYPE_STRING)
		reader_error(reader, place, "must be of type string");
	if (fetch->meaning != XPT_MEANING_NAME && fetch->type == XPT_TYPE_STRING)
		reader_error(reader, place, "only a name can be of type string");
	if (fetch->at_return && spec->flags & XPT_SPEC_ENTRY_ONLY)
		reader_error(reader, place, "is read at the return, and the call is entry_only");
	if (fetch->meaning == XPT_MEANING_STATUS) {
		check_status(reader, parser->call, place, fetch);
		return;
	}
	if (fetch->meaning == XPT_MEANING_CALLBACK && (fetch->at_return || fetch->tests || fetch->type != XPT_TYPE_U64))
		reader_error(reader, place, "must be an address that is known when the call begins: \"arg2\"");
	if (fetch->meaning == XPT_MEANING_KEYS &&
	    (!fetch->at_return || fetch->derefs || fetch->tests || fetch->type != XPT_TYPE_U64))
		reader_error(reader, place, "must be an address that is read at the return: \"arg1@return\"");
	if (fetch->source == XPT_SOURCE_CONSTANT && fetch->meaning != XPT_MEANING_BLOCKING &&
	    fetch->meaning != XPT_MEANING_STREAM)
		reader_error(reader, place, "is a number, as only blocking and stream can be");
	if (fetch->tests && (fetch->meaning == XPT_MEANING_PROGRAM || fetch->meaning == XPT_MEANING_KEY))
		reader_error(reader, place, "is a handle, which is compared with nothing");
	if (fetch->at_return && !parser->success_given)
		reader_error(reader, place, "is read at the return, which needs success to say when that is allowed");
	if (fetch->source == XPT_SOURCE_RETURN && parser->call->has_status)
		reader_error(reader, place, "the return value is the status, as success says");
	if (fetch->meaning == XPT_MEANING_PROGRAM && fetch->at_return && rules[spec->role].at_entry)
		reader_error(reader, place, "role %s needs the program when the call begins, without @return",
			     role_name(spec->role));
}

static void add_fetch(struct parser *parser, const struct member *member, int meaning)
{
	struct xpt_spec *spec = &parser->call->wire;
	struct xpt_fetch fetch;

	if (!fetch_member_parse(parser->reader, member, meaning, check_fetch, parser, &fetch))
		return;
	if (spec->fetches == XPT_FETCH_MAX)
		reader_error(parser->reader, &member->place, "more than %d fetches%s", XPT_FETCH_MAX,
			     parser->call->has_status ? " with the status" : "");
	else
		spec->fetch[spec->fetches++] = fetch;
}

/* Names the meanings of a set: "name or parent". */
static void list_meanings(unsigned int set, char *text, size_t size)
{
	size_t used = 0;

	text[0] = '\0';
	for (int meaning = 1; meaning < MEANING_COUNT && used < size; meaning++)
		if (set & 1u << meaning)
			used += snprintf(text + used, size - used, "%s%s", used ? " or " : "", meaning_name(meaning));
}

static unsigned int fetched(const struct xpt_spec *spec)
{
	unsigned int set = 0;

	for (unsigned int i = 0; i < spec->fetches; i++)
		set |= 1u << spec->fetch[i].meaning;
	return set;
}

static void check_role(const struct parser *parser, const struct json_place *place)
{
	const struct xpt_spec *spec = &parser->call->wire;
	const struct rule *rule = &rules[spec->role];
	const char *role = role_name(spec->role);
	struct reader *reader = parser->reader;
	unsigned int set = fetched(spec);
	char names[64];

	for (int meaning = 1; meaning < MEANING_COUNT; meaning++)
		if (rule->needs & ~set & 1u << meaning)
			reader_error(reader, place, "role %s needs a fetch of %s", role, meaning_name(meaning));
	if (rule->needs_one && !(rule->needs_one & set)) {
		list_meanings(rule->needs_one, names, sizeof(names));
		reader_error(reader, place, "role %s needs a fetch of %s", role, names);
	}
	if (rule->nothing && set)
		reader_error(reader, place, "role %s takes no fetch", role);
	if (rule->place && !(spec->flags & XPT_SPEC_ENTRY_ONLY))
		reader_error(reader, place, "role %s is for calls that are entry_only", role);
	if (rule->place && set & ~(BIT(PROGRAM) | BIT(NAME)))
		reader_error(reader, place, "role %s takes a program and a name, nothing else", role);
	if (spec->role == XPT_ROLE_WAIT && set & (BIT(KEY) | BIT(KEYS)) && set & BIT(STREAM))
		reader_error(reader, &member_of(parser, XPT_MEANING_STREAM)->place,
			     "a wait is for a key or for a stream, not for both");
	if (set & BIT(KEYS) && (spec->role != XPT_ROLE_WAIT || !(set & BIT(COUNT)) || set & BIT(KEY)))
		reader_error(reader, &member_of(parser, XPT_MEANING_KEYS)->place,
			     "is for a wait that has a count of them, and no key");
	if (set & BIT(BLOCKING) && !(set & BIT(STREAM)))
		reader_error(reader, &member_of(parser, XPT_MEANING_BLOCKING)->place,
			     "needs the stream that it is about");
}

static void check_call(const struct parser *parser, const struct json_place *place)
{
	const struct xpt_spec *spec = &parser->call->wire;
	unsigned int set = fetched(spec);
	bool at_return = false;

	if (set & BIT(LENGTH) && !(set & BIT(NAME)))
		reader_error(parser->reader, &member_of(parser, XPT_MEANING_LENGTH)->place,
			     "is the length of a name, and there is none");
	for (unsigned int i = 0; i < spec->fetches; i++)
		at_return = at_return || spec->fetch[i].at_return;
	/* Such a call has no status: that something was read at its return is how its success is known later on. */
	if (spec->success == XPT_SUCCESS_NONZERO && !at_return)
		reader_error(parser->reader, place, "success \"nonzero\" needs a fetch of the return");
}

/* A status is fetched also where the description does not say so. */
static void add_status(struct parser *parser, const struct json_place *place, const struct json_place *fetches)
{
	struct xpt_spec *spec = &parser->call->wire;

	if (!parser->call->has_status || fetched(spec) & BIT(STATUS))
		return;
	if (parser->call->locate == LOCATE_CALLBACK) {
		reader_error(parser->reader, place, "a callback is given its status: success needs a fetch of it");
	} else if (spec->fetches == XPT_FETCH_MAX) {
		reader_error(parser->reader, fetches, "more than %d fetches with the status", XPT_FETCH_MAX);
	} else {
		spec->fetch[spec->fetches++] = (struct xpt_fetch){
			.meaning = XPT_MEANING_STATUS,
			.source = XPT_SOURCE_RETURN,
			.type = spec->success == XPT_SUCCESS_ZERO32 ? XPT_TYPE_S32 : XPT_TYPE_U64,
			.at_return = 1,
		};
	}
}

void call_fetches_parse(struct reader *reader, const struct json_place *place, const struct member *member,
			bool success_given, struct call_spec *call)
{
	const struct json_place *fetches = member->value ? &member->place : place;
	struct parser parser = { .reader = reader, .call = call, .success_given = success_given };
	struct xpt_spec *spec = &call->wire;

	for (size_t i = 0; i < MEMBER_COUNT; i++)
		parser.members[i].key = meaning_name(meaning_of(i));
	if (member->value)
		reader_members(reader, member->value, &member->place, parser.members, MEMBER_COUNT);
	/* By meaning, which puts the program first: there the kernel looks for it. */
	for (size_t i = 0; i < MEMBER_COUNT && !reader->error; i++)
		if (parser.members[i].value)
			add_fetch(&parser, &parser.members[i], meaning_of(i));
	add_status(&parser, place, fetches);
	check_role(&parser, fetches);
	check_call(&parser, fetches);
	spec->flags |= rules[spec->role].flags | (fetched(spec) & BIT(CALLBACK) ? XPT_SPEC_CALLBACK : 0);
	if (spec->flags & XPT_SPEC_SAMPLED && spec->fetch[0].meaning == XPT_MEANING_PROGRAM)
		spec->flags |= XPT_SPEC_BY_PROGRAM;
}

/* The operator's program, and when its inference began. */
static void add_inference(struct xpt_spec *spec)
{
	spec->fetch[2] = (struct xpt_fetch){ .meaning = XPT_MEANING_PROGRAM, .source = XPT_SOURCE_PROGRAM };
	spec->fetch[3] = (struct xpt_fetch){ .meaning = XPT_MEANING_INFERENCE, .source = XPT_SOURCE_INFERENCE };
	spec->fetches = 4;
}

void operator_fetches_set(struct call_spec *function)
{
	struct xpt_spec *spec = &function->wire;

	spec->fetch[0] = (struct xpt_fetch){ .meaning = XPT_MEANING_OBJECT, .source = XPT_SOURCE_SITE };
	spec->fetch[1] = (struct xpt_fetch){ .meaning = XPT_MEANING_CLASS, .source = XPT_SOURCE_SITE };
	add_inference(spec);
}

void method_fetches_parse(struct reader *reader, const struct member *object, struct call_spec *method)
{
	struct parser parser = { .reader = reader, .call = method };
	struct xpt_spec *spec = &method->wire;
	struct xpt_fetch *fetch = spec->fetch;

	add_fetch(&parser, object, XPT_MEANING_OBJECT);
	if (!spec->fetches) /* not on this architecture */
		return;
	if (fetch->derefs || fetch->last || fetch->type != XPT_TYPE_U64 || fetch->at_return ||
	    fetch->source > OPERATOR_ARGUMENT_MAX)
		reader_error(reader, &object->place, "must be one of the first %d arguments as it is, such as \"arg0\"",
			     OPERATOR_ARGUMENT_MAX + 1);
	fetch[1] = *fetch;
	fetch[1].meaning = XPT_MEANING_CLASS;
	fetch[1].derefs = 1; /* an object begins with the address of its table */
	add_inference(spec);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "describe/runtime/parse.h"

enum {
	SYMBOL,
	SYMBOLS,
	SLOT,
	PROBE,
	REFERS_TO,
	CALLBACK_OF,
	METHOD_OF,
	ONLY_IN,
	NAME,
	ROLE,
	SUCCESS,
	FETCH,
	CODE,
	ENTRY_ONLY,
	RUNS,
	NOTE,
	MEMBERS
};

static int by_name(const void *a, const void *b)
{
	return strcmp(a, b);
}

static void keep(void *name)
{
	(void)name; /* belongs to its call */
}

void calls_seen_clear(struct calls_seen *seen)
{
	tdestroy(seen->symbols, keep);
	seen->symbols = NULL;
}

/* ---- how the function is found and called ---- */

void symbol_check(struct reader *reader, const struct json_place *place, const char *symbol, bool patterns)
{
	for (const char *at = symbol ?: ""; *at && !reader->error; at++) {
		if (*at <= ' ' || *at > '~')
			reader_error(reader, place, "is no symbol: only printable ASCII without blanks");
		else if (*at == '@')
			reader_error(reader, place, "give the symbol without its version");
		else if (!patterns && strchr("*?[\\", *at))
			reader_error(reader, place, "must be one symbol, not a pattern");
	}
}

static void take_symbol(struct reader *reader, const struct json_place *place, struct calls_seen *seen, char *symbol)
{
	char **found;

	symbol_check(reader, place, symbol, true);
	if (reader->error)
		return;
	found = tsearch(symbol, &seen->symbols, by_name);
	if (!found)
		reader_fail(reader, -ENOMEM);
	else if (*found != symbol)
		reader_error(reader, place, "'%s' is described twice", symbol);
}

static void read_symbols(struct reader *reader, const struct member *members, struct calls_seen *seen,
			 struct call_spec *call)
{
	const struct member *member = &members[members[SYMBOL].value ? SYMBOL : SYMBOLS];
	struct json_place at = { &member->place, NULL, 0 };

	call->locate = LOCATE_SYMBOL;
	if (members[SYMBOL].value) {
		call->symbols = calloc(1, sizeof(*call->symbols));
		if (!call->symbols) {
			reader_fail(reader, -ENOMEM);
			return;
		}
		call->symbols[0] = reader_string(reader, member);
		call->symbol_count = call->symbols[0] != NULL;
		take_symbol(reader, &member->place, seen, call->symbols[0]);
		return;
	}
	call->symbols = reader_strings(reader, member, &call->symbol_count);
	if (!call->symbol_count)
		reader_error(reader, &member->place, "must name at least one symbol");
	if (call->symbol_count > CALL_SYMBOLS_MAX)
		reader_error(reader, &member->place, "more than %d symbols", CALL_SYMBOLS_MAX);
	for (; at.index < call->symbol_count; at.index++)
		take_symbol(reader, &at, seen, call->symbols[at.index]);
}

static void read_slot(struct reader *reader, const struct member *member, struct calls_seen *seen,
		      struct call_spec *call)
{
	call->locate = LOCATE_SLOT;
	if (!seen->has_table)
		reader_error(reader, &member->place, "the runtime has no table");
	call->slot = reader_number(reader, member, 0, CALL_SLOT_MAX, 0);
	if (seen->slots[call->slot / 8] & 1 << call->slot % 8)
		reader_error(reader, &member->place, "slot %u is described twice", call->slot);
	seen->slots[call->slot / 8] |= 1 << call->slot % 8;
}

static void read_probe(struct reader *reader, const struct member *member, struct calls_seen *seen,
		       struct call_spec *call)
{
	const char *colon;

	call->locate = LOCATE_PROBE;
	call->probe = reader_string(reader, member);
	colon = call->probe ? strchr(call->probe, ':') : NULL;
	if (!colon || colon == call->probe || !colon[1] || strchr(colon + 1, ':'))
		reader_error(reader, &member->place, "must be \"PROVIDER:NAME\"");
	symbol_check(reader, &member->place, call->probe, false);
	take_symbol(reader, &member->place, seen, call->probe);
}

static void require_file(struct reader *reader, const struct member *members, const struct member *member)
{
	if (!members[ONLY_IN].value)
		reader_error(reader, &member->place,
			     "is looked for in few files: 'file' must say what they are called");
}

/* Not shorter: in a large library a short string is the tail or the begin of others. */
static void read_reference(struct reader *reader, const struct member *members, struct call_spec *call)
{
	const struct member *member = &members[REFERS_TO];
	size_t length;

	call->locate = LOCATE_REFERENCE;
	call->refers_to = reader_string(reader, member);
	length = call->refers_to ? strlen(call->refers_to) : 0;
	if (length < REFERENCE_MIN || length > REFERENCE_MAX)
		reader_error(reader, &member->place, "must have %d to %d bytes", REFERENCE_MIN, REFERENCE_MAX);
	require_file(reader, members, member);
}

static void read_method(struct reader *reader, const struct member *members, struct call_spec *call)
{
	const struct member *member = &members[METHOD_OF];

	call->locate = LOCATE_VIRTUAL;
	call->method_of = reader_string(reader, member);
	if (!members[SLOT].value)
		reader_error(reader, &member->place, "needs the slot of its virtual table");
	require_file(reader, members, member);
	call->slot = reader_number(reader, &members[SLOT], 0, CALL_SLOT_MAX, 0);
}

static void read_place(struct reader *reader, const struct member *members, struct calls_seen *seen,
		       struct call_spec *call)
{
	if (members[METHOD_OF].value) {
		read_method(reader, members, call);
	} else if (members[SLOT].value) {
		read_slot(reader, &members[SLOT], seen, call);
	} else if (members[PROBE].value) {
		read_probe(reader, &members[PROBE], seen, call);
	} else if (members[REFERS_TO].value) {
		read_reference(reader, members, call);
	} else if (members[CALLBACK_OF].value) {
		/* The call that it names is resolved when all are there. */
		call->locate = LOCATE_CALLBACK;
		call->callback_of = reader_string(reader, &members[CALLBACK_OF]);
	} else {
		read_symbols(reader, members, seen, call);
	}
}

static void read_locate(struct reader *reader, const struct json_place *place, const struct member *members,
			struct calls_seen *seen, struct call_spec *call)
{
	int ways = !!members[SYMBOL].value + !!members[SYMBOLS].value +
		   (members[SLOT].value || members[METHOD_OF].value) + !!members[PROBE].value +
		   !!members[REFERS_TO].value + !!members[CALLBACK_OF].value;

	if (ways != 1)
		reader_error(reader, place,
			     "must have one of symbol, symbols, slot, probe, refers_to, callback_of and method_of");
	if (members[ONLY_IN].value &&
	    ((members[SLOT].value && !members[METHOD_OF].value) || members[PROBE].value || members[CALLBACK_OF].value))
		reader_error(reader, &members[ONLY_IN].place,
			     "is for functions that are found by their symbols, or by what they refer to");
	call->file = reader_optional_string(reader, &members[ONLY_IN]);
	if (!reader->error)
		read_place(reader, members, seen, call);
	call->function = reader_optional_string(reader, &members[NAME]);
	if (call->function || reader->error)
		return;
	if (call->locate != LOCATE_PROBE && call->locate != LOCATE_SYMBOL) {
		reader_error(reader, place, "a function that is not found by its symbol needs a name");
		return;
	}
	call->function = strdup(call->locate == LOCATE_PROBE ? call->probe : call->symbols[0]);
	if (!call->function)
		reader_fail(reader, -ENOMEM);
}

/* ---- what it means ---- */

#define ROLES_INTERNAL \
	(1ull << XPT_ROLE_TABLE | 1ull << XPT_ROLE_LOADER | 1ull << XPT_ROLE_OPERATOR | 1ull << XPT_ROLE_OPERATOR_END)

static void read_role(struct reader *reader, const struct member *member, struct xpt_spec *spec)
{
	int role = role_from_name(cJSON_GetStringValue(member->value) ?: "");

	if (role > 0 && ROLES_INTERNAL >> role & 1)
		reader_error(reader, &member->place, "role '%s' is internal", role_name(role));
	spec->role = reader_choice(reader, member, "role ", role_names, ROLE_NAMES, ~ROLES_INTERNAL);
}

static void read_success(struct reader *reader, const struct member *member, struct call_spec *call)
{
	static const char *const names[] = {
		[XPT_SUCCESS_ALWAYS] = "always",
		[XPT_SUCCESS_ZERO32] = "zero",
		[XPT_SUCCESS_ZERO64] = "null",
		[XPT_SUCCESS_NONZERO] = "nonzero",
	};

	if (!member->value)
		return;
	call->wire.success = reader_choice(reader, member, "", names, COUNT_OF(names), ~0ull);
	call->has_status = call->wire.success == XPT_SUCCESS_ZERO32 || call->wire.success == XPT_SUCCESS_ZERO64;
}

static void read_entry_only(struct reader *reader, const struct member *members, struct call_spec *call)
{
	struct xpt_spec *spec = &call->wire;
	bool entry_only = reader_bool(reader, &members[ENTRY_ONLY]);

	if (!entry_only && members[PROBE].value)
		reader_error(reader, &members[PROBE].place,
			     "is a place, not a function that returns: the call must be entry_only");
	if (call->locate == LOCATE_CALLBACK && spec->role != XPT_ROLE_WAIT)
		reader_error(reader, &members[ROLE].place, "must be wait: that is what a callback ends");
	/* A region's end is reported separately; a callback begins when the work that it is for has ended. */
	if (!entry_only && spec->role != XPT_ROLE_REGION && call->locate != LOCATE_CALLBACK)
		return;
	if (spec->role == XPT_ROLE_EXECUTE)
		reader_error(reader, &members[ENTRY_ONLY].place, "when a call of role %s returns is what it is for",
			     role_name(spec->role));
	if (spec->success != XPT_SUCCESS_ALWAYS && !(call->locate == LOCATE_CALLBACK && call->has_status))
		reader_error(reader, &members[SUCCESS].place, "is not known at the entry, and the call is entry_only");
	spec->flags |= XPT_SPEC_ENTRY_ONLY;
}

/* ---- the code object that it gives to the runtime ---- */

enum { BYTES, PARTS, PATH, DESCRIPTOR, SIZE, SIZES, COUNT, KIND, CODE_NOTE, CODE_MEMBERS };
#define SOURCES SIZE /* the first members are the sources of the code; there is exactly one of them */

enum value { ADDRESS, NUMBER, STRING };

/* A member that is fetched. */
struct place_rule {
	__u8 index;	/* XPT_CODE_BYTES, ... */
	__u8 value;	/* enum value */
	__u8 sources;	/* bit i: may be used with member i */
	__u8 needed_by; /* bit i: must be used with member i */
};

#define WITH(source) (1u << (source))
static const struct place_rule rules[] = {
	[BYTES] = { XPT_CODE_BYTES, ADDRESS, WITH(BYTES), WITH(BYTES) },
	[PARTS] = { XPT_CODE_BYTES, ADDRESS, WITH(PARTS), WITH(PARTS) },
	[PATH] = { XPT_CODE_BYTES, STRING, WITH(PATH), WITH(PATH) },
	[DESCRIPTOR] = { XPT_CODE_BYTES, NUMBER, WITH(DESCRIPTOR), WITH(DESCRIPTOR) },
	[SIZE] = { XPT_CODE_SIZE, NUMBER, WITH(BYTES), 0 },
	[SIZES] = { XPT_CODE_SIZE, ADDRESS, WITH(PARTS), WITH(PARTS) },
	[COUNT] = { XPT_CODE_COUNT, NUMBER, WITH(PARTS), WITH(PARTS) },
};

static const enum xpt_code_source sources[] = {
	[BYTES] = XPT_CODE_MEMORY,
	[PARTS] = XPT_CODE_PARTS,
	[PATH] = XPT_CODE_PATH,
	[DESCRIPTOR] = XPT_CODE_DESCRIPTOR,
};

static void check_code_fetch(struct reader *reader, void *context, const struct json_place *place,
			     const struct xpt_fetch *fetch)
{
	const struct place_rule *rule = context;

	if (fetch->at_return)
		reader_error(reader, place, "is read when the call begins, never at the return");
	if (rule->value == STRING && fetch->type != XPT_TYPE_STRING)
		reader_error(reader, place, "must be of type string");
	if (rule->value != STRING && fetch->type == XPT_TYPE_STRING)
		reader_error(reader, place, "only a path can be of type string");
	if (rule->value == ADDRESS && fetch->type != XPT_TYPE_U64)
		reader_error(reader, place, "is an address, and must be of type u64");
}

/* Which of the first members is there: exactly one, or an error. */
static int find_source(struct reader *reader, const struct member *code, const struct member *members)
{
	int source = -1;

	for (int i = 0; i < SOURCES; i++) {
		if (members[i].value && source >= 0)
			reader_error(reader, &members[i].place, "%s is there already", members[source].key);
		else if (members[i].value)
			source = i;
	}
	if (source < 0)
		reader_error(reader, &code->place, "must have one of bytes, parts, path and descriptor");
	return source;
}

static void check_beside(struct reader *reader, const struct member *code, const struct member *members, int source)
{
	for (int i = 0; i < KIND; i++) {
		if (members[i].value && !(rules[i].sources & WITH(source)))
			reader_error(reader, &members[i].place, "does not go with %s", members[source].key);
		if (!members[i].value && rules[i].needed_by & WITH(source))
			reader_error(reader, &code->place, "%s needs %s", members[source].key, members[i].key);
	}
}

static enum code_kind read_kind(struct reader *reader, const struct member *member)
{
	const char *names[CODE_KINDS] = { NULL };

	for (int i = CODE_UNKNOWN + 1; i < CODE_KINDS; i++)
		names[i] = code_kind_name(i);
	return member->value ? reader_choice(reader, member, "kind ", names, CODE_KINDS, ~0ull) : CODE_UNKNOWN;
}

/* Whether what must be there for the source is fetched on this architecture. */
static bool read_code_fetches(struct reader *reader, const struct member *members, int source,
			      struct xpt_code_spec *code)
{
	bool complete = true;

	for (int i = 0; i < KIND; i++) {
		bool given = members[i].value && fetch_member_parse(reader, &members[i], 0, check_code_fetch,
								    (void *)&rules[i], &code->fetch[rules[i].index]);

		if (given)
			code->given |= 1u << rules[i].index;
		else if (rules[i].needed_by & WITH(source))
			complete = false;
	}
	return complete;
}

/* Where the member has nothing for this architecture, there is no code. */
static void read_code(struct reader *reader, const struct member *member, struct call_spec *call)
{
	struct member members[CODE_MEMBERS] = {
		[BYTES] = { .key = "bytes" },		[PARTS] = { .key = "parts" }, [PATH] = { .key = "path" },
		[DESCRIPTOR] = { .key = "descriptor" }, [SIZE] = { .key = "size" },   [SIZES] = { .key = "sizes" },
		[COUNT] = { .key = "count" },		[KIND] = { .key = "kind" },   [CODE_NOTE] = { .key = "note" },
	};
	enum xpt_role role = call->wire.role;
	int source;

	if (!member->value || reader->error)
		return;
	if (role != XPT_ROLE_CODEOBJ_LOAD && role != XPT_ROLE_PROGRAM_LOAD && role != XPT_ROLE_PROGRAM_NAME)
		reader_error(reader, &member->place, "is for roles codeobj.load, program.load and program.name");
	reader_members(reader, member->value, &member->place, members, CODE_MEMBERS);
	reader_note(reader, &members[CODE_NOTE]);
	source = find_source(reader, member, members);
	if (reader->error)
		return;
	check_beside(reader, member, members, source);
	call->code_kind = read_kind(reader, &members[KIND]);
	if (read_code_fetches(reader, members, source, &call->code)) {
		call->code.source = sources[source];
	} else {
		call->code = (struct xpt_code_spec){ 0 };
		call->code_kind = CODE_UNKNOWN;
	}
}

/* ---- calls ---- */

void call_spec_parse(struct reader *reader, const struct member *element, void *item, void *context)
{
	struct call_spec *call = item;
	struct member members[MEMBERS] = {
		[SYMBOL] = { .key = "symbol" },	      [SYMBOLS] = { .key = "symbols" },
		[SLOT] = { .key = "slot" },	      [PROBE] = { .key = "probe" },
		[REFERS_TO] = { .key = "refers_to" }, [CALLBACK_OF] = { .key = "callback_of" },
		[METHOD_OF] = { .key = "method_of" }, [ONLY_IN] = { .key = "file" },
		[NAME] = { .key = "name" },	      [ROLE] = { .key = "role" },
		[SUCCESS] = { .key = "success" },     [FETCH] = { .key = "fetch" },
		[CODE] = { .key = "code" },	      [ENTRY_ONLY] = { .key = "entry_only" },
		[RUNS] = { .key = "runs" },	      [NOTE] = { .key = "note" },
	};

	reader_members(reader, element->value, &element->place, members, MEMBERS);
	if (members[RUNS].value)
		call->runs = reader_string(reader, &members[RUNS]);
	reader_note(reader, &members[NOTE]);
	read_locate(reader, &element->place, members, context, call);
	read_role(reader, &members[ROLE], &call->wire);
	read_success(reader, &members[SUCCESS], call);
	read_entry_only(reader, members, call);
	call_fetches_parse(reader, &element->place, &members[FETCH], members[SUCCESS].value != NULL, call);
	read_code(reader, &members[CODE], call);
}

void call_spec_clear(struct call_spec *call)
{
	string_array_free(call->symbols, call->symbol_count);
	free(call->function);
	free(call->runs);
	free(call->probe);
	free(call->refers_to);
	free(call->callback_of);
	free(call->method_of);
	free(call->file);
	memset(call, 0, sizeof(*call));
}

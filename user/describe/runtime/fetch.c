/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/fetch.h"

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

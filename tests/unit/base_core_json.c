/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/json.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Copies into memory of just that size, so that a sanitizer sees a read beyond the end. */
static bool check(const char *text, size_t length)
{
	char *copy = malloc(length ? length : 1);
	bool result;

	memcpy(copy, text, length);
	result = json_is_object(copy, length);
	free(copy);
	return result;
}

Test(base_core_json, objects)
{
	static const char *const good[] = {
		"{}",
		" { } \n",
		"{\"a\":1}",
		"{\"a\":[1,2,{\"b\":null}],\"c\":true,\"d\":false}",
		"{\"a\":-0.5e+10,\"b\":0,\"c\":1E5}",
		"{\"a\":\"\\u00ff\\\"\\\\\\/\\b\\f\\n\\r\\t\"}",
		"{\"\xc3\xa9\":[]}",
	};
	size_t i;

	for (i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		cr_assert(check(good[i], strlen(good[i])), "%s", good[i]);
}

Test(base_core_json, everything_else)
{
	static const char *const bad[] = {
		"",
		" ",
		"[]",
		"1",
		"\"a\"",
		"null",
		"{",
		"}",
		"{}}",
		"{}{}",
		"{} x",
		"{\"a\"}",
		"{\"a\":}",
		"{a:1}",
		"{'a':1}",
		"{\"a\":1,}",
		"{,}",
		"{\"a\":[1,]}",
		"{\"a\":[,1]}",
		"{\"a\":01}",
		"{\"a\":1.}",
		"{\"a\":.5}",
		"{\"a\":+1}",
		"{\"a\":1e}",
		"{\"a\":-}",
		"{\"a\":NaN}",
		"{\"a\":tru}",
		"{\"a\":\"\\x\"}",
		"{\"a\":\"\\u12g4\"}",
		"{\"a\":\"\\u12",
		"{\"a\":\"\n\"}",
		"{\"a\":\"\xff\"}",
		"{\"a\":\"\xed\xa0\x80\"}",
		"{\"a\":\"",
		"{\"a\":\"\\",
		"{\"a\" 1}",
		"{\"a\":1 \"b\":2}",
		"{1:2}",
		"\xef\xbb\xbf{}",
	};
	size_t i;

	for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		cr_assert_not(check(bad[i], strlen(bad[i])), "%s", bad[i]);
	cr_assert_not(check("{}\0", 3));
	cr_assert_not(check("{\"a\":\"\\\0\"}", 10));
}

Test(base_core_json, every_shortening_is_refused)
{
	static const char text[] = "{\"a\":[1.5e3,\"x\\u0041\xc3\xa9\",{\"b\":null,\"c\":[true,false]}]}";
	size_t length;

	cr_assert(check(text, sizeof(text) - 1));
	for (length = 0; length < sizeof(text) - 1; length++)
		cr_assert_not(check(text, length), "%zu", length);
}

Test(base_core_json, depth_is_bounded)
{
	char text[1024];
	int depth;

	for (depth = 1; depth < 200; depth++) {
		int i, at = 0;

		at += sprintf(text, "{\"a\":");
		for (i = 1; i < depth; i++)
			text[at++] = '[';
		text[at++] = '0';
		for (i = 1; i < depth; i++)
			text[at++] = ']';
		text[at++] = '}';
		cr_assert_eq(check(text, at), depth <= JSON_DEPTH_MAX, "%d", depth);
	}
}

static struct json_part part(const char *text)
{
	return (struct json_part){ text, strlen(text) };
}

Test(base_core_json, members)
{
	const char *text = " { \"a\" : [1, {\"b\":2}] , \"\\u0061\":\"x,}\",\"c\":{} }", *at = text;
	static const char *const names[] = { "a", "\\u0061", "c" }, *const values[] = { "[1, {\"b\":2}]", "\"x,}\"",
											"{}" };
	struct json_part name, value;

	for (size_t i = 0; i < 3; i++) {
		cr_assert(json_next_member(&at, text + strlen(text), &name, &value));
		cr_assert(json_part_is(&name, names[i]));
		cr_assert(json_part_is(&value, values[i]), "%.*s", (int)value.length, value.text);
	}
	cr_assert_not(json_next_member(&at, text + strlen(text), &name, &value));
	value = json_member(part(text), "c");
	cr_assert(json_part_is(&value, "{}"));
	cr_assert_eq(json_member(part(text), "b").length, 0);
	cr_assert_eq(json_member(part("[1]"), "a").length, 0);
	cr_assert_eq(json_member((struct json_part){ 0 }, "a").length, 0);
	value = json_inside(part("\"x\""));
	cr_assert(json_part_is(&value, "x"));
	cr_assert_eq(json_inside(part("\"\"")).length, 0);
	cr_assert_eq(json_inside(part("12")).length, 0);
}

Test(base_core_json, elements)
{
	const char *text = " [ 1 , [2,{}],\"a,]\" , {} ] ", *at = text;
	static const char *const values[] = { "1", "[2,{}]", "\"a,]\"", "{}" };
	struct json_part value;

	for (size_t i = 0; i < 4; i++) {
		cr_assert(json_next_element(&at, text + strlen(text), &value));
		cr_assert(json_part_is(&value, values[i]), "%.*s", (int)value.length, value.text);
	}
	cr_assert_not(json_next_element(&at, text + strlen(text), &value));
	at = "[ ]";
	cr_assert_not(json_next_element(&at, at + 3, &value));
	at = "{}";
	cr_assert_not(json_next_element(&at, at + 2, &value));
}

Test(base_core_json, decoded)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "a\xc3\xa9", "a\xc3\xa9" },
		{ "\\\"\\\\\\/\\b\\f\\n\\r\\t", "\"\\/\b\f\n\r\t" },
		{ "\\u0041\\u00e9\\u20AC", "A\xc3\xa9\xe2\x82\xac" },
		{ "\\ud83d\\ude00", "\xf0\x9f\x98\x80" },
		{ "\\udbff\\udfff", "\xf4\x8f\xbf\xbf" },
		{ "\\u0000", "\xef\xbf\xbd" },
		{ "\\ud83d", "\xef\xbf\xbd" }, /* half a pair */
		{ "\\ude00a", "\xef\xbf\xbd"
			      "a" },
		{ "\\ud83d\\u0041", "\xef\xbf\xbd"
				    "A" },
		{ "\\ud83d\\n12345", "\xef\xbf\xbd\n12345" },
		{ "\\ud83dabcdef", "\xef\xbf\xbd"
				   "abcdef" },
	};
	char text[64], *to;
	size_t length;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		snprintf(text, sizeof(text), "\"%s\"", cases[i][0]);
		cr_assert(json_check(text, strlen(text), &length), "%s", text);
		to = malloc(strlen(cases[i][0]) + 1); /* not a byte more than it may take */
		length = json_decode(part(cases[i][0]), to);
		cr_assert_leq(length, strlen(cases[i][0]));
		to[length] = '\0';
		cr_assert_str_eq(to, cases[i][1]);
		free(to);
	}
}

Test(base_core_json, faults_have_a_place)
{
	static const struct {
		const char *text;
		size_t fault;
	} bad[] = { { "", 0 }, { "[1,2", 4 }, { "[1,x]", 3 }, { "{\"a\":\"b\x01\"}", 7 }, { "1 2", 2 } };
	size_t fault;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_assert_not(json_check(bad[i].text, strlen(bad[i].text), &fault));
		cr_assert_eq(fault, bad[i].fault, "%s: %zu", bad[i].text, fault);
	}
	cr_assert(json_check(" 1 ", 3, &fault));
}

/* ---- writing ---- */

static void expect_text(struct text *text, const char *expected)
{
	cr_assert_eq(text->error, 0);
	cr_expect_eq(text->length, strlen(expected));
	cr_expect(!memcmp(text->data, expected, text->length), "%.*s instead of %s", (int)text->length, text->data,
		  expected);
	text_free(text);
}

Test(base_core_json, writes_members_and_elements)
{
	struct text text = {};

	json_begin(&text, NULL, '{');
	json_begin(&text, "none", '[');
	json_end(&text, ']');
	json_begin(&text, "some", '[');
	json_add_signed(&text, NULL, -1);
	json_begin(&text, NULL, '{');
	json_add_bool(&text, "a", true);
	json_add_bool(&text, "b", false);
	json_end(&text, '}');
	json_add_string(&text, NULL, "");
	json_end(&text, ']');
	json_add_unsigned(&text, "most", ~0ull);
	json_add_real(&text, "tenth", 0.1);
	json_end(&text, '}');
	expect_text(&text, "{\"none\":[],\"some\":[-1,{\"a\":true,\"b\":false},\"\"],\"most\":18446744073709551615,"
			   "\"tenth\":0.10000000000000001}");
}

Test(base_core_json, writes_any_string)
{
	struct text text = {};

	json_begin(&text, NULL, '{');
	json_add_string(&text, "a\"b", "{[\"\\\n\x01\xc3\xa9\xff");
	json_add_string(&text, "left out", NULL);
	json_add_string(&text, "c", "d");
	json_end(&text, '}');
	expect_text(&text, "{\"a\\\"b\":\"{[\\\"\\\\\\u000a\\u0001\xc3\xa9\xff\",\"c\":\"d\"}");
}

Test(base_core_json, a_part_that_cannot_be_written_stays_an_error)
{
	struct text text = {};

	json_begin(&text, NULL, '[');
	text_fail(&text);
	json_add_string(&text, NULL, "a");
	json_end(&text, ']');
	cr_expect_eq(text.error, -ENOMEM);
	cr_expect_eq(text.length, 1);
	text_free(&text);
}

/* ---- parsing ---- */

/* Memory of just that size, as in check(). */
static int parse(const char *text, cJSON **object)
{
	size_t length = strlen(text);
	char *copy = malloc(length ? length : 1);
	int error;

	memcpy(copy, text, length);
	error = json_parse(copy, length, object);
	free(copy);
	return error;
}

Test(base_core_json, parses_objects)
{
	static const char *const bad[] = { "", "{", "{\"a\":1", "[1]", "1", "null", "\"a\"" };
	cJSON *object;

	cr_assert_eq(parse("{\"a\":12}", &object), 0);
	cr_expect_eq(cJSON_GetNumberValue(cJSON_GetObjectItem(object, "a")), 12);
	cJSON_Delete(object);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		errno = ENOMEM; /* of something before */
		cr_expect_eq(parse(bad[i], &object), -EBADMSG, "%s", bad[i]);
		cr_expect_null(object);
	}
}

static void *no_memory(size_t size)
{
	(void)size;
	errno = ENOMEM;
	return NULL;
}

Test(base_core_json, no_memory_is_no_fault_of_the_text)
{
	cJSON_Hooks hooks = { no_memory, free };
	cJSON *object;

	cJSON_InitHooks(&hooks);
	cr_expect_eq(parse("{\"a\":12}", &object), -ENOMEM);
	cr_expect_null(object);
	cJSON_InitHooks(NULL);
}

Test(base_core_json, lines_and_long_numbers)
{
	struct text text = { 0 };

	json_begin(&text, NULL, '{');
	json_newline(&text);
	json_add_long(&text, "long", 18446744073709551615ull);
	json_add_hexadecimal(&text, "handle", 0x1f);
	json_add_nonzero(&text, "none", 0);
	json_add_nonzero(&text, "some", 1);
	json_add_microseconds(&text, "time_us", 1234567);
	json_newline(&text);
	json_begin(&text, "lines", '[');
	for (int i = 0; i < 2; i++) {
		json_newline(&text);
		json_key(&text, NULL);
		text_signed(&text, i);
	}
	json_end(&text, ']');
	json_end(&text, '}');
	text_bytes(&text, "", 1);
	cr_assert_str_eq(text.data, "{\n\"long\":\"18446744073709551615\",\"handle\":\"0x1f\",\"some\":1,"
				    "\"time_us\":1234.567,\n\"lines\":[\n0,\n1]}");
	text_free(&text);
}

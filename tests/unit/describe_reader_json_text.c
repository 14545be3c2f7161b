/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/reader/json_text.h"

#include "describe_support.h"

/* One value a line, so that lines tell places apart; brackets, quotes and commas inside strings. */
static const char text[] = "\xef\xbb\xbf \n"
			   "{\n"
			   "\"a\\\"]}\": \"x,\\\\\",\n"
			   "\"b\": [\n"
			   "[1, {\"q\": [2, 3]}, \"]\"],\n"
			   "-1.5e3\n"
			   ",{\n"
			   "\"c\"\n"
			   ":\n"
			   "{\"d\": null,\n"
			   "\"e\": true}}\n"
			   "], \"b\": [],\n"
			   "\"f\": {}}\n";

static unsigned int line(const struct json_place *place)
{
	return json_locate(text, strlen(text), place);
}

Test(describe_reader_json_text, lines_of_places)
{
	struct json_place a = { NULL, "a\"]}", 0 }, b = { NULL, "b", 1 }, again = { NULL, "b", 2 },
			  f = { NULL, "f", 3 };
	struct json_place first = { &b, NULL, 0 }, second = { &b, NULL, 1 }, third = { &b, NULL, 2 };
	struct json_place c = { &third, "c", 0 }, d = { &c, "d", 0 }, e = { &c, "e", 1 };

	cr_expect_eq(line(NULL), 2);
	cr_expect_eq(line(&a), 3);
	cr_expect_eq(line(&b), 4);
	cr_expect_eq(line(&first), 5);
	cr_expect_eq(line(&second), 6);
	cr_expect_eq(line(&third), 7);
	cr_expect_eq(line(&c), 8);
	cr_expect_eq(line(&d), 10);
	cr_expect_eq(line(&e), 11);
	cr_expect_eq(line(&again), 12);
	cr_expect_eq(line(&f), 13);
}

Test(describe_reader_json_text, places_that_are_not_there)
{
	struct json_place a = { NULL, "a", 0 }, inside = { &a, "b", 0 }, far = { NULL, "z", 1000 };
	struct json_place below = { &far, NULL, 3 };

	cr_expect_leq(line(&inside), 14);
	cr_expect_leq(line(&far), 14);
	cr_expect_leq(line(&below), 14);
	/* Every cut of the text: no read beyond it, no endless loop. */
	for (size_t length = 0; length < strlen(text); length++) {
		char *cut = malloc(length + 1);

		memcpy(cut, text, length);
		cr_expect_leq(json_locate(cut, length, &below), 14);
		cr_expect_leq(json_locate(cut, length, &inside), 14);
		free(cut);
	}
}

Test(describe_reader_json_text, paths)
{
	struct json_place calls = { NULL, "calls", 5 }, call = { &calls, NULL, 3 }, fetch = { &call, "fetch", 2 };
	struct json_place program = { &fetch, "program", 0 }, hostile = { &fetch, "a\x1b[2J", 0 };
	char path[JSON_PATH_MAX], key[300];
	struct json_place long_key = { &call, key, 0 };

	json_path(NULL, path);
	cr_expect_str_eq(path, "");
	json_path(&program, path);
	cr_expect_str_eq(path, "calls[3].fetch.program");
	json_path(&hostile, path);
	cr_expect_str_eq(path, "calls[3].fetch.a?[2J");
	memset(key, 'k', sizeof(key) - 1);
	key[sizeof(key) - 1] = '\0';
	json_path(&long_key, path);
	cr_expect_eq(strlen(path), JSON_PATH_MAX - 1);
}

Test(describe_reader_json_text, line_numbers)
{
	cr_expect_eq(json_line("a\nb\nc", 5, 0), 1);
	cr_expect_eq(json_line("a\nb\nc", 5, 1), 1);
	cr_expect_eq(json_line("a\nb\nc", 5, 2), 2);
	cr_expect_eq(json_line("a\nb\nc", 5, 4), 3);
	cr_expect_eq(json_line("a\nb\nc", 5, 400), 3);
	cr_expect_eq(json_line("", 0, 0), 1);
}

Test(describe_reader_json_text, utf8)
{
	static const struct {
		const char *bytes;
		size_t length, sequence;
	} cases[] = {
		{ "a", 1, 1 },
		{ "\xc3\xa9", 2, 2 },
		{ "\xe2\x82\xac", 3, 3 },
		{ "\xf0\x9f\x98\x80", 4, 4 },
		{ "\xf4\x8f\xbf\xbf", 4, 4 },
		{ "\xef\xbf\xbf", 3, 3 },
		{ "\xc3", 1, 0 }, /* cut off */
		{ "\xe2\x82", 2, 0 },
		{ "\xc3(", 2, 0 }, /* no continuation */
		{ "\x80", 1, 0 },  /* continuation alone */
		{ "\xff", 1, 0 },
		{ "\xc0\x80", 2, 0 }, /* overlong */
		{ "\xc1\xbf", 2, 0 },
		{ "\xe0\x9f\xbf", 3, 0 },
		{ "\xf0\x8f\xbf\xbf", 4, 0 },
		{ "\xed\xa0\x80", 3, 0 }, /* surrogate */
		{ "\xed\xbf\xbf", 3, 0 },
		{ "\xf4\x90\x80\x80", 4, 0 }, /* beyond U+10FFFF */
		{ "\xf8\x88\x80\x80\x80", 5, 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(utf8_sequence(cases[i].bytes, cases[i].length), cases[i].sequence, "case %zu", i);
}

static void expect_check(const char *bytes, size_t length, const char *reason, size_t offset)
{
	size_t at = 0;
	const char *found = json_text_check(bytes, length, &at);

	if (!reason) {
		cr_expect_null(found, "%s: %s", bytes, found);
		return;
	}
	cr_assert_not_null(found, "%s", bytes);
	cr_expect_str_eq(found, reason);
	cr_expect_eq(at, offset, "%s: at %zu", bytes, at);
}
#define EXPECT_CHECK(bytes, reason, offset) expect_check(bytes, sizeof(bytes) - 1, reason, offset)

Test(describe_reader_json_text, refused_bytes)
{
	EXPECT_CHECK("", NULL, 0);
	EXPECT_CHECK("{\"a\\\"\": \"\\u00e9 \xc3\xa9 \\\\u0000\"}", NULL, 0);
	EXPECT_CHECK("{\"a\": \"\\u0000\"}", "\\u0000 in a string", 7);
	EXPECT_CHECK("{\"a\": \"\\\\\\u0000\"}", "\\u0000 in a string", 9);
	EXPECT_CHECK("{\"a\\\"\\u0000\": 1}", "\\u0000 in a string", 5);
	EXPECT_CHECK("\"a\" \\u0000", NULL, 0); /* outside of strings: for the parser to refuse */
	EXPECT_CHECK("{\0}", "a NUL byte", 1);
	EXPECT_CHECK("\"\0\"", "a NUL byte", 1);
	EXPECT_CHECK("\"\xff\"", "not valid UTF-8", 1);
	EXPECT_CHECK("\"abc\xe2\x82", "not valid UTF-8", 4);
	EXPECT_CHECK("\"\\", NULL, 0);
	EXPECT_CHECK("\"\\u000", NULL, 0);
}

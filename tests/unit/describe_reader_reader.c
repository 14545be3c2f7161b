/* SPDX-License-Identifier: BSD-2-Clause */
/* What is wrong with a file as such, and values of the wrong kind. */
#include "describe/reader/reader.h"

#include "base/core/text.h"
#include "describe_support.h"

Test(describe_reader_reader, syntax)
{
	static const struct refused cases[] = {
		{ "", "toy.json:1: not valid JSON at the end of the file" },
		{ "\n\n  ", "toy.json:3: not valid JSON at the end of the file" },
		{ "{", "toy.json:1: not valid JSON at the end of the file" },
		{ "{\n\"schema\": 1,\n\"runtime\" \"toy\"}", "toy.json:3: not valid JSON at '\"toy\"}'" },
		{ "{\n\"schema\": 1,\n}", "toy.json:3: not valid JSON at the end of the file" },
		{ "{\n\"schema\": 1\n}\n{}", "toy.json:4: not valid JSON at '{}'" },
		{ "{\n\"schema\": 01x\n}", "toy.json:2: not valid JSON at 'x?}'" },
		{ "[]", "toy.json:1: must be an object" },
		{ "\n\n1", "toy.json:3: must be an object" },
		{ "null", "toy.json:1: must be an object" },
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_reader_reader, hostile_bytes)
{
	static const char nul[] = "{\n\"schema\": 1,\n\"run\0time\": \"toy\"}";
	static const char escaped[] = "{\n\"schema\": 1,\n\"runtime\": \"toy\\u0000x\"}";
	static const char latin[] = "{\n\"schema\": 1,\n\"runtime\": \"toy\",\n\"title\": \"\xe9t\xe9\"}";

	expect_refused_bytes(nul, sizeof(nul) - 1, "toy.json:3: a NUL byte");
	expect_refused_bytes(escaped, sizeof(escaped) - 1, "toy.json:3: \\u0000 in a string");
	expect_refused_bytes(latin, sizeof(latin) - 1, "toy.json:4: not valid UTF-8");
}

Test(describe_reader_reader, messages_hold_no_control_bytes)
{
	expect_refused("{\"\\u001b[2J\": 1}",
		       "toy.json:1: ?[2J: unknown key (known: schema runtime title note "
		       "libraries identify over in_order streams_of table operators names statuses calls)");
	expect_refused("{\"\\u009b2J\": 1}",
		       "toy.json:1: ??2J: unknown key (known: schema runtime title note "
		       "libraries identify over in_order streams_of table operators names statuses calls)");
	expect_refused(
		TOY("{\"symbol\": \"toy_run\", \"role\": \"\\u001b]0;x\\u0007\"}"),
		"toy.json:7: calls[0].role: unknown role '?]0;x?' (known: program.load program.name "
		"program.unload execute enqueue wait launch copy alloc free select region.begin region.end "
		"codeobj.load codeobj.unload resolve region.name region.release region.print region mark stream callback program.ready follow)");
}

Test(describe_reader_reader, deep_nesting)
{
	size_t depth = 200000;
	char *text = malloc(2 * depth);
	struct description *description;
	struct said said;

	memset(text, '[', depth);
	memset(text + depth, ']', depth);
	cr_expect_eq(parse_bytes(text, 2 * depth, &said, &description), -EINVAL);
	cr_expect_eq(strncmp(said.text, "toy.json:1: not valid JSON at '[", 32), 0, "%s", said.text);
	cr_expect_eq(parse_bytes(text, depth, &said, &description), -EINVAL);
	for (size_t i = 0; i + 5 <= depth; i += 5)
		memcpy(text + i, "{\"a\":", 5);
	cr_expect_eq(parse_bytes(text, depth, &said, &description), -EINVAL);
	free(text);
}

Test(describe_reader_reader, too_large)
{
	size_t length = (1 << 20) + 1;
	char *text = malloc(length);
	struct description *description;
	struct said said;

	memset(text, ' ', length);
	cr_expect_eq(parse_bytes(text, length, &said, &description), -EINVAL);
	cr_expect_str_eq(said.text, "toy.json:1: the file is larger than 1 MiB");
	cr_expect_eq(parse_bytes(text, length - 1, &said, &description), -EINVAL);
	cr_expect_str_eq(said.text, "toy.json:1: not valid JSON at the end of the file");
	free(text);
}

Test(describe_reader_reader, members)
{
	static const struct refused cases[] = {
		{ "{\n\"schema\": 1,\n\"colour\": 2\n}",
		  "toy.json:3: colour: unknown key (known: schema runtime title "
		  "note libraries identify over in_order streams_of table operators names statuses calls)" },
		{ "{\n\"schema\": 1,\n\"title\": \"x\",\n\"schema\": 1\n}", "toy.json:4: schema: is there twice" },
		{ TOY("{\n\"symbol\": \"toy_run\",\n\"role\": \"execute\",\n\"fetches\": {}}"),
		  "toy.json:10: calls[0].fetches: unknown key (known: symbol symbols slot probe refers_to callback_of method_of file name role success fetch "
		  "code entry_only runs note)" },
		{ TOY("{\"symbol\": \"toy_run\", \"role\": \"execute\",\n\"fetch\": {\"program\": \"arg0\",\n"
		      "\"Size\": \"arg1\"}}"),
		  "toy.json:9: calls[0].fetch.Size: unknown key (known: program key name size core stream status parent "
		  "address count length keys blocking ordered when tokens position sequence next_sequence callback)" },
		{ TOY("{\"symbol\": \"toy_run\", \"role\": \"execute\",\n\"fetch\": {\"program\": \"arg0\",\n"
		      "\"program\": \"arg1\"}}"),
		  "toy.json:9: calls[0].fetch.program: is there twice" },
		{ TOY("{\"symbol\": \"toy_run\", \"role\": \"execute\", \"fetch\": []}"),
		  "toy.json:7: calls[0].fetch: must be an object" },
		{ TOY("3"), "toy.json:7: calls[0]: must be an object" },
	};

	EXPECT_ALL_REFUSED(cases);
}

Test(describe_reader_reader, numbers)
{
	static const struct {
		const char *number, *reason;
	} cases[] = {
		{ "\"1\"", "must be a number" },
		{ "null", "must be a number" },
		{ "1.5", "must be a whole number" },
		{ "-1", "is out of range (0 to 2147483647)" },
		{ "2147483648", "is out of range (0 to 2147483647)" },
		{ "1e999", "is out of range (0 to 2147483647)" },
		{ "-1e999", "is out of range (0 to 2147483647)" },
		{ "99999999999999999999999999999999999999", "is out of range (0 to 2147483647)" },
		{ "2", "schema 2 is not known, only 1 is" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[128], message[128];

		snprintf(text, sizeof(text), "{\n\"schema\": %s}", cases[i].number);
		snprintf(message, sizeof(message), "toy.json:2: schema: %s", cases[i].reason);
		expect_refused(text, message);
	}
}

Test(describe_reader_reader, strings)
{
	char text[512], name[300];

	expect_refused("{\"schema\": 1, \"runtime\": 3}", "toy.json:1: runtime: must be a string");
	expect_refused("{\"schema\": 1, \"runtime\": \"\"}", "toy.json:1: runtime: must not be empty");
	expect_refused("{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"a\\nb\"}",
		       "toy.json:1: title: holds a control character");
	expect_refused("{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"a\\u007f\"}",
		       "toy.json:1: title: holds a control character");
	expect_refused("{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"a\\u009bm\"}",
		       "toy.json:1: title: holds a control character");
	memset(name, 'n', 256);
	name[256] = '\0';
	snprintf(text, sizeof(text), "{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"%s\"}", name);
	expect_refused(text, "toy.json:1: title: is longer than 255 bytes");
	expect_refused("{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"T\",\n\"libraries\": \"a\"}",
		       "toy.json:2: libraries: must be an array of strings");
	expect_refused("{\"schema\": 1, \"runtime\": \"toy\", \"title\": \"T\",\n\"libraries\": [\"a\",\n\"b\",\n4]}",
		       "toy.json:4: libraries[2]: must be a string");
}

Test(describe_reader_reader, notes)
{
	description_free(parse(TOY("{\"symbol\": \"toy_run\", \"role\": \"copy\", \"note\": \"\"}")));
	description_free(parse(TOY("{\"symbol\": \"toy_run\", \"role\": \"copy\", \"note\": [\"a\\n\", \"b\"]}")));
	expect_refused(TOY("{\"symbol\": \"toy_run\", \"role\": \"copy\", \"note\": 1}"),
		       "toy.json:7: calls[0].note: must be a string, or an array of strings");
	expect_refused(TOY("{\"symbol\": \"toy_run\", \"role\": \"copy\", \"note\": [\"a\",\n1]}"),
		       "toy.json:8: calls[0].note[1]: must be a string");
}

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

Test(describe_reader_reader, lines_of_places)
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

Test(describe_reader_reader, places_that_are_not_there)
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

Test(describe_reader_reader, paths)
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

Test(describe_reader_reader, line_numbers)
{
	cr_expect_eq(json_line("a\nb\nc", 5, 0), 1);
	cr_expect_eq(json_line("a\nb\nc", 5, 1), 1);
	cr_expect_eq(json_line("a\nb\nc", 5, 2), 2);
	cr_expect_eq(json_line("a\nb\nc", 5, 4), 3);
	cr_expect_eq(json_line("a\nb\nc", 5, 400), 3);
	cr_expect_eq(json_line("", 0, 0), 1);
}

Test(describe_reader_reader, utf8)
{
	__u32 character;
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
		cr_expect_eq(text_decode(cases[i].bytes, cases[i].length, &character), cases[i].sequence, "case %zu",
			     i);
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

Test(describe_reader_reader, refused_bytes)
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

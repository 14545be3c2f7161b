/* SPDX-License-Identifier: BSD-2-Clause */
/* What is wrong with a file as such, and values of the wrong kind. */
#include "describe/reader/reader.h"

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
	expect_refused("{\"\\u001b[2J\": 1}", "toy.json:1: ?[2J: unknown key (known: schema runtime title note "
					      "libraries identify over in_order table operators names statuses calls)");
	expect_refused("{\"\\u009b2J\": 1}", "toy.json:1: ??2J: unknown key (known: schema runtime title note "
					     "libraries identify over in_order table operators names statuses calls)");
	expect_refused(
		TOY("{\"symbol\": \"toy_run\", \"role\": \"\\u001b]0;x\\u0007\"}"),
		"toy.json:7: calls[0].role: unknown role '?]0;x?' (known: program.load program.name "
		"program.unload execute enqueue wait launch copy alloc free select region.begin region.end "
		"codeobj.load codeobj.unload resolve region.name region.release region.print region mark stream callback program.ready)");
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
		  "note libraries identify over in_order table operators names statuses calls)" },
		{ "{\n\"schema\": 1,\n\"title\": \"x\",\n\"schema\": 1\n}", "toy.json:4: schema: is there twice" },
		{ TOY("{\n\"symbol\": \"toy_run\",\n\"role\": \"execute\",\n\"fetches\": {}}"),
		  "toy.json:10: calls[0].fetches: unknown key (known: symbol symbols slot probe refers_to callback_of method_of file name role success fetch "
		  "code entry_only note)" },
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

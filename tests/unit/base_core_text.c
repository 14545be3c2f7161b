/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/text.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static void expect(struct text *text, const char *expected)
{
	cr_assert_eq(text->error, 0);
	cr_assert_eq(text->length, strlen(expected), "'%.*s' is not '%s'", (int)text->length, text->data, expected);
	cr_assert_arr_eq(text->data, expected, text->length, "'%.*s' is not '%s'", (int)text->length, text->data,
			 expected);
	text->length = 0;
}

static const __u64 numbers[] = {
	0,
	1,
	9,
	10,
	11,
	99,
	100,
	101,
	999,
	1000,
	1001,
	9999,
	10000,
	123456789,
	999999999,
	1000000000,
	4294967295u,
	4294967296u,
	9999999999999999999ull,
	10000000000000000000ull,
	18446744073709551615ull,
	9223372036854775807ull,
	9223372036854775808ull,
};

Test(base_core_text, numbers_are_as_printf_writes_them)
{
	struct text text = { 0 };
	char expected[64];
	size_t i;

	for (i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		__u64 n = numbers[i];

		snprintf(expected, sizeof(expected), "%llu", n);
		text_unsigned(&text, n);
		expect(&text, expected);
		snprintf(expected, sizeof(expected), "%lld", (long long)n);
		text_signed(&text, n);
		expect(&text, expected);
		snprintf(expected, sizeof(expected), "0x%llx", n);
		text_hexadecimal(&text, n);
		expect(&text, expected);
		snprintf(expected, sizeof(expected), "%llu.%03llu", n / 1000, n % 1000);
		text_microseconds(&text, n);
		expect(&text, expected);
	}
	text_free(&text);
}

Test(base_core_text, real_numbers_are_json_in_every_locale)
{
	static const struct {
		double value;
		const char *text;
	} numbers[] = { { 0, "0" },	     { 1, "1" },
			{ -2.5, "-2.5" },    { 1.0 / 3, "0.333333333333" },
			{ 1e300, "1e+300" }, { 1.5e-300, "1.5e-300" },
			{ NAN, "null" },     { INFINITY, "null" } };
	struct text text = { 0 };

	/* Where it is installed, one with a comma for a point. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		text_clear(&text, 4096);
		text_real(&text, numbers[i].value);
		cr_assert_eq(text.length, strlen(numbers[i].text), "%.*s", (int)text.length, text.data);
		cr_assert_eq(memcmp(text.data, numbers[i].text, text.length), 0, "%s", numbers[i].text);
	}
	text_free(&text);
}

Test(base_core_text, growing_keeps_what_is_there)
{
	struct text text = { 0 };
	size_t i;

	for (i = 0; i < 100000; i++)
		text_bytes(&text, "0123456789" + i % 10, 1);
	cr_assert_eq(text.length, 100000);
	for (i = 0; i < 100000; i++)
		cr_assert_eq(text.data[i], '0' + (char)(i % 10));
	text_clear(&text, 1024);
	cr_assert_eq(text.capacity, 0);
	text_free(&text);
}

Test(base_core_text, no_memory_is_sticky_until_cleared)
{
	struct text text = { 0 };

	text_literal(&text, "abc");
	cr_assert_eq(text_reserve(&text, SIZE_MAX / 2), -ENOMEM);
	text_literal(&text, "def");
	text_json(&text, "x", 1);
	cr_assert_eq(text.error, -ENOMEM);
	cr_assert_eq(text.length, 3);
	text_clear(&text, 1024);
	text_literal(&text, "ghi");
	expect(&text, "ghi");
	text_free(&text);
}

static void expect_json(const char *bytes, size_t length, const char *expected)
{
	struct text text = { 0 };

	text_json(&text, bytes, length);
	expect(&text, expected);
	text_free(&text);
}

#define EXPECT_JSON(literal, expected) expect_json(literal, sizeof(literal) - 1, expected)
#define FFFD "\xef\xbf\xbd"

Test(base_core_text, json_strings)
{
	expect_json(NULL, 0, "\"\"");
	EXPECT_JSON("plain text that is longer than eight bytes", "\"plain text that is longer than eight bytes\"");
	EXPECT_JSON("\"\\/", "\"\\\"\\\\/\"");
	EXPECT_JSON("a\0b\n\t\x1b[31m\x7f", "\"a\\u0000b\\u000a\\u0009\\u001b[31m\\u007f\"");
	EXPECT_JSON("1234567\"1234567\\12345678\"", "\"1234567\\\"1234567\\\\12345678\\\"\"");
	EXPECT_JSON("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
	EXPECT_JSON("\xe2\x80\xa8", "\"\xe2\x80\xa8\"");
}

Test(base_core_text, json_replaces_what_is_not_utf8)
{
	EXPECT_JSON("a\x80z", "\"a" FFFD "z\"");
	EXPECT_JSON("\xff\xfe", "\"" FFFD FFFD "\"");
	EXPECT_JSON("\xc0\x80", "\"" FFFD FFFD "\"");			/* overlong NUL */
	EXPECT_JSON("\xe0\x80\xaf", "\"" FFFD FFFD FFFD "\"");		/* overlong slash */
	EXPECT_JSON("\xed\xa0\x80", "\"" FFFD FFFD FFFD "\"");		/* lone surrogate */
	EXPECT_JSON("\xf4\x90\x80\x80", "\"" FFFD FFFD FFFD FFFD "\""); /* beyond U+10FFFF */
	EXPECT_JSON("\xe2\x82", "\"" FFFD FFFD "\"");			/* cut off */
	EXPECT_JSON("\xf0\x9f\x98", "\"" FFFD FFFD FFFD "\"");
	EXPECT_JSON("\xe2\x82\"", "\"" FFFD FFFD "\\\"\"");
}

/* Every byte at every place of a word, with every other byte beside it, as another parser reads it. */
Test(base_core_text, json_of_every_pair_of_bytes_parses)
{
	unsigned int first, second;

	for (first = 0; first < 256; first++) {
		struct text text = { 0 };
		cJSON *json;

		text_literal(&text, "[");
		for (second = 1; second < 256; second++) {
			char bytes[16] = "ABCDEFGHIJKLMNO";

			bytes[second % 15] = first ? first : 1;
			bytes[second % 15 + 1] = second;
			if (second > 1)
				text_literal(&text, ",");
			text_json(&text, bytes, sizeof(bytes));
		}
		text_literal(&text, "]");
		json = cJSON_ParseWithLength(text.data, text.length);
		cr_assert_not_null(json, "byte %u", first);
		cr_assert_eq(cJSON_GetArraySize(json), 255);
		if (first >= 0x20 && first < 0x7f)
			cr_assert_eq(cJSON_GetArrayItem(json, 64)->valuestring[65 % 15], (char)first);
		cJSON_Delete(json);
		text_free(&text);
	}
}

Test(base_core_text, decode_accepts_exactly_what_can_be_encoded)
{
	__u32 c, decoded;

	for (c = 0x80; c < 0x110000; c++) {
		char bytes[4];
		size_t length;

		if (c < 0x800) {
			bytes[0] = 0xc0 | c >> 6;
			length = 2;
		} else if (c < 0x10000) {
			bytes[0] = 0xe0 | c >> 12;
			bytes[1] = 0x80 | (c >> 6 & 0x3f);
			length = 3;
		} else {
			bytes[0] = 0xf0 | c >> 18;
			bytes[1] = 0x80 | (c >> 12 & 0x3f);
			bytes[2] = 0x80 | (c >> 6 & 0x3f);
			length = 4;
		}
		bytes[length - 1] = 0x80 | (c & 0x3f);
		if (c >= 0xd800 && c < 0xe000) {
			cr_assert_eq(text_decode(bytes, length, &decoded), 0);
			continue;
		}
		cr_assert_eq(text_decode(bytes, length, &decoded), length, "U+%04x", c);
		cr_assert_eq(decoded, c);
		cr_assert_eq(text_decode(bytes, length - 1, &decoded), 0);
	}
}

static void expect_terminal(const char *bytes, size_t columns, const char *expected, size_t width)
{
	struct text text = { 0 };

	cr_assert_eq(text_terminal(&text, bytes, strlen(bytes), columns), width, "%s", expected);
	expect(&text, expected);
	text_free(&text);
}

Test(base_core_text, terminal_shows_what_could_move_the_cursor)
{
	expect_terminal("model.onnx", 0, "model.onnx", 10);
	expect_terminal("\x1b[2J\r\n\x7f", 0, "\\x1b[2J\\x0d\\x0a\\x7f", 19);
	expect_terminal("\xc2\x9b"
			"31m",
			0, "\\u{9b}31m", 9); /* C1 control */
	expect_terminal("a\xe2\x80\xae"
			"b",
			0, "a\\u{202e}b", 10); /* right to left */
	expect_terminal("\xff", 0, "\\xff", 4);
	expect_terminal("\xe6\xa8\xa1\xe5\x9e\x8b", 0, "\xe6\xa8\xa1\xe5\x9e\x8b", 4);
	expect_terminal("e\xcc\x81", 0, "e\xcc\x81", 1);
}

Test(base_core_text, terminal_cuts_to_columns)
{
	expect_terminal("abcdef", 6, "abcdef", 6);
	expect_terminal("abcdef", 5, "abcd\xe2\x80\xa6", 5);
	expect_terminal("abcdef", 1, "\xe2\x80\xa6", 1);
	expect_terminal("\xe6\xa8\xa1\xe5\x9e\x8b", 3, "\xe6\xa8\xa1\xe2\x80\xa6", 3);
	expect_terminal("\xe6\xa8\xa1\xe5\x9e\x8b", 2, "\xe2\x80\xa6", 1);
	expect_terminal("ab\x1b", 4, "ab\xe2\x80\xa6", 3);
}

Test(base_core_text, cut_keeps_characters_whole)
{
	cr_assert_eq(text_cut("abc", 3, 5), 3);
	cr_assert_eq(text_cut("abc", 3, 2), 2);
	cr_assert_eq(text_cut("a\xe2\x82\xac", 4, 3), 1);
	cr_assert_eq(text_cut("a\xe2\x82\xac", 4, 4), 4);
	cr_assert_eq(text_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 2);
}

Test(base_core_text, names_with_numbers)
{
	cr_assert_eq(text_unnumbered("ranker #2"), 6);
	cr_assert_eq(text_unnumbered("ranker #"), 8);
	cr_assert_eq(text_unnumbered("ranker#2"), 8);
	cr_assert_eq(text_unnumbered(" #2"), 3);
	cr_assert_eq(text_unnumbered("12"), 2);
	cr_assert_eq(text_unnumbered(""), 0);
	cr_assert(text_is_name("ranker #2", "ranker"));
	cr_assert(text_is_name("ranker #2", "ranker #2"));
	cr_assert(text_is_name("ranker", "ranker"));
	cr_assert_not(text_is_name("ranker", "ranker #2"));
	cr_assert_not(text_is_name("ranker #2", "rank"));
	cr_assert_not(text_is_name("ranker #2", "ranker "));
}

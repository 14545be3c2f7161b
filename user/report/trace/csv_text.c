/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/csv_text.h"

static bool is_formula_sign(const char *bytes)
{
	const unsigned char *s = (const unsigned char *)bytes;

	if (s[0] && strchr("=+-@\r\n", s[0]))
		return true;
	/* The wide forms of = + - @, which East Asian settings take for the same. */
	return s[0] == 0xef && s[1] == 0xbc && (s[2] == 0x9d || s[2] == 0x8b || s[2] == 0x8d || s[2] == 0xa0);
}

/* Apostrophes that are there already don't count: then taking one away always gives the field back. */
static bool is_formula(const char *string)
{
	return is_formula_sign(string + strspn(string, "' "));
}

static bool is_plain(const char *string, size_t length)
{
	size_t i;

	for (i = 0; i < length; i++) {
		if (string[i] < 0x20 || string[i] >= 0x7f || string[i] == ',' || string[i] == '"')
			return false;
	}
	return true;
}

/* kept: bytes that stay as they are, quotes doubled. */
static void add_escaped(struct text *text, const char *string, size_t length, const char *kept)
{
	while (length) {
		size_t shown = 0;

		while (shown < length && !strchr(kept, string[shown]))
			shown++;
		text_terminal(text, string, shown, 0);
		if (shown < length) {
			if (string[shown] == '"')
				text_literal(text, "\"");
			text_bytes(text, string + shown, 1);
			shown++;
		}
		string += shown;
		length -= shown;
	}
}

static void add_field(struct text *text, const char *string, const char *kept)
{
	size_t length = string ? strlen(string) : 0;
	bool quoted = length && (strpbrk(string, kept) || strchr(string, ','));

	if (quoted)
		text_literal(text, "\"");
	if (length && is_formula(string))
		text_literal(text, "'");
	if (is_plain(string, length))
		text_bytes(text, string, length);
	else
		add_escaped(text, string, length, kept);
	if (quoted)
		text_literal(text, "\"");
}

void csv_string(struct text *text, const char *string)
{
	add_field(text, string, "\"\r\n");
}

void csv_line(struct text *text, const char *string)
{
	add_field(text, string, "\"");
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/json.h"

/* Bytes that are not UTF-8 stay as they are: a name is compared with what the target has. */
static void add_quoted(struct text *text, const char *string)
{
	text_literal(text, "\"");
	while (*string) {
		size_t plain = 0;

		while ((unsigned char)string[plain] >= ' ' && string[plain] != '"' && string[plain] != '\\')
			plain++;
		text_bytes(text, string, plain);
		string += plain;
		if (*string)
			text_json_part(text, string++, 1);
	}
	text_literal(text, "\"");
}

/* What a value ends with is neither a bracket that begins one nor a line end. */
static void add_comma(struct text *text)
{
	if (text->length && !strchr("{[\n", text->data[text->length - 1]))
		text_literal(text, ",");
}

void json_key(struct text *text, const char *key)
{
	add_comma(text);
	if (!key)
		return;
	add_quoted(text, key);
	text_literal(text, ":");
}

void json_newline(struct text *text)
{
	add_comma(text);
	text_literal(text, "\n");
}

void json_begin(struct text *text, const char *key, char bracket)
{
	json_key(text, key);
	text_bytes(text, &bracket, 1);
}

void json_end(struct text *text, char bracket)
{
	text_bytes(text, &bracket, 1);
}

void json_add_string(struct text *text, const char *key, const char *value)
{
	if (!value)
		return;
	json_key(text, key);
	add_quoted(text, value);
}

void json_add_text(struct text *text, const char *key, const char *value)
{
	if (!value)
		return;
	json_key(text, key);
	text_json_string(text, value);
}

void json_add_unsigned(struct text *text, const char *key, __u64 value)
{
	json_key(text, key);
	text_unsigned(text, value);
}

void json_add_nonzero(struct text *text, const char *key, __u64 value)
{
	if (value)
		json_add_unsigned(text, key, value);
}

void json_add_long(struct text *text, const char *key, __u64 value)
{
	json_key(text, key);
	text_literal(text, "\"");
	text_unsigned(text, value);
	text_literal(text, "\"");
}

void json_add_hexadecimal(struct text *text, const char *key, __u64 value)
{
	json_key(text, key);
	text_literal(text, "\"");
	text_hexadecimal(text, value);
	text_literal(text, "\"");
}

void json_add_microseconds(struct text *text, const char *key, __u64 nanoseconds)
{
	json_key(text, key);
	text_microseconds(text, nanoseconds);
}

void json_add_signed(struct text *text, const char *key, __s64 value)
{
	json_key(text, key);
	text_signed(text, value);
}

void json_add_real(struct text *text, const char *key, double value)
{
	json_key(text, key);
	text_real_exact(text, value);
}

void json_add_bool(struct text *text, const char *key, bool value)
{
	json_key(text, key);
	text_string(text, value ? "true" : "false");
}

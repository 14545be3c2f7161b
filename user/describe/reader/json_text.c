/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/reader/json_text.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

unsigned int json_line(const char *text, size_t length, size_t offset)
{
	unsigned int line = 1;

	if (offset > length)
		offset = length;
	for (size_t i = 0; i < offset; i++)
		line += text[i] == '\n';
	return line;
}

/* The parser takes every byte up to a blank for white space. */
static size_t skip_space(const char *text, size_t length, size_t at)
{
	while (at < length && (unsigned char)text[at] <= ' ')
		at++;
	return at;
}

/* at: on the opening quote. Gives the position after the closing one. */
static size_t skip_string(const char *text, size_t length, size_t at)
{
	for (at++; at < length && text[at] != '"'; at++)
		if (text[at] == '\\')
			at++;
	return at < length ? at + 1 : length;
}

static size_t skip_value(const char *text, size_t length, size_t at)
{
	size_t depth = 0;

	do {
		at = skip_space(text, length, at);
		if (at >= length)
			return length;
		if (text[at] == '"') {
			at = skip_string(text, length, at);
		} else if (text[at] == '{' || text[at] == '[') {
			depth++;
			at++;
		} else if (text[at] == '}' || text[at] == ']') {
			depth -= depth > 0;
			at++;
		} else {
			while (at < length && !strchr(",:]} \t\r\n", text[at]))
				at++;
			/* Between two values of a container that is skipped as a whole. */
			if (depth && at < length && (text[at] == ',' || text[at] == ':'))
				at++;
		}
	} while (depth);
	return at;
}

/* at: on the bracket of a container. Gives the position of its child: the key of a member, the value of an element. */
static size_t find_child(const char *text, size_t length, size_t at, size_t index)
{
	bool object = text[at] == '{';

	at = skip_space(text, length, at + 1);
	for (size_t i = 0; i < index && at < length; i++) {
		if (object)
			at = skip_space(text, length, skip_value(text, length, at)) + 1;
		at = skip_space(text, length, skip_value(text, length, at)) + 1;
		at = skip_space(text, length, at);
	}
	return at < length ? at : length;
}

/* Position of the value at place; *shown: of what stands for it in a message. */
static size_t find_place(const char *text, size_t length, const struct json_place *place, size_t *shown)
{
	size_t at = place ? find_place(text, length, place->parent, shown) : 0;

	if (!place) {
		if (length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
			at = 3;
		at = skip_space(text, length, at);
		*shown = at;
		return at;
	}
	if (at >= length || (text[at] != '{' && text[at] != '['))
		return length;
	*shown = at = find_child(text, length, at, place->index);
	if (place->key && at < length)
		at = skip_space(text, length, skip_space(text, length, skip_value(text, length, at)) + 1);
	return at < length ? at : length;
}

unsigned int json_locate(const char *text, size_t length, const struct json_place *place)
{
	size_t shown = 0;

	find_place(text, length, place, &shown);
	return json_line(text, length, shown);
}

/* Appends at *used, as much as fits. */
static void append(char path[JSON_PATH_MAX], size_t *used, const char *text)
{
	for (; *text && *used < JSON_PATH_MAX - 1; text++)
		path[(*used)++] = (unsigned char)*text < ' ' || *text == 0x7f ? '?' : *text;
	path[*used] = '\0';
}

static void append_place(const struct json_place *place, char path[JSON_PATH_MAX], size_t *used)
{
	char index[32];

	if (!place)
		return;
	append_place(place->parent, path, used);
	if (place->key) {
		if (*used)
			append(path, used, ".");
		append(path, used, place->key);
	} else {
		snprintf(index, sizeof(index), "[%zu]", place->index);
		append(path, used, index);
	}
}

void json_path(const struct json_place *place, char path[JSON_PATH_MAX])
{
	size_t used = 0;

	path[0] = '\0';
	append_place(place, path, &used);
}

size_t utf8_sequence(const char *text, size_t length)
{
	const unsigned char *byte = (const unsigned char *)text;
	unsigned int code, least;
	size_t size;

	if (byte[0] < 0x80)
		return 1;
	if ((byte[0] & 0xe0) == 0xc0) {
		size = 2;
		least = 0x80;
	} else if ((byte[0] & 0xf0) == 0xe0) {
		size = 3;
		least = 0x800;
	} else if ((byte[0] & 0xf8) == 0xf0) {
		size = 4;
		least = 0x10000;
	} else {
		return 0;
	}
	if (size > length)
		return 0;
	code = byte[0] & (0x7f >> size);
	for (size_t i = 1; i < size; i++) {
		if ((byte[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (byte[i] & 0x3f);
	}
	if (code < least || code > 0x10ffff || (code >= 0xd800 && code < 0xe000))
		return 0;
	return size;
}

const char *json_text_check(const char *text, size_t length, size_t *offset)
{
	bool string = false;

	for (size_t at = 0, step; at < length; at += step) {
		*offset = at;
		step = utf8_sequence(text + at, length - at);
		if (!step)
			return "not valid UTF-8";
		if (!text[at])
			return "a NUL byte";
		if (text[at] == '"')
			string = !string;
		if (!string || text[at] != '\\')
			continue;
		if (length - at >= 6 && memcmp(text + at, "\\u0000", 6) == 0)
			return "\\u0000 in a string";
		/* What is escaped neither ends the string nor escapes; it may begin a sequence of several bytes. */
		if (at + 1 < length && (text[at + 1] == '"' || text[at + 1] == '\\'))
			step = 2;
	}
	return NULL;
}

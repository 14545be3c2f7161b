/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/json.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- checking ---- */

struct cursor {
	const char *at, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Stands for itself in a string; most do. */
static bool is_plain(char c)
{
	return c >= ' ' && c != '"' && c != '\\' && (unsigned char)c < 0x80;
}

static bool is_hexadecimal(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static void skip_space(struct cursor *c)
{
	while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
		c->at++;
}

static bool take(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

static bool take_word(struct cursor *c, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length))
		return false;
	c->at += length;
	return true;
}

static bool take_digits(struct cursor *c)
{
	const char *start = c->at;

	while (c->at < c->end && is_digit(*c->at))
		c->at++;
	return c->at > start;
}

static bool take_number(struct cursor *c)
{
	take(c, '-');
	if (!take(c, '0') && !take_digits(c))
		return false;
	if (take(c, '.') && !take_digits(c))
		return false;
	if (take(c, 'e') || take(c, 'E')) {
		if (!take(c, '+'))
			take(c, '-');
		return take_digits(c);
	}
	return true;
}

static bool take_escape(struct cursor *c)
{
	int i;

	if (c->at == c->end)
		return false;
	if (*c->at != 'u')
		return *c->at && strchr("\"\\/bfnrt", *c->at++);
	c->at++;
	for (i = 0; i < 4; i++) {
		if (c->at == c->end || !is_hexadecimal(*c->at))
			return false;
		c->at++;
	}
	return true;
}

static bool take_string(struct cursor *c)
{
	__u32 character;
	size_t size;

	if (!take(c, '"'))
		return false;
	while (c->at < c->end) {
		while (c->at < c->end && is_plain(*c->at))
			c->at++;
		if (take(c, '"'))
			return true;
		if (take(c, '\\')) {
			if (!take_escape(c))
				return false;
			continue;
		}
		if (c->at == c->end)
			return false;
		size = text_decode(c->at, c->end - c->at, &character);
		if (!size || character < 0x20)
			return false;
		c->at += size;
	}
	return false;
}

static bool take_value(struct cursor *c, int depth);

static bool take_object(struct cursor *c, int depth)
{
	skip_space(c);
	if (take(c, '}'))
		return true;
	do {
		skip_space(c);
		if (!take_string(c))
			return false;
		skip_space(c);
		if (!take(c, ':') || !take_value(c, depth))
			return false;
	} while (take(c, ','));
	return take(c, '}');
}

static bool take_array(struct cursor *c, int depth)
{
	skip_space(c);
	if (take(c, ']'))
		return true;
	do {
		if (!take_value(c, depth))
			return false;
	} while (take(c, ','));
	return take(c, ']');
}

/* With the white space around it. depth bounds the recursion. */
static bool take_value(struct cursor *c, int depth)
{
	bool good;

	skip_space(c);
	if (c->at == c->end)
		return false;
	if (*c->at == '"')
		good = take_string(c);
	else if (take(c, '{'))
		good = depth < JSON_DEPTH_MAX && take_object(c, depth + 1);
	else if (take(c, '['))
		good = depth < JSON_DEPTH_MAX && take_array(c, depth + 1);
	else
		good = take_word(c, "true") || take_word(c, "false") || take_word(c, "null") || take_number(c);
	skip_space(c);
	return good;
}

bool json_check(const char *text, size_t length, size_t *fault)
{
	struct cursor c = { text, text + length };
	bool good = take_value(&c, 0) && c.at == c.end;

	*fault = c.at - text;
	return good;
}

bool json_is_object(const char *text, size_t length)
{
	struct cursor c = { text, text + length };

	skip_space(&c);
	return c.at < c.end && *c.at == '{' && take_value(&c, 0) && c.at == c.end;
}

/* A value in an object or array that has been checked, without the space around it. */
static bool next_value(struct cursor *c, struct json_part *value)
{
	const char *end;

	skip_space(c);
	value->text = c->at;
	if (!take_value(c, 0))
		return false;
	for (end = c->at; end > value->text && strchr(" \t\n\r", end[-1]); end--)
		;
	value->length = end - value->text;
	return true;
}

bool json_next_element(const char **at, const char *end, struct json_part *value)
{
	struct cursor c = { *at, end };

	skip_space(&c);
	if ((!take(&c, '[') && !take(&c, ',')) || !next_value(&c, value))
		return false;
	*at = c.at;
	return true;
}

bool json_next_member(const char **at, const char *end, struct json_part *name, struct json_part *value)
{
	struct cursor c = { *at, end };

	skip_space(&c);
	if (!take(&c, '{') && !take(&c, ','))
		return false;
	skip_space(&c);
	name->text = c.at + 1;
	if (!take_string(&c))
		return false;
	name->length = c.at - name->text - 1;
	skip_space(&c);
	if (!take(&c, ':') || !next_value(&c, value))
		return false;
	*at = c.at;
	return true;
}

bool json_part_is(const struct json_part *part, const char *word)
{
	return part->length == strlen(word) && !memcmp(part->text, word, part->length);
}

struct json_part json_member(struct json_part object, const char *name)
{
	const char *at = object.text, *end;
	struct json_part found, value;

	if (!object.length)
		return (struct json_part){ 0 };
	end = at + object.length;
	while (json_next_member(&at, end, &found, &value)) {
		if (json_part_is(&found, name))
			return value;
	}
	return (struct json_part){ 0 };
}

struct json_part json_inside(struct json_part string)
{
	if (string.length < 2 || *string.text != '"')
		return (struct json_part){ 0 };
	return (struct json_part){ string.text + 1, string.length - 2 };
}

/* ---- escapes ---- */

#define REPLACEMENT 0xfffd

static unsigned int hexadecimal_value(const char *at)
{
	unsigned int value = 0;

	for (int i = 0; i < 4; i++)
		value = value << 4 | (is_digit(at[i]) ? at[i] - '0' : (at[i] | 0x20) - 'a' + 10);
	return value;
}

static size_t encode(unsigned int character, char *to)
{
	static const unsigned char first[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t length = character < 0x80 ? 1 : character < 0x800 ? 2 : character < 0x10000 ? 3 : 4;

	for (size_t i = length - 1; i; i--, character >>= 6)
		to[i] = (char)(0x80 | (character & 0x3f));
	to[0] = (char)(first[length] | character);
	return length;
}

/* at: behind "\\u". */
static unsigned int take_unicode(const char **at, const char *end)
{
	unsigned int high = hexadecimal_value(*at), low;

	*at += 4;
	if (high < 0xd800 || high > 0xdfff)
		return high ? high : REPLACEMENT;
	if (high > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
		return REPLACEMENT;
	low = hexadecimal_value(*at + 2);
	if (low < 0xdc00 || low > 0xdfff)
		return REPLACEMENT;
	*at += 6;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

size_t json_decode(struct json_part inside, char *to)
{
	static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
	const char *at = inside.text, *end = at + inside.length, *letter;
	char *start = to;

	while (at < end) {
		if (*at != '\\') {
			*to++ = *at++;
		} else if (at[1] == 'u') {
			at += 2;
			to += encode(take_unicode(&at, end), to);
		} else {
			letter = strchr(letters, at[1]);
			*to++ = letter ? controls[letter - letters] : at[1];
			at += 2;
		}
	}
	return to - start;
}

/* ---- parsing ---- */

int json_parse(const char *text, size_t length, struct cJSON **object)
{
	/* The parser wants a terminator, which the text of a record lacks. */
	char *copy = malloc(length + 1);

	*object = NULL;
	if (!copy)
		return -ENOMEM;
	memcpy(copy, text, length);
	copy[length] = '\0';
	errno = 0; /* the parser does not report why it fails, malloc() does */
	*object = cJSON_ParseWithLength(copy, length + 1);
	free(copy);
	if (cJSON_IsObject(*object))
		return 0;
	if (!*object && errno == ENOMEM)
		return -ENOMEM;
	cJSON_Delete(*object);
	*object = NULL;
	return -EBADMSG;
}

int json_string_get(const cJSON *object, const char *key, char **result)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

	if (!text || !*text)
		return -EBADMSG;
	*result = strdup(text);
	return *result ? 0 : -ENOMEM;
}

int json_integer_get(const cJSON *object, const char *key, __s64 low, __s64 high, __s64 *result)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);

	if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double)low && item->valuedouble <= (double)high))
		return -EBADMSG;
	*result = (__s64)item->valuedouble;
	return 0;
}

/* ---- writing ---- */

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

/* What a value ends with is neither of the brackets that begin one. */
static void add_key(struct text *text, const char *key)
{
	if (text->length && !strchr("{[", text->data[text->length - 1]))
		text_literal(text, ",");
	if (!key)
		return;
	add_quoted(text, key);
	text_literal(text, ":");
}

void json_begin(struct text *text, const char *key, char bracket)
{
	add_key(text, key);
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
	add_key(text, key);
	add_quoted(text, value);
}

void json_add_text(struct text *text, const char *key, const char *value)
{
	if (!value)
		return;
	add_key(text, key);
	text_json_string(text, value);
}

void json_add_unsigned(struct text *text, const char *key, __u64 value)
{
	add_key(text, key);
	text_unsigned(text, value);
}

void json_add_signed(struct text *text, const char *key, __s64 value)
{
	add_key(text, key);
	text_signed(text, value);
}

void json_add_real(struct text *text, const char *key, double value)
{
	add_key(text, key);
	text_real_exact(text, value);
}

void json_add_bool(struct text *text, const char *key, bool value)
{
	add_key(text, key);
	text_string(text, value ? "true" : "false");
}

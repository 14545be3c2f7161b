/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Checks JSON text that is passed on as it is, e.g. from a recording of another origin, and takes such text apart
 * without copying it. Writes such text.
 */
#ifndef XPT_BASE_CORE_JSON_H
#define XPT_BASE_CORE_JSON_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/text.h"

struct cJSON;

#define JSON_DEPTH_MAX 32

/*
 * Whether text is exactly one JSON object by RFC 8259 in valid UTF-8, nested at most JSON_DEPTH_MAX deep, with nothing
 * but white space around it. Takes no memory and never reads beyond length.
 */
bool json_is_object(const char *text, size_t length);
/* The same for a value of any kind; *fault gets the number of bytes up to which the text is good. */
bool json_check(const char *text, size_t length, size_t *fault);

/* A part of a text, which it does not own. Nothing is decoded: escapes are unchanged. */
struct json_part {
	const char *text;
	size_t length; /* 0: there is none */
};

/*
 * Walks through the members of an object that has been checked. *at is its first byte at the beginning. name comes
 * without its quotes, value with what belongs to it and no space around. False: there are no more.
 */
bool json_next_member(const char **at, const char *end, struct json_part *name, struct json_part *value);
/* The same for the elements of an array. */
bool json_next_element(const char **at, const char *end, struct json_part *value);
/* Value of the first member with that name of a checked value; none when there is none, or it is no object. */
struct json_part json_member(struct json_part object, const char *name);
/* Whether the part is just this text. */
bool json_part_is(const struct json_part *part, const char *word);
/* A string without its quotes; none when it is no string, or an empty one. */
struct json_part json_inside(struct json_part string);
/*
 * Writes what json_inside() gives with its escapes decoded, as valid UTF-8 without a 0 byte and not terminated: half a surrogate pair
 * and \u0000 become U+FFFD. to has room for as many bytes as the part. Returns their number.
 */
size_t json_decode(struct json_part inside, char *to);

/*
 * What the parser makes of an object; text needs no terminator. The caller deletes it. -EBADMSG: it is no object that can be read;
 * -ENOMEM.
 */
int json_parse(const char *text, size_t length, struct cJSON **object);

/*
 * Writing: members of the object, or elements of the array (key NULL), that was begun last. Commas are put in. Without
 * memory, text->error is set: nothing is left out unnoticed.
 */
void json_begin(struct text *text, const char *key, char bracket); /* '{' or '[' */
void json_end(struct text *text, char bracket);			   /* '}' or ']' */
/* The comma and the key of a value that is appended in another way. */
void json_key(struct text *text, const char *key);
/* The next member or element stands on a line of its own. */
void json_newline(struct text *text);
/* Bytes of value that are not UTF-8 are kept (json_add_text(): become U+FFFD). NULL: there is no such member. */
void json_add_string(struct text *text, const char *key, const char *value);
void json_add_text(struct text *text, const char *key, const char *value);
void json_add_unsigned(struct text *text, const char *key, __u64 value);
void json_add_nonzero(struct text *text, const char *key, __u64 value); /* 0: there is no such member */
/* As strings: readers round numbers beyond 2^53. */
void json_add_long(struct text *text, const char *key, __u64 value);
void json_add_hexadecimal(struct text *text, const char *key, __u64 value);
void json_add_microseconds(struct text *text, const char *key, __u64 nanoseconds); /* text_microseconds() */
void json_add_signed(struct text *text, const char *key, __s64 value);
void json_add_real(struct text *text, const char *key, double value);
void json_add_bool(struct text *text, const char *key, bool value);

/* Of members of what the parser made. A copy of the string; an empty or missing one is -EBADMSG. -ENOMEM. */
int json_string_get(const struct cJSON *object, const char *key, char **result);
/* A number that is missing or not within low and high is -EBADMSG. */
int json_integer_get(const struct cJSON *object, const char *key, __s64 low, __s64 high, __s64 *result);

#endif

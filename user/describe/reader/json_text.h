/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a JSON document, for what its parser does not report: where in the text a value is, and whether the text
 * holds bytes that would make a string look like another one.
 */
#ifndef XPT_DESCRIBE_READER_JSON_TEXT_H
#define XPT_DESCRIBE_READER_JSON_TEXT_H

#include <stddef.h>

/* One step of the way from the whole document to a value. The document itself is NULL. */
struct json_place {
	const struct json_place *parent;
	const char *key; /* member of an object; NULL: element of an array */
	size_t index;	 /* which child of its parent, from 0, members counted in the order of the text */
};

#define JSON_PATH_MAX 160

/* Line of a byte of the text, from 1. */
unsigned int json_line(const char *text, size_t length, size_t offset);

/* Line of a place in a text that the parser has accepted; for a member, that of its key. */
unsigned int json_locate(const char *text, size_t length, const struct json_place *place);

/* "calls[3].fetch.program" into path; "" for the document. Keys are made printable, what is too long is cut. */
void json_path(const struct json_place *place, char path[JSON_PATH_MAX]);

/*
 * Refuses what the parser lets through but would end or garble a string: NUL bytes, \u0000, invalid UTF-8. NULL when
 * there is none, else the reason, with its position in *offset.
 */
const char *json_text_check(const char *text, size_t length, size_t *offset);

/* Length of the UTF-8 sequence at text, 0 when it is not a valid one. length must not be 0. */
size_t utf8_sequence(const char *text, size_t length);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Typed values out of the JSON document of a description; what is wrong is reported with its line and field. After the
 * first error nothing more is read or reported: readers go through a document to its end, and check once.
 */
#ifndef XPT_DESCRIBE_READER_READER_H
#define XPT_DESCRIBE_READER_READER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "base/core/log.h"

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

struct reader {
	const struct log *log;
	const char *file;
	const char *text; /* what the document was parsed from */
	size_t length;
	int error; /* the first one; 0: none so far */
};

/* One step of the way from the whole document to a value. The document itself is NULL. */
struct json_place {
	const struct json_place *parent;
	const char *key; /* member of an object; NULL: element of an array */
	size_t index;	 /* which child of its parent, from 0, members counted in the order of the text */
};

/* A member that an object may have, of which the caller sets key, reader_members() the rest; or an element of an array. */
struct member {
	const char *key;
	const cJSON *value; /* NULL: not there */
	struct json_place place;
};

/* Logs "FILE:LINE: FIELD: REASON", and sets -EINVAL. */
void reader_error(struct reader *reader, const struct json_place *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void reader_fail(struct reader *reader, int error); /* sets an error that is not the document's: -ENOMEM */

/*
 * Reads a file that a user has named: the whole of it, or a little more than a description may have, for reader_parse()
 * to refuse. -errno, reported, or -ENOMEM. *text is the caller's.
 */
int reader_file(const struct log *log, const char *path, char **text, size_t *length);

/* Parses the reader's text. NULL: an error. The document is the caller's. */
cJSON *reader_parse(struct reader *reader);

/* Fills members from object, at place. What is no object, unknown or there twice is an error. */
void reader_members(struct reader *reader, const cJSON *object, const struct json_place *place, struct member *members,
		    size_t count);
/* An error unless the member is there. */
void reader_require(struct reader *reader, const struct member *member);

/*
 * Values of members. Where not stated otherwise, a member that is not there is an error; strings and arrays are the
 * caller's; NULL or 0 after an error.
 */

/* A string for people or names: not empty, at most 255 bytes, no control characters. */
char *reader_string(struct reader *reader, const struct member *member);
char *reader_optional_string(struct reader *reader, const struct member *member); /* NULL also when it is not there */
/* A short name: a to z, 0 to 9, _, at most 31 bytes. */
char *reader_name(struct reader *reader, const struct member *member);
/* An array of such strings. A member that is not there gives none. */
char **reader_strings(struct reader *reader, const struct member *member, size_t *count);
void string_array_free(char **strings, size_t count);

/* An integer; otherwise: when the member is not there, or after an error. */
__s64 reader_number(struct reader *reader, const struct member *member, __s64 least, __s64 most, __s64 otherwise);
bool reader_bool(struct reader *reader, const struct member *member); /* false when it is not there */
/*
 * Which of the names the string is, of those that are allowed (bit i of mask: names[i]). what: how messages call it, with a
 * blank behind, or "". Only valid when there is no error.
 */
unsigned int reader_choice(struct reader *reader, const struct member *member, const char *what,
			   const char *const *names, size_t count, __u64 mask);
/* A note for the people who read the file: a string, or an array of strings, its lines; or not there. Checked and dropped. */
void reader_note(struct reader *reader, const struct member *member);

/*
 * An array of 1 to most elements: each is read into one of the zeroed items, of size bytes each, which are the caller's
 * also after an error. what: how messages call the elements.
 */
void *reader_array(struct reader *reader, const struct member *member, size_t most, const char *what, size_t size,
		   size_t *count,
		   void (*read)(struct reader *reader, const struct member *element, void *item, void *context),
		   void *context);

/* Visits the children of a member's value, as struct member element, until there is an error. */
#define reader_each_child(reader, element, member)                                               \
	for (struct member element = { .value = (member)->value ? (member)->value->child : NULL, \
				       .place = { &(member)->place, NULL, 0 } };                 \
	     element.value && !(reader)->error; element.value = element.value->next, element.place.index++)

/* ---- tables of names: NULL where a value has none ---- */

const char *name_of(const char *const *names, size_t count, size_t value); /* "unknown": none */
int value_of(const char *const *names, size_t count, const char *name);	   /* -ENOENT */

/* ---- the text, for what its parser does not report ---- */

#define JSON_PATH_MAX 160

/* Line of a byte of the text, from 1. */
unsigned int json_line(const char *text, size_t length, size_t offset);
/* Line of a place in a text that is valid; for a member, that of its key. */
unsigned int json_locate(const char *text, size_t length, const struct json_place *place);
/* "calls[3].fetch.program" into path; "" for the document. Keys are made printable, what is too long is cut. */
void json_path(const struct json_place *place, char path[JSON_PATH_MAX]);
/*
 * Refuses what the parser lets through but would end or garble a string: NUL bytes, \u0000, invalid UTF-8. NULL when
 * there is none, else the reason, with its position in *offset.
 */
const char *json_text_check(const char *text, size_t length, size_t *offset);

#endif

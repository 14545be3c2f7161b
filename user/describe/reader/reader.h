/* SPDX-License-Identifier: BSD-2-Clause */
/* Typed values out of a parsed JSON document; what is wrong is reported with its line and field. */
#ifndef XPT_DESCRIBE_READER_READER_H
#define XPT_DESCRIBE_READER_READER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include <cjson/cJSON.h>

#include "base/core/log.h"
#include "describe/reader/json_text.h"

struct reader {
	const struct log *log;
	const char *file;
	const char *text; /* what the document was parsed from */
	size_t length;
};

/* A member that an object may have. The caller sets key, reader_members() the rest. */
struct member {
	const char *key;
	const cJSON *value; /* NULL: not there */
	struct json_place place;
};

/* Logs "FILE:LINE: FIELD: REASON". Always -EINVAL. */
int reader_error(const struct reader *reader, const struct json_place *place, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/* The member is not there, and must be. -EINVAL. */
int reader_missing(const struct reader *reader, const struct json_place *place, const struct member *member);

/*
 * Reads a file that a user has named: the whole of it, or a little more than a description may have, for reader_parse()
 * to refuse. -errno, reported, or -ENOMEM. *text is the caller's.
 */
int reader_file(const struct log *log, const char *path, char **text, size_t *length);

/* Parses the reader's text. -EINVAL, reported, or -ENOMEM. The document is the caller's. */
int reader_parse(const struct reader *reader, cJSON **document);

/* Fills members from object, at place. What is no object, unknown or there twice is an error. */
int reader_members(const struct reader *reader, const cJSON *object, const struct json_place *place,
		   struct member *members, size_t count);

/* A string for people or names: not empty, at most 255 bytes, no control characters. *result is the caller's. */
int reader_string(const struct reader *reader, const cJSON *value, const struct json_place *place, char **result);

/* The number of the schema, which must be the known one. */
int reader_schema(const struct reader *reader, const struct member *member, int known);

/* A short name, which must be there: a to z, 0 to 9, _, at most 31 bytes. place: of its object. */
int reader_name(const struct reader *reader, const struct json_place *place, const struct member *member,
		char **result);

/* An array of strings as reader_string() takes them. A member that is not there gives none. */
int reader_strings(const struct reader *reader, const struct member *member, char ***result, size_t *count);

/*
 * Zeroed items for an array of 1 to most objects: *items, which the caller owns, of size bytes each, and *count. what:
 * how messages call them. -EINVAL: it is no such array; -ENOMEM.
 */
int reader_items(const struct reader *reader, const struct member *member, int most, const char *what, size_t size,
		 void *items, size_t *count);

/* An integer. A member that is not there leaves *result as it is. */
int reader_number(const struct reader *reader, const struct member *member, __s64 least, __s64 most, __s64 *result);

int reader_bool(const struct reader *reader, const struct member *member, bool *result); /* as reader_number() */

/* A note for the people who read the file: a string, or an array of strings, its lines. Checked and dropped. */
int reader_note(const struct reader *reader, const struct member *member);

/* Frees what reader_strings() made. */
void string_array_free(char **strings, size_t count);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* GGUF: of its metadata the name of the model. Tensors are weights, not code: they are not listed. */
#include <errno.h>
#include <string.h>

#include "code/format/readers.h"

#define HEADER_SIZE 24 /* magic, u32 version, u64 number of tensors, u64 number of pairs */
#define NESTING_MAX 4  /* of arrays in arrays */

enum {
	TYPE_STRING = 8,
	TYPE_ARRAY = 9,
};

/* Bytes of each type of numbers; 0: it is none. */
static const unsigned char sizes[] = { 1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8 };

struct cursor {
	const unsigned char *bytes;
	__u64 at, size;
};

/* Where the next length bytes are; NULL: there are not so many. */
static const unsigned char *take(struct cursor *cursor, __u64 length)
{
	const unsigned char *bytes = cursor->bytes + cursor->at;

	if (!code_inside(cursor->at, length, cursor->size))
		return NULL;
	cursor->at += length;
	return bytes;
}

static const unsigned char *take_string(struct cursor *cursor, __u64 *length)
{
	const unsigned char *bytes = take(cursor, 8);

	*length = bytes ? code_u64(bytes) : 0;
	return bytes ? take(cursor, *length) : NULL;
}

static bool skip_values(struct cursor *cursor, __u32 type, __u64 count, unsigned int nesting)
{
	const unsigned char *head;
	__u64 bytes;

	if (type < sizeof(sizes) && sizes[type])
		return !__builtin_mul_overflow(count, sizes[type], &bytes) && take(cursor, bytes);
	if ((type != TYPE_STRING && type != TYPE_ARRAY) || nesting > NESTING_MAX)
		return false;
	/* Each has bytes, so that no count makes this long. */
	for (; count; count--) {
		if (type == TYPE_STRING) {
			if (!take_string(cursor, &bytes))
				return false;
			continue;
		}
		head = take(cursor, 12);
		if (!head || !skip_values(cursor, code_u32(head), code_u64(head + 4), nesting + 1))
			return false;
	}
	return true;
}

/* A pair of the metadata. 0, -EBADMSG, -ENOMEM. */
static int read_pair(struct cursor *cursor, struct code_contents *contents)
{
	static const char wanted[] = "general.name";
	const unsigned char *key, *type, *name;
	__u64 length;

	key = take_string(cursor, &length);
	type = key ? take(cursor, 4) : NULL;
	if (!type)
		return -EBADMSG;
	if (contents->name || code_u32(type) != TYPE_STRING || length != strlen(wanted) || memcmp(key, wanted, length))
		return skip_values(cursor, code_u32(type), 1, 0) ? 0 : -EBADMSG;
	name = take_string(cursor, &length);
	if (!name)
		return -EBADMSG;
	contents->name = strndup((const char *)name, length);
	return contents->name ? 0 : -ENOMEM;
}

int code_read_gguf(struct code_reading *reading)
{
	struct cursor cursor = { .bytes = reading->bytes, .at = HEADER_SIZE, .size = reading->size };
	__u64 count;

	if (reading->size < HEADER_SIZE) {
		code_set_error(reading->contents, "it ends inside of its header");
		return 0;
	}
	if (code_u32(reading->bytes + 4) != 2 && code_u32(reading->bytes + 4) != 3) {
		code_set_error(reading->contents, "its version is not known: %u", code_u32(reading->bytes + 4));
		return 0;
	}
	count = code_u64(reading->bytes + 16);
	for (__u64 i = 0; i < count; i++) {
		int error = read_pair(&cursor, reading->contents);

		if (error == -ENOMEM)
			return error;
		if (error) {
			code_set_error(reading->contents, "pair %llu of the metadata cannot be read", i);
			return 0;
		}
	}
	return 0;
}

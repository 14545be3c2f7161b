/* SPDX-License-Identifier: BSD-2-Clause */
/* Objects that tests put together number by number, and what is read in them. */
#ifndef XPT_TESTS_UNIT_CODE_MADE_H
#define XPT_TESTS_UNIT_CODE_MADE_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "code/format/object.h"

#define MADE_MAX 8192

struct made {
	unsigned char bytes[MADE_MAX];
	size_t size;
};

static inline void made_bytes(struct made *made, const void *bytes, size_t length)
{
	cr_assert_leq(length, MADE_MAX - made->size);
	if (length)
		memcpy(made->bytes + made->size, bytes, length);
	made->size += length;
}

static inline void made_zeros(struct made *made, size_t length)
{
	cr_assert_leq(length, MADE_MAX - made->size);
	memset(made->bytes + made->size, 0, length);
	made->size += length;
}

/* Little-endian, so many bytes. */
static inline void made_number(struct made *made, __u64 value, size_t length)
{
	for (; length; length--, value >>= 8)
		made_bytes(made, &(unsigned char){ value & 0xff }, 1);
}

static inline void made_set(struct made *made, size_t at, __u64 value, size_t length)
{
	for (; length; length--, value >>= 8)
		made->bytes[at++] = value & 0xff;
}

static inline int made_read(void *context, __u64 offset, void *to, size_t length)
{
	const struct made *made = context;

	if (offset > made->size || length > made->size - offset)
		return -EFAULT;
	memcpy(to, made->bytes + offset, length);
	return 0;
}

static inline int made_own_size(struct made *made, __u64 limit, __u64 *size)
{
	return code_own_size(made_read, made, limit, size);
}

/* Freed by the caller. The bytes lie at the end of their memory, so that sanitizers see reads behind it. */
static inline struct code_contents made_contents(const struct made *made, size_t size, enum code_kind hint)
{
	struct code_contents contents;
	unsigned char *bytes = malloc(size ? size : 1);

	cr_assert_not_null(bytes);
	memcpy(bytes, made->bytes, size);
	cr_assert_eq(code_read(bytes, size, hint, &contents), 0);
	free(bytes);
	return contents;
}

/* Is every beginning of the object read without harm, and with an error unless it has at least enough bytes? */
static inline void made_check_cut(const struct made *made, enum code_kind kind, size_t head, size_t enough)
{
	for (size_t size = 0; size < made->size; size++) {
		struct code_contents contents = made_contents(made, size, kind);

		if (size >= head && size < enough)
			cr_expect_not_null(contents.error, "no error with %zu bytes", size);
		for (size_t i = 0; i < contents.part_count; i++)
			if (!contents.parts[i].external && contents.parts[i].offset)
				cr_expect(contents.parts[i].offset + contents.parts[i].size <= size);
		code_contents_free(&contents);
	}
}

static inline void made_expect_error(const struct made *made, enum code_kind hint, const char *words)
{
	struct code_contents contents = made_contents(made, made->size, hint);

	cr_expect(contents.error && strstr(contents.error, words), "\"%s\" is not \"%s\"", contents.error, words);
	code_contents_free(&contents);
}

#endif

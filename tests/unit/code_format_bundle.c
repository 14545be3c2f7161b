/* SPDX-License-Identifier: BSD-2-Clause */
#include "code_made.h"

#define MAGIC "__CLANG_OFFLOAD_BUNDLE__"
#define FIRST 32 /* entry */

/* Targets with their objects behind the table. */
static struct made bundle(const char *const *names, const char *const *objects, size_t count)
{
	struct made made = { .size = 0 };
	size_t at = FIRST;

	for (size_t i = 0; i < count; i++)
		at += 24 + strlen(names[i]);
	made_bytes(&made, MAGIC, 24);
	made_number(&made, count, 8);
	for (size_t i = 0; i < count; i++) {
		made_number(&made, at, 8);
		made_number(&made, strlen(objects[i]), 8);
		made_number(&made, strlen(names[i]), 8);
		made_bytes(&made, names[i], strlen(names[i]));
		at += strlen(objects[i]);
	}
	for (size_t i = 0; i < count; i++)
		made_bytes(&made, objects[i], strlen(objects[i]));
	return made;
}

static struct made two(void)
{
	static const char *const names[] = { "host", "hip-gfx90a" }, *const objects[] = { "", "BC\xc0\xde more" };

	return bundle(names, objects, 2);
}

Test(code_format_bundle, entries)
{
	struct made made = two();
	struct code_contents contents = made_contents(&made, made.size, CODE_UNKNOWN);
	__u64 size;

	cr_expect_eq(contents.kind, CODE_BUNDLE);
	cr_expect_null(contents.error);
	cr_assert_eq(contents.part_count, 2);
	cr_expect_str_eq(contents.parts[0].name, "host");
	cr_expect_eq(contents.parts[0].size, 0);
	cr_expect_str_eq(contents.parts[1].name, "hip-gfx90a");
	cr_expect_eq(contents.parts[1].kind, CODE_BITCODE);
	cr_expect_eq(contents.parts[1].offset, made.size - 9);
	cr_expect_eq(contents.parts[1].size, 9);
	code_contents_free(&contents);
	cr_assert_eq(made_own_size(&made, made.size, &size), 0);
	cr_expect_eq(size, made.size);
	cr_expect_eq(made_own_size(&made, made.size - 1, &size), -EFBIG);
}

Test(code_format_bundle, cut)
{
	struct made made = two();

	made_check_cut(&made, CODE_BUNDLE, 0, made.size);
}

Test(code_format_bundle, hostile)
{
	struct made made = two();
	__u64 size;

	made_set(&made, 24, ~0ull, 8);
	made_expect_error(&made, CODE_UNKNOWN, "behind the end");
	cr_expect_eq(made_own_size(&made, ~0ull, &size), -EBADMSG);
	made = two();
	made_set(&made, FIRST + 16, ~0ull, 8); /* length of a name */
	made_expect_error(&made, CODE_UNKNOWN, "entry 0 lies behind the end");
	cr_expect_eq(made_own_size(&made, ~0ull, &size), -EBADMSG);
	made = two();
	made_set(&made, FIRST, ~0ull, 8);
	made_set(&made, FIRST + 8, 2, 8);
	made_expect_error(&made, CODE_UNKNOWN, "object of entry 0");
	cr_expect_eq(made_own_size(&made, ~0ull, &size), -EBADMSG);
}

/* A bundle whose object is itself is read only so deep. */
Test(code_format_bundle, itself)
{
	struct made made = two();
	struct code_contents contents;

	made_set(&made, FIRST, 0, 8);
	made_set(&made, FIRST + 8, made.size, 8);
	contents = made_contents(&made, made.size, CODE_UNKNOWN);
	cr_expect_not_null(contents.error);
	cr_expect_leq(contents.part_count, 2 * (CODE_DEPTH_MAX + 1));
	code_contents_free(&contents);
}

static struct made compressed(unsigned int version)
{
	struct made made = { .size = 0 };

	made_bytes(&made, "CCOB", 4);
	made_number(&made, version, 2);
	made_number(&made, 1, 2);
	made_number(&made, 40, version == 3 ? 8 : 4);
	made_zeros(&made, 40 - made.size);
	return made;
}

Test(code_format_bundle, compressed)
{
	for (unsigned int version = 0; version < 5; version++) {
		struct made made = compressed(version);
		struct code_contents contents = made_contents(&made, made.size, CODE_UNKNOWN);
		bool known = version >= 1 && version <= 3, tells = version == 2 || version == 3;
		__u64 size = 0;
		int error = made_own_size(&made, 40, &size);

		cr_expect_eq(contents.kind, CODE_BUNDLE);
		cr_expect_eq(!contents.error, known);
		cr_expect_eq(contents.part_count, 0);
		cr_expect_eq(error, tells ? 0 : known ? -ENODATA : -EBADMSG);
		cr_expect_eq(size, tells ? 40 : 0);
		code_contents_free(&contents);
		if (!tells)
			continue;
		made_set(&made, 8, 41, 4);
		made_expect_error(&made, CODE_UNKNOWN, "41 bytes, and there are 40");
		cr_expect_eq(made_own_size(&made, 40, &size), -EFBIG);
	}
}

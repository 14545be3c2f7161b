/* SPDX-License-Identifier: BSD-2-Clause */
#include "code_made.h"

#define HEADER 16
#define ENTRY 64

static const char ptx[] = ".version 8.0\n.target sm_80\n.visible .entry f() { ret; }\n   ";

static void add_entry(struct made *made, unsigned int kind, unsigned int machine, const void *data, size_t length,
		      unsigned int packed, unsigned int flags)
{
	made_number(made, kind, 2);
	made_number(made, 0x101, 2);
	made_number(made, ENTRY, 4);
	made_number(made, length, 8);
	made_number(made, packed, 4);
	made_number(made, 0, 8);
	made_number(made, machine, 4);
	made_number(made, 0, 8);
	made_number(made, flags, 8);
	made_zeros(made, 16);
	made_bytes(made, data, length);
	made_set(made, 8, made->size - HEADER, 8);
}

static struct made fatbin(void)
{
	struct made made = { .size = 0 };

	made_number(&made, 0xba55ed50, 4);
	made_number(&made, 1, 2);
	made_number(&made, HEADER, 2);
	made_number(&made, 0, 8);
	add_entry(&made, 1, 80, ptx, sizeof(ptx), 0, 0);
	add_entry(&made, 2, 90, "12345678", 8, 5, 0x2000);
	return made;
}

Test(code_format_containers, fatbin_entries)
{
	struct made made = fatbin();
	struct code_contents contents = made_contents(&made, made.size, CODE_UNKNOWN);
	__u64 size;

	cr_expect_eq(contents.kind, CODE_FATBIN);
	cr_expect_null(contents.error);
	cr_assert_eq(contents.part_count, 2);
	cr_expect_str_eq(contents.parts[0].name, "sm_80");
	cr_expect_eq(contents.parts[0].kind, CODE_PTX);
	cr_expect_eq(contents.parts[0].offset, HEADER + ENTRY);
	cr_expect_eq(contents.parts[0].size, sizeof(ptx));
	cr_expect_str_eq(contents.parts[1].name, "sm_90");
	cr_expect_eq(contents.parts[1].kind, CODE_CUBIN);
	cr_expect_eq(contents.parts[1].offset, HEADER + 2 * ENTRY + sizeof(ptx));
	cr_expect_eq(contents.parts[1].size, 5);
	cr_assert_eq(contents.function_count, 1);
	cr_expect_str_eq(contents.functions[0].name, "f");
	code_contents_free(&contents);
	cr_assert_eq(made_own_size(&made, made.size, &size), 0);
	cr_expect_eq(size, made.size);
	cr_expect_eq(made_own_size(&made, made.size - 1, &size), -EFBIG);
}

Test(code_format_containers, fatbin_cut)
{
	struct made made = fatbin();

	made_check_cut(&made, CODE_FATBIN, 0, made.size);
}

Test(code_format_containers, fatbin_hostile)
{
	struct made made = fatbin();
	__u64 size;

	made_set(&made, 8, ~0ull, 8);
	made_expect_error(&made, CODE_UNKNOWN, "behind the end");
	cr_expect_eq(made_own_size(&made, ~0ull, &size), -EBADMSG);
	made = fatbin();
	made_set(&made, HEADER + 8, ~0ull - 8, 8);
	made_expect_error(&made, CODE_UNKNOWN, "entry 0 lies behind the end");
	made = fatbin();
	made_set(&made, HEADER + 4, 0, 4); /* would be found again and again */
	made_expect_error(&made, CODE_UNKNOWN, "entry 0 lies behind the end");
	made = fatbin();
	made_set(&made, 6, 0, 2);
	made_expect_error(&made, CODE_UNKNOWN, "header cannot be");
	made = fatbin();
	made_set(&made, HEADER + ENTRY + sizeof(ptx) + 0x28, 0, 8); /* no longer packed, and no ELF file */
	made_expect_error(&made, CODE_UNKNOWN, "in part sm_90");
}

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

Test(code_format_containers, bundle_entries)
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

Test(code_format_containers, bundle_cut)
{
	struct made made = two();

	made_check_cut(&made, CODE_BUNDLE, 0, made.size);
}

Test(code_format_containers, bundle_hostile)
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
Test(code_format_containers, itself)
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

Test(code_format_containers, compressed)
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

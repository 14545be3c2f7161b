/* SPDX-License-Identifier: BSD-2-Clause */
#include "code_made.h"

enum {
	TYPE_UINT8 = 0,
	TYPE_STRING = 8,
	TYPE_ARRAY = 9,
};

static void add_string(struct made *made, const char *text)
{
	made_number(made, strlen(text), 8);
	made_bytes(made, text, strlen(text));
}

static void add_pair(struct made *made, const char *key, __u64 type)
{
	add_string(made, key);
	made_number(made, type, 4);
	made->bytes[16]++;
}

static struct made header(void)
{
	struct made made = { .size = 0 };

	made_bytes(&made, "GGUF", 4);
	made_number(&made, 3, 4);
	made_number(&made, 0, 16);
	return made;
}

Test(code_format_gguf, name)
{
	struct made made = header();
	struct code_contents contents;

	add_pair(&made, "flags", TYPE_ARRAY);
	made_number(&made, TYPE_UINT8, 4);
	made_number(&made, 3, 8);
	made_bytes(&made, "123", 3);
	add_pair(&made, "general.name", TYPE_STRING);
	add_string(&made, "tiny");
	contents = made_contents(&made, made.size, CODE_UNKNOWN);
	cr_expect_eq(contents.kind, CODE_GGUF);
	cr_expect_null(contents.error);
	cr_expect_str_eq(contents.name, "tiny");
	code_contents_free(&contents);
	made_check_cut(&made, CODE_GGUF, 0, made.size);
}

Test(code_format_gguf, no_name)
{
	struct made made = header();
	struct code_contents contents;

	add_pair(&made, "general.name", TYPE_UINT8);
	made_number(&made, 7, 1);
	contents = made_contents(&made, made.size, CODE_UNKNOWN);
	cr_expect_null(contents.error);
	cr_expect_null(contents.name);
	code_contents_free(&contents);
}

/* Counts and lengths that are larger than everything. */
Test(code_format_gguf, hostile)
{
	struct made made = header();
	size_t size;

	add_pair(&made, "large", TYPE_ARRAY);
	size = made.size;
	for (unsigned int type = 0; type < 15; type++) {
		made.size = size;
		made_number(&made, type, 4);
		made_number(&made, ~0ull / 2, 8);
		made_zeros(&made, 64);
		made_expect_error(&made, CODE_UNKNOWN, "pair 0");
	}
	made = header();
	made_set(&made, 16, ~0ull, 8);
	made_zeros(&made, 64);
	made_expect_error(&made, CODE_UNKNOWN, "cannot be read");
	made = header();
	add_pair(&made, "deep", TYPE_ARRAY);
	for (unsigned int i = 0; i < 600; i++) {
		made_number(&made, TYPE_ARRAY, 4);
		made_number(&made, 1, 8);
	}
	made_expect_error(&made, CODE_UNKNOWN, "pair 0");
	made = header();
	made_set(&made, 4, 0x03000000, 4);
	made_expect_error(&made, CODE_UNKNOWN, "version");
}

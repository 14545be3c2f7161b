/* SPDX-License-Identifier: BSD-2-Clause */
#include "code_made.h"

#define BASE 0x7f0012340000ull
#define IMAGES 40
#define NAME (IMAGES + 32)

static struct made qpc(void)
{
	struct made made = { .size = 0 };

	made_number(&made, 0x00a1cd7c, 4);
	made_number(&made, 1 << 16, 4);
	made_number(&made, NAME + 16, 8);
	made_number(&made, BASE, 8);
	made_number(&made, 1, 8);
	made_number(&made, BASE + IMAGES, 8);
	made_number(&made, 8, 8);
	made_number(&made, 0, 8);
	made_number(&made, BASE + NAME, 8);
	made_number(&made, BASE + NAME + 8, 8);
	made_bytes(&made, "network\0contents", 16);
	return made;
}

Test(code_qpc, images)
{
	struct made made = qpc();
	struct code_contents contents = made_contents(&made, made.size, CODE_UNKNOWN);
	__u64 size;

	cr_expect_eq(contents.kind, CODE_QPC);
	cr_expect_null(contents.error);
	cr_assert_eq(contents.part_count, 1);
	cr_expect_str_eq(contents.parts[0].name, "network");
	cr_expect_eq(contents.parts[0].offset, NAME + 8);
	cr_expect_eq(contents.parts[0].size, 8);
	code_contents_free(&contents);
	cr_assert_eq(made_own_size(&made, made.size, &size), 0);
	cr_expect_eq(size, made.size);
	cr_expect_eq(made_own_size(&made, made.size - 1, &size), -EFBIG);
}

Test(code_qpc, cut)
{
	struct made made = qpc();

	made_check_cut(&made, CODE_QPC, 0, made.size);
}

Test(code_qpc, hostile)
{
	struct made made = qpc();
	__u64 size;

	made_set(&made, 24, ~0ull, 8); /* the table runs into what follows it */
	made_expect_error(&made, CODE_UNKNOWN, "outside");
	made = qpc();
	made_set(&made, 32, 0, 8); /* the table lies before the container */
	made_expect_error(&made, CODE_UNKNOWN, "image 0 of the table lies outside");
	made = qpc();
	made_set(&made, IMAGES + 16, 0, 8);
	made_expect_error(&made, CODE_UNKNOWN, "image 0 lies outside");
	made = qpc();
	made_set(&made, IMAGES, ~0ull, 8);
	made_expect_error(&made, CODE_UNKNOWN, "image 0 lies outside");
	made = qpc();
	made_set(&made, 8, 0, 8);
	cr_expect_eq(made_own_size(&made, ~0ull, &size), -EBADMSG);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/core/state.h"

#include <criterion/criterion.h>
#include <errno.h>

static int names_give(struct name_table *names, __u32 tgid, __u64 handle, const char *text, size_t length)
{
	return name_table_add(names, tgid, tgid, handle, text, length, false);
}

Test(model_program_processes_names, of_one_process_before_those_of_any)
{
	struct name_table names;

	name_table_init(&names, USER_ALIASES_MAX, true);
	cr_assert_null(user_alias_find(&names, 1, 5));
	cr_assert_eq(names_give(&names, 0, 5, "any body", 3), 0);
	cr_assert_eq(names_give(&names, 1, 5, "one", 3), 0);
	cr_assert_str_eq(user_alias_find(&names, 1, 5), "one");
	cr_assert_str_eq(user_alias_find(&names, 2, 5), "any");
	cr_assert_null(user_alias_find(&names, 1, 6));
	cr_assert_eq(names_give(&names, 1, 5, "uno", 3), 0);
	cr_assert_str_eq(user_alias_find(&names, 1, 5), "uno");
	name_table_free(&names);
}

Test(model_program_processes_names, are_bounded)
{
	struct name_table names;
	__u64 i;

	name_table_init(&names, USER_ALIASES_MAX, true);
	for (i = 0; i < USER_ALIASES_MAX; i++)
		cr_assert_eq(names_give(&names, 1, i, "x", 1), 0);
	cr_assert_eq(names_give(&names, 1, i, "x", 1), -ENOSPC);
	cr_assert_eq(names_give(&names, 1, 0, "y", 1), 0, "one that is known can change");
	name_table_free(&names);
}

Test(model_program_processes_names, of_each_process)
{
	const __u64 first = 1, second = 2;
	struct name_table classes;

	name_table_init(&classes, OPERATOR_CLASSES_MAX, true);
	cr_expect_null(name_table_find(&classes, first, 0x1000));
	cr_assert_eq(name_table_add(&classes, first, first, 0x1000, "a::Gemm", 7, false), 0);
	cr_assert_eq(name_table_add(&classes, second, second, 0x1000, "a::Relu+", 7, false), 0);
	cr_assert_eq(name_table_add(&classes, first, first, 0x2000, "a::Relu", 7, false), 0);
	cr_assert_eq(name_table_add(&classes, first, first, 0x2000, "a::Tanh", 7, false), 0);
	cr_expect_str_eq(name_table_find(&classes, first, 0x1000)->text, "a::Gemm");
	cr_expect_str_eq(name_table_find(&classes, second, 0x1000)->text, "a::Relu");
	cr_expect_str_eq(name_table_find(&classes, first, 0x2000)->text, "a::Tanh");
	name_table_drop_owner(&classes, first);
	name_table_drop_owner(&classes, first);
	cr_expect_null(name_table_find(&classes, first, 0x1000));
	cr_expect_str_eq(name_table_find(&classes, second, 0x1000)->text, "a::Relu");
	for (__u64 i = 0; i < 5000; i++)
		cr_assert_eq(name_table_add(&classes, first, first, i, "x", 1, false), 0);
	name_table_free(&classes);
}

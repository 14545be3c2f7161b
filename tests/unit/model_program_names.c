/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/names.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(model_program_names, of_one_process_before_those_of_any)
{
	struct names names = {};

	cr_assert_null(names_find(&names, 1, 5));
	cr_assert_eq(names_give(&names, 0, 5, "any body", 3), 0);
	cr_assert_eq(names_give(&names, 1, 5, "one", 3), 0);
	cr_assert_str_eq(names_find(&names, 1, 5), "one");
	cr_assert_str_eq(names_find(&names, 2, 5), "any");
	cr_assert_null(names_find(&names, 1, 6));
	cr_assert_eq(names_give(&names, 1, 5, "uno", 3), 0);
	cr_assert_str_eq(names_find(&names, 1, 5), "uno");
	names_free(&names);
}

Test(model_program_names, are_bounded)
{
	struct names names = {};
	__u64 i;

	for (i = 0; i < NAMES_MAX; i++)
		cr_assert_eq(names_give(&names, 1, i, "x", 1), 0);
	cr_assert_eq(names_give(&names, 1, i, "x", 1), -ENOSPC);
	cr_assert_eq(names_give(&names, 1, 0, "y", 1), 0, "one that is known can change");
	names_free(&names);
}

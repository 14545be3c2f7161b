/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/options.h"

#include <criterion/criterion.h>
#include <errno.h>

/* What options_copy() has to know of a struct of options. */
struct some_options {
	size_t size;
	int number;
	const char *text;
};

Test(base_core_options, fields_that_both_sides_know_are_copied)
{
	struct some_options from = { .size = offsetof(struct some_options, text), .number = 7, .text = "unknown" };
	struct some_options to = {};

	cr_assert_eq(options_copy(&to, sizeof(to), &from), 0);
	cr_assert_eq(to.number, 7);
	cr_assert_null(to.text);
	from.size = sizeof(from);
	cr_assert_eq(options_copy(&to, sizeof(to), &from), 0);
	cr_assert_str_eq(to.text, "unknown");
}

Test(base_core_options, fields_of_a_newer_library_must_be_zero)
{
	struct {
		struct some_options known;
		char tail[24];
	} from = { .known = { .size = sizeof(from), .number = 7 } };
	struct some_options to = {};

	cr_assert_eq(options_copy(&to, sizeof(to), &from), 0);
	from.tail[23] = 1;
	to = (struct some_options){};
	cr_assert_eq(options_copy(&to, sizeof(to), &from), -E2BIG);
	cr_assert_eq(to.number, 0);
}

Test(base_core_options, elements_are_as_far_apart_as_the_caller_says)
{
	struct {
		struct some_options known;
		char tail[24];
	} newer[2] = { { .known = { .number = 7 } }, { .known = { .number = 8, .text = "unknown" } } };
	struct {
		size_t size;
		int number;
	} older[2] = { { .number = 5 }, { .number = 6 } };
	struct some_options same[2] = { { .number = 1 }, { .number = 2, .text = "same" } }, to = { .text = "before" };

	cr_assert_eq(options_copy_element(&to, sizeof(to), older, sizeof(older[0]), 1), 0);
	cr_assert_eq(to.number, 6);
	cr_assert_null(to.text, "what the caller does not know is zero");
	cr_assert_eq(options_copy_element(&to, sizeof(to), newer, sizeof(newer[0]), 1), 0);
	cr_assert_eq(to.number, 8);
	cr_assert_str_eq(to.text, "unknown");
	newer[1].tail[23] = 1;
	cr_assert_eq(options_copy_element(&to, sizeof(to), newer, sizeof(newer[0]), 0), 0);
	cr_assert_eq(to.number, 7);
	cr_assert_eq(options_copy_element(&to, sizeof(to), newer, sizeof(newer[0]), 1), -E2BIG);
	cr_assert_eq(options_copy_element(&to, sizeof(to), same, 0, 1), 0);
	cr_assert_str_eq(to.text, "same");
}

Test(base_core_options, what_is_given_back_fits)
{
	struct some_options from = { .number = 7, .text = "unknown" };
	struct some_options to = { .size = offsetof(struct some_options, text), .text = "own" };

	cr_assert_eq(options_give(&to, &from, sizeof(from)), 0);
	cr_assert_eq(to.number, 7);
	cr_assert_str_eq(to.text, "own");
	cr_assert_eq(to.size, offsetof(struct some_options, text));
	to.size = 4096;
	cr_assert_eq(options_give(&to, &from, sizeof(from)), 0);
	cr_assert_eq(to.size, sizeof(to));
	cr_assert_str_eq(to.text, "unknown");
	to.size = 3;
	cr_assert_eq(options_give(&to, &from, sizeof(from)), -EINVAL);
}

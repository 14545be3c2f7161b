/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/choices.h"

#include <criterion/criterion.h>
#include <errno.h>

static struct identity identity = { .references = 1, .id = 1, .tgid = 100, .handle = 5, .name = "net", .process = "" };

Test(profile_handle_choices, all_that_is_given_must_fit)
{
	static const struct {
		struct xpt_program_choice choice;
		bool fits;
	} table[] = {
		{ { .name = "net" }, true },
		{ { .name = "ne" }, false },
		{ { .name = "nets" }, false },
		{ { .name = "" }, false },
		{ { .handle = 5 }, true },
		{ { .handle = 6 }, false },
		{ { .name = "net", .handle = 5 }, true },
		{ { .name = "net", .handle = 6 }, false },
		{ { .name = "bert", .handle = 5 }, false },
		{ { .name = "net", .pid = 100 }, true },
		{ { .name = "net", .pid = 101 }, false },
		{ { .handle = 5, .pid = 100 }, true },
		{ { .handle = 5, .pid = 99 }, false },
		{ { .handle = 5, .pid = -1 }, false },
	};
	size_t i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		cr_assert_eq(choice_fits(&table[i].choice, &identity), table[i].fits, "%zu", i);
}

Test(profile_handle_choices, the_latest_decides)
{
	const struct xpt_program_choice name = { .name = "net" }, handle = { .handle = 5 }, other = { .name = "bert" };
	struct choices choices = {};

	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_NONE);
	cr_assert_eq(choices_set(&choices, &name, true), 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert_eq(choices_set(&choices, &other, false), 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert_eq(choices_standing(&choices, &name), CHOICE_NONE, "something was removed since");
	cr_assert_eq(choices_set(&choices, &handle, false), 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_REMOVED);
	cr_assert_eq(choices_standing(&choices, &handle), CHOICE_REMOVED);
	cr_assert_eq(choices.added, 1);
	cr_assert_eq(choices_set(&choices, &name, true), 0);
	cr_assert_eq(choices.count, 3);
	cr_assert_eq(choices.added, 1);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert(choices_has(&choices, &name));
	cr_assert_not(choices_has(&choices, &handle));
	choices_forget(&choices, &name);
	cr_assert_eq(choices.added, 0);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_REMOVED);
	choices_forget(&choices, &handle);
	choices_forget(&choices, &handle);
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_NONE);
	choices_free(&choices);
}

Test(profile_handle_choices, the_name_is_copied)
{
	char name[] = "net";
	struct choices choices = {};

	cr_assert_eq(choices_set(&choices, &(struct xpt_program_choice){ .name = name }, true), 0);
	name[0] = 'm';
	cr_assert_eq(choices_decide(&choices, &identity), CHOICE_ADDED);
	cr_assert_eq(choices_set(&choices, &(struct xpt_program_choice){ .pid = 5 }, true), -EINVAL);
	choices_free(&choices);
}

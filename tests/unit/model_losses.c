/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/event.h"

#include <criterion/criterion.h>
#include <string.h>

Test(model_losses, every_cause_has_its_own_name_and_description)
{
	unsigned int a, b;

	for (a = 0; a <= XPT_LOSS_JOBS; a++) {
		cr_assert_neq(strcmp(loss_name(a), "unknown"), 0);
		cr_assert_eq(strspn(loss_name(a), "abcdefghijklmnopqrstuvwxyz_"), strlen(loss_name(a)));
		for (b = 0; b < a; b++) {
			cr_assert_neq(strcmp(loss_name(a), loss_name(b)), 0);
			cr_assert_neq(strcmp(loss_description(a), loss_description(b)), 0);
		}
	}
	cr_assert_str_eq(loss_name(XPT_LOSS_RING_FULL), "ring_full");
	cr_assert_str_eq(loss_name(XPT_LOSS_UNPAIRED), "unpaired");
	cr_assert_str_eq(loss_name(XPT_LOSS_MAX), "unknown");
	cr_assert_not_null(loss_description((enum xpt_loss)4000000000u));
}

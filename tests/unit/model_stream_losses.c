/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/event.h"

#include <criterion/criterion.h>
#include <string.h>

Test(model_stream_losses, every_cause_has_its_own_name_and_description)
{
	unsigned int a, b;

	for (a = 0; a <= XPT_LOSS_CALLBACKS; a++) {
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

/* What others mean nothing without is never left out. */
Test(model_stream_losses, what_a_report_may_leave_out)
{
	static const enum event_kind kept[] = { EVENT_PROCESS, EVENT_THREAD, EVENT_PROGRAM, EVENT_LOST,
						EVENT_WAITED,  EVENT_TASK,   EVENT_COUNT,   EVENT_CODE };
	static const enum event_kind counted[] = { EVENT_CALL,	 EVENT_REGION, EVENT_JOB,
						   EVENT_DEVICE, EVENT_IOCTL,  EVENT_READING };
	static const enum event_kind derived[] = { EVENT_INFERENCE, EVENT_COUNTER, EVENT_QUEUE, EVENT_LAUNCH };
	struct event event = { 0 };

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		event.kind = kept[i];
		cr_assert_eq(event_losses(&event), -1, "kind %d", event.kind);
	}
	for (size_t i = 0; i < sizeof(counted) / sizeof(counted[0]); i++) {
		event.kind = counted[i];
		cr_assert_eq(event_losses(&event), 1, "kind %d", event.kind);
	}
	for (size_t i = 0; i < sizeof(derived) / sizeof(derived[0]); i++) {
		event.kind = derived[i];
		cr_assert_eq(event_losses(&event), 0, "kind %d", event.kind);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/save_limits.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#define S 1000000000ull

static void check_text(const struct save_limits *limits, enum save_answer answer, __u64 now, const char *expected)
{
	char text[128], cut[8];

	save_limits_text(limits, answer, now, text, sizeof(text));
	cr_assert_str_eq(text, expected);
	save_limits_text(limits, answer, now, cut, sizeof(cut));
	cr_assert_eq(strlen(cut), sizeof(cut) - 1);
	cr_assert_eq(strncmp(cut, expected, sizeof(cut) - 1), 0);
}

Test(profile_trigger_save_limits, one_at_a_time)
{
	struct save_limits limits = {};

	cr_assert_eq(save_limits_ask(&limits, 5), SAVE_MAY);
	cr_assert_eq(save_limits_ask(&limits, 5), SAVE_PENDING);
	cr_assert_eq(save_limits_ask(&limits, 100 * S), SAVE_PENDING);
	check_text(&limits, SAVE_PENDING, 5, "the save before is not done");
	save_limits_done(&limits, 1000);
	cr_assert_eq(save_limits_ask(&limits, 5), SAVE_MAY, "without a cooldown");
	cr_assert_eq(limits.answers[SAVE_MAY], 2);
	cr_assert_eq(limits.answers[SAVE_PENDING], 2);
}

Test(profile_trigger_save_limits, cooldown)
{
	struct save_limits limits = { .cooldown = 10 * S };

	cr_assert_eq(save_limits_ask(&limits, 3 * S), SAVE_MAY, "the first one has nothing to wait for");
	save_limits_done(&limits, 1);
	cr_assert_eq(save_limits_ask(&limits, 3 * S), SAVE_COOLDOWN);
	check_text(&limits, SAVE_COOLDOWN, 3 * S, "the save before was 0 ns ago, less than 10 s");
	cr_assert_eq(save_limits_ask(&limits, 2 * S), SAVE_COOLDOWN, "an inference that ended before");
	cr_assert_eq(save_limits_ask(&limits, 13 * S - 1), SAVE_COOLDOWN);
	check_text(&limits, SAVE_COOLDOWN, 13 * S - 1, "the save before was 9.9 s ago, less than 10 s");
	cr_assert_eq(save_limits_ask(&limits, 13 * S), SAVE_MAY);
	/* It is counted from when the save was granted, not from its end. */
	cr_assert_eq(save_limits_ask(&limits, 22 * S), SAVE_PENDING);
	save_limits_done(&limits, 1);
	cr_assert_eq(save_limits_ask(&limits, 22 * S), SAVE_COOLDOWN);
	cr_assert_eq(save_limits_ask(&limits, 23 * S), SAVE_MAY);
	check_text(&limits, SAVE_MAY, 23 * S, "it may save");
	cr_assert_eq(limits.answers[SAVE_COOLDOWN], 4);
	cr_assert_eq(limits.answers[SAVE_PENDING], 1);
}

Test(profile_trigger_save_limits, files)
{
	struct save_limits limits = { .files_most = 3 };

	for (unsigned int i = 0; i < 3; i++) {
		cr_assert_eq(save_limits_ask(&limits, i), SAVE_MAY);
		save_limits_done(&limits, 10);
	}
	cr_assert_eq(save_limits_ask(&limits, 4), SAVE_FILES);
	check_text(&limits, SAVE_FILES, 4, "triggers have saved 3 files, and may save no more");
	cr_assert_eq(limits.files, 3);
	cr_assert_eq(limits.bytes, 30);
	limits = (struct save_limits){ .files_most = 1 };
	save_limits_ask(&limits, 0);
	save_limits_done(&limits, 10);
	check_text(&limits, SAVE_FILES, 4, "triggers have saved 1 file, and may save no more");
}

Test(profile_trigger_save_limits, bytes)
{
	struct save_limits limits = { .bytes_most = 4096 };

	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_MAY);
	save_limits_done(&limits, 4095);
	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_MAY, "the last one may go beyond");
	save_limits_done(&limits, 2049);
	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_BYTES);
	check_text(&limits, SAVE_BYTES, 0, "triggers have saved 6.00KiB, and may save 4.00KiB");
	cr_assert_eq(limits.bytes, 6144);
	cr_assert_eq(limits.answers[SAVE_BYTES], 1);
}

Test(profile_trigger_save_limits, a_save_that_fails_is_no_file_but_has_its_cooldown)
{
	struct save_limits limits = { .cooldown = 10 * S, .files_most = 1 };

	cr_assert_eq(save_limits_ask(&limits, 0), SAVE_MAY);
	save_limits_done(&limits, 0);
	cr_assert_eq(limits.files, 0);
	cr_assert_eq(save_limits_ask(&limits, 9 * S), SAVE_COOLDOWN);
	cr_assert_eq(save_limits_ask(&limits, 10 * S), SAVE_MAY);
	save_limits_done(&limits, 1);
	cr_assert_eq(save_limits_ask(&limits, 11 * S), SAVE_FILES, "that for good is told before that for now");
}

/* Against a plain record of what was granted and written. */
Test(profile_trigger_save_limits, all_of_them_over_a_random_day)
{
	struct save_limits limits = { .cooldown = 30 * S, .files_most = 40, .bytes_most = 1000000 };
	__u64 now = 0, granted = 0, files = 0, bytes = 0, asked = 0, answered = 0, size;
	bool pending = false, any = false;
	enum save_answer answer;

	srand(7);
	for (unsigned int i = 0; i < 20000; i++) {
		now += (__u64)(rand() % 10) * S;
		if (pending && rand() % 3 == 0) {
			size = rand() % 4 ? (__u64)(rand() % 60000) : 0;
			save_limits_done(&limits, size);
			files += size != 0;
			bytes += size;
			pending = false;
		}
		answer = save_limits_ask(&limits, now);
		asked++;
		cr_assert_eq(answer == SAVE_MAY,
			     !pending && files < 40 && bytes < 1000000 && (!any || now - granted >= 30 * S));
		if (answer == SAVE_MAY) {
			granted = now;
			any = pending = true;
		}
	}
	for (unsigned int i = 0; i < SAVE_ANSWERS; i++)
		answered += limits.answers[i];
	cr_assert_eq(answered, asked);
	cr_assert_eq(limits.files, files);
	cr_assert_eq(limits.bytes, bytes);
	cr_assert_gt(limits.answers[SAVE_COOLDOWN], 100);
	cr_assert_gt(limits.answers[SAVE_BYTES] + limits.answers[SAVE_FILES], 100);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/totals.h"

#include <criterion/criterion.h>

/* A counting with its total, and the sum of all that was to be added. */
struct ledger {
	struct counting counting;
	struct xpt_program_count total, reported;
};

static bool ledger_read(struct ledger *ledger, __u64 since, __u64 time, __u64 calls, __u64 left_out, __u64 lost)
{
	struct xpt_record_count record = { .header = { .time = time }, .since = since };
	struct xpt_program_count delta = {};
	bool taken;

	record.count = (struct xpt_program_count){ calls, left_out, lost, 0 };
	taken = counting_read(&ledger->counting, &record, &ledger->total, &delta);
	count_add(&ledger->reported, &delta);
	return taken;
}

static void ledger_end(struct ledger *ledger, __u64 time, __u64 calls, __u64 left_out, __u64 lost)
{
	struct xpt_record_total record = { .header = { .time = time } };
	struct xpt_program_count delta = {};

	record.count = (struct xpt_program_count){ calls, left_out, lost, 0 };
	counting_end(&ledger->counting, &record, &ledger->total, &delta);
	count_add(&ledger->reported, &delta);
}

static void check(const struct ledger *ledger, __u64 calls, __u64 left_out, __u64 lost)
{
	const struct xpt_program_count *each[] = { &ledger->total, &ledger->reported };
	size_t i;

	for (i = 0; i < 2; i++) {
		cr_assert_eq(each[i]->calls, calls, "%llu", each[i]->calls);
		cr_assert_eq(each[i]->left_out, left_out, "%llu", each[i]->left_out);
		cr_assert_eq(each[i]->lost, lost, "%llu", each[i]->lost);
		cr_assert_eq(each[i]->layers, 0);
	}
}

Test(model_program_totals_counting, readings_replace_each_other_and_the_end_replaces_them)
{
	struct ledger ledger = {};

	cr_assert(ledger_read(&ledger, 100, 200, 10, 4, 1));
	check(&ledger, 10, 4, 1);
	cr_assert(counting_open(&ledger.counting));
	cr_assert(ledger_read(&ledger, 100, 300, 10, 4, 1), "nothing new is fine");
	check(&ledger, 10, 4, 1);
	cr_assert(ledger_read(&ledger, 100, 400, 15, 4, 2));
	check(&ledger, 15, 4, 2);
	ledger_end(&ledger, 500, 17, 6, 2);
	check(&ledger, 17, 6, 2);
	cr_assert_not(counting_open(&ledger.counting));
	ledger_end(&ledger, 600, 3, 0, 0);
	check(&ledger, 20, 6, 2);
}

Test(model_program_totals_counting, a_reading_of_what_has_ended_is_stale)
{
	struct ledger ledger = {};

	cr_assert(ledger_read(&ledger, 100, 200, 10, 0, 0));
	ledger_end(&ledger, 300, 12, 0, 0);
	cr_assert_not(ledger_read(&ledger, 100, 350, 12, 0, 0), "the same counts again");
	cr_assert_not(ledger_read(&ledger, 299, 350, 1, 0, 0));
	check(&ledger, 12, 0, 0);
	cr_assert(ledger_read(&ledger, 300, 400, 5, 0, 0), "goes on from the cut");
	check(&ledger, 17, 0, 0);
	ledger_end(&ledger, 500, 6, 0, 0);
	cr_assert(ledger_read(&ledger, 550, 600, 2, 0, 0), "began anew after the cut");
	check(&ledger, 20, 0, 0);
}

Test(model_program_totals_counting, a_smaller_count_is_older)
{
	struct ledger ledger = {};

	cr_assert(ledger_read(&ledger, 100, 200, 10, 5, 2));
	cr_assert_not(ledger_read(&ledger, 100, 210, 9, 5, 2));
	cr_assert_not(ledger_read(&ledger, 100, 210, 11, 4, 2));
	cr_assert_not(ledger_read(&ledger, 100, 210, 11, 5, 1));
	cr_assert_not(ledger_read(&ledger, 50, 210, 100, 50, 20), "of a counting before this one");
	check(&ledger, 10, 5, 2);
	ledger_end(&ledger, 300, 11, 5, 2);
	check(&ledger, 11, 5, 2);
}

/* The end of the counting before is overtaken by a reading of the next. */
Test(model_program_totals_counting, a_late_end_is_of_the_counting_before)
{
	struct ledger ledger = {};

	cr_assert(ledger_read(&ledger, 100, 200, 10, 0, 0));
	cr_assert(ledger_read(&ledger, 300, 400, 2, 0, 0));
	check(&ledger, 12, 0, 0);
	ledger_end(&ledger, 300, 15, 0, 0);
	check(&ledger, 17, 0, 0);
	cr_assert(counting_open(&ledger.counting));
	cr_assert(ledger_read(&ledger, 300, 500, 4, 0, 0));
	check(&ledger, 19, 0, 0);
	ledger_end(&ledger, 600, 5, 0, 0);
	check(&ledger, 20, 0, 0);
}

Test(model_program_totals_counting, an_end_smaller_than_what_was_reported_takes_nothing_from_the_deltas)
{
	struct ledger ledger = {};

	ledger_end(&ledger, 50, 100, 0, 0);
	cr_assert(ledger_read(&ledger, 100, 200, 10, 5, 0));
	ledger_end(&ledger, 300, 4, 7, 0);
	cr_assert_eq(ledger.total.calls, 104, "the total is right all the same");
	cr_assert_eq(ledger.total.left_out, 7);
	cr_assert_eq(ledger.reported.calls, 110);
	cr_assert_eq(ledger.reported.left_out, 7);
}

Test(model_program_totals_counting, numbers_at_their_limits)
{
	const __u64 most = ~(__u64)0;
	struct ledger ledger = {};

	cr_assert(ledger_read(&ledger, 0, 1, most, 0, 0));
	cr_assert(ledger_read(&ledger, 0, 2, most, most, 0));
	check(&ledger, most, most, 0);
	cr_assert_not(ledger_read(&ledger, 0, 3, 0, 0, 0));
	cr_assert(ledger_read(&ledger, most - 1, most, 0, 0, 0));
	ledger_end(&ledger, most, 0, 0, 0);
	cr_assert_not(ledger_read(&ledger, most - 1, most, 1, 0, 0));
	check(&ledger, most, most, 0);
}

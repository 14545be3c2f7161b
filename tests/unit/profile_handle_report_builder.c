/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/handle/state.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct report_request request = { .sample_every = 4, .samples = 9 };

static struct identity *identity_make(unsigned int id)
{
	struct identity *identity = calloc(1, sizeof(*identity) + 8);

	identity->references = 1;
	identity->id = id;
	identity->tgid = 77;
	identity->runtime = "toy";
	memcpy(identity->text, "net", 4);
	identity->name = identity->text;
	identity->process = identity->text + 3;
	return identity;
}

static struct xpt_sample sample_make(__u64 number)
{
	return (struct xpt_sample){ .size = sizeof(struct xpt_sample),
				    .number = number,
				    .time = { [XPT_TIME_CALL_BEGINS] = 1000, [XPT_TIME_CALL_ENDS] = 4000 },
				    .failed = number == 3,
				    .jobs = number < 3,
				    .queue_time = number < 2 ? 5 : 0,
				    .device_time = number < 2 ? 70 : 0 };
}

#define COUNT 1100 /* more than a power of two */

Test(profile_handle_report_builder, what_was_put_in_comes_out)
{
	struct budget budget = { .limit = 1 << 20 };
	struct report *report = report_create(&budget, "mine");
	struct identity *identity = identity_make(5), *idle = identity_make(6);
	const struct xpt_profile_report *view;
	struct xpt_column_summary summary = { .size = sizeof(summary) };
	struct xpt_sample sample;
	struct row *row;
	__u64 i;

	report->rows_wanted = true;
	row = report_row(report, identity);
	for (i = 0; i < COUNT; i++) {
		sample = sample_make(i);
		sample.time[XPT_TIME_CALL_ENDS] += i == 17 ? 500 : 0;
		cr_assert_eq(report_row(report, identity), row);
		cr_assert(report_add_sample(report, row, &sample));
	}
	row->inferences = 1200;
	report_row(report, idle);
	identity_put(identity);
	identity_put(idle);
	cr_assert_eq(report_finish(report, &request, NULL, &(struct profiling_options){ 0 }), 0);
	view = report_view(report);
	cr_assert_eq(view->size, sizeof(*view));
	cr_assert_str_eq(view->name, "mine");
	cr_assert_eq(view->program_count, 2);
	cr_assert_eq(view->program_size, sizeof(view->programs[0]));
	cr_assert_eq(view->programs[0].sample_size, sizeof(struct xpt_sample));
	cr_assert_eq(view->programs[0].id, 5);
	cr_assert_eq(view->programs[0].pid, 77);
	cr_assert_str_eq(view->programs[0].name, "net");
	cr_assert_eq(view->programs[0].sample_every, 4);
	cr_assert_eq(view->programs[0].requested, 9);
	cr_assert_eq(view->programs[0].inferences, 1200);
	cr_assert_eq(view->programs[0].taken, COUNT);
	cr_assert_eq(view->programs[0].failed, 1);
	cr_assert_eq(view->programs[0].timed, 2, "a job of the third one has not ended");
	cr_assert_eq(view->programs[0].queue_time, 10);
	cr_assert_eq(view->programs[0].device_time, 140);
	cr_assert_eq(view->programs[0].slowest_number, 17);
	cr_assert_eq(view->programs[0].slowest_time, 4500);
	cr_assert_eq(view->programs[0].slowest_duration, 3500);
	cr_assert_eq(view->programs[0].sample_count, COUNT);
	for (i = 0; i < COUNT; i++)
		cr_assert_eq(view->programs[0].samples[i].number, i);
	cr_assert_eq(xpt_latencies_get(view->programs[0].latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, &summary), 0);
	cr_assert_eq(summary.count, COUNT);
	cr_assert_float_eq(summary.mean, 3.0 + 0.5 / COUNT, 1e-9);
	cr_assert_eq(view->programs[1].id, 6);
	cr_assert_eq(view->programs[1].taken, 0);
	cr_assert_eq(xpt_latencies_get(view->programs[1].latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, &summary), -ENODATA);
	cr_assert_eq(report_bytes(report), budget.used);
	cr_assert_lt(budget.used, COUNT * sizeof(struct xpt_sample) + (6 << 10), "what was not needed is given back");
	report_free(report);
	cr_assert_eq(budget.used, 0);
	budget_settle(&budget);
}

/* What one report had is the next one's, with nothing of it to be seen. */
Test(profile_handle_report_builder, arrays_are_used_again)
{
	struct budget budget = { .limit = 2 << 20 };
	struct identity *identity = identity_make(5);
	struct xpt_sample sample;
	struct report *report;
	struct row *row;
	__u64 i, round;

	for (round = 0; round < 10; round++) {
		report = report_create(&budget, "");
		report->rows_wanted = true;
		row = report_row(report, identity);
		for (i = 0; i < 1000 + 10 * round; i++) {
			sample = sample_make(round * 10000 + i);
			cr_assert(report_add_sample(report, row, &sample));
		}
		cr_assert_eq(report_finish(report, &request, NULL, &(struct profiling_options){ 0 }), 0);
		for (i = 0; i < 1000 + 10 * round; i++)
			cr_assert_eq(report_view(report)->programs->samples[i].number, round * 10000 + i);
		cr_assert_leq(budget.spare_bytes, 1100 * sizeof(sample));
		report_free(report);
		cr_assert_gt(budget.spare_bytes, 500 * sizeof(sample));
		cr_assert_leq(budget.spare_bytes, budget.limit / 4);
		cr_assert_eq(budget.used, 0);
	}
	budget_settle(&budget);
	cr_assert_eq(budget.spare_bytes, 0);
	identity_put(identity);
}

Test(profile_handle_report_builder, summaries_keep_no_rows)
{
	struct budget budget = { .limit = 16 << 10 };
	struct report *report = report_create(&budget, "");
	struct identity *identity = identity_make(5);
	struct xpt_sample sample;
	__u64 i;

	for (i = 0; i < 100000; i++) {
		sample = sample_make(i);
		cr_assert(report_add_sample(report, report_row(report, identity), &sample));
	}
	identity_put(identity);
	cr_assert_eq(report_finish(report, &request, NULL, &(struct profiling_options){ 0 }), 0);
	cr_assert_eq(report_view(report)->programs->taken, 100000);
	cr_assert_eq(report_view(report)->programs->sample_count, 0);
	cr_assert_lt(report_bytes(report), 16 << 10);
	report_free(report);
}

Test(profile_handle_report_builder, rows_without_room_are_lost)
{
	struct budget budget = { .limit = 64 << 10 };
	struct report *report = report_create(&budget, "");
	struct identity *identity = identity_make(5);
	struct xpt_sample sample;
	__u64 i, taken = 0;
	struct row *row = report_row(report, identity);

	report->rows_wanted = true;
	for (i = 0; i < 10000; i++) {
		sample = sample_make(i);
		taken += report_add_sample(report, row, &sample);
	}
	cr_assert_leq(budget.used, budget.limit);
	cr_assert_gt(budget.used, budget.limit - 1024, "what there is was used");
	cr_assert_eq(row->taken, taken);
	cr_assert_eq(row->lost, 10000 - taken);
	cr_assert_eq(row->count, taken);
	identity_put(identity);
	report_free(report);
	cr_assert_eq(budget.used, 0);
	budget_settle(&budget);
}

/* Programs beyond the limit share one entry, in which nothing but numbers is kept. */
Test(profile_handle_report_builder, programs_without_room)
{
	struct budget budget = { .limit = 64 << 10 };
	struct report *report = report_create(&budget, "");
	const struct xpt_profile_report *view;
	struct xpt_sample sample = sample_make(0);
	struct identity *identity;
	struct row *row;
	__u64 i, inferences = 0, lost = 0;

	for (i = 1; i <= 1000; i++) {
		identity = identity_make(i);
		row = report_row(report, identity);
		row->inferences++;
		report_add_sample(report, row, &sample);
		identity_put(identity);
	}
	cr_assert_eq(report_finish(report, &request, NULL, &(struct profiling_options){ 0 }), 0);
	view = report_view(report);
	cr_assert_lt(view->program_count, 40);
	for (i = 0; i < view->program_count; i++) {
		inferences += view->programs[i].inferences;
		lost += view->programs[i].lost;
		cr_assert_not_null(view->programs[i].latencies);
		cr_assert_eq(view->programs[i].lost + view->programs[i].taken, view->programs[i].inferences);
	}
	cr_assert_eq(inferences, 1000);
	cr_assert_gt(lost, 900);
	cr_assert_eq(view->programs[i - 1].id, 0);
	cr_assert_str_eq(view->programs[i - 1].name, "(others)");
	report_free(report);
}

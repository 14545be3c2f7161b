/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stats/statistics.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define UNSEEN (~(uint64_t)0)

/* The heading of the Cloud AI 100 runtime's report, and what language models have. */
static const char *const names[] = {
	"queueDepth",	      "numInfInQueue",	   "devInfPerSec",	 "devExec(Us)",	       "devInWaitTime(Us)",
	"devOutWaitTime(Us)", "hostRoundTrip(Us)", "enqTime(Us)",	 "preProcTime(Us)",    "submitTime(Us)",
	"execTotal(Us)",      "exectoVc(Us)",	   "execToComplete(Us)", "postProc(Us)",       "totalRoundtripTime(Us)",
	"prefillTokens",      "decodeTokens",	   "tokensPerSec",	 "firstTokenTime(Us)", "outputTokenTime(Us)",
	"cpuTime(Us)",	      "waitedTime(Us)",	   "blockedTime(Us)",
};

Test(model_stats_statistics_latencies, names_are_those_of_the_runtime_in_its_order)
{
	unsigned int i;

	cr_assert_eq(sizeof(names) / sizeof(names[0]), XPT_COLUMNS);
	for (i = 0; i < XPT_COLUMNS; i++)
		cr_assert_str_eq(xpt_column_name(i), names[i]);
	cr_assert_null(xpt_column_name(XPT_COLUMNS));
	cr_assert_null(xpt_column_name(-1));
}

static const struct xpt_sample full = {
	.size = sizeof(struct xpt_sample),
	.time = { 1000, 3000, 7000, 15000, 31000, 63000 },
	.enqueued = 9000,
	.in_queue = 3,
	.has_in_queue = 1,
	.has_states = 1,
	.cpu_time = 41000,
	.waited_time = 900,
	.blocked_time = 20100,
};

static uint64_t column(const struct xpt_sample *sample, enum xpt_column which)
{
	uint64_t value = 42;
	int error = xpt_sample_column(sample, which, &value);

	if (!error)
		return value;
	cr_assert_eq(error, -ENODATA);
	cr_assert_eq(value, 42, "nothing is written where nothing is known");
	return UNSEEN;
}

Test(model_stats_statistics_latencies, each_column_is_derived_from_its_times)
{
	static const uint64_t expected[] = {
		UNSEEN, 3000,  62500000, 16000,	 UNSEEN, UNSEEN, 60000,	 8000,	 2000,	4000, 28000, 8000,
		16000,	32000, 62000,	 UNSEEN, UNSEEN, UNSEEN, UNSEEN, UNSEEN, 41000, 900,  20100,
	};
	unsigned int i;

	for (i = 0; i < XPT_COLUMNS; i++)
		cr_assert_eq(column(&full, i), expected[i], "%s is %lu", names[i], column(&full, i));
}

Test(model_stats_statistics_latencies, tokens_of_a_batch)
{
	const struct xpt_sample prefill = { .size = sizeof(struct xpt_sample),
					    .time = { 1000, 0, 0, 0, 0, 2001000 },
					    .prefill_tokens = 512 };
	const struct xpt_sample decode = { .size = sizeof(struct xpt_sample),
					   .time = { 1000, 0, 0, 0, 0, 2001000 },
					   .decode_tokens = 3,
					   .first_token = 7000000,
					   .output_token = 2500000 };
	const struct xpt_sample no_time = { .size = sizeof(struct xpt_sample),
					    .time = { 1000, 0, 0, 0, 0, 1000 },
					    .decode_tokens = UINT64_MAX };

	cr_assert_eq(column(&prefill, XPT_COLUMN_PREFILL_TOKENS), 512000);
	cr_assert_eq(column(&prefill, XPT_COLUMN_DECODE_TOKENS), UNSEEN);
	cr_assert_eq(column(&prefill, XPT_COLUMN_TOKEN_RATE), 256000 * 1000, "512 in 2 ms");
	cr_assert_eq(column(&prefill, XPT_COLUMN_FIRST_TOKEN), UNSEEN);
	cr_assert_eq(column(&decode, XPT_COLUMN_PREFILL_TOKENS), UNSEEN);
	cr_assert_eq(column(&decode, XPT_COLUMN_DECODE_TOKENS), 3000);
	cr_assert_eq(column(&decode, XPT_COLUMN_TOKEN_RATE), 1500 * 1000);
	cr_assert_eq(column(&decode, XPT_COLUMN_FIRST_TOKEN), 7000000);
	cr_assert_eq(column(&decode, XPT_COLUMN_OUTPUT_TOKEN), 2500000);
	cr_assert_eq(column(&no_time, XPT_COLUMN_TOKEN_RATE), UNSEEN);
}

Test(model_stats_statistics_latencies, a_missing_time_takes_its_columns_away_and_no_other)
{
	/* By hand: which columns need t0, t1, ... t5. */
	static const char *const needing[XPT_TIMES] = {
		",enqTime(Us),preProcTime(Us),totalRoundtripTime(Us),",
		",hostRoundTrip(Us),preProcTime(Us),submitTime(Us),execTotal(Us),",
		",submitTime(Us),exectoVc(Us),",
		",devInfPerSec,devExec(Us),exectoVc(Us),execToComplete(Us),",
		",devInfPerSec,devExec(Us),execTotal(Us),execToComplete(Us),postProc(Us),",
		",hostRoundTrip(Us),postProc(Us),totalRoundtripTime(Us),",
	};
	unsigned int i, time;
	char name[64];

	for (time = 0; time < XPT_TIMES; time++) {
		struct xpt_sample sample = full;

		sample.time[time] = 0;
		for (i = 0; i < XPT_COLUMNS; i++) {
			snprintf(name, sizeof(name), ",%s,", names[i]);
			if (strstr(needing[time], name))
				cr_assert_eq(column(&sample, i), UNSEEN, "%s without t%u", names[i], time);
			else
				cr_assert_eq(column(&sample, i), column(&full, i), "%s without t%u", names[i], time);
		}
	}
}

Test(model_stats_statistics_latencies, what_ends_before_it_begins_is_not_observed)
{
	struct xpt_sample sample = full;

	sample.time[XPT_TIME_DEVICE_DONE] = sample.time[XPT_TIME_DEVICE_RUNS] - 1;
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_EXECUTE), UNSEEN);
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_RATE), UNSEEN);
	cr_assert_eq(column(&sample, XPT_COLUMN_EXECUTE_TO_COMPLETE), UNSEEN);
	cr_assert_eq(column(&sample, XPT_COLUMN_TOTAL_ROUND_TRIP), 62000);
	sample.enqueued = sample.time[0] - 1;
	cr_assert_eq(column(&sample, XPT_COLUMN_ENQUEUE), UNSEEN);
}

Test(model_stats_statistics_latencies, no_time_between_is_a_time_but_no_rate)
{
	struct xpt_sample sample = full;

	sample.time[XPT_TIME_DEVICE_DONE] = sample.time[XPT_TIME_DEVICE_RUNS];
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_EXECUTE), 0);
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_RATE), UNSEEN);
}

Test(model_stats_statistics_latencies, rates_are_rounded)
{
	struct xpt_sample sample = { .size = sizeof(struct xpt_sample), .time = { [XPT_TIME_DEVICE_RUNS] = 1 } };

	sample.time[XPT_TIME_DEVICE_DONE] = 1 + 3; /* 333333333.3333 a second */
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_RATE), 333333333333);
	sample.time[XPT_TIME_DEVICE_DONE] = 1 + 1500000; /* 666.6666 */
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_RATE), 666667);
	sample.time[XPT_TIME_DEVICE_DONE] = UNSEEN;
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_RATE), 0);
	cr_assert_eq(column(&sample, XPT_COLUMN_DEVICE_EXECUTE), UNSEEN - 1);
}

Test(model_stats_statistics_latencies, synchronous_inferences_have_no_enqueue_and_an_empty_queue_is_known)
{
	struct xpt_sample sample = full;

	sample.enqueued = 0;
	cr_assert_eq(column(&sample, XPT_COLUMN_ENQUEUE), UNSEEN);
	sample.in_queue = 0;
	cr_assert_eq(column(&sample, XPT_COLUMN_IN_QUEUE), 0);
	sample.has_in_queue = 0;
	cr_assert_eq(column(&sample, XPT_COLUMN_IN_QUEUE), UNSEEN);
	sample.has_in_queue = 1;
	sample.in_queue = UINT32_MAX;
	cr_assert_eq(column(&sample, XPT_COLUMN_IN_QUEUE), UINT32_MAX * 1000ull);
}

Test(model_stats_statistics_latencies, columns_that_do_not_exist)
{
	struct xpt_latencies *latencies = xpt_latencies_create();
	struct xpt_column_summary summary = { .size = sizeof(summary) };
	uint64_t value;

	cr_assert_eq(xpt_sample_column(&full, XPT_COLUMNS, &value), -EINVAL);
	cr_assert_eq(xpt_sample_column(&full, -1, &value), -EINVAL);
	cr_assert_eq(xpt_latencies_get(latencies, XPT_COLUMNS, &summary), -EINVAL);
	cr_assert_eq(xpt_latencies_get(latencies, -1, &summary), -EINVAL);
	cr_assert_eq(xpt_latencies_get(latencies, 0, &summary), -ENODATA);
	xpt_latencies_free(latencies);
	xpt_latencies_free(NULL);
}

#define SAMPLES 5000

static uint64_t state = 88172645463325252ULL;

static uint64_t random_next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

/* Times in order, with one missing now and then; and some without a queue. */
static void draw(struct xpt_sample *sample)
{
	uint64_t now = 1 + random_next() % 1000000000;
	unsigned int i;

	*sample = (struct xpt_sample){ .size = sizeof(*sample) };
	for (i = 0; i < XPT_TIMES; i++) {
		sample->time[i] = random_next() % 10 ? now : 0;
		now += random_next() % (1000u << random_next() % 12);
	}
	sample->enqueued = random_next() % 2 ? now : 0;
	sample->has_in_queue = random_next() % 3 != 0;
	sample->in_queue = random_next() % 60;
}

static int compare(const void *left, const void *right)
{
	const double *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static double nearest_rank(const double *sorted, size_t count, unsigned int percent)
{
	return sorted[(count * percent + 99) / 100 - 1];
}

#define NEAR(value, expected, relative) (fabs((value) - (expected)) <= (relative)*fabs(expected) + 1e-9)

/* The plain definitions, over all values. */
static void check_column(const struct xpt_latencies *latencies, enum xpt_column which, double *values, size_t count)
{
	double sum = 0, squares = 0, mean;
	struct xpt_column_summary summary = { .size = sizeof(summary) };
	size_t i;

	cr_assert_eq(xpt_latencies_get(latencies, which, &summary), 0, "%s", names[which]);
	cr_assert_eq(summary.count, count);
	qsort(values, count, sizeof(*values), compare);
	for (i = 0; i < count; i++)
		sum += values[i];
	mean = sum / count;
	for (i = 0; i < count; i++)
		squares += (values[i] - mean) * (values[i] - mean);
	cr_assert(NEAR(summary.min, values[0], 1e-12), "%s", names[which]);
	cr_assert(NEAR(summary.max, values[count - 1], 1e-12));
	cr_assert(NEAR(summary.mean, mean, 1e-9), "%s: %f is not %f", names[which], summary.mean, mean);
	cr_assert(NEAR(summary.deviation, sqrt(squares / (count - 1)), 1e-9));
	cr_assert(NEAR(summary.p50, nearest_rank(values, count, 50), 0.01), "%s: %f", names[which], summary.p50);
	cr_assert(NEAR(summary.p90, nearest_rank(values, count, 90), 0.01));
	cr_assert(NEAR(summary.p95, nearest_rank(values, count, 95), 0.01));
	cr_assert(NEAR(summary.p99, nearest_rank(values, count, 99), 0.01));
}

Test(model_stats_statistics_latencies, summaries_agree_with_the_definitions)
{
	struct xpt_latencies *latencies = xpt_latencies_create();
	static struct xpt_sample samples[SAMPLES];
	static double values[SAMPLES];
	struct xpt_column_summary summary = { .size = sizeof(summary) };
	size_t i, count;
	unsigned int which;

	for (i = 0; i < SAMPLES; i++) {
		draw(&samples[i]);
		cr_assert_eq(xpt_latencies_add(latencies, &samples[i]), 0);
	}
	for (which = 0; which < XPT_COLUMNS; which++) {
		for (i = count = 0; i < SAMPLES; i++) {
			uint64_t value = column(&samples[i], which);

			if (value != UNSEEN)
				values[count++] = value / 1000.0;
		}
		if (count)
			check_column(latencies, which, values, count);
		else
			cr_assert_eq(xpt_latencies_get(latencies, which, &summary), -ENODATA);
	}
	xpt_latencies_free(latencies);
}

Test(model_stats_statistics_latencies, queue_lengths_are_whole_and_exact)
{
	struct xpt_latencies *latencies = xpt_latencies_create();
	struct xpt_sample sample = { .size = sizeof(struct xpt_sample), .has_in_queue = 1 };
	struct xpt_column_summary summary = { .size = sizeof(summary) };

	for (sample.in_queue = 1; sample.in_queue <= 63; sample.in_queue++)
		xpt_latencies_add(latencies, &sample);
	cr_assert_eq(xpt_latencies_get(latencies, XPT_COLUMN_IN_QUEUE, &summary), 0);
	cr_assert_eq(summary.p50, 32);
	cr_assert_eq(summary.p90, 57);
	cr_assert_eq(summary.max, 63);
	cr_assert_eq(summary.mean, 32);
	sample.in_queue = 100003;
	for (int i = 0; i < 1000; i++)
		xpt_latencies_add(latencies, &sample);
	xpt_latencies_get(latencies, XPT_COLUMN_IN_QUEUE, &summary);
	cr_assert_eq(summary.p90, floor(summary.p90), "%f inferences", summary.p90);
	xpt_latencies_free(latencies);
}

static void expect_same(const struct xpt_latencies *left, const struct xpt_latencies *right)
{
	struct xpt_column_summary a = { .size = sizeof(a) }, b = { .size = sizeof(b) };
	unsigned int which;
	int error;

	for (which = 0; which < XPT_COLUMNS; which++) {
		error = xpt_latencies_get(left, which, &a);
		cr_assert_eq(xpt_latencies_get(right, which, &b), error, "%s", names[which]);
		if (error)
			continue;
		cr_assert(a.count == b.count && a.min == b.min && a.mean == b.mean && a.max == b.max, "%s",
			  names[which]);
		cr_assert(a.p50 == b.p50 && a.p90 == b.p90 && a.p95 == b.p95 && a.p99 == b.p99, "%s", names[which]);
		cr_assert_eq(a.deviation, b.deviation, "%s", names[which]);
	}
}

Test(model_stats_statistics_latencies, merging_is_exact)
{
	struct xpt_latencies *whole = xpt_latencies_create(), *merged = xpt_latencies_create();
	struct xpt_latencies *parts[3], *empty = xpt_latencies_create();
	struct xpt_sample sample;
	size_t i;

	for (i = 0; i < 3; i++)
		parts[i] = xpt_latencies_create();
	for (i = 0; i < SAMPLES; i++) {
		draw(&sample);
		/* One part has columns that the others lack. */
		if (i % 3)
			sample.time[XPT_TIME_DEVICE_RUNS] = 0;
		xpt_latencies_add(whole, &sample);
		xpt_latencies_add(parts[i % 3], &sample);
	}
	for (i = 0; i < 3; i++) {
		cr_assert_eq(xpt_latencies_merge(merged, parts[i]), 0);
		xpt_latencies_free(parts[i]);
	}
	expect_same(merged, whole);
	cr_assert_eq(xpt_latencies_merge(merged, empty), 0);
	expect_same(merged, whole);
	cr_assert_eq(xpt_latencies_merge(empty, merged), 0);
	expect_same(empty, whole);
	xpt_latencies_free(whole);
	xpt_latencies_free(merged);
	xpt_latencies_free(empty);
}

Test(model_stats_statistics_latencies, extreme_times)
{
	struct xpt_latencies *latencies = xpt_latencies_create();
	struct xpt_sample sample = { .size = sizeof(struct xpt_sample), .time = { 1, 1, 1, 1, 1, UNSEEN } };
	struct xpt_column_summary summary = { .size = sizeof(summary) };

	cr_assert_eq(xpt_latencies_add(latencies, &sample), 0);
	cr_assert_eq(xpt_latencies_add(latencies, &sample), 0);
	cr_assert_eq(xpt_latencies_get(latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, &summary), 0);
	cr_assert(NEAR(summary.max, 18446744073709551.614, 1e-12));
	cr_assert(NEAR(summary.mean, 18446744073709551.614, 1e-12));
	cr_assert_eq(summary.deviation, 0);
	xpt_latencies_free(latencies);
}

#if defined(__SANITIZE_ADDRESS__)
#define MEASURES_MEMORY 0 /* the sanitizer's allocator does not tell */
#else
#define MEASURES_MEMORY 1
#endif

Test(model_stats_statistics_latencies, columns_that_are_never_seen_cost_nothing)
{
	struct xpt_sample sample = { .size = sizeof(struct xpt_sample),
				     .time = { [XPT_TIME_CALL_BEGINS] = 1, [XPT_TIME_CALL_ENDS] = 1000 } };
	struct mallinfo2 before, after;
	struct xpt_latencies *latencies;

	if (!MEASURES_MEMORY)
		cr_skip_test("the sanitizer's allocator does not say how much is in use");
	before = mallinfo2();
	latencies = xpt_latencies_create();
	xpt_latencies_add(latencies, &sample);
	after = mallinfo2();
	cr_assert_lt(after.uordblks - before.uordblks, 2048, "one column only");
	xpt_latencies_free(latencies);
}

Test(model_stats_statistics_latencies, buckets)
{
	static const double bounds[] = { 0, 1, 2.5, 10, 100, 999.9, 1000, 1e18, 1e300 };
	struct xpt_latencies *latencies = xpt_latencies_create();
	struct xpt_sample sample = { .size = sizeof(sample), .time = { 1000 } };
	uint64_t counts[sizeof(bounds) / sizeof(bounds[0])];

	cr_assert_eq(xpt_latencies_buckets(latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, bounds, 9, counts), -ENODATA);
	cr_assert_eq(xpt_latencies_buckets(latencies, XPT_COLUMNS, bounds, 9, counts), -EINVAL);
	for (unsigned int i = 1; i <= 1000; i++) { /* 1 to 1000 us */
		sample.time[XPT_TIME_CALL_ENDS] = 1000 + i * 1000;
		cr_assert_eq(xpt_latencies_add(latencies, &sample), 0);
	}
	cr_assert_eq(xpt_latencies_buckets(latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, bounds, 9, counts), 0);
	for (size_t i = 0; i < 9; i++) {
		double exact = fmin(floor(bounds[i]), 1000);

		cr_expect(fabs((double)counts[i] - exact) <= 0.01 * exact + 1, "%g: %g, %g expected", bounds[i],
			  (double)counts[i], exact);
		cr_expect(!i || counts[i] >= counts[i - 1]);
	}
	cr_assert_eq(counts[0], 0);
	cr_assert_eq(counts[6], 1000);
	cr_assert_eq(counts[8], 1000);
	xpt_latencies_free(latencies);
}

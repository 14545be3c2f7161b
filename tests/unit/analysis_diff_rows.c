/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/diff.h"

#include <criterion/criterion.h>

#include "analysis_diff.h"
#include "model/stats/statistics.h"

#define LIKE .recordings = 1, .inferences = 1600, .operators = { 200000, 50000 }, .noise = 0.05, .pause = 10000
#define NEAR(value, expected, most) \
	cr_assert(fabs((value) - (expected)) <= (most), "%g, not %g", value, (double)(expected))

static double mean(const struct study_program *program)
{
	double sum = 0;

	for (size_t i = 0; i < program->sample_count; i++)
		sum += (double)program->samples[i].duration / program->sample_count;
	return sum;
}

static int compare(const void *left, const void *right)
{
	const __u64 *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

/* The figures, calculated here once more. */
Test(analysis_diff_rows, figures)
{
	const struct made before = { LIKE, .waited = 300000, .failed = 0.1 }, after = { LIKE, .waited = 300000 };
	struct study_program programs[2] = { made_program("model", &before), made_program("model", &after) };
	const struct study studies[2] = { made_study(&programs[0], 1, 1), made_study(&programs[1], 1, 1) };
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	struct xpt_diff *diff;
	__u64 sorted[1600], failed = 0;
	double waited = 0;

	cr_assert_eq(diff_create(&options, &studies[0], &studies[1], &diff), 0);
	cr_assert_eq(diff->program_count, 1);
	cr_assert(!diff->programs[0].by_recording && diff->programs[0].recordings_before == 1);
	for (size_t i = 0; i < 1600; i++) {
		sorted[i] = programs[0].samples[i].duration;
		failed += study_has(&programs[0].samples[i], STUDY_FAILED);
		waited += programs[0].samples[i].component[COMPONENT_WAITED] / 1600.0;
	}
	qsort(sorted, 1600, sizeof(*sorted), compare);
	NEAR(made_row(diff, "mean")->before, mean(&programs[0]), 1);
	NEAR(made_row(diff, "mean")->after, mean(&programs[1]), 1);
	NEAR(made_row(diff, "p50")->before, sorted[799], 0);
	NEAR(made_row(diff, "p90")->before, sorted[1439], 0);
	NEAR(made_row(diff, "p99")->before, sorted[1583], 0);
	NEAR(made_row(diff, "errors")->before, failed / 1600.0, 1e-9);
	NEAR(made_row(diff, "errors")->after, 0, 0);
	NEAR(made_row(diff, "waited")->before, waited, 1);
	NEAR(made_row(diff, "throughput")->before, 1e9 / (mean(&programs[0]) + 10000), 2);
	NEAR(made_row(diff, "big")->before, 200000, 4000);
	cr_assert_null(made_row(diff, "sleep"), "what takes no time is no row");
	for (size_t i = 0; i < diff->programs[0].row_count; i++) {
		const struct xpt_diff_row *row = &diff->programs[0].rows[i];

		NEAR(row->change, row->after - row->before, 1e-6);
		cr_assert(row->low <= row->change && row->high >= row->change && row->adjusted >= row->p);
	}
	diff_free(diff);
}

/* An operator that takes twice as long is found in one recording of each side; the other one is as before. */
Test(analysis_diff_rows, slower)
{
	const struct made before = { LIKE, .waited = 300000 };
	struct made after = before;
	struct xpt_diff *diff;

	after.operators[0] = 400000;
	diff = made_diff(&before, &after, NULL, 0);
	cr_assert(made_row(diff, "big")->significant && made_row(diff, "p50")->significant &&
		  made_row(diff, "cpu")->significant);
	cr_assert(!made_row(diff, "small")->significant && !made_row(diff, "waited")->significant);
	NEAR(made_row(diff, "big")->change, 200000, 4000);
	NEAR(made_row(diff, "p50")->change, 200000, 4000);
	diff_free(diff);
}

/* With several recordings, less is enough. */
Test(analysis_diff_rows, recordings)
{
	const struct made before = { LIKE, .runs = 0.01 };
	struct made several = before, after;
	struct xpt_diff *diff;

	several.recordings = 5;
	several.inferences = 300;
	after = several;
	after.operators[0] = 220000;
	diff = made_diff(&several, &after, NULL, 0);
	cr_assert(diff->programs[0].by_recording && diff->programs[0].recordings_after == 5);
	cr_assert(made_row(diff, "big")->significant && made_row(diff, "mean")->significant);
	cr_assert(!made_row(diff, "small")->significant);
	NEAR(made_row(diff, "big")->change, 20000, 6000);
	diff_free(diff);
	/* The same in one recording of each side is not more than what recordings are taken to differ by. */
	after.recordings = 1;
	diff = made_diff(&before, &after, NULL, 0);
	cr_assert(!diff->programs[0].by_recording && !diff->significant);
	diff_free(diff);
	/* One new recording beside several old ones is a value, too. */
	after.operators[0] = 300000;
	diff = made_diff(&several, &after, NULL, 0);
	cr_assert(diff->programs[0].by_recording && made_row(diff, "big")->significant);
	diff_free(diff);
}

/* Only noisier: the median is the same, the tail is not. */
Test(analysis_diff_rows, noisier)
{
	struct made before = { LIKE, .runs = 0.003 }, after;
	struct xpt_diff *diff;

	before.recordings = 6;
	before.inferences = 400;
	after = before;
	after.noise = 0.25;
	diff = made_diff(&before, &after, NULL, 0);
	cr_assert(made_row(diff, "p99")->significant && made_row(diff, "p90")->significant);
	cr_assert(!made_row(diff, "p50")->significant && !made_row(diff, "mean")->significant);
	diff_free(diff);
}

static int alarms(const struct made *made, int rounds)
{
	int found = 0;

	for (int i = 0; i < rounds; i++) {
		struct xpt_diff *diff = made_diff(made, made, NULL, 0);

		cr_assert(diff->tested >= 8);
		found += diff->significant > 0;
		diff_free(diff);
	}
	return found;
}

/* At the level of 1 %, more than 4 of 100 come with a chance of 1 in 300. */
Test(analysis_diff_rows, no_false_alarms)
{
	struct made made = { LIKE, .dependence = 0.95, .runs = 0.06, .waited = 3000000 };

	made.inferences = 320;
	cr_assert(alarms(&made, 100) <= 4, "one recording of each side");
	made.recordings = 5;
	made.inferences = 100;
	cr_assert(alarms(&made, 100) <= 4, "five recordings of each side");
}

/* Too little to say anything, and no states or operators: no row is tested that cannot be. */
Test(analysis_diff_rows, little)
{
	struct made before = { LIKE }, after = { LIKE };
	struct xpt_diff *diff;

	before.inferences = 20;
	diff = made_diff(&before, &after, NULL, 0);
	cr_assert(diff->tested == 0 && diff->significant == 0 && isnan(made_row(diff, "p50")->p));
	cr_assert(made_row(diff, "p50")->after > 200000);
	diff_free(diff);
	before.inferences = 200; /* two inferences beyond the 99th percentile */
	after.no_states = after.no_operators = true;
	diff = made_diff(&before, &after, NULL, 0);
	cr_assert(isnan(made_row(diff, "p99")->p) && !isnan(made_row(diff, "p50")->p));
	cr_assert(!made_row(diff, "cpu") && !made_row(diff, "big"));
	diff_free(diff);
}

/* One that is gone, and one that is new. */
Test(analysis_diff_rows, operators_come_and_go)
{
	const struct made made = { LIKE };
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	struct study_program programs[2] = { made_program("model", &made), made_program("model", &made) };
	const struct study studies[2] = { made_study(&programs[0], 1, 1), made_study(&programs[1], 1, 1) };
	struct xpt_diff *diff;

	((struct study_operator *)programs[1].operators)[0].label = "new";
	cr_assert_eq(diff_create(&options, &studies[0], &studies[1], &diff), 0);
	cr_assert(isnan(made_row(diff, "big")->after) && isnan(made_row(diff, "new")->before));
	NEAR(made_row(diff, "big")->before, 200000, 4000);
	cr_assert(made_row(diff, "big")->significant && made_row(diff, "new")->significant);
	cr_assert(!made_row(diff, "small")->significant);
	diff_free(diff);
}

/* Jobs take longer on the device; in the queue they wait as before. */
Test(analysis_diff_rows, device)
{
	const struct made before = { LIKE, .device = 80000, .queue = 20000 };
	struct made after = before;
	struct xpt_diff *diff;

	after.device = 160000;
	diff = made_diff(&before, &after, NULL, 0);
	cr_assert(made_row(diff, "device")->significant && !made_row(diff, "queue")->significant);
	NEAR(made_row(diff, "device")->change, 80000, 2000);
	NEAR(made_row(diff, "queue")->after, 10000, 1000);
	diff_free(diff);
}

/* Values of a counter in the bins of a study, around a level. */
static struct study counted(const char *name, double level, unsigned int recordings)
{
	struct study study = made_study(NULL, 0, recordings);
	struct study_counter *counters = made_calloc(recordings, sizeof(*counters));

	study.bins = 100;
	for (unsigned int i = 0; i < recordings; i++) {
		struct model_counter *counter = made_calloc(1, sizeof(*counter));
		float *mean = made_calloc(study.bins, sizeof(*mean));

		*counter = (struct model_counter){ .name = name, .unit = "W", .emitted = 100 };
		for (unsigned int b = 0; b < study.bins; b++) {
			mean[b] = level * (1 + 0.05 * made_normal());
			counter->mean += mean[b] / study.bins;
		}
		counters[i] = (struct study_counter){ .counter = counter, .input = i, .mean = mean };
	}
	study.counters = counters;
	study.counter_count = recordings;
	return study;
}

Test(analysis_diff_rows, counters)
{
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	const double after[] = { 40, 60, 42 };
	const unsigned int recordings[] = { 1, 1, 4 };

	for (int i = 0; i < 3; i++) {
		const struct study studies[2] = { counted("power", 40, recordings[i]),
						  counted("power", after[i], recordings[i]) };
		struct xpt_diff *diff;

		cr_assert_eq(diff_create(&options, &studies[0], &studies[1], &diff), 0);
		cr_assert_eq(diff->counter_count, 1);
		cr_assert_str_eq(diff->counters[0].name, "power");
		NEAR(diff->counters[0].change, after[i] - 40, 1);
		cr_assert_eq(diff->counters[0].significant, i > 0, "%g", after[i]);
		diff_free(diff);
	}
}

/* Of more inferences than there are samples the model has the figures. */
Test(analysis_diff_rows, more_than_samples)
{
	const struct made made = { LIKE };
	struct study_program programs[2] = { made_program("model", &made), made_program("model", &made) };
	const struct study studies[2] = { made_study(&programs[0], 1, 1), made_study(&programs[1], 1, 1) };
	const struct diff_options options = { DIFF_LEVEL, DIFF_RUN_NOISE, 1, NULL, 0 };
	struct statistics *duration = statistics_create();
	struct xpt_diff *diff;

	for (__u64 i = 1; i <= 10000; i++)
		cr_assert_eq(statistics_add(duration, 100000 + 10 * i), 0);
	programs[0].duration = duration;
	cr_assert_eq(diff_create(&options, &studies[0], &studies[1], &diff), 0);
	NEAR(made_row(diff, "mean")->before, 150005, 1);
	NEAR(made_row(diff, "p50")->before, 150000, 1500);
	NEAR(made_row(diff, "p99")->before, 199000, 1990);
	NEAR(made_row(diff, "p50")->after, 260000, 4000);
	diff_free(diff);
	statistics_free(duration);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/coverage.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define PROCESS 3u
#define RUN 100u

static __u64 step_at(struct coverage *coverage, struct coverage_place place, __u64 start, __u64 end)
{
	__u64 self = 0;

	cr_assert_eq(coverage_operator(coverage, &place, RUN, start, end, &self), 0);
	return self;
}

/* On the thread of its inference. */
static __u64 step(struct coverage *coverage, __u32 tid, unsigned int depth, __u64 start, __u64 end)
{
	return step_at(coverage, (struct coverage_place){ PROCESS, tid, depth, false }, start, end);
}

/* On a thread of its own. */
static __u64 step_apart(struct coverage *coverage, __u32 tid, unsigned int depth, __u64 start, __u64 end)
{
	return step_at(coverage, (struct coverage_place){ PROCESS, tid, depth, true }, start, end);
}

static __u64 covered(struct coverage *coverage, __u32 tid, __u64 run)
{
	const struct coverage_place place = { PROCESS, tid, 0, false };
	__u64 time = 12345;

	return coverage_end(coverage, &place, run, &time) ? time : ~(__u64)0;
}

static struct coverage coverage;

static void setup(void)
{
	coverage = (struct coverage){ 0 };
	coverage_init(&coverage);
}

static void teardown(void)
{
	coverage_free(&coverage);
}

TestSuite(model_operator_coverage, .init = setup, .fini = teardown);

Test(model_operator_coverage, one_after_the_other)
{
	cr_expect_eq(step(&coverage, 1, 1, 110, 130), 20);
	cr_expect_eq(step(&coverage, 1, 1, 130, 150), 20);
	cr_expect_eq(step(&coverage, 1, 1, 160, 161), 1);
	cr_expect_eq(covered(&coverage, 1, RUN), 41);
	cr_expect_eq(covered(&coverage, 1, RUN), ~(__u64)0, "it is forgotten when it has ended");
}

/* If around a Loop around two steps: each has its own part, all together what the outer one has. */
Test(model_operator_coverage, nested)
{
	cr_expect_eq(step(&coverage, 1, 3, 120, 130), 10);
	cr_expect_eq(step(&coverage, 1, 3, 135, 140), 5);
	cr_expect_eq(step(&coverage, 1, 2, 115, 145), 15);
	cr_expect_eq(step(&coverage, 1, 1, 110, 150), 10);
	cr_expect_eq(step(&coverage, 1, 2, 160, 170), 10, "what was before is not inside");
	cr_expect_eq(step(&coverage, 1, 1, 155, 175), 10);
	cr_expect_eq(covered(&coverage, 1, RUN), 60);
}

Test(model_operator_coverage, threads_overlap)
{
	cr_expect_eq(step_apart(&coverage, 2, 0, 110, 130), 20);
	cr_expect_eq(step_apart(&coverage, 3, 0, 120, 140), 20, "another thread's are not inside");
	cr_expect_eq(step_apart(&coverage, 4, 0, 150, 160), 10);
	cr_expect_eq(step_apart(&coverage, 5, 0, 115, 155), 40);
	cr_expect_eq(step_apart(&coverage, 5, 0, 170, 180), 10);
	cr_expect_eq(covered(&coverage, 1, RUN), 60);
}

Test(model_operator_coverage, nothing_of_others)
{
	const struct coverage_place other = { PROCESS + 1, 1, 1, false };
	__u64 self;

	step(&coverage, 1, 1, 110, 120);
	cr_assert_eq(coverage_operator(&coverage, &other, RUN, 110, 150, &self), 0);
	cr_expect_eq(self, 40);
	cr_assert_eq(coverage_operator(&coverage, &other, 0, 150, 160, &self), 0);
	cr_expect_eq(covered(&coverage, 1, RUN + 1), ~(__u64)0);
	cr_expect_eq(covered(&coverage, 1, RUN), 10);
	coverage_drop(&coverage, PROCESS + 1);
	cr_expect_eq(coverage.open.map.count, 0);
	cr_expect_eq(coverage.operators.threads.map.count, 1);
}

/* Two threads begin in the same ns: each has its own. */
Test(model_operator_coverage, same_begin)
{
	step(&coverage, 1, 1, 110, 120);
	step(&coverage, 2, 1, 112, 125);
	step(&coverage, 1, 1, 126, 130);
	cr_expect_eq(coverage.open.map.count, 2);
	cr_expect_eq(covered(&coverage, 1, RUN), 14);
	step_apart(&coverage, 3, 0, 140, 145); /* of the one that is left */
	cr_expect_eq(covered(&coverage, 3, RUN), ~(__u64)0, "an inference without operators");
	cr_expect_eq(covered(&coverage, 2, RUN), 18);
	cr_expect_eq(coverage.open.map.count, 0);
}

/* One on another thread is the first that is seen. */
Test(model_operator_coverage, apart_first)
{
	step_apart(&coverage, 2, 0, 110, 120);
	step(&coverage, 1, 1, 115, 125);
	step_apart(&coverage, 2, 0, 130, 131);
	cr_expect_eq(coverage.open.map.count, 1);
	cr_expect_eq(covered(&coverage, 1, RUN), 16);
}

/* Against a plain count of each nanosecond. */
Test(model_operator_coverage, random)
{
	enum { LENGTH = 4000, THREADS = 4 };
	__u64 free_at[THREADS] = { 0 }, expected = 0, now = 0;
	static char busy[LENGTH];

	srand(7);
	for (unsigned int round = 0; round < 400; round++) {
		unsigned int thread = (unsigned int)rand() % THREADS;
		__u64 end = now + (unsigned int)rand() % 9, start;

		if (end >= LENGTH)
			break;
		start = end - (unsigned int)rand() % 30 % (end + 1);
		if (start < free_at[thread])
			start = free_at[thread] < end ? free_at[thread] : end;
		step_apart(&coverage, thread, 0, start, end);
		free_at[thread] = now = end;
		for (__u64 t = start; t < end; t++)
			busy[t] = 1;
	}
	for (unsigned int t = 0; t < LENGTH; t++)
		expected += (unsigned int)busy[t];
	cr_expect_gt(expected, 500);
	cr_expect_eq(covered(&coverage, 99, RUN), expected);
}

Test(model_operator_coverage, bounded)
{
	for (__u64 i = 0; i < 200000; i++)
		step(&coverage, 1, 1, 10 * i, 10 * i + 3);
	cr_expect_eq(covered(&coverage, 1, RUN), 600000);
	for (__u64 i = 1; i <= COVERAGES_MAX + 100; i++) {
		const struct coverage_place place = { PROCESS, (__u32)i, 0, false };
		__u64 self;

		cr_assert_eq(coverage_operator(&coverage, &place, i, 1, 2, &self), 0);
	}
	cr_expect_eq(coverage.open.map.count, COVERAGES_MAX);
	cr_expect_eq(coverage.operators.threads.map.count, COVERAGES_MAX);
	cr_expect_eq(covered(&coverage, COVERAGES_MAX + 100, COVERAGES_MAX + 100), 1);
	cr_expect_eq(covered(&coverage, 1, 1), ~(__u64)0, "the oldest made room");
}

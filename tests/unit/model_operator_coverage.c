/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operators.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#include "model/device/call_tree.h"

#define PROCESS 3u
#define RUN 100u

static struct coverage coverage;
static struct call_tree tree;
static struct jobs jobs;

/* An operator as the model takes it. Its own time: without operators inside. */
static __u64 operator_at(struct coverage_place place, unsigned int depth, __u64 inference, __u64 start, __u64 end)
{
	static const struct function function = { .view.role = XPT_ROLE_OPERATOR };
	const struct process process = { .view.sort_index = place.process };
	struct event_call call = { .start = start, .end = end, .tid = place.tid, .depth = depth };
	struct call_thread *thread = call_tree_get(&tree, &process, place.tid);
	__u64 inside;

	cr_assert_eq(call_tree_measure(thread, &function, &call, &inside), 0);
	cr_assert_eq(inference ? coverage_operator(&coverage, &place, inference, start, end) : 0, 0);
	return inside < end - start ? end - start - inside : 0;
}

/* On the thread of its inference. */
static __u64 step(__u32 tid, unsigned int depth, __u64 start, __u64 end)
{
	return operator_at((struct coverage_place){ PROCESS, tid, false }, depth, RUN, start, end);
}

/* On a thread of its own. */
static __u64 step_apart(__u32 tid, unsigned int depth, __u64 start, __u64 end)
{
	return operator_at((struct coverage_place){ PROCESS, tid, true }, depth, RUN, start, end);
}

static __u64 covered(__u32 tid, __u64 run)
{
	const struct coverage_place place = { PROCESS, tid, false };
	__u64 time = 12345;

	return coverage_end(&coverage, &place, run, &time) ? time : ~(__u64)0;
}

static void setup(void)
{
	coverage = (struct coverage){ 0 };
	coverage_init(&coverage);
	call_tree_init(&tree, NULL, &jobs);
}

static void teardown(void)
{
	coverage_free(&coverage);
	call_tree_free(&tree);
}

TestSuite(model_operator_coverage, .init = setup, .fini = teardown);

Test(model_operator_coverage, one_after_the_other)
{
	cr_expect_eq(step(1, 1, 110, 130), 20);
	cr_expect_eq(step(1, 1, 130, 150), 20);
	cr_expect_eq(step(1, 1, 160, 161), 1);
	cr_expect_eq(covered(1, RUN), 41);
	cr_expect_eq(covered(1, RUN), ~(__u64)0, "it is forgotten when it has ended");
}

/* If around a Loop around two steps: each has its own part, all together what the outer one has. */
Test(model_operator_coverage, nested)
{
	cr_expect_eq(step(1, 3, 120, 130), 10);
	cr_expect_eq(step(1, 3, 135, 140), 5);
	cr_expect_eq(step(1, 2, 115, 145), 15);
	cr_expect_eq(step(1, 1, 110, 150), 10);
	cr_expect_eq(step(1, 2, 160, 170), 10, "what was before is not inside");
	cr_expect_eq(step(1, 1, 155, 175), 10);
	cr_expect_eq(covered(1, RUN), 60);
}

Test(model_operator_coverage, threads_overlap)
{
	cr_expect_eq(step_apart(2, 0, 110, 130), 20);
	cr_expect_eq(step_apart(3, 0, 120, 140), 20, "another thread's are not inside");
	cr_expect_eq(step_apart(4, 0, 150, 160), 10);
	cr_expect_eq(step_apart(5, 0, 115, 155), 40);
	cr_expect_eq(step_apart(5, 0, 170, 180), 10);
	cr_expect_eq(covered(1, RUN), 60);
}

Test(model_operator_coverage, nothing_of_others)
{
	const struct coverage_place other = { PROCESS + 1, 1, false };

	step(1, 1, 110, 120);
	cr_expect_eq(operator_at(other, 1, RUN, 110, 150), 40);
	cr_expect_eq(operator_at(other, 1, 0, 150, 160), 10);
	cr_expect_eq(covered(1, RUN + 1), ~(__u64)0);
	cr_expect_eq(covered(1, RUN), 10);
	coverage_drop(&coverage, PROCESS + 1);
	call_tree_drop_process(&tree, &(struct process){ .view.sort_index = PROCESS + 1 });
	cr_expect_eq(coverage.open.map.count, 0);
	cr_expect_eq(tree.threads.map.count, 1);
}

/* Two threads begin in the same ns: each has its own. */
Test(model_operator_coverage, same_begin)
{
	step(1, 1, 110, 120);
	step(2, 1, 112, 125);
	step(1, 1, 126, 130);
	cr_expect_eq(coverage.open.map.count, 2);
	cr_expect_eq(covered(1, RUN), 14);
	step_apart(3, 0, 140, 145); /* of the one that is left */
	cr_expect_eq(covered(3, RUN), ~(__u64)0, "an inference without operators");
	cr_expect_eq(covered(2, RUN), 18);
	cr_expect_eq(coverage.open.map.count, 0);
}

/* One on another thread is the first that is seen. */
Test(model_operator_coverage, apart_first)
{
	step_apart(2, 0, 110, 120);
	step(1, 1, 115, 125);
	step_apart(2, 0, 130, 131);
	cr_expect_eq(coverage.open.map.count, 1);
	cr_expect_eq(covered(1, RUN), 16);
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
		step_apart(thread, 0, start, end);
		free_at[thread] = now = end;
		for (__u64 t = start; t < end; t++)
			busy[t] = 1;
	}
	for (unsigned int t = 0; t < LENGTH; t++)
		expected += (unsigned int)busy[t];
	cr_expect_gt(expected, 500);
	cr_expect_eq(covered(99, RUN), expected);
}

Test(model_operator_coverage, bounded)
{
	for (__u64 i = 0; i < 200000; i++)
		step(1, 1, 10 * i, 10 * i + 3);
	cr_expect_eq(covered(1, RUN), 600000);
	for (__u64 i = 1; i <= COVERAGES_MAX + 100; i++)
		operator_at((struct coverage_place){ PROCESS, (__u32)i, false }, 0, i, 1, 2);
	cr_expect_eq(coverage.open.map.count, COVERAGES_MAX);
	cr_expect_eq(tree.threads.map.count, COVERAGES_MAX + 100);
	for (__u64 i = COVERAGES_MAX; i <= CALL_THREADS_MAX + 100; i++)
		operator_at((struct coverage_place){ PROCESS, (__u32)i, true }, 0, 0, 1, 2);
	cr_expect_eq(tree.threads.map.count, CALL_THREADS_MAX);
	cr_expect_eq(covered(COVERAGES_MAX + 100, COVERAGES_MAX + 100), 1);
	cr_expect_eq(covered(1, 1), ~(__u64)0, "the oldest made room");
}

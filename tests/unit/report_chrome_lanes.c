/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/lanes.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct lanes lanes;
static size_t budget;

static void end(void)
{
	lanes_free(&lanes, &budget);
	cr_assert_eq(budget, 0);
}

TestSuite(report_chrome_lanes, .fini = end);

static int take(__u64 start, __u64 finished)
{
	return lanes_take(&lanes, start, finished, &budget);
}

Test(report_chrome_lanes, the_first_one_that_is_free)
{
	cr_assert_eq(take(10, 20), 0);
	cr_assert_eq(take(20, 30), 0, "they only touch");
	cr_assert_eq(take(25, 35), 1);
	cr_assert_eq(take(26, 36), 2);
	cr_assert_eq(take(35, 40), 0);
	cr_assert_eq(take(35, 40), 1);
	cr_assert_eq(take(100, 200), 0);
	cr_assert_eq(take(50, 100), 0, "told late, there is room");
	cr_assert_eq(take(41, 51), 1, "told late, there is none");
	cr_assert_eq(take(5, 11), 1);
	cr_assert_eq(take(0, 10), 0);
	cr_assert_eq(take(0, 1000), 3, "around all");
}

Test(report_chrome_lanes, those_without_length_do_not_lie_in_each_other)
{
	cr_assert_eq(take(10, 10), 0);
	cr_assert_eq(take(10, 10), 1);
	cr_assert_eq(take(11, 11), 0);
	cr_assert_eq(take(9, 10), 0);
}

Test(report_chrome_lanes, there_is_an_end_of_them)
{
	int i;

	for (i = 0; i < CHROME_LANES_MAX; i++)
		cr_assert_eq(take(10, 20 + i), i);
	cr_assert_eq(take(15, 16), -1);
	cr_assert_eq(take(20, 21), 0);
}

#define ROUNDS 6000

struct taken {
	__u64 start, end;
	int lane;
};

/* Everything that was ever put on a lane, against each other: told up to so long after its end. */
static void compare(unsigned int seed, unsigned int late, unsigned int longest)
{
	static struct taken taken[ROUNDS];
	unsigned int overflown = 0, rounds = ROUNDS;
	__u64 now = 1000000;
	unsigned int i, j;

	for (i = 0; i < rounds; i++) {
		struct taken *one = &taken[i];

		now += rand_r(&seed) % 100;
		one->end = now - rand_r(&seed) % (late + 1);
		one->start = one->end - rand_r(&seed) % longest;
		one->lane = take(one->start, one->end);
		overflown += one->lane < 0;
	}
	cr_assert_lt(overflown, ROUNDS / 10);
	for (i = 0; i < rounds; i++)
		for (j = i + 1; j < rounds && taken[i].lane >= 0; j++)
			cr_assert(taken[i].lane != taken[j].lane || taken[i].end <= taken[j].start ||
					  taken[j].end <= taken[i].start,
				  "%llu-%llu and %llu-%llu on lane %d", taken[i].start, taken[i].end, taken[j].start,
				  taken[j].end, taken[i].lane);
}

Test(report_chrome_lanes, in_the_order_of_their_ends)
{
	compare(1, 0, 200);
}

Test(report_chrome_lanes, late_ones)
{
	compare(2, 5000, 200);
}

/* Later than what is remembered of a lane. */
Test(report_chrome_lanes, very_late_ones)
{
	compare(3, 200000, 300);
}

/* One after the other, of two threads of which one is told long after the other: a queue that does one job at a time. */
Test(report_chrome_lanes, gaps_are_filled)
{
	unsigned int i;

	for (i = 0; i < 500; i++)
		cr_assert_eq(take(i * 100, i * 100 + 40), 0);
	for (i = 0; i < 500; i++)
		cr_assert_eq(take(i * 100 + 50, i * 100 + 90), 0);
	for (i = 0; i < 500; i++)
		cr_assert_eq(take(i * 100 + 40, i * 100 + 50), 0);
	cr_assert_eq(lanes.lane[0].count, 500, "what touches is one");
	for (i = 0; i < 499; i++)
		cr_assert_eq(take(i * 100 + 90, i * 100 + 100), 0);
	cr_assert_eq(lanes.lane[0].count, 1);
}

Test(report_chrome_lanes, memory_has_a_limit)
{
	static struct lanes many[256];
	unsigned int i, j;

	for (i = 0; i < 256; i++)
		for (j = 0; j < 5000; j++)
			cr_assert_eq(lanes_take(&many[i], j * 10, j * 10 + 5, &budget), 0);
	cr_assert_leq(budget, LANES_SPANS_MAX);
	cr_assert_gt(budget, LANES_SPANS_MAX / 2);
	/* Those that came last have no memory at all, and go on all the same. */
	cr_assert_eq(many[255].lane[0].room, 0);
	cr_assert_eq(lanes_take(&many[255], 0, 5, &budget), 1);
	for (i = 0; i < 256; i++)
		lanes_free(&many[i], &budget);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/parts.h"

#include <criterion/criterion.h>
#include <stdlib.h>

static struct lanes lanes;
static size_t budget;

static void end(void)
{
	lanes_free(&lanes, &budget);
	cr_assert_eq(budget, 0);
}

static int take(__u64 start, __u64 finished)
{
	return lanes_take(&lanes, start, finished, &budget);
}

Test(report_chrome_queue_tracks, the_first_one_that_is_free, .fini = end)
{
	cr_assert_eq(take(10, 20), 0);
	cr_assert_eq(take(20, 30), 0, "they only touch");
	cr_assert_eq(take(25, 35), 1);
	cr_assert_eq(take(26, 36), 2);
	cr_assert_eq(take(35, 40), 0);
	cr_assert_eq(take(35, 40), 1);
	cr_assert_eq(take(100, 200), 0);
	cr_assert_eq(take(50, 100), 0, "reported late, there is room");
	cr_assert_eq(take(41, 51), 1, "reported late, there is none");
	cr_assert_eq(take(5, 11), 1);
	cr_assert_eq(take(0, 10), 0);
	cr_assert_eq(take(0, 1000), 3, "around all");
}

Test(report_chrome_queue_tracks, those_without_length_do_not_lie_in_each_other, .fini = end)
{
	cr_assert_eq(take(10, 10), 0);
	cr_assert_eq(take(10, 10), 1);
	cr_assert_eq(take(11, 11), 0);
	cr_assert_eq(take(9, 10), 0);
}

Test(report_chrome_queue_tracks, there_is_an_end_of_them, .fini = end)
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

/* Everything that was ever put on a lane, against each other: reported up to so long after its end. */
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

Test(report_chrome_queue_tracks, in_the_order_of_their_ends, .fini = end)
{
	compare(1, 0, 200);
}

Test(report_chrome_queue_tracks, late_ones, .fini = end)
{
	compare(2, 5000, 200);
}

/* Later than what is remembered of a lane. */
Test(report_chrome_queue_tracks, very_late_ones, .fini = end)
{
	compare(3, 200000, 300);
}

/* One after the other, of two threads of which one is reported long after the other: a queue that does one job at a time. */
Test(report_chrome_queue_tracks, gaps_are_filled, .fini = end)
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

Test(report_chrome_queue_tracks, memory_has_a_limit, .fini = end)
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

/* ---- its load ---- */

#define STEP DEPTH_STEP
#define WINDOW BUSY_WINDOW

static struct queue_depth depth;
static struct depth_point emitted[DEPTH_POINTS_MAX];

static size_t add(__u64 time, unsigned int waiting, unsigned int running)
{
	return queue_depth_add(&depth, (struct depth_point){ time, waiting, running }, emitted);
}

static void expect_point(size_t index, __u64 time, unsigned int waiting, unsigned int running)
{
	cr_assert_eq(emitted[index].time, time, "%llu", emitted[index].time);
	cr_assert_eq(emitted[index].waiting, waiting);
	cr_assert_eq(emitted[index].running, running);
}

Test(report_chrome_queue_tracks, slow_changes_are_all_reported)
{
	cr_assert_eq(add(1, 1, 0), 1);
	expect_point(0, 1, 1, 0);
	cr_assert_eq(add(1 + STEP, 0, 1), 1);
	expect_point(0, 1 + STEP, 0, 1);
	/* Two within a step: the second one is held back until the next, and keeps its time. */
	cr_assert_eq(add(10 + STEP, 0, 0), 0);
	cr_assert_eq(add(5 * STEP, 1, 0), 2);
	expect_point(0, 10 + STEP, 0, 0);
	expect_point(1, 5 * STEP, 1, 0);
	cr_assert_eq(queue_depth_end(&depth, emitted), 0);
}

Test(report_chrome_queue_tracks, extremes_within_a_step)
{
	add(1000, 5, 5);
	cr_assert_eq(add(1001, 9, 5), 0); /* most waiting */
	add(1002, 8, 5);
	add(1003, 7, 1); /* fewest running */
	add(1004, 6, 2);
	add(1005, 6, 8); /* most running */
	add(1006, 2, 5); /* fewest waiting */
	add(1007, 4, 5);
	cr_assert_eq(add(1008, 5, 4), 0);
	cr_assert_eq(queue_depth_end(&depth, emitted), 5);
	expect_point(0, 1001, 9, 5);
	expect_point(1, 1003, 7, 1);
	expect_point(2, 1005, 6, 8);
	expect_point(3, 1006, 2, 5);
	expect_point(4, 1008, 5, 4);
	cr_assert_eq(queue_depth_end(&depth, emitted), 0);
}

Test(report_chrome_queue_tracks, what_comes_too_late_is_reported_as_it_is)
{
	add(1000, 1, 0);
	add(1001, 2, 0);
	cr_assert_eq(add(900, 0, 0), 2);
	expect_point(0, 1001, 2, 0);
	expect_point(1, 900, 0, 0);
}

/* Every point that is emitted is one that was there; and in every step both numbers reach what they reached. */
Test(report_chrome_queue_tracks, extremes_of_all_steps)
{
	unsigned int seed = 5, i, waiting = 100, running = 100, steps = 0, shown = 0;
	unsigned int most = 0, least = 0, most_reported = 0, least_reported = 0;
	__u64 time = 1000, begin = 0;
	size_t points, j;

	for (i = 0; i < 200000; i++) {
		time += rand_r(&seed) % 2000;
		waiting += rand_r(&seed) % 3 - 1;
		running += rand_r(&seed) % 3 - 1;
		points = add(time, waiting, running);
		if (!points) {
			most = waiting > most ? waiting : most;
			least = running < least ? running : least;
			continue;
		}
		for (j = 0; j + 1 < points; j++) {
			cr_assert(emitted[j].time >= begin && emitted[j].time < begin + STEP);
			cr_assert(!j || emitted[j].time >= emitted[j - 1].time);
			most_reported = emitted[j].waiting > most_reported ? emitted[j].waiting : most_reported;
			least_reported = emitted[j].running < least_reported ? emitted[j].running : least_reported;
		}
		cr_assert_eq(most_reported, most, "at %llu", begin);
		cr_assert_eq(least_reported, least, "at %llu", begin);
		expect_point(points - 1, time, waiting, running);
		steps++;
		shown += points;
		begin = time;
		most = most_reported = waiting;
		least = least_reported = running;
	}
	cr_assert_leq(shown, steps * DEPTH_POINTS_MAX);
	cr_assert_lt(steps, time / STEP + 1);
}

/* ---- how busy it is ---- */

static struct queue_busy busy;
static struct busy_point point[BUSY_POINTS_MAX];

static void expect_share(size_t index, __u64 time, unsigned int share)
{
	cr_assert_eq(point[index].time, time, "%llu", point[index].time);
	cr_assert_eq(point[index].share, share, "%u", point[index].share);
}

Test(report_chrome_queue_tracks, shares_of_windows)
{
	cr_assert_eq(queue_busy_add(&busy, 1000, 0, point), 0);
	cr_assert_eq(queue_busy_add(&busy, 1000 + WINDOW / 4, WINDOW / 4, point), 0); /* busy all the time */
	cr_assert_eq(queue_busy_add(&busy, 1000 + WINDOW / 2, WINDOW / 4, point), 0); /* idle */
	/* Busy until into the next window. */
	cr_assert_eq(queue_busy_add(&busy, 1000 + WINDOW + 10, WINDOW / 4 + WINDOW / 2 + 10, point), 1);
	expect_share(0, 1000, 7500);
	/* Idle until into the third one; then busy for a long time: what is left of that, and all that follow. */
	cr_assert_eq(queue_busy_add(&busy, 1000 + 2 * WINDOW + WINDOW / 2, WINDOW / 4 + WINDOW / 2 + 10, point), 1);
	expect_share(0, 1000 + WINDOW, 0);
	cr_assert_eq(queue_busy_add(&busy, 1000 + 9 * WINDOW + 7, busy.total + 6 * WINDOW + WINDOW / 2 + 7, point), 2);
	expect_share(0, 1000 + 2 * WINDOW, 5000);
	expect_share(1, 1000 + 3 * WINDOW, 10000);
}

Test(report_chrome_queue_tracks, the_same_share_is_reported_once)
{
	__u64 i, points = 0;

	queue_busy_add(&busy, 0, 0, point);
	for (i = 1; i <= 1000; i++)
		points += queue_busy_add(&busy, i * WINDOW / 10, i * WINDOW / 10, point);
	cr_assert_eq(points, 1);
	expect_share(0, 0, 10000);
	cr_assert_eq(queue_busy_end(&busy, true, point), 1);
	expect_share(0, 100 * WINDOW, 0);
}

Test(report_chrome_queue_tracks, the_last_window_is_shorter)
{
	queue_busy_add(&busy, 1000, 500, point);
	queue_busy_add(&busy, 3000, 1000, point);
	cr_assert_eq(queue_busy_end(&busy, false, point), 1);
	expect_share(0, 1000, 2500);
	busy = (struct queue_busy){ 0 };
	cr_assert_eq(queue_busy_end(&busy, true, point), 0, "nothing is known");
}

Test(report_chrome_queue_tracks, a_pause_ends_the_window)
{
	queue_busy_add(&busy, 0, 0, point);
	queue_busy_add(&busy, WINDOW / 2, WINDOW / 4, point);
	cr_assert_eq(queue_busy_pause(&busy, point), 2);
	expect_share(0, 0, 5000);
	expect_share(1, WINDOW / 2, 0);
	cr_assert_eq(queue_busy_pause(&busy, point), 0, "it is paused already");
	/* The next one begins with the next event, whenever that comes. */
	cr_assert_eq(queue_busy_add(&busy, 7 * WINDOW, WINDOW / 4, point), 0);
	cr_assert_eq(queue_busy_add(&busy, 8 * WINDOW, WINDOW, point), 1);
	expect_share(0, 7 * WINDOW, 7500);
}

Test(report_chrome_queue_tracks, times_out_of_order_lose_nothing)
{
	queue_busy_add(&busy, 1000, 0, point);
	cr_assert_eq(queue_busy_add(&busy, 900, 0, point), 0);
	cr_assert_eq(queue_busy_add(&busy, 1000, 0, point), 0);
	cr_assert_eq(queue_busy_add(&busy, 1000 + WINDOW, WINDOW / 2, point), 1);
	expect_share(0, 1000, 5000);
	cr_assert_eq(queue_busy_add(&busy, ~0ull, ~0ull, point), 1, "a time that cannot be");
	expect_share(0, 1000 + WINDOW, 10000);
}

/* A queue that is busy and idle at random, against a sum over each window of the intervals themselves. */
Test(report_chrome_queue_tracks, as_the_intervals_say)
{
	enum { WINDOWS = 3000 };
	static double naive[WINDOWS + 1];
	static unsigned int share[WINDOWS + 1];
	unsigned int seed = 9, i, shares = 0, last = 0;
	__u64 time = 0, total = 0;
	bool runs = false;
	size_t points, j;

	queue_busy_add(&busy, 0, 0, point);
	for (i = 0; i <= WINDOWS; i++)
		share[i] = ~0u;
	while (time < (__u64)WINDOWS * WINDOW) {
		__u64 length = rand_r(&seed) % 50 ? rand_r(&seed) % (WINDOW / 3) : rand_r(&seed) % (5 * WINDOW);
		__u64 at;

		for (at = time; runs && at < time + length; at = (at / WINDOW + 1) * WINDOW) {
			__u64 next = (at / WINDOW + 1) * WINDOW;

			if (at / WINDOW <= WINDOWS)
				naive[at / WINDOW] += (next < time + length ? next : time + length) - at;
		}
		time += length;
		total += runs ? length : 0;
		runs = !runs;
		points = queue_busy_add(&busy, time, total, point);
		for (j = 0; j < points; j++) {
			cr_assert_eq(point[j].time % WINDOW, 0);
			if (point[j].time / WINDOW <= WINDOWS)
				share[point[j].time / WINDOW] = point[j].share;
			shares++;
		}
	}
	for (i = 0; i + 10 < WINDOWS; i++) {
		last = share[i] == ~0u ? last : share[i];
		cr_assert(abs((int)last - (int)(naive[i] * 10000 / WINDOW + 0.5)) <= 1, "window %u: %u, %f", i, last,
			  naive[i] * 10000 / WINDOW);
	}
	cr_assert_gt(shares, 1000);
}

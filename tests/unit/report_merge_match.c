/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/merge/input.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define COUNT_MAX 4000
#define MICROSECOND 1000ll

/* Calls on the clock of one side, and the runs in them on another one's that is behind by TRUE_OFFSET. */
#define TRUE_OFFSET (123456789012345ll)

struct scene {
	struct merge_span runs[COUNT_MAX], calls[COUNT_MAX];
	size_t run_count, call_count;
	unsigned int random;
};

static __s64 pick(struct scene *scene, __s64 most)
{
	scene->random = scene->random * 1103515245 + 12345;
	return (__s64)(scene->random >> 8) % (most + 1);
}

/* A call, and the run in it as it would be written: both times cut to microseconds. */
static void add(struct scene *scene, __u32 thread, __s64 start, __s64 length, bool call, bool run)
{
	__s64 before = 3 * MICROSECOND + pick(scene, 20 * MICROSECOND);
	__s64 after = 2 * MICROSECOND + pick(scene, 15 * MICROSECOND);
	__s64 begin = start - TRUE_OFFSET + 900000000000000;

	if (call)
		scene->calls[scene->call_count++] = (struct merge_span){ thread, start - before,
									 start + length + after };
	if (run)
		scene->runs[scene->run_count++] = (struct merge_span){ thread, begin / 1000 * 1000,
								       begin / 1000 * 1000 + length / 1000 * 1000 };
}

static struct scene *make(size_t count, unsigned int threads, __s64 jitter)
{
	struct scene *scene = calloc(1, sizeof(*scene));
	__s64 time = 5000000000000;

	scene->random = 7;
	for (size_t i = 0; i < count; i++) {
		add(scene, 100 + i % threads, time, 900 * MICROSECOND + pick(scene, jitter), true, true);
		time += 2000 * MICROSECOND + pick(scene, jitter);
	}
	return scene;
}

static enum merge_verdict match(struct scene *scene, struct merge_fit *fit)
{
	return merge_match(scene->runs, scene->run_count, scene->calls, scene->call_count, fit);
}

static void expect_fit(struct scene *scene, size_t matched)
{
	__s64 right = TRUE_OFFSET - 900000000000000;
	struct merge_fit fit = { 0 };

	cr_assert_eq(match(scene, &fit), MERGE_FITS);
	cr_assert_eq(fit.matched, matched, "%zu", fit.matched);
	cr_assert_leq(llabs(fit.offset - right), (__s64)fit.uncertainty, "%lld off, said %llu", fit.offset - right,
		      fit.uncertainty);
	cr_assert_leq(fit.uncertainty, 40000);
	free(scene);
}

Test(report_merge_match, all_of_all)
{
	expect_fit(make(200, 1, 500 * MICROSECOND), 200);
	expect_fit(make(200, 4, 500 * MICROSECOND), 200);
	expect_fit(make(4000, 3, 100 * MICROSECOND), 4000);
}

/* Attached late, ended early: runs before the first call and after the last one are none of ours. */
Test(report_merge_match, part_of_the_runs)
{
	struct scene *scene = make(300, 2, 500 * MICROSECOND);

	scene->call_count -= 80;
	for (size_t i = 0; i < scene->call_count - 50; i++)
		scene->calls[i] = scene->calls[i + 50];
	scene->call_count -= 50;
	expect_fit(scene, 170);
}

/* Profiling that began late, and a second session without any. */
Test(report_merge_match, part_of_the_calls)
{
	struct scene *scene = make(300, 1, 500 * MICROSECOND);

	for (size_t i = 0; i < 100; i++)
		scene->runs[i] = scene->runs[i + 120];
	scene->run_count = 100;
	expect_fit(scene, 100);
}

Test(report_merge_match, every_third_call_has_a_run)
{
	struct scene *scene = make(300, 1, 500 * MICROSECOND);
	size_t kept = 0;

	for (size_t i = 0; i < 300; i += 3)
		scene->runs[kept++] = scene->runs[i];
	scene->run_count = kept;
	expect_fit(scene, 100);
}

/* As a timer would make them, were it exact: each period is as good as the next. */
Test(report_merge_match, regular)
{
	struct scene *scene = make(300, 1, 0);
	struct merge_fit fit;

	scene->call_count -= 10;
	cr_assert_eq(match(scene, &fit), MERGE_AMBIGUOUS);
	free(scene);
}

Test(report_merge_match, a_call_is_missing)
{
	struct scene *scene = make(300, 1, 500 * MICROSECOND);
	struct merge_fit fit;

	scene->calls[150] = scene->calls[--scene->call_count];
	cr_assert_eq(match(scene, &fit), MERGE_NO_FIT);
	free(scene);
}

Test(report_merge_match, of_something_else)
{
	struct scene *scene = make(100, 1, 500 * MICROSECOND), *other = make(100, 1, 500 * MICROSECOND);
	struct merge_fit fit;

	for (size_t i = 0; i < 100; i++) {
		__s64 shift = pick(scene, 400000) * MICROSECOND;

		scene->runs[i] = other->runs[99 - i];
		scene->runs[i].start += shift;
		scene->runs[i].end += shift;
	}
	cr_assert_neq(match(scene, &fit), MERGE_FITS);
	for (size_t i = 0; i < 100; i++)
		scene->runs[i].thread = 7;
	cr_assert_eq(match(scene, &fit), MERGE_NO_CALLS);
	free(scene);
	free(other);
}

Test(report_merge_match, few)
{
	struct merge_fit fit;

	for (size_t count = 0; count < MERGE_MATCH_LEAST; count++) {
		struct scene *scene = make(count, 1, 500 * MICROSECOND);

		cr_assert_eq(match(scene, &fit), count ? MERGE_TOO_FEW : MERGE_NO_CALLS);
		free(scene);
	}
	expect_fit(make(MERGE_MATCH_LEAST, 1, 500 * MICROSECOND), MERGE_MATCH_LEAST);
	/* A few of many may fit by chance. */
	for (size_t calls = MERGE_MATCH_LEAST; calls < 12; calls++) {
		struct scene *scene = make(100, 1, 500 * MICROSECOND);

		scene->call_count = calls;
		if (calls < 8)
			cr_assert_eq(match(scene, &fit), MERGE_NO_FIT, "%zu calls", calls);
		else
			cr_assert_eq(match(scene, &fit), MERGE_FITS, "%zu calls", calls);
		free(scene);
	}
}

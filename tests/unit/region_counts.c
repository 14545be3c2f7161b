/* SPDX-License-Identifier: BSD-2-Clause */
#include <xputrace/region.h>

#include <criterion/criterion.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static void enable(void)
{
	setenv("XPUTRACE_REGIONS", "enabled", 1);
}

TestSuite(region_counts, .init = enable);

static void expect(const struct xpt_region *region, uint64_t entries, uint64_t unmatched)
{
	struct xpt_region_totals totals;

	xpt_region_get(region, &totals);
	cr_assert_eq(totals.entries, entries, "%llu entries", (unsigned long long)totals.entries);
	cr_assert_eq(totals.unmatched, unmatched, "%llu unmatched", (unsigned long long)totals.unmatched);
}

static uint64_t total_of(const struct xpt_region *region)
{
	struct xpt_region_totals totals;

	xpt_region_get(region, &totals);
	return totals.total_time;
}

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void spin(uint64_t time)
{
	for (uint64_t end = now() + time; now() < end;)
		;
}

Test(region_counts, layout)
{
	/* What other languages rely on. */
	cr_assert_eq(sizeof(struct xpt_region), 80);
	cr_assert_eq(offsetof(struct xpt_region, name), 0);
}

Test(region_counts, times)
{
	struct xpt_region region = XPT_REGION_INIT("times");
	struct xpt_region_totals totals;
	uint64_t begin = now(), elapsed;

	for (int i = 1; i <= 3; i++) {
		xpt_region_start(&region);
		spin((uint64_t)i * 1000000);
		xpt_region_stop(&region);
	}
	elapsed = now() - begin;
	xpt_region_get(&region, &totals);
	cr_assert_eq(totals.entries, 3);
	cr_assert(totals.total_time >= 6000000 && totals.total_time <= elapsed);
	cr_assert(totals.min_time >= 1000000 && totals.max_time >= 3000000);
	cr_assert(totals.min_time + totals.max_time <= totals.total_time - 2000000);
	xpt_region_destroy(&region);
}

Test(region_counts, nested)
{
	struct xpt_region outer = XPT_REGION_INIT("outer"), inner = XPT_REGION_INIT("inner");

	xpt_region_start(&outer);
	for (int i = 0; i < 5; i++) {
		xpt_region_start(&inner);
		spin(100000);
		xpt_region_stop(&inner);
	}
	xpt_region_stop(&outer);
	expect(&outer, 1, 0);
	expect(&inner, 5, 0);
	cr_assert(total_of(&inner) >= 500000 && total_of(&outer) >= total_of(&inner));
	xpt_region_destroy(&outer);
	xpt_region_destroy(&inner);
}

/* Regions that overlap without being nested: each stop finds its own start. */
Test(region_counts, crossed)
{
	struct xpt_region first = XPT_REGION_INIT("first"), second = XPT_REGION_INIT("second");

	xpt_region_start(&first);
	spin(4000000);
	xpt_region_start(&second);
	xpt_region_stop(&first);
	cr_assert(total_of(&first) >= 4000000);
	xpt_region_stop(&second);
	expect(&first, 1, 0);
	expect(&second, 1, 0);
	cr_assert(total_of(&second) < total_of(&first));
	xpt_region_destroy(&first);
	xpt_region_destroy(&second);
}

static void recurse(struct xpt_region *region, unsigned int depth)
{
	XPT_REGION_SCOPE(region);
	if (depth > 1)
		recurse(region, depth - 1);
}

Test(region_counts, recursive)
{
	struct xpt_region region = XPT_REGION_INIT("recursive");

	recurse(&region, XPT_REGION_OPEN);
	expect(&region, XPT_REGION_OPEN, 0);
	xpt_region_clear(&region);
	/* The outermost are forgotten, and their stops are not taken for others. */
	recurse(&region, 100);
	expect(&region, XPT_REGION_OPEN, 100 - XPT_REGION_OPEN);
	xpt_region_destroy(&region);
}

/* Starts that never stop, as code leaves that jumps out, do not keep later ones from being counted. */
Test(region_counts, never_stopped)
{
	struct xpt_region leaky = XPT_REGION_INIT("leaky"), region = XPT_REGION_INIT("region");

	for (int i = 0; i < 1000; i++) {
		xpt_region_start(&leaky);
		xpt_region_start(&region);
		xpt_region_stop(&region);
	}
	expect(&leaky, 0, 0);
	expect(&region, 1000, 0);
	xpt_region_destroy(&leaky);
	/* Nothing of it is left to be stopped. */
	xpt_region_stop(&leaky);
	expect(&leaky, 0, 1);
	xpt_region_destroy(&leaky);
	xpt_region_destroy(&region);
}

Test(region_counts, unmatched)
{
	struct xpt_region region = XPT_REGION_INIT("unmatched"), other = XPT_REGION_INIT("other");

	xpt_region_start(&other);
	xpt_region_stop(&region);
	xpt_region_start(&region);
	xpt_region_stop(&region);
	xpt_region_stop(&region);
	xpt_region_stop(&other);
	expect(&region, 1, 2);
	expect(&other, 1, 0);
	xpt_region_destroy(&region);
	xpt_region_destroy(&other);
}

#define THREADS 4
#define ROUNDS 20000

static struct xpt_region shared = XPT_REGION_INIT("shared");

static void *overlap(void *error)
{
	for (int i = 0; i < ROUNDS; i++) {
		xpt_region_start(&shared);
		recurse(&shared, 2);
		xpt_region_stop(&shared);
		if (i % 100 == 0)
			*(uint64_t *)error += total_of(&shared) == 0;
	}
	return NULL;
}

Test(region_counts, threads)
{
	uint64_t errors[THREADS] = { 0 }, begin = now(), elapsed;
	struct xpt_region_sample samples[XPT_REGION_SAMPLES];
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(pthread_create(&threads[i], NULL, overlap, &errors[i]), 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	elapsed = now() - begin;
	expect(&shared, (uint64_t)THREADS * ROUNDS * 3, 0);
	/* Three levels in each of the threads: no start was taken for that of another thread. */
	cr_assert(total_of(&shared) <= 3 * THREADS * elapsed);
	cr_assert_eq(xpt_region_get_samples(&shared, samples, XPT_REGION_SAMPLES), XPT_REGION_SAMPLES);
	for (int i = 0; i < XPT_REGION_SAMPLES; i++)
		cr_assert(samples[i].start >= begin && samples[i].start + samples[i].time <= begin + elapsed);
	for (int i = 0; i < THREADS; i++)
		cr_assert_eq(errors[i], 0);
	xpt_region_destroy(&shared);
}

/* A start belongs to its thread. */
static void *stop_elsewhere(void *region)
{
	xpt_region_stop(region);
	return NULL;
}

Test(region_counts, other_thread)
{
	struct xpt_region region = XPT_REGION_INIT("other thread");
	pthread_t thread;

	xpt_region_start(&region);
	cr_assert_eq(pthread_create(&thread, NULL, stop_elsewhere, &region), 0);
	pthread_join(thread, NULL);
	expect(&region, 0, 1);
	xpt_region_stop(&region);
	expect(&region, 1, 1);
	xpt_region_destroy(&region);
}

Test(region_counts, samples)
{
	struct xpt_region region = XPT_REGION_INIT("samples");
	struct xpt_region_sample samples[XPT_REGION_SAMPLES + 1], last[10];
	struct xpt_region_totals totals;
	uint64_t sum = 0, least = UINT64_MAX, most = 0;
	size_t i;

	cr_assert_eq(xpt_region_get_samples(&region, samples, 1), 0);
	for (i = 0; i < 1000; i++)
		recurse(&region, 1);
	cr_assert_eq(xpt_region_get_samples(&region, samples, XPT_REGION_SAMPLES + 1), 1000);
	for (i = 0; i < 1000; i++) {
		sum += samples[i].time;
		least = samples[i].time < least ? samples[i].time : least;
		most = samples[i].time > most ? samples[i].time : most;
		cr_assert(!i || samples[i].start >= samples[i - 1].start + samples[i - 1].time);
	}
	xpt_region_get(&region, &totals);
	cr_assert(totals.total_time == sum && totals.min_time == least && totals.max_time == most);
	for (i = 0; i < 2000; i++)
		recurse(&region, 1);
	cr_assert_eq(xpt_region_get_samples(&region, samples, XPT_REGION_SAMPLES + 1), XPT_REGION_SAMPLES);
	for (i = 1; i < XPT_REGION_SAMPLES; i++)
		cr_assert(samples[i].start >= samples[i - 1].start + samples[i - 1].time);
	cr_assert_eq(xpt_region_get_samples(&region, last, 10), 10);
	cr_assert_arr_eq(last, &samples[XPT_REGION_SAMPLES - 10], sizeof(last));
	xpt_region_clear(&region);
	cr_assert_eq(xpt_region_get_samples(&region, samples, 1), 0);
	recurse(&region, 1);
	cr_assert_eq(xpt_region_get_samples(&region, samples, 2), 1);
	xpt_region_destroy(&region);
	cr_assert_eq(xpt_region_get_samples(&region, samples, 1), 0);
}

/* Room for samples is given back: any number of regions that come and go keep theirs. */
Test(region_counts, samples_again)
{
	struct xpt_region_sample sample;

	for (int i = 0; i < 3 * XPT_REGION_SAMPLED; i++) {
		struct xpt_region region;

		xpt_region_init(&region, "again");
		recurse(&region, 1);
		cr_assert_eq(xpt_region_get_samples(&region, &sample, 1), 1);
		xpt_region_destroy(&region);
	}
}

Test(region_counts, child)
{
	struct xpt_region region = XPT_REGION_INIT("child");
	struct xpt_region_totals totals;
	int status;
	pid_t child;

	xpt_region_start(&region);
	child = fork();
	if (child == 0) {
		xpt_region_stop(&region);
		xpt_region_stop(&region);
		xpt_region_get(&region, &totals);
		_exit(totals.entries == 1 && totals.unmatched == 1 ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0);
	expect(&region, 0, 0);
	xpt_region_stop(&region);
	expect(&region, 1, 0);
	xpt_region_destroy(&region);
}

Test(region_counts, by_name)
{
	struct xpt_region regions[3] = { XPT_REGION_INIT("a"), XPT_REGION_INIT("b"), XPT_REGION_INIT("b") };

	cr_assert_eq(xpt_regions_start_by_name(regions, 3, "b"), 0);
	cr_assert_eq(xpt_regions_stop_by_name(regions, 3, "b"), 0);
	cr_assert_eq(xpt_regions_start_by_name(regions, 3, "c"), -ENOENT);
	cr_assert_eq(xpt_regions_stop_by_name(regions, 3, "c"), -ENOENT);
	cr_assert_eq(xpt_regions_stop_by_name(regions, 1, "b"), -ENOENT);
	expect(&regions[0], 0, 0);
	expect(&regions[1], 1, 0);
	expect(&regions[2], 0, 0);
	xpt_regions_clear(regions, 3);
	expect(&regions[1], 0, 0);
	xpt_regions_destroy(regions, 3);
}

/* Memory that is all 0 is a region too. */
Test(region_counts, zero)
{
	struct xpt_region region;

	memset(&region, 0, sizeof(region));
	recurse(&region, 3);
	expect(&region, 3, 0);
	xpt_region_destroy(&region);
	xpt_regions_init(&region, 1);
	cr_assert_str_eq(region.name, "");
	recurse(&region, 1);
	expect(&region, 1, 0);
	xpt_region_destroy(&region);
}

Test(region_counts, not_enabled, .init = NULL)
{
	struct xpt_region region = XPT_REGION_INIT("not enabled");

	unsetenv("XPUTRACE_REGIONS");
	recurse(&region, 3);
	xpt_region_stop(&region);
	expect(&region, 0, 0);
	cr_assert_eq(xpt_region_enabled(), 0);
	/* The environment was read. */
	enable();
	recurse(&region, 3);
	expect(&region, 0, 0);
	xpt_region_destroy(&region);
}

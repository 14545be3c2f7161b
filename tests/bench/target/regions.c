/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A region that is started and stopped: regions COUNT prints as JSON how often, the CPU time of it, and what the region
 * has kept.
 */
#include <xputrace/region.h>

#include <inttypes.h>

static struct xpt_region region = XPT_REGION_INIT("bench");

static uint64_t cpu_time(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int main(int argc, char **argv)
{
	uint64_t count = argc > 1 ? strtoull(argv[1], NULL, 0) : 0, i, begin;
	struct xpt_region_totals totals;

	/* The first pair reads the environment and makes room. */
	xpt_region_start(&region);
	xpt_region_stop(&region);
	begin = cpu_time();
	for (i = 0; i < count; i++) {
		xpt_region_start(&region);
		xpt_region_stop(&region);
	}
	begin = cpu_time() - begin;
	xpt_region_get(&region, &totals);
	printf("{\"pairs\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"kept\":%" PRIu64 "}\n", count, begin, totals.entries);
	xpt_region_destroy(&region);
	return 0;
}

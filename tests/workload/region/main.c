/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Marks regions and prints as JSON what it did and what the regions have kept. C and C++.
 *
 *	objects			one region, started and stopped in every combination of three places
 *	threads N COUNT		N threads that start and stop one region COUNT times each
 *	leaf COUNT		sums that a marker in the wrong place would change
 *	names COUNT LENGTH	COUNT regions, each with a name of its own of LENGTH bytes
 *	fork | exec | exit	in the middle of a region
 *	wait COUNT		prints "ready", waits for a line, then as leaf
 */
#include "shared.h"

#include <inttypes.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define MANY 64

static struct xpt_region region = XPT_REGION_INIT("the \"region\"\nof main");
static uint64_t wanted; /* starts and stops of each thread */

static void main_start(struct xpt_region *any)
{
	xpt_region_start(any);
}

static void main_stop(struct xpt_region *any)
{
	xpt_region_stop(any);
}

static void tell(const char *what, const struct xpt_region *any)
{
	struct xpt_region_totals totals;

	xpt_region_get(any, &totals);
	printf("{\"what\":\"%s\",\"enabled\":%d,\"entries\":%" PRIu64 ",\"total\":%" PRIu64 ",\"min\":%" PRIu64
	       ",\"max\":%" PRIu64 ",\"unmatched\":%" PRIu64 "}\n",
	       what, xpt_region_enabled(), totals.entries, totals.total_time, totals.min_time, totals.max_time,
	       totals.unmatched);
	fflush(stdout);
}

static void objects(struct xpt_region *any, const char *what)
{
	void (*const start[])(struct xpt_region *) = { main_start, other_start, shared_start };
	void (*const stop[])(struct xpt_region *) = { main_stop, other_stop, shared_stop };
	unsigned int i, j;

	for (i = 0; i < 3; i++) {
		for (j = 0; j < 3; j++) {
			start[i](any);
			stop[j](any);
		}
	}
	tell(what, any);
}

static void *loop(void *unused)
{
	uint64_t i;

	for (i = 0; i < wanted; i++) {
		xpt_region_start(&region);
		xpt_region_stop(&region);
	}
	return unused;
}

static void threads(unsigned long count)
{
	pthread_t thread[MANY];
	unsigned long i;

	for (i = 0; i < count && i < MANY; i++)
		pthread_create(&thread[i], NULL, loop, NULL);
	for (i = 0; i < count && i < MANY; i++)
		pthread_join(thread[i], NULL);
	tell("threads", &region);
}

static void leaves(unsigned long count)
{
	unsigned long wrong = 0, i;

	for (i = 0; i < count; i++)
		wrong += leaf_sum(&region, i) != leaf_expected(i);
	printf("{\"what\":\"wrong\",\"entries\":%lu}\n", wrong);
	tell("leaf", &region);
}

/* As a program that makes its names at run time would. */
static void names(unsigned long count, unsigned long length)
{
	struct xpt_region *regions = (struct xpt_region *)calloc(count, sizeof(*regions));
	char *text = (char *)calloc(count, length + 1), digits[24];
	struct xpt_region_sample sample;
	unsigned long i, sampled = 0, once = 0;
	struct xpt_region_totals totals;

	if (!regions || !text)
		exit(1);
	for (i = 0; i < count; i++) {
		memset(&text[i * (length + 1)], 'n', length);
		snprintf(digits, sizeof(digits), "%lu", i);
		memcpy(&text[i * (length + 1)], digits, strlen(digits) < length ? strlen(digits) : length);
		xpt_region_init(&regions[i], &text[i * (length + 1)]);
		xpt_region_start(&regions[i]);
		xpt_region_stop(&regions[i]);
		xpt_region_get(&regions[i], &totals);
		once += totals.entries == 1 && totals.unmatched == 0;
		sampled += xpt_region_get_samples(&regions[i], &sample, 1);
	}
	printf("{\"what\":\"names\",\"once\":%lu,\"sampled\":%lu}\n", once, sampled);
	fflush(stdout);
	xpt_regions_print_all(regions, count);
	xpt_regions_destroy(regions, count);
	free(regions);
	free(text);
}

/* The child ends what its parent began: each counts its own. */
static void forked(void)
{
	pid_t child;

	xpt_region_start(&region);
	child = fork();
	xpt_region_stop(&region);
	if (child)
		waitpid(child, NULL, 0);
	tell(child ? "parent" : "child", &region);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned long first = argc > 2 ? strtoul(argv[2], NULL, 0) : 0,
		      second = argc > 3 ? strtoul(argv[3], NULL, 0) : 0;
	char line[16];

	if (!strcmp(what, "objects")) {
		objects(&region, "main");
		objects(shared_region(), "shared");
	} else if (!strcmp(what, "threads")) {
		wanted = second;
		threads(first);
	} else if (!strcmp(what, "leaf")) {
		leaves(first);
	} else if (!strcmp(what, "names")) {
		names(first, second);
	} else if (!strcmp(what, "fork")) {
		forked();
	} else if (!strcmp(what, "exec")) {
		char objects_word[] = "objects", *const again[] = { argv[0], objects_word, NULL };

		xpt_region_start(&region);
		execv("/proc/self/exe", again);
		return 1;
	} else if (!strcmp(what, "exit")) {
		xpt_region_stop(&region);
		xpt_region_start(&region);
		tell("exit", &region);
	} else if (!strcmp(what, "wait")) {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof(line), stdin))
			return 1;
		leaves(first);
	} else {
		return 2;
	}
	xpt_region_print(&region);
	xpt_region_destroy(&region);
	return 0;
}

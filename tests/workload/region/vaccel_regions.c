/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Regions of vAccel in every way that it has: vaccel_regions now|before COUNT
 *
 * now, before: releases them by the names of version 0.7, or of those up to 0.6. Each pair of start and stop is made
 * COUNT times: of "static", which has its name from the compiler, inside of "made", which is initialised; of "second" by
 * its name; after a release of "again" in the memory of "made"; and after another one of that, which has no name any
 * more.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct vaccel_prof_region {
	const char *name;
	bool name_owned;
	size_t nr_entries;
	void *samples;
	size_t size;
};

int vaccel_prof_region_init(struct vaccel_prof_region *region, const char *name);
int vaccel_prof_region_start(struct vaccel_prof_region *region);
int vaccel_prof_region_stop(const struct vaccel_prof_region *region);
int vaccel_prof_region_print(const struct vaccel_prof_region *region);
int vaccel_prof_region_release(struct vaccel_prof_region *region);
int vaccel_prof_region_destroy(struct vaccel_prof_region *region);
int vaccel_prof_regions_start_by_name(struct vaccel_prof_region *regions, int count, const char *name);
int vaccel_prof_regions_stop_by_name(struct vaccel_prof_region *regions, int count, const char *name);
int vaccel_prof_regions_print_all(const struct vaccel_prof_region *regions, int count);
int vaccel_prof_regions_print_all_to_buf(char **buffer, size_t size, const struct vaccel_prof_region *regions,
					 int count);
int vaccel_prof_regions_release(struct vaccel_prof_region *regions, int count);
int vaccel_prof_regions_clear(struct vaccel_prof_region *regions, int count);

#define GARBAGE 0xa5

static struct vaccel_prof_region fixed = { .name = "static" };
static struct vaccel_prof_region made, several[2];
static unsigned long count;
static bool before;

static void both(struct vaccel_prof_region *outer, struct vaccel_prof_region *inner)
{
	for (unsigned long i = 0; i < count; i++) {
		vaccel_prof_region_start(outer);
		if (inner) {
			vaccel_prof_region_start(inner);
			vaccel_prof_region_stop(inner);
		}
		vaccel_prof_region_stop(outer);
	}
}

static void release(struct vaccel_prof_region *region)
{
	if (before)
		vaccel_prof_region_destroy(region);
	else
		vaccel_prof_region_release(region);
}

int main(int argc, char **argv)
{
	char text[1024] = "", *buffer = text;

	if (argc != 3)
		return 2;
	before = !strcmp(argv[1], "before");
	count = strtoul(argv[2], NULL, 10);

	memset(&made, GARBAGE, sizeof(made));
	memset(several, GARBAGE, sizeof(several));
	vaccel_prof_region_init(&made, "made");
	vaccel_prof_region_init(&several[0], "first");
	vaccel_prof_region_init(&several[1], "second");
	both(&made, &fixed);
	for (unsigned long i = 0; i < count; i++) {
		vaccel_prof_regions_start_by_name(several, 2, "second");
		vaccel_prof_regions_stop_by_name(several, 2, "second");
	}
	vaccel_prof_region_print(&made);
	vaccel_prof_region_print(&fixed);
	vaccel_prof_regions_print_all(several, 2);
	vaccel_prof_regions_print_all_to_buf(&buffer, sizeof(text), several, 2);
	fputs(text, stdout);

	release(&made);
	vaccel_prof_region_init(&made, "again");
	both(&made, NULL);
	vaccel_prof_region_print(&made);
	release(&made);
	memset(&made, 0, sizeof(made));
	both(&made, NULL);
	if (before)
		vaccel_prof_regions_clear(several, 2);
	else
		vaccel_prof_regions_release(several, 2);
	return 0;
}

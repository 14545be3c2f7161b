/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counters that no PMU has: files of sysfs, DRM's fdinfo of processes, NVIDIA's management library. They are named as events
 * of a PMU are, "ivpu/busy-time/", and read one by one. They count by themselves all the time: who starts and stops takes
 * differences.
 */
#ifndef XPT_COUNTER_POLLED_H
#define XPT_COUNTER_POLLED_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* What can be opened. Strings are valid during the visit. */
struct polled_info {
	const char *source; /* "ivpu", "fdinfo", "nvml": in front of the slash */
	const char *event;  /* "busy-time" */
	const char *unit;   /* "s", "B", "J", "MHz", "%"; "" a plain number */
	const char *description;
	double scale; /* unit for each raw count */
	bool level;   /* what it is now: memory in use, a frequency; else it only grows */
};

struct counter_place;
struct polled;
typedef int (*polled_visit)(void *context, const struct polled_info *info);

/* Visits what is there. A non-zero return of visit ends the walk and is returned. -ENOMEM. */
int polled_list(const struct counter_place *place, polled_visit visit, void *context);
/*
 * *info is as in the visit; its strings live as long as the counter. -ENOENT: there is no such source or event here (not
 * logged: the caller offers what there is); -EACCES, -ENODEV: logged. An event of fdinfo need not be in the list: it
 * counts from zero until a client has it, which is logged.
 */
int polled_open(const struct counter_place *place, const char *source, const char *event, struct polled_info *info,
		struct polled **result);
/* What grows never decreases from one read to the next. -ENODEV: the device or process no longer exists; -EIO; -ENOMEM. */
int polled_read(struct polled *polled, __u64 *raw);
void polled_close(struct polled *polled); /* may be NULL */

/* ---- what polled.c asks of each place that counters are read from ---- */

/* The first member of what a source has opened; polled_open() fills it in. */
struct polled {
	const struct polled_source *source;
	bool level;
	__u64 highest;
};

/* Errors are those from above. */
struct polled_source {
	int (*list)(const struct counter_place *place, polled_visit visit, void *context);
	/* -ENOENT also when the source is another one's. The strings of info live as long as *result. */
	int (*open)(const struct counter_place *place, const char *source, const char *event, struct polled_info *info,
		    struct polled **result);
	int (*read)(struct polled *polled, __u64 *raw);
	void (*close)(struct polled *polled); /* frees it */
};

extern const struct polled_source polled_fdinfo, polled_nvml;

/* Whether it has these names. */
bool polled_is(const struct polled_info *info, const char *source, const char *event);

/* Devices of the place, counted from 0: the one, or all. NULL behind the last. */
struct node;
const struct node *polled_node(const struct counter_place *place, size_t index);

/* The library that is loaded from now on in place of NVIDIA's: for tests. The string is not copied. */
void nvml_use(const char *library);

#endif

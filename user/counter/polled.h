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
#include <sys/types.h>

#include "base/core/log.h"
#include "counter/nodes.h"

/* What can be opened. Strings are valid during the visit. */
struct polled_info {
	const char *source; /* "ivpu", "fdinfo", "nvml": in front of the slash */
	const char *event;  /* "busy-time" */
	const char *unit;   /* "s", "B", "J", "MHz", "%"; "" a plain number */
	const char *description;
	double scale; /* unit for each raw count */
	bool level;   /* what it is now: memory in use, a frequency; else it only grows */
};

/* Where to look. */
struct polled_place {
	const char *sysfs; /* "/sys" */
	const char *proc;  /* "/proc" */
	const struct nodes *nodes;
	const struct node *node; /* only of this device; NULL: of all, added up */
	pid_t pid;		 /* fdinfo: of this process only; 0: of all that can be read, added up */
	const struct log *log;
	bool highest; /* nvml: of several devices the highest value, not the sum */
};

struct polled;

/* Visits what is there. A non-zero return of visit ends the walk and is returned. -ENOMEM. */
int polled_list(const struct polled_place *place, int (*visit)(void *context, const struct polled_info *info),
		void *context);
/*
 * *info is as in the visit; its strings live as long as the counter. -ENOENT: there is no such source or event here (not
 * logged: the caller offers what there is); -EACCES, -ENODEV: logged. An event of fdinfo need not be in the list: it
 * counts from zero until a client has it, which is logged.
 */
int polled_open(const struct polled_place *place, const char *source, const char *event, struct polled_info *info,
		struct polled **result);
/* What grows never decreases from one read to the next. -ENODEV: the device or process no longer exists; -EIO; -ENOMEM. */
int polled_read(struct polled *polled, __u64 *raw);
void polled_close(struct polled *polled); /* may be NULL */

/* ---- what polled.c asks of each place that counters are read from ---- */

typedef int (*polled_visit)(void *context, const struct polled_info *info);

/* Errors are those of polled.h. */
struct polled_source {
	int (*list)(const struct polled_place *place, polled_visit visit, void *context);
	/* -ENOENT also when the source is another one's. The strings of info live as long as *state. */
	int (*open)(const struct polled_place *place, const char *source, const char *event, struct polled_info *info,
		    void **state);
	int (*read)(void *state, __u64 *raw);
	void (*close)(void *state);
};

extern const struct polled_source polled_sysfs, polled_fdinfo, polled_nvml;

/* Devices of the place, counted from 0: the one, or all. NULL behind the last. */
const struct node *polled_node(const struct polled_place *place, size_t index);

/* The library that is loaded from now on in place of NVIDIA's: for tests. The string is not copied. */
void nvml_use(const char *library);

#endif

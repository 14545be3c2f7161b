/* SPDX-License-Identifier: BSD-2-Clause */
/* What polled.c asks of each place that counters are read from. */
#ifndef XPT_COUNTER_POLLED_POLLED_SOURCE_H
#define XPT_COUNTER_POLLED_POLLED_SOURCE_H

#include "counter/polled/polled.h"

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

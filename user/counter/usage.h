/* SPDX-License-Identifier: BSD-2-Clause */
/* What processes use of devices: xpt_device_usage_*() on any place, and what its sources report. */
#ifndef XPT_COUNTER_USAGE_H
#define XPT_COUNTER_USAGE_H

#include <xputrace/device.h>

#include "counter/counter.h"

struct usage_list {
	struct xpt_device_use *items;
	size_t count;
};

/* -ENOMEM */
int usage_add(struct usage_list *list, struct xpt_device_use use);

/* xpt_device_usage_create() of this place, whose strings and nodes must live as long. */
int device_usage_open(const struct counter_place *place, struct xpt_device_usage **result);

/* ---- polled_nvml.c ---- */

struct nvml_usage;

/* -ENODEV: no GPU that the library knows; -ENOMEM. */
int nvml_usage_open(const struct counter_place *place, struct nvml_usage **result);
/* elapsed: ns since the read before. A process may be added several times, to be added up. -ENOMEM. */
int nvml_usage_read(struct nvml_usage *usage, __u64 elapsed, struct usage_list *list);
void nvml_usage_close(struct nvml_usage *usage); /* may be NULL */

#endif

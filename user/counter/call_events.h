/* SPDX-License-Identifier: BSD-2-Clause */
/* What is read around each inference by the kernel's side: of the thread, or perf events of the call's CPU, or of devices. */
#ifndef XPT_COUNTER_CALL_EVENTS_H
#define XPT_COUNTER_CALL_EVENTS_H

#include <linux/types.h>

#include "bpf/wire.h"
#include "counter/counter.h"

struct call_events {
	struct counter *counters;
	size_t count;
	/* Of slot s on CPU c: [s * cpus + c], -1: none. A counter has as many slots as instances, behind those before it. */
	int *descriptors;
	unsigned int slots;	  /* at most XPT_SLOT_MAX */
	__u8 tasks[XPT_SLOT_MAX]; /* of each slot: enum xpt_task_count; what has one has no descriptors */
	unsigned int cpus;	  /* numbers of CPUs are below it */
};

/*
 * Opens the counters by their names; tracefs: its root folder, or NULL. -EOPNOTSUPP: one is no sum or mean of perf
 * events; -E2BIG: they are more than XPT_SLOT_MAX events; else as xpt_counters_open(). Logged. Close it also after an
 * error.
 */
int call_events_open(const struct log *log, const char *tracefs, const char *const *names, size_t count,
		     struct call_events *events);
/* Closes the descriptors, which others may have taken over; the counters stay. */
void call_events_release(struct call_events *events);
void call_events_close(struct call_events *events);
/* Whether what is read on one CPU cannot be compared with what is read on another one. */
bool call_events_of_each_cpu(const struct counter *counter);
/* What it counts around an inference: "thread"; "CPU", "device": by any user. */
const char *call_events_of(const struct counter *counter);

#endif

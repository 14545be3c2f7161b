/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * What the engines of a device count, and the PMU through which perf events read it: one a device, xptaccel_0 and on.
 *
 * Counts begin when the module is loaded and only grow, but for the number of jobs that run. Whoever waits for a job
 * finds it counted: that is done before its fence is signalled.
 */
#ifndef XPTACCEL_PMU_H
#define XPTACCEL_PMU_H

#include <linux/atomic.h>
#include <linux/perf_event.h>

#define XPTACCEL_ENGINES_MAX 8
#define XPTACCEL_RUNNING_BITS 5 /* an engine runs fewer jobs than 1 << this */

/* Of one engine. Written in any context, read without a lock. */
struct xptaccel_counts {
	atomic64_t queued;   /* jobs submitted */
	atomic64_t ended;    /* jobs that have run, however they ended */
	atomic64_t failed;   /* of these, those with an error */
	atomic64_t bytes;    /* their sizes */
	atomic64_t ended_ns; /* how long they ran, each for itself */
	atomic64_t running;  /* the same with those that run now, and how many run now: see xptaccel_pmu.c */
};

struct xptaccel_pmu {
	struct pmu pmu;
	char name[24];
	bool registered;
	unsigned int engine_count;
	unsigned long used; /* hardware counters that an event has; only touched on the processor that counts */
	struct xptaccel_counts counts[XPTACCEL_ENGINES_MAX];
};

void xptaccel_count_queued(struct xptaccel_counts *counts);

/* Times are ktime_get_ns(), the same that the waiter gets. */
void xptaccel_count_started(struct xptaccel_counts *counts, u64 started_ns);
void xptaccel_count_ended(struct xptaccel_counts *counts, u64 started_ns, u64 finished_ns, u64 bytes, bool failed);

/* Makes the PMU of a device, in zeroed memory: 0 or a negative error number. Open events hold the module. */
int xptaccel_pmu_register(struct xptaccel_pmu *pmu, unsigned int device, unsigned int engines);

/* Does nothing if it is not registered. */
void xptaccel_pmu_unregister(struct xptaccel_pmu *pmu);

#endif

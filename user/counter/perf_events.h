/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Counting perf events in groups: those of one PMU and CPU are read at once, and count at the same times. What does not fit
 * into a group gets one of its own.
 */
#ifndef XPT_COUNTER_PERF_EVENTS_H
#define XPT_COUNTER_PERF_EVENTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/core/log.h"
#include "bpf/wire.h"
#include "counter/counter.h"

/* What was read of one event on one CPU. Sums since it was opened. */
struct perf_sample {
	__u64 count;
	__u64 enabled, running; /* ns */
	__u64 time;		/* CLOCK_MONOTONIC before it was read */
	bool gone; /* nothing can be read: count is as before; it may be read again where the CPU is offline */
};

struct perf_part {
	size_t counter;			   /* index of the counter that it is a part of */
	const struct counter_event *event; /* of that counter */
	enum counting counting;		   /* likewise */
	struct perf_sample now;
	struct perf_sample before; /* the sums of what was open before it: the CPU was offline meanwhile */
	bool offline;		   /* its CPU is offline, or was since the caller has cleared this */
};

struct perf_event_attr;
struct perf_group;

struct perf_events {
	struct perf_part *parts; /* in the order in which they were opened: those of a counter follow each other */
	size_t part_count;
	struct perf_group *groups;
	size_t group_count;
	pid_t pid;
	bool until_exec, pinned;
	bool mixed; /* what counts no single process counts all processes, else it is refused */
	bool counting;
	/* NULL: perf_open(). */
	int (*open)(const struct perf_event_attr *attributes, pid_t pid, int cpu, int leader);
	const struct log *log;
};

/*
 * Opens all events of the counter, which do not count yet. It is used until perf_events_close(). Errors are those of
 * xpt_counters_open(), logged.
 */
int perf_events_add(struct perf_events *events, const struct counter *counter, size_t index);
/*
 * One event of a counter on one CPU, of everybody, which counts at once and all the time. The caller closes it. A
 * descriptor, or an error as above.
 */
int perf_event_open_alone(const struct log *log, const struct counter *counter, const struct counter_event *event,
			  int cpu);
/* 1: the kernel has such an event, be there room for it now or not; 0: it has none; -EACCES: unknown. */
int perf_event_exists(const struct counter_event *event);
/*
 * The mean between two samples of what grows by its value in each second, or at each read; last: while nothing was counted
 * in between, as after the stop, it stays what it was.
 */
double perf_mean(enum counting counting, const struct perf_sample *past, const struct perf_sample *now, double last);
/* -ENOSPC: pinned, and they do not fit. Logged. */
int perf_events_enable(struct perf_events *events);
void perf_events_disable(struct perf_events *events);
/*
 * Reads all. The number of reads it took. What has ended with its CPU, or never began there, is opened again where that is online by
 * now; what counts a device also on another CPU.
 */
size_t perf_events_read(struct perf_events *events);
/* Only opens again what has ended. To be called where they are read rarely. */
void perf_events_renew(struct perf_events *events);
void perf_events_close(struct perf_events *events);

#define FD_OWNERS_TEXT_MAX 256

/* "perf (1234), Xorg (99)": other processes than this one, as many as there is room for; "" when none is seen. */
void fd_owners_of_perf_events(char text[FD_OWNERS_TEXT_MAX]);

/* What is read around each inference by the kernel's side: of the thread, or perf events of the call's CPU, or of devices. */

struct call_events {
	struct counter *counters;
	size_t count;
	/* Of slot s on CPU c: [s * cpus + c], -1: none. A counter has as many slots as instances, behind those before it. */
	int *descriptors;
	unsigned int slots;	  /* at most XPT_SLOT_MAX */
	__u8 tasks[XPT_SLOT_MAX]; /* of each slot: enum xpt_task_count; what has one has no descriptors */
	unsigned int cpus;	  /* numbers of CPUs that may ever be online are below it */
};

/*
 * Opens the counters by their names; tracefs: its root folder, or NULL. -EOPNOTSUPP: one is no sum or mean of perf
 * events; -E2BIG: they are more than XPT_SLOT_MAX events; else as xpt_counters_open(). Logged. Close it also after an
 * error.
 */
int call_events_open(const struct log *log, const char *tracefs, const char *const *names, size_t count,
		     struct call_events *events);
/*
 * Those of one CPU again, which has come online, after call_events_release(): its own, and those of devices that are counted there. Where
 * it fails there is none.
 */
void call_events_renew(const struct log *log, struct call_events *events, unsigned int cpu,
		       int descriptors[XPT_SLOT_MAX]);
/* Closes the descriptors, which others may have taken over; the counters stay. */
void call_events_release(struct call_events *events);
void call_events_close(struct call_events *events);
/* Whether what is read on one CPU cannot be compared with what is read on another one. */
bool call_events_of_each_cpu(const struct counter *counter);
/* What it counts around an inference: "thread"; "CPU", "device": by any user. */
const char *call_events_of(const struct counter *counter);

#endif

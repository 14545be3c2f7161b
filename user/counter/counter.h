/* SPDX-License-Identifier: BSD-2-Clause */
/* A counter by its name: the perf events that it is made of, or the value that is read otherwise. */
#ifndef XPT_COUNTER_COUNTER_H
#define XPT_COUNTER_COUNTER_H

#include <linux/types.h>
#include <stdbool.h>

#include <xputrace/counters.h>

#include "bpf/wire.h"
#include "base/core/log.h"
#include "counter/nodes.h"
#include "counter/pmu.h"
#include "counter/polled.h"

/* One event of one instance of a PMU. */
struct counter_event {
	__u32 type;
	__u64 config[PMU_CONFIGS];
	struct cpus cpus; /* to open it on, where it counts all processes */
	bool of_each_cpu; /* it can count a single process */
	bool of_device;	  /* it counts a device for all its users: for one process it would be wrong */
	char *filter;	  /* of a tracepoint's fields, owned; NULL: all count */
	int only_cpu;	  /* of a process: what it does on this one; -1: on all */
	char *pmu;	  /* name; owned */
	__u8 task;	  /* enum xpt_task_count: what of a thread is the same */
};

struct counter {
	struct xpt_counter_info info; /* its strings are owned */
	enum counting counting;
	struct counter_event *events; /* none: it is polled */
	size_t event_count;
	struct polled *polled; /* owned */
};

/* What there is, and which part of it is meant. */
struct counter_place {
	const char *sysfs, *proc; /* "/sys", "/proc" */
	struct pmus pmus;
	struct nodes nodes;
	struct cpus online;
	const struct node *node; /* only of this device; NULL: of all, added up */
	int cpu;		 /* only on this one; negative: by the PMU */
	pid_t pid;		 /* fdinfo: of this process only; 0: of all that can be read, added up */
	bool highest;		 /* nvml: of several devices the highest value, not the sum */
	const struct log *log;
	const char *tracefs; /* its root folder; NULL: as tracefs_open() finds it */
	bool mixed;	     /* of a process: what counts no single process counts all processes */
	/* NULL: perf_event_exists(). */
	int (*exists)(const struct counter_event *event);
};

/*
 * Scans this machine. cpu, gpu: as in xpt_counters_options, with its errors, logged; close it also after an error. A place is
 * copied, to look at a part of it, without what it refers to.
 */
int counter_place_open(const struct log *log, int cpu, int gpu, pid_t pid, struct counter_place *place);
void counter_place_close(struct counter_place *place);

/* Copies the strings. -ENOMEM: what there is has to be freed. */
int counter_info_copy(const struct xpt_counter_info *from, struct xpt_counter_info *to);
void counter_info_free(struct xpt_counter_info *info);
/*
 * Unit, description, source, kind and scale of an event of a PMU, from sysfs and the catalogue; event NULL: of terms alone.
 * Strings are those of the PMU, nothing is owned. How it counts.
 */
enum counting counter_describe(const struct pmu *pmu, const struct pmu_event *event, struct xpt_counter_info *info);
/* The same of what is polled. */
enum counting counter_describe_polled(const struct polled_info *polled, struct xpt_counter_info *info);

/* Errors are those of xpt_counters_open(), logged; without a log no near names are looked for. */
int counter_resolve(const struct counter_place *place, const char *name, struct counter *counter);
void counter_free(struct counter *counter);

/* As xpt_counters_list(). */
int counters_visit(const struct counter_place *place,
		   int (*visit)(void *context, const struct xpt_counter_info *counter), void *context);

/* Whether the PMU is the place's device's, or of no device. All are where the place has none. */
bool counter_of_node(const struct counter_place *place, const struct pmu *pmu);
/* Whether the PMU is that of the place's device; where the place has none: whether it is none of any device's driver. */
bool counter_is_own(const struct counter_place *place, const struct pmu *pmu);

/* Of software and hardware events of the kernel. */
struct kernel_event {
	struct xpt_counter_info info;
	const char *alias; /* NULL: none */
	__u32 type;
	__u64 config;
	__u8 task; /* enum xpt_task_count: what of a thread is the same; 0: nothing */
};
extern const struct kernel_event kernel_events[];
extern const size_t kernel_event_count;

#define NEAREST_TEXT_MAX 512

/* Writes up to three names of counters that there are, the nearest first: "a, b, c"; "" when none is like it. */
void nearest_counters(const struct counter_place *place, const char *name, char text[NEAREST_TEXT_MAX]);

#endif

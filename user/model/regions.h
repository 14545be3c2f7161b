/* SPDX-License-Identifier: BSD-2-Clause */
/* Named stretches of user code: from the return of a region.begin to the call of the region.end that belongs to it. */
#ifndef XPT_MODEL_REGIONS_H
#define XPT_MODEL_REGIONS_H

#include "model/functions.h"
#include "model/processes.h"
#include "model/statistics.h"

#define REGIONS_OPEN_MAX 16384 /* at once; the oldest makes room */
#define REGION_TOTALS_MAX 4096 /* names kept apart, of all processes together */

struct region_total {
	struct model_region_total view; /* the name is owned here */
	struct map_node node;		/* by process and runtime, and hash of the name */
	const struct process *process;
	const struct runtime *runtime;
	struct statistics *duration;
};

struct regions {
	struct sinks *sinks;
	struct processes *processes;
	struct map by_thread; /* open ones by thread; the one that began last is found first */
	struct link open;     /* oldest first */
	size_t open_count;
	struct map totals;
	struct region_total **all;
	size_t count, room;
};

void regions_init(struct regions *regions, struct sinks *sinks, struct processes *processes);
void regions_free(struct regions *regions);

/* call->name is the region's name when it has one; else the handle stands in. -ENOMEM, in all three. */
int regions_begin(struct regions *regions, struct process *process, const struct function *function,
		  const struct event_call *call);
/* Ends the one that began last on this thread with the same handle or, without a handle, name: an EVENT_REGION. */
int regions_end(struct regions *regions, struct process *process, const struct function *function,
		const struct event_call *call);
void regions_drop_process(struct regions *regions, const struct process *process);
/* Adds the totals of processes that are marked as forgotten to those of the others. */
int regions_forget_processes(struct regions *regions, __u64 time);

#endif

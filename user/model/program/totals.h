/* SPDX-License-Identifier: BSD-2-Clause */
/* What calls of functions add up to that are not inferences of a program. */
#ifndef XPT_MODEL_PROGRAM_TOTALS_H
#define XPT_MODEL_PROGRAM_TOTALS_H

#include "model/program/counting.h"
#include "model/program/functions.h"
#include "model/program/processes.h"
#include "model/stats/statistics.h"

struct total {
	struct model_call_total view;
	struct map_node node; /* by process and function */
	struct process *process;
	struct statistics *duration;
	struct counting counting;
};

struct totals {
	struct sinks *sinks;
	struct processes *processes;
	struct map map;
	struct total **all;
	size_t count, room;
};

void totals_init(struct totals *totals, struct sinks *sinks, struct processes *processes);
void totals_free(struct totals *totals);
/* Beyond MODEL_CALL_TOTALS_MAX that of the function in all other processes. NULL: no memory. */
struct total *totals_get(struct totals *totals, struct process *process, const struct function *function, __u64 time);
int total_record(struct total *total, const struct event_call *call); /* -ENOMEM: all but the quantiles is right */
/* Adds those of processes that are marked as forgotten to the total of the others. */
void totals_forget_processes(struct totals *totals);

#endif

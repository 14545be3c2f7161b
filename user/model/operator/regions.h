/* SPDX-License-Identifier: BSD-2-Clause */
/* Named stretches of user code: what each is called, and how long all of a name took. */
#ifndef XPT_MODEL_OPERATOR_REGIONS_H
#define XPT_MODEL_OPERATOR_REGIONS_H

#include "model/program/functions.h"
#include "model/program/processes.h"
#include "model/stats/statistics.h"

#define REGION_NAMES_MAX 65536 /* known at once, of all processes; the oldest makes room */
#define REGION_TOTALS_MAX 4096 /* names kept apart, of all processes together */

#define REGION_PROGRAM_ID 0x80000000u /* from here on; programs are numbered from 1 */

struct region_total {
	struct model_region_total view; /* the name is that of the program without its prefix */
	struct model_program program;	/* its name is owned here */
	struct map_node node;		/* by process and runtime, and hash of the name */
	const struct process *process;
	const struct runtime *runtime;
	struct statistics *duration;
};

struct regions {
	struct event_dispatch *events;
	struct processes *processes;
	struct name_table names; /* by process, twice that + 1 for those of handles, and number or handle */
	struct map totals;
	struct region_total **all;
	size_t count;
	unsigned int next_program;
};

void regions_init(struct regions *regions, struct event_dispatch *events, struct processes *processes);
void regions_free(struct regions *regions);

/* From a REGION_NAME record. -ENOMEM, as below. */
int regions_name(struct regions *regions, const struct xpt_record_region_name *record);
/* A call of role region.name has given the region of its handle a name. */
int regions_name_handle(struct regions *regions, const struct event_call *call);
/* The same, of a region that was there before the recording: text is terminated. */
int regions_set_name(struct regions *regions, __u32 tgid, __u64 handle, const char *text, bool truncated);
/* One of role region.release has taken it. */
void regions_release(struct regions *regions, const struct event_call *call);
/* A region has ended: an EVENT_REGION. Its handle replaces an unknown name. */
int regions_end(struct regions *regions, const struct process *process, const struct runtime *runtime,
		const struct xpt_record_region *record);
/* The process's memory is freed. */
void regions_drop_process(struct regions *regions, const struct process *process);
/* Adds the totals of processes that are marked as forgotten to those of the others. */
int regions_forget_processes(struct regions *regions, __u64 time);

#endif

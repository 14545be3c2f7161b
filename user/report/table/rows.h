/* SPDX-License-Identifier: BSD-2-Clause */
/* What the summary's tables show: rows computed from the model, the most expensive first; and the closing figures. */
#ifndef XPT_REPORT_TABLE_ROWS_H
#define XPT_REPORT_TABLE_ROWS_H

#include <stdio.h>

#include "model/core/model.h"

struct summary_row {
	const char *name, *runtime;
	const struct model_process *process;
	__u64 calls; /* exact where the kernel's total is known, else those recorded */
	__u64 recorded;
	__u64 errors, bytes;
	double call_time;  /* ns, of the calls that enqueue or launch, programs only; */
	__u64 timed_calls; /* number of the calls that it is of */
	double time; /* ns: mean latency of the recorded ones, or of their calls, times all calls; what rows are ordered by */
	/* Jobs that the recorded calls have submitted to devices, and what they took, ns; programs only. */
	__u64 jobs, failed_jobs, device_time;
	double all_device, all_queue,
		all_busy;		     /* ns: for all calls, as if those not recorded had been like the others */
	const struct statistics *statistics; /* NULL: nothing was recorded of it, though it was called */
	struct statistics *merged;	     /* statistics, when it was made for this row */
	/* ns that probes took of each recorded call of a program; NULL: unknown. And when it was made for this row. */
	const struct statistics *tracing;
	struct statistics *merged_tracing;
	struct model_states states; /* of the recorded ones; programs only */
	__u64 tracing_inside;	    /* ns, of all together: by what lies inside */
	bool stepped;		    /* operators were recorded */
};

struct summary_rows {
	struct summary_row *row;
	size_t count;
};

/*
 * Programs that ran. Those of one process and runtime that have the same name are one row: a program that is loaded
 * again and again is still the same to who reads the table.
 */
int summary_programs(const struct model *model, struct summary_rows *rows);
/*
 * ns that probes took of an inference, as a median, and its median latency in *latency, of which it is at most all. 0: unknown.
 */
__u64 summary_tracing(const struct summary_row *row, __u64 *latency);
/* Of these rows, those that have jobs, ordered by what all calls have taken of devices. Shares what rows has. */
int summary_device_work(const struct summary_rows *programs, struct summary_rows *rows);
/* Of these rows, those of which is known what their threads did, in the same order. Shares what rows has. */
int summary_states(const struct summary_rows *programs, struct summary_rows *rows);
/* Of which it is known what they were blocked by. */
int summary_reasons(const struct summary_rows *programs, struct summary_rows *rows);
int summary_functions(const struct model *model, struct summary_rows *rows);
int summary_regions(const struct model *model, struct summary_rows *rows);
void summary_rows_free(struct summary_rows *rows);

struct summary_queues {
	const struct model_queue **queue;
	size_t count;
};

/* Queues that had anything to do, the busiest first. */
int summary_queues(const struct model *model, struct summary_queues *queues);
void summary_queues_free(struct summary_queues *queues);

/* Tables of operators. width: of the terminal; 0: nothing is cut. -ENOMEM, -EIO. */
int summary_operators(const struct model *model, FILE *out, size_t width);

#define BUDGET_ROWS 5 /* targets and sites that are shown */

/* A process that was traced under a budget, or a function in it; estimates. */
struct summary_budget_row {
	double tgid;	   /* 0: several processes */
	double added;	   /* ns of CPU time that tracing took */
	double time, hits; /* ns of CPU time of the process; how often the function was called */
	char function[128], class[16];
};

/* From the END record; all 0 when the recording was cut short, or where a figure is missing. */
struct summary_closing {
	bool known;
	double duration;	 /* ns */
	double calls, cost;	 /* through probes; ns that they have cost the traced processes */
	double collector_cpu;	 /* ns */
	double collector_memory; /* bytes, at most at any time */
	double attach, detach;	 /* ns: placing probes, removing them */
	char stopped_by[256];
	struct {
		double percent;	  /* 0: none, as are the others then */
		double time;	  /* ns of CPU time of the targets; of it, estimated, and beside it: */
		double added;	  /* by tracing */
		double collector; /* by the collector */
		double coldness;  /* 0: probes took as long as with warm caches, 1: as with cold ones; at most 1.5 */
		struct summary_budget_row targets[BUDGET_ROWS], sites[BUDGET_ROWS]; /* added 0: no more */
	} budget;
};

/* 0 or -ENOMEM. */
int summary_closing_read(const struct model *model, struct summary_closing *closing);
/* What was lost, how long threads waited, how long probes took, what tracing has cost. 0 or -ENOMEM. */
int summary_closing_print(const struct model *model, const struct summary_closing *closing, FILE *out);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* A report while it is collected, and until it is freed. */
#ifndef XPT_PROFILE_HANDLE_DRAFT_H
#define XPT_PROFILE_HANDLE_DRAFT_H

#include "profile/handle/catalogue.h"
#include "profile/handle/profiling.h"
#include "profile/trace/trace.h"

#define BUDGET_SPARE_SIZES 40

/* Of all reports together. Rows and traces end at the limit; what every report needs may exceed it. */
struct budget {
	size_t limit, used;
	size_t finished; /* of used: what waits for being freed */
	/* Beyond used, at most a quarter of limit: arrays for the next reports, by the logarithm of their room. */
	struct spare *spares[BUDGET_SPARE_SIZES];
	size_t spare_bytes;
};

/* Frees what is kept for reports to come. */
void budget_settle(struct budget *budget);

/* One program in a report. */
struct row {
	struct map_node node; /* by id */
	struct link link;
	struct identity *identity; /* NULL: the programs that had no room */
	struct xpt_sample *samples;
	size_t count, room;
	struct xpt_latencies *latencies;
	__u64 inferences, taken, lost, failed, skipped;
	bool released;
};

struct report {
	struct link link; /* of the run; none when finished */
	struct xpt_profile_report view;
	struct budget *budget;
	size_t bytes;	  /* of the budget */
	bool rows_wanted; /* samples one by one */
	bool traced;
	__u64 serial; /* unique in its run */
	/* While it is collected: */
	__u64 start, end;
	__u64 start_realtime, end_realtime;
	__u64 latest; /* end of what was put in last */
	__u64 read;   /* the reading that closes it; 0: none yet */
	__u64 late;
	__u64 trace_lost;
	struct map by_id;
	struct link rows;
	size_t row_count;
	struct row *others; /* of rows; NULL: every program had room */
	struct trace_text *trace;
	size_t trace_bytes;
	/* Finished: */
	bool finished;
	struct xpt_program_report *programs;
	char name[]; /* of the handle */
};

struct report *draft_create(struct budget *budget, const char *name); /* NULL: no memory */
/* Is there room for another report beside those that wait for being freed? */
bool draft_room(const struct budget *budget);
void draft_free(struct report *report);
/* The program's row, made when there is none; one for all that have no room; NULL: no memory. */
struct row *draft_row(struct report *report, struct identity *identity);
/* Adds a sample, or counts it as lost when it has no room. True: taken. */
bool draft_sample(struct report *report, struct row *row, const struct xpt_sample *sample);
/* Where events of the trace go; NULL: no room or no memory. */
struct trace_text *draft_trace(struct report *report, struct trace_names *names);
/* The trace has grown. */
void draft_trace_grown(struct report *report);

/* What each program was asked for. */
struct draft_request {
	enum xpt_profile_type type;
	unsigned int sample_every;
	__u64 samples; /* 0: no limit */
};
/* The view is made; nothing is put in any more. -ENOMEM. */
int draft_finish(struct report *report, const struct draft_request *request, struct trace_names *names,
		 const struct profiling_options *options);

#endif

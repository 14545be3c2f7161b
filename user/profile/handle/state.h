/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the parts of profiling share. A handle is what the user holds; each start of it makes a run; a run has one report
 * open for each interval that is not closed yet; a member joins a run with a program that it is for.
 */
#ifndef XPT_PROFILE_HANDLE_STATE_H
#define XPT_PROFILE_HANDLE_STATE_H

#include "profile/handle/program_index.h"
#include "profile/handle/choice.h"
#include "profile/handle/profiling.h"
#include "profile/handle/samples.h"
#include "profile/trace/trace.h"

#define NEVER (~(__u64)0)
#define TIME_MAX (NEVER / 4) /* nothing sound happens later */

/* ---- report_builder.c: reports while they are collected; what they become ---- */

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
	struct row_stacks *stacks; /* NULL: none */
	__u64 inferences, taken, lost, failed, skipped;
	__u64 timed, queue_time, device_time;
	__u64 slowest_number, slowest_time, slowest_duration;
	bool released;
};

struct report {
	struct link link; /* of the run; none when finished */
	struct xpt_profile_report view;
	struct budget *budget;
	size_t bytes;	  /* of the budget */
	bool rows_wanted; /* samples one by one */
	bool traced;
	const struct recording_info *packets; /* the trace is one of Perfetto's; NULL: of Chrome's */
	__u64 serial;			      /* unique in its run */
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

struct report *report_create(struct budget *budget, const char *name); /* NULL: no memory */
/* Is there room for another report beside those that wait for being freed? */
bool budget_has_room(const struct budget *budget);
/* The program's row, made when there is none; one for all that have no room; NULL: no memory. */
struct row *report_row(struct report *report, struct identity *identity);
/* Adds a sample, or counts it as lost when it has no room. True: taken. */
bool report_add_sample(struct report *report, struct row *row, const struct xpt_sample *sample);
/* Adds a stack that was taken in a call of the program. */
void report_add_stack(struct report *report, struct row *row, const struct event_stack *stack);
/* Where events of the trace go; NULL: no room or no memory. */
struct trace_text *report_trace(struct report *report, struct trace_names *names);
/* The trace has grown. */
void report_trace_grown(struct report *report);

/* What each program was asked for. */
struct report_request {
	enum xpt_profile_type type;
	unsigned int sample_every;
	__u64 samples; /* 0: no limit */
};
/* The view is made; nothing is put in any more. -ENOMEM. */
int report_finish(struct report *report, const struct report_request *request, struct trace_names *names,
		  const struct profiling_options *options);

/* ---- stacks.c: stacks of a row ---- */

/* room: there is some for one more stack; else it is added to the others. Returns the bytes that were taken. */
size_t row_stacks_add(struct row_stacks **of_row, const struct event_stack *stack, bool room);
/* Fills in the stacks of the report, which live as long as the row's; nothing is added any more. -ENOMEM. */
int row_stacks_finish(struct row_stacks *stacks, struct xpt_program_report *program);
size_t row_stacks_bytes(const struct row_stacks *stacks); /* that finishing has taken beyond those */
void row_stacks_free(struct row_stacks *stacks);

/* ---- profiling.c ---- */

struct profiling {
	struct profiling_options options;
	struct program_index programs;
	struct budget budget;
	struct trace_names *names;
	struct link handles;
	struct link runs; /* in the order of their starts */
	__u64 now;	  /* the latest time that any event had */
	/* As set in the kernel; sample_every is in force for programs that have no rate of their own. */
	__u32 sample_every;
	__u32 roles;
	__u32 shared;	    /* the rate of recordings beside; 0: there are none */
	size_t partly;	    /* programs of which the kernel records some inferences or none */
	bool inside;	    /* what lies in regions is requested: calls of all programs are recorded */
	bool rates_stale;   /* what runs want has changed */
	bool memory_logged; /* its shortage has been logged */
};

struct handle {
	struct link link;
	struct profiling *profiling;
	struct handle_options options; /* strings are owned; match is not kept */
	struct expression *expression; /* NULL: none */
	bool everything;	       /* the expression is empty: all programs, but no regions */
	struct choices choices;
	struct run *current; /* NULL: does not run */
	size_t runs;	     /* with the current one */
};

struct run {
	struct link link;
	struct link members;
	struct link reports; /* open ones, oldest first */
	struct handle *handle;
	struct report *recent; /* last used of reports; NULL: none */
	__u64 start;
	__u64 from;   /* counted: what begins earlier is left out. Streams: start */
	__s64 offset; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
	__u64 edge;   /* end of the newest interval made */
	__u64 edge_realtime;
	__u64 first;	/* length that the first interval was to have */
	bool pending;	/* a reading is requested, for members that have no baseline or are to leave */
	__u64 baseline; /* first reading, NEVER: not yet */
	bool ended;	/* no interval begins any more */
	__u64 end;	/* when ended: nothing later is in it */
	enum xpt_profile_end reason;
	__u64 read;	/* reading after the end; 0: not yet */
	__u64 sequence; /* of the next report */
	__u64 serial;	/* of the newest report */
	struct trace *trace;
	bool inside;  /* of a trace: it shows regions, and with them what lies inside */
	bool sampled; /* the event in hand was taken as a sample */
	/* counted: */
	unsigned int bound; /* id of the program; 0: none yet */
	__u64 skipped;
	__u64 enqueued;	   /* enqueues seen of the program, those left out included */
	__u64 count;	   /* samples so far, with those that had no room */
	__u64 first_taken; /* begin of the first one; 0: none */
};

struct member {
	struct link of_entry, of_run;
	struct run *run;
	struct entry *entry;
	__u64 baseline;	 /* counts that were read up to here are not the run's; NEVER: to be set by the next reading */
	__u64 until;	 /* removed: what ended later is not the run's; NEVER: still a member */
	bool leaving;	 /* until is to be set by the next reading */
	bool ran;	 /* counted: something was left out by the delay */
	__u64 serial;	 /* of the report used last; 0: none */
	struct row *row; /* the program's in it */
};

void log_out_of_memory(struct profiling *profiling); /* logged once */

/* ---- selection.c: which programs a run is for ---- */

/* Joins the program with all runs that are for it, or parts it. fresh: nothing that it did is known yet. */
void selection_enter(struct profiling *profiling, struct entry *entry, bool fresh);
/* The same for all programs and one run, after its start or when its choices have changed. */
void selection_refresh(struct profiling *profiling, struct run *run);
/* Does the handle choose it now, as a stream or counted one? */
bool selection_wants(struct handle *handle, const struct entry *entry);
/* Its load was seen after it had been used. */
void selection_born(struct entry *entry);
struct member *selection_find(const struct entry *entry, const struct run *run); /* NULL: none */
void member_free(struct member *member);
/* The program has a new name: also where it is in a report already. */
void member_rename(struct member *member);

/* ---- the same: what the kernel records ---- */

/* Sets the rate of one program, if it differs from what the kernel has. */
void rates_update(struct profiling *profiling, struct entry *entry);
/* A call of the program has been seen: what the kernel could not take before it may take now. */
void rates_retry(struct profiling *profiling, struct entry *entry);
/* The kernel has no rate of its own for the program any more. */
void rates_forget(struct profiling *profiling, struct entry *entry);
bool rates_are_full(const struct profiling *profiling); /* every inference of every program is recorded */
/* Regions may be many, and are not sampled: they are traced only where one could be chosen. */
bool run_takes_regions(const struct run *run);
/* Sets everything that has changed. */
void rates_refresh(struct profiling *profiling);

/* ---- run.c: one start of a handle ---- */

int run_create(struct handle *handle, __u64 now, __s64 offset, struct run **result); /* -ENOMEM */
void run_free(struct run *run);							     /* with its open reports */
/* Nothing has been recorded so far: the run begins now, and so does its first interval. -ENOMEM. */
int run_begin(struct run *run, __u64 time, __s64 offset);
void run_end(struct run *run, enum xpt_profile_end reason, __u64 time); /* the handle may start another one */
__u64 run_due(const struct run *run);
void run_read(struct run *run, __u64 time, __s64 offset);
/* Hands out what is closed. True: the run is over, and may be freed. */
bool run_delivered(struct run *run, __u64 time);
static inline bool run_samples(const struct run *run) /* the kernel is to keep recording for it */
{
	return !run->read;
}

/* The report of the interval in which time lies; makes what is missing. NULL: before the start, after the end, no memory. */
struct report *intervals_at(struct run *run, __u64 time);
/* The report that a count belongs to. */
struct report *intervals_of_count(struct run *run, const struct event_count *count);

/* ---- accumulate.c: what an event means to the runs that are for its program ---- */

void accumulate_inference(struct profiling *profiling, struct entry *entry, const struct inference *inference);
void accumulate_stack(struct entry *entry, const struct event_stack *stack);
void accumulate_count(struct entry *entry, const struct event_count *count);
void accumulate_release(struct profiling *profiling, struct entry *entry, __u64 time);

void accumulate_traces(struct profiling *profiling, const struct event *event, __u64 time);
bool trace_wants(void *run, const struct event *event); /* trace_wanted_fn */

#endif

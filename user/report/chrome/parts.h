/* SPDX-License-Identifier: BSD-2-Clause */
/* What events.c and jobs.c share: the pieces of trace events. Values that come from outside are escaped; names and words are ours. */
#ifndef XPT_REPORT_CHROME_PARTS_H
#define XPT_REPORT_CHROME_PARTS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/chrome/events.h"

/* ---- jobs.c ---- */

void chrome_job_add(struct chrome_events *events, const struct event_job *job);
void chrome_queue_add(struct chrome_events *events, const struct event_queue *event);
void chrome_device_add(struct chrome_events *events, const struct event_device *device);
void chrome_jobs_free(struct chrome_jobs *jobs);

/* ---- events.c ---- */

/* {"ph":...,"pid":...,"tid":...,"ts":... of the next event, with what parts it from the one before. */
void chrome_begin(struct chrome_events *events, char phase, __u32 pid, __u32 tid, __u64 time);
/* The same for names of processes and threads, which have no time. name is a word of ours. */
void chrome_begin_metadata(struct chrome_events *events, __u32 pid, __u32 tid, const char *name);
/* One end of an arrow. It is joined by category, name and id, and bound by time to the slice that is open there. */
void chrome_flow(struct chrome_events *events, char phase, __u32 pid, __u32 tid, __u64 time, __u64 id,
		 const char *source, const char *name);

void chrome_name(struct text *text, const char *name);
/* what is a word of ours, source comes from outside: a runtime or driver. */
void chrome_category(struct text *text, const char *what, const char *source);
void chrome_id(struct text *text, __u64 id);
void chrome_span(struct text *text, __u64 start, __u64 end); /* "dur" */

/*
 * Handles and addresses are strings: JSON readers round numbers beyond 2^53. name comes with quotes, comma and colon.
 */
#define chrome_hexadecimal(text, name, value)  \
	do {                                   \
		text_literal(text, name "\""); \
		text_hexadecimal(text, value); \
		text_literal(text, "\"");      \
	} while (0)

#define chrome_unsigned(text, name, value)  \
	do {                                \
		text_literal(text, name);   \
		text_unsigned(text, value); \
	} while (0)

#define chrome_signed(text, name, value)  \
	do {                              \
		text_literal(text, name); \
		text_signed(text, value); \
	} while (0)

#define chrome_string(text, name, value)       \
	do {                                   \
		text_literal(text, name);      \
		text_json_string(text, value); \
	} while (0)

#define chrome_microseconds(text, name, value)  \
	do {                                    \
		text_literal(text, name);       \
		text_microseconds(text, value); \
	} while (0)

/*
 * What a trace shows of a queue: the track of each job, and its load in few enough points that a queue with hundreds of
 * thousands of changes a second does not make the trace explode, with none of the extremes lost. No format: only numbers.
 */

/* ---- the track of a job ---- */

/*
 * Spans on one track must not overlap: viewers take them for nested and lose or cut those that are not. Jobs come in
 * any order, some long after they have ended, so what is taken is remembered.
 */

#define LANE_SPANS_MAX 1024	   /* remembered of one lane; before them it counts as taken */
#define LANES_SPANS_MAX (1u << 17) /* of all lanes that share a budget: 2 MiB; beyond it lanes remember less */

struct lane_span {
	__u64 start, end;
};

struct lane {
	struct lane_span *spans; /* in order; they neither overlap nor touch */
	unsigned int count, room;
	__u64 floor; /* everything before is taken */
};

/* Begins as zeros. */
struct lanes {
	struct lane lane[CHROME_LANES_MAX];
	unsigned int count; /* in use */
};

/*
 * The first lane on which nothing lies between start and end, which are then taken; -1: there is none. budget: spans that
 * all lanes have room for, the same for all that share it; begins as 0.
 */
int lanes_take(struct lanes *lanes, __u64 start, __u64 end, size_t *budget);
void lanes_free(struct lanes *lanes, size_t *budget);

/* ---- how many jobs it has ---- */

struct depth_point {
	__u64 time;
	unsigned int waiting, running;
};

#define DEPTH_STEP 100000u /* ns: of more than two changes within it, the extremes are kept */
#define DEPTH_EXTREMES 4
#define DEPTH_POINTS_MAX (DEPTH_EXTREMES + 2)

struct depth_extreme {
	struct depth_point point;
	unsigned int order; /* among the changes of the step */
};

/* Begins as zeros. */
struct queue_depth {
	bool begun;
	__u64 step;				      /* when the current one began */
	unsigned int changes;			      /* in it that have not been emitted */
	struct depth_point shown;		      /* the last one */
	struct depth_extreme last;		      /* of changes, if there are any: the last one, */
	struct depth_extreme extreme[DEPTH_EXTREMES]; /* and those with the most and the fewest waiting and running */
};

/*
 * Takes a change and returns how many points are to be shown now, in the order of their times. A step begins with a
 * change that is emitted at once; what follows within DEPTH_STEP is emitted when it is over: the extremes of both
 * numbers and the last state, each at its own time.
 */
size_t queue_depth_add(struct queue_depth *depth, struct depth_point point,
		       struct depth_point points[DEPTH_POINTS_MAX]);
/* What has not been emitted yet. */
size_t queue_depth_end(struct queue_depth *depth, struct depth_point points[DEPTH_POINTS_MAX]);

/* ---- how busy it is ---- */

#define BUSY_WINDOW 10000000u /* ns */
#define BUSY_POINTS_MAX 2

/* From time on, until the next point. */
struct busy_point {
	__u64 time;
	unsigned int share; /* hundredths of a percent */
};

/* Begins as zeros. */
struct queue_busy {
	bool begun;
	__u64 window;	   /* when the current one began */
	__u64 busy;	   /* ns of it */
	__u64 time, total; /* of the event before: when, and the queue's busy time so far */
	bool any;	   /* share is that of the last emitted point */
	unsigned int share;
};

/*
 * Takes the queue's busy time so far, and returns how many points are to be shown now. A window is emitted when it is
 * over, at its begin; those that have the same share as the one before are not emitted again. Between two events a
 * queue is either busy or not, so windows in which nothing happened are known, too.
 */
size_t queue_busy_add(struct queue_busy *busy, __u64 time, __u64 total, struct busy_point points[BUSY_POINTS_MAX]);
/* The window that is not over. idle: nothing has run since the last event, so that the share is 0 from there on. */
size_t queue_busy_end(struct queue_busy *busy, bool idle, struct busy_point points[BUSY_POINTS_MAX]);
/* The same for a queue that is idle and may run again: its next window begins with the next event. */
size_t queue_busy_pause(struct queue_busy *busy, struct busy_point points[BUSY_POINTS_MAX]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What events.c and jobs.c share: the pieces of trace events. Values that come from outside are escaped; names and words are ours. */
#ifndef XPT_REPORT_CHROME_PARTS_H
#define XPT_REPORT_CHROME_PARTS_H

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

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces of chosen programs only, Chrome's or Perfetto's. What is nested in a call comes before it in the stream of events: it is held
 * here until the call around it is known to be wanted.
 */
#ifndef XPT_PROFILE_TRACE_TRACE_H
#define XPT_PROFILE_TRACE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <xputrace/profile_report.h>

#include "model/stream/event.h"
#include "record/recording.h"

/* ---- names, one object for all traces of a session; knows processes and threads from before a trace was started ---- */

struct trace_names;

struct trace_names *trace_names_create(void); /* NULL: no memory */
void trace_names_free(struct trace_names *names);
/* Takes every event; keeps at most TRACE_NAMES_MAX threads and as many processes, and those of the last TRACE_NAMES_ENDED that have ended. */
void trace_names_event(struct trace_names *names, const struct event *event);
#define TRACE_NAMES_MAX 16384
#define TRACE_NAMES_ENDED 4096

/* ---- the document of one report ---- */

struct trace_text;

/* packets: NULL: a Chrome trace; else a Perfetto trace, which begins with that. NULL: no memory. */
struct trace_text *trace_text_create(struct trace_names *names, const struct recording_info *packets);
void trace_text_free(struct trace_text *text);
size_t trace_text_bytes(const struct trace_text *text); /* memory that it takes by now */
/*
 * Completes the document and points the trace fields of report to it, which text still owns. The metadata have the
 * report's programs, interval and losses. Called once, with everything else in report filled in. -ENOMEM.
 */
int trace_text_finish(struct trace_text *text, const struct recording_info *info, struct xpt_profile_report *report);

/* ---- the filter of one handle ---- */

struct trace;

/*
 * Is this one of a chosen program and sample? Asked of calls that have a program and are no layer (execute,
 * enqueue, launch, load, name, unload), of EVENT_INFERENCE and of EVENT_PROGRAM, and only where into is not NULL.
 */
typedef bool (*trace_wanted_fn)(void *context, const struct event *event);

/* regions: they may be wanted, and are asked about, too. NULL: no memory. */
struct trace *trace_create(trace_wanted_fn wanted, void *context, bool regions);
void trace_free(struct trace *trace);
/*
 * Takes every event, in order. into: the document of the report with the interval that the event ended in; what was
 * held for it is added too. NULL: it is in none; holds and forgets as if it were not wanted. -ENOMEM: something is
 * missing in the document. What is held is bounded (TRACE_HELD_MAX events); *lost is raised by events that were wanted
 * or might have been and could not be held: of evicted ones, when the call around them comes and is chosen.
 */
int trace_event(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost);
#define TRACE_HELD_MAX 65536

/* Documents that grow. */

/* -ENOMEM: the event is left out as a whole, and the document is sound. */
int trace_text_add(struct trace_text *text, const struct event *event);
/* Is anything of this process in the document? 0: of any process. */
bool trace_text_has(const struct trace_text *text, __u32 tgid);
/* Is a job of the queue in it, or one of any queue of the device? */
bool trace_text_has_queue(const struct trace_text *text, unsigned int queue);
bool trace_text_has_device(const struct trace_text *text, const char *driver, const char *device);
__u64 trace_text_number(const struct trace_text *text); /* no other document of the session has it */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * All profiling handles of a session: events of the model go in, finished reports and the sampling rates that the
 * kernel should use come out. Logic only: no kernel, no threads, no clock of its own. Callers hold the session's lock.
 *
 * A report is closed in three steps. profiling_due() returns when counts are needed next; at that time the caller reads
 * the kernel's counts, feeds them to the model, and calls profiling_read(); when the model has delivered everything up
 * to the reading, profiling_delivered() closes the reports that waited for it and hands them out.
 */
#ifndef XPT_PROFILE_HANDLE_PROFILING_H
#define XPT_PROFILE_HANDLE_PROFILING_H

#include <xputrace/profile_report.h>
#include <xputrace/target.h>

#include "base/core/log.h"
#include "model/stream/event.h"
#include "record/recording.h"

struct profiling;
struct handle;
struct report; /* a finished one, on its way to the callback */

struct profiling_options {
	const struct log *log;
	/*
	 * Of all reports together: collecting, finished and not yet freed. When those finished alone take all of it,
	 * the streams' intervals continue beyond their boundaries until one is freed.
	 */
	size_t report_bytes;
	const struct recording_info *info;	   /* must outlive the object */
	const struct xpt_report_counter *counters; /* in every report; as info */
	size_t counter_count;
	/*
	 * A report is there; report_free() is the receiver's duty, before profiling_free(). Called from profiling_delivered()
	 * only, and must not call back.
	 */
	void (*deliver)(void *context, struct handle *handle, struct report *report);
	/*
	 * The rate of one program: 1.., or XPT_SAMPLE_NONE. Called once for each change. Not 0: the kernel could not take it,
	 * because the program has not run yet; to be tried again with the next event of a call of the program.
	 */
	int (*set_sampling)(void *context, const struct model_program *program, __u32 sample_every);
	/* The rate of programs without one of their own, and the roles of calls that are of use. */
	void (*set_defaults)(void *context, __u32 sample_every, __u32 roles);
	void *context;
};

/* Sets the defaults once before it returns: set_defaults must be ready by then. */
int profiling_create(const struct profiling_options *options, struct profiling **result);
void profiling_free(struct profiling *profiling); /* handles must have been freed */
/* Gets every event of the model. */
struct event_sink profiling_sink(struct profiling *profiling);

/*
 * When counts have to be read next: a time of CLOCK_MONOTONIC, which may be past; ~0: not before something changes.
 */
__u64 profiling_due(const struct profiling *profiling);
/* There is nothing but streams with seldom reports: events may come late, when that time has come. */
bool profiling_unhurried(const struct profiling *profiling);
/*
 * The counts were read at time, and are on their way through the model. offset: CLOCK_REALTIME less CLOCK_MONOTONIC now;
 * the next boundary of each stream is found with it, so a clock that is set moves boundaries, and no report is
 * shorter than half of the reporting rate for that reason.
 */
/* All probes are in place: what has run since before begins now. -ENOMEM. */
int profiling_begin(struct profiling *profiling, __u64 time, __s64 offset);
void profiling_read(struct profiling *profiling, __u64 time, __s64 offset);
/* The rate that has the samples of both: of N, calls with a number that is a multiple of N; 0: none. */
__u32 sample_rate_common(__u32 one, __u32 other);
/* The kernel records every Nth inference at least, and calls of all roles, whatever handles ask for: others need them. */
void profiling_share(struct profiling *profiling, __u32 sample_every);
/* The model has delivered everything up to time (model_delivered()). */
void profiling_delivered(struct profiling *profiling, __u64 time);
/* Visits what is known to be there, as xpt_session_programs() wants it. */
int profiling_programs(const struct profiling *profiling,
		       int (*visit)(void *context, const struct xpt_program_info *program), void *context);
size_t profiling_program_count(const struct profiling *profiling);

/* ---- handles ---- */

struct handle_options {
	bool stream; /* else counted */
	enum xpt_profile_type type;
	bool summary; /* no rows */
	const char *name;
	/* counted: */
	struct xpt_program_choice program;
	__u64 samples, skip, delay;
	/* stream: */
	__u64 report_every;
	__u32 sample_every;
	const char *match; /* NULL: none */
	bool stacks;	   /* reports have those that the kernel takes */
};

/* Strings are copied. -EINVAL (logged), -ENOMEM. */
int handle_create(struct profiling *profiling, const struct handle_options *options, struct handle **result);
/* Without a report; nothing more is delivered for it. */
void handle_free(struct handle *handle);
int handle_start(struct handle *handle, __u64 now, __s64 offset); /* -EALREADY, -ENOMEM */
/*
 * The last report comes with a later profiling_delivered; for a counted handle without samples none. -EALREADY. The
 * handle may be started again at once.
 */
int handle_stop(struct handle *handle, __u64 now);
int handle_add(struct handle *handle, const struct xpt_program_choice *choice);	   /* as xpt_stream_add */
int handle_remove(struct handle *handle, const struct xpt_program_choice *choice); /* as xpt_stream_remove */
bool handle_runs(const struct handle *handle);	  /* started, and neither stopped nor complete */
bool handle_settled(const struct handle *handle); /* no report of it is still to be delivered by a run that has ended */

/* ---- reports ---- */

const struct xpt_profile_report *report_view(const struct report *report);
size_t report_bytes(const struct report *report);
/* The bytes become free for others: under the lock. */
void report_free(struct report *report); /* NULL is allowed */

#endif

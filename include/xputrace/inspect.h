/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inspection: records processes into memory, and writes a directory of results for each of them at the end: for every runtime, and from
 * outside the process, what the AWS Neuron runtime's nrt_inspect_*() do for one.
 *
 *	const char *const settings[] = { "ENABLE=1", "OUTPUT_DIR=served", "EVENT_FILTER_CORE=0-3" };
 *	XPT_OPTS(xpt_session_options, targets, .pids = &pid, .pid_count = 1);
 *	XPT_OPTS(xpt_inspect_options, options, .targets = &targets, .settings = settings, .setting_count = 3);
 *	struct xpt_inspect *inspect;
 *
 *	if (!xpt_inspect_create(&options, &inspect)) {
 *		if (!xpt_inspect_start(inspect)) {
 *			xpt_inspect_wait(inspect, XPT_FOREVER);
 *			xpt_inspect_stop(inspect);
 *		}
 *		xpt_inspect_destroy(inspect);
 *	}
 *
 * Needs root, as recordings do (recording.h).
 */
#ifndef XPUTRACE_INSPECT_H
#define XPUTRACE_INSPECT_H

#include <stddef.h>
#include <stdint.h>

#include <xputrace/error.h>
#include <xputrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_inspect;

#define XPT_INSPECT_EVENTS_MAX 1000000000ull
#define XPT_INSPECT_CORES 8192u

/* Everything is copied by xpt_inspect_create(), except the targets' command. */
struct xpt_inspect_options {
	size_t size; /* sizeof(struct xpt_inspect_options) */

	/* What is traced, how, and where messages go (session.h); NULL: all processes that use a described runtime. */
	const struct xpt_session_options *targets;

	/*
	 * Settings, each "NAME=value"; of one name the last counts:
	 *
	 *	ENABLE			0 or 1: every inference is recorded (default 0)
	 *	ON_FAIL			0 or 1: inferences that fail are, each with what was before it (default 0)
	 *	OUTPUT_DIR		where each process gets a directory (default ./output)
	 *	EVENT_FILTER_CORE	"0,2,4-7": only inferences on these cores, below XPT_INSPECT_CORES (default: all)
	 *	EVENT_FILTER_TYPE	"execute,hardware": only events of these types and groups; those after a ^ are left
	 *				out, and if the first one has a ^, all others are captured (default: all)
	 *	MAX_EVENTS_PER_CORE	1 to XPT_INSPECT_EVENTS_MAX: the latest ones are kept (default 1,000,000)
	 *	ACTIVITIES		"system_profile,cpu_util": only these activities, or "all" (default: all)
	 *	SYSTEM_PROFILE, DEVICE_PROFILE, HOST_MEMORY, CPU_UTIL
	 *				0 or 1: one activity
	 *	FORMAT			chrome or perfetto: of the trace (default chrome)
	 *	SESSION_ID		0 to INT_MAX: a number for the output (default 1)
	 *
	 * Without ENABLE and ON_FAIL nothing is recorded. Events of a type need the activity of its group, system_profile or
	 * device_profile. Events of no core are captured with any filter of cores.
	 */
	const char *const *settings;
	size_t setting_count;

	/* Less than settings, these count, too; the first one least: */
	int use_environment;	    /* XPUTRACE_INSPECT_NAME=value of this process */
	int use_target_environment; /* NEURON_RT_INSPECT_* of the targets' pids, without the place of files */

	int has_owner; /* the next two are the owner of the directory, if it is made, and of the files; else the caller is */
	uid_t user;
	gid_t group;

	/*
	 * Called by xpt_inspect_stop() for each process that has a directory, with its path and the text of its index.json. Strings
	 * are valid meanwhile. NULL: none.
	 */
	void (*written)(void *context, const char *directory, const char *index);
	void *written_context;
};

/* 0: the setting is valid; -EINVAL; -ENOMEM. */
XPT_API int xpt_inspect_check(const char *setting);

/*
 * A type of events. The names are those of roles in descriptions and of categories in traces. Groups are "software",
 * what processes do, and "hardware", what devices do, as drivers and counters report it.
 */
struct xpt_inspect_event_type {
	size_t size; /* sizeof(struct xpt_inspect_event_type) of the library */
	const char *name;
	const char *group;
	const char *description;
};

struct xpt_inspect_activity {
	size_t size; /* sizeof(struct xpt_inspect_activity) of the library */
	const char *name;
	const char *description;
};

/*
 * All that there are, and how many; they live as long as the library. count may be NULL. The next one is found with the size of the
 * first: XPT_AT(types, types->size, i).
 */
XPT_API const struct xpt_inspect_event_type *xpt_inspect_event_types(size_t *count);
/* The same of activities. */
XPT_API const struct xpt_inspect_activity *xpt_inspect_activities(size_t *count);

/*
 * Checks options and settings, claims the targets, loads the kernel side. Errors as xpt_continuous_create() (continuous.h), and -EINVAL:
 * a setting is bad: the message has its name and the values that are allowed. One that target environments have is ignored with
 * a message where there are several targets.
 */
XPT_API int xpt_inspect_create(const struct xpt_inspect_options *options, struct xpt_inspect **inspect);
/* Attaches, or starts the command. Errors as xpt_session_start(). */
XPT_API int xpt_inspect_start(struct xpt_inspect *inspect);

/*
 * Returns after timeout ns: 0; when all targets have ended, it was stopped, or nothing is to be done: 1; after
 * xpt_inspect_interrupt(): -EINTR; or another negative errno: -EINVAL, it was not started.
 */
XPT_API int xpt_inspect_wait(struct xpt_inspect *inspect, uint64_t timeout);
XPT_API void xpt_inspect_interrupt(struct xpt_inspect *inspect); /* safe in signal handlers */

/*
 * Detaches and writes, for each process, into the directory HOST_pid_PID of the output directory: recording.xpt, trace.json (or
 * trace.pftrace) and report.txt of what was captured, usage.csv, and index.json, which lists them. What has failed is there already, where ON_FAIL is
 * set: failed.xpt, failed-2.xpt... 0, or the first error: what could be written is there. Called again, it does nothing.
 */
XPT_API int xpt_inspect_stop(struct xpt_inspect *inspect);
/* Frees it; what was not written before is dropped. NULL is allowed. */
XPT_API void xpt_inspect_destroy(struct xpt_inspect *inspect);

#ifdef __cplusplus
}
#endif
#endif

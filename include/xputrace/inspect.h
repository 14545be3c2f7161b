/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inspection: what is to be watched and kept is said once, and then it just runs. These are its options, after
 * those of the AWS Neuron runtime's nrt_inspect_config_*(), for every runtime and from outside the process:
 *
 *	XPT_OPTS(xpt_session_options, targets, .pids = &pid, .pid_count = 1);
 *	struct xpt_inspect_options *options;
 *
 *	if (!xpt_inspect_options_create(&options)) {
 *		xpt_inspect_options_set_targets(options, &targets);
 *		xpt_inspect_options_set_output_dir(options, "served");
 *		xpt_inspect_options_set_inspect(options, 1);
 *		...
 *		xpt_inspect_options_free(options);
 *	}
 *
 * The environment has no influence on them. A setter answers 0 or a negative errno value, -EINVAL also without
 * options; one that fails changes nothing. An object is used by one thread at a time.
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

struct xpt_inspect_options;

/*
 * Makes options with their defaults: session 1, output to "./output", all activities, all cores and event types,
 * 1,000,000 events a core, no targets; neither inspect nor on-fail, so that nothing is recorded until one of them
 * is set. The object is the caller's. -EINVAL: no place for it; -ENOMEM.
 */
XPT_API int xpt_inspect_options_create(struct xpt_inspect_options **options);
/* All of them as they were made. -EINVAL: no options; -ENOMEM. */
XPT_API int xpt_inspect_options_defaults(struct xpt_inspect_options *options);
XPT_API void xpt_inspect_options_free(struct xpt_inspect_options *options); /* may be NULL */

/*
 * Whom to watch and how, as for a session (session.h): exactly one of processes, a command and everything.
 * Everything is copied, except command, the log and its context, which must live as long as the options are used.
 * -EINVAL: no targets, or wrong ones (said through their log); -E2BIG: they have fields of a newer library;
 * -ENOMEM.
 */
XPT_API int xpt_inspect_options_set_targets(struct xpt_inspect_options *options,
					    const struct xpt_session_options *targets);

/* A number that stands in the output, for the caller to tell its sessions apart. From 0 on; else -EINVAL. */
XPT_API int xpt_inspect_options_set_session_id(struct xpt_inspect_options *options, int id);

/* Folder below which each process gets one of its own. Copied. -EINVAL: NULL or empty; -ENAMETOOLONG; -ENOMEM. */
XPT_API int xpt_inspect_options_set_output_dir(struct xpt_inspect_options *options, const char *path);

/* Events that are kept of each core, the latest ones: 1 to XPT_INSPECT_EVENTS_MAX; else -EINVAL. */
XPT_API int xpt_inspect_options_set_max_events_per_core(struct xpt_inspect_options *options, uint64_t events);
#define XPT_INSPECT_EVENTS_MAX 1000000000ull

/*
 * Whether events of a core are captured; enabled: non-zero. Cores have the numbers that calls name (device, core or
 * partition), below XPT_INSPECT_CORES, else -EINVAL. XPT_INSPECT_ALL_CORES stands for all of them and for those
 * with any other number. Events that are of no core are captured whatever is said here.
 */
XPT_API int xpt_inspect_options_set_core(struct xpt_inspect_options *options, uint32_t core, int enabled);
#define XPT_INSPECT_CORES 8192u
#define XPT_INSPECT_ALL_CORES UINT32_MAX

/*
 * Whether events of a type, or of all types of a group, are captured: as long as the activity is enabled that the group
 * belongs to, system_profile or device_profile. -EINVAL: there is none of that name.
 */
XPT_API int xpt_inspect_options_set_event_type(struct xpt_inspect_options *options, const char *name, int enabled);

/* Captures these cores and no others, as text: "0,2,4-7". -EINVAL: not such a list; -ENOMEM. */
XPT_API int xpt_inspect_options_filter_cores(struct xpt_inspect_options *options, const char *cores);
/*
 * Captures these types and groups of events: "hardware,execute". Those after a ^ are not captured; if the first entry has one, all
 * others are. -EINVAL: not such a list; -ENOMEM.
 */
XPT_API int xpt_inspect_options_filter_types(struct xpt_inspect_options *options, const char *types);

/* What is done at all: an activity, or "all". -EINVAL: there is none of that name. */
XPT_API int xpt_inspect_options_set_activity(struct xpt_inspect_options *options, const char *name, int enabled);

/* Non-zero: every inference is recorded. */
XPT_API int xpt_inspect_options_set_inspect(struct xpt_inspect_options *options, int enabled);
/* Non-zero: inferences that fail are recorded, each with what was before it. Both may be set. */
XPT_API int xpt_inspect_options_set_on_fail(struct xpt_inspect_options *options, int enabled);

/*
 * A type of events. The names are those of roles in descriptions and of categories in traces. Groups are "software",
 * what processes do, and "hardware", what devices do, as drivers and counters tell it.
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
 * Names of those that are enabled, in the same order, with NULL behind the last one. The array is the options':
 * valid until they are changed or freed. count may be NULL. NULL: no options.
 */
XPT_API const char *const *xpt_inspect_options_event_types(const struct xpt_inspect_options *options, size_t *count);
/* The same of activities. */
XPT_API const char *const *xpt_inspect_options_activities(const struct xpt_inspect_options *options, size_t *count);

/* Whose the directory, if it is made, and the files are; the default is the user that runs this. */
XPT_API int xpt_inspect_options_set_owner(struct xpt_inspect_options *options, uid_t user, gid_t group);

/*
 * Options from the environment of this process, as user/session/inspect/environment.h lists the variables; those without a variable
 * stay as they are. -EINVAL: a value is bad, the targets' log has the name; -ENOMEM.
 */
XPT_API int xpt_inspect_options_from_environment(struct xpt_inspect_options *options);
/*
 * The same from the environment that a process was started with for its own runtime (NEURON_RT_INSPECT_*), but not where files go.
 * -EINVAL; -ESRCH, -EACCES: of the process; -ENOMEM.
 */
XPT_API int xpt_inspect_options_from_process(struct xpt_inspect_options *options, pid_t pid);

struct xpt_inspect;

/*
 * Begins as the environment of this process says: does nothing until the stop where XPUTRACE_INSPECT_ENABLE and _ON_FAIL are not
 * set. targets: NULL: all processes that use a described runtime. Errors as below.
 */
XPT_API int xpt_inspect_begin(const struct xpt_session_options *targets, struct xpt_inspect **inspect);
/*
 * Begins as the options say, NULL: with the defaults, whatever the environment says; without targets all processes that use a
 * described runtime are meant. The options may be freed. Errors as xpt_continuous_start() (continuous.h).
 */
XPT_API int xpt_inspect_begin_with_options(const struct xpt_inspect_options *options, struct xpt_inspect **inspect);

/*
 * Returns after timeout ns: 0; when all targets have ended, or nothing is to be done: 1; after xpt_inspect_interrupt():
 * -EINTR; or another negative errno.
 */
XPT_API int xpt_inspect_wait(struct xpt_inspect *inspect, uint64_t timeout);
XPT_API void xpt_inspect_interrupt(struct xpt_inspect *inspect); /* safe in signal handlers */

/*
 * Called by xpt_inspect_stop() for each process that has a folder, with its path and the text of its index.json. Strings are valid
 * meanwhile. NULL: nothing is called.
 */
XPT_API void xpt_inspect_on_written(struct xpt_inspect *inspect,
				    void (*written)(void *context, const char *directory, const char *index),
				    void *context);

/*
 * Ends it and writes, for each process, into the folder HOST_pid_PID of the output directory: recording.xpt,
 * trace.json and report.txt of what was captured, usage.csv, and index.json, which tells what is there. What has failed
 * is there already, where that was asked for: failed.xpt, failed-2.xpt... Frees inspect. 0, or the first error: what
 * could be written is there.
 */
XPT_API int xpt_inspect_stop(struct xpt_inspect *inspect);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A session traces processes for as long as it lives. What is made of it is up to those who join it: profiles, streams, recordings, windows
 * and captures of code objects (profile.h, stream.h, recording.h, continuous.h, codeobj.h), any number of them. They share its probes,
 * and each begins and ends as if it were alone; all are to be destroyed before the session.
 *
 * Recordings, windows and captures that are created before the session starts begin with it. Those created later begin with their own
 * start function: what is known then of processes, programs, drivers and counters comes first, and calls that begin from then on are
 * recorded and counted. Their creation fails with -ENODATA, and a message, where the session was loaded without what they need: operators
 * (XPT_LEVEL_DETAILED), or code objects. Whoever needs these first joins before the session starts.
 *
 *	XPT_OPTS(xpt_session_options, options, .pids = &pid, .pid_count = 1);
 *	struct xpt_session *session;
 *
 *	if (!xpt_session_create(&options, &session)) {
 *		... create handles, start those that must not miss anything
 *		xpt_session_start(session);
 *		xpt_session_wait(session, XPT_FOREVER);
 *		xpt_session_destroy(session);
 *	}
 *
 * Needs root, as recordings do (recording.h). A session has two threads: one collects, and never waits for a callback;
 * the other one makes all callbacks of all handles, one after the other. Callbacks may take their time: reports that are
 * due meanwhile wait, in memory that is bounded by report_bytes; what does not fit is left out and counted as lost.
 * Several sessions in one process do not disturb each other. Functions may be called from any thread, and from
 * callbacks, except where it says otherwise.
 */
#ifndef XPUTRACE_SESSION_H
#define XPUTRACE_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>
#include <xputrace/target.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_session;

/* Everything is copied by xpt_session_create(), except command. Zero means the default. */
struct xpt_session_options {
	size_t size; /* sizeof(struct xpt_session_options) */

	/* What to watch: processes, a command, or everything. Children are followed. */
	const pid_t *pids;
	size_t pid_count;
	char *const *command; /* started by xpt_session_start(), watched from its first instruction; NULL-terminated */
	int all_processes;

	const char *const *runtime_files; /* descriptions to add to the built-in ones (user/runtimes/FORMAT.md) */
	size_t runtime_file_count;
	const char *const *runtimes; /* only these, by name; none: all */
	size_t runtime_count;

	/* Which drivers' events, beside the runtimes' calls: */
	const char *const *driver_files; /* descriptions to add to the built-in ones (user/drivers/FORMAT.md) */
	size_t driver_file_count;
	const char *drivers; /* "auto" (also NULL): all that are loaded; "none"; or names with commas between */
	/*
	 * Root folder of a tracefs; NULL: one that only the library sees, which needs CAP_SYS_ADMIN, else the first that is mounted.
	 */
	const char *tracefs;

	const struct xpt_handle_name *names; /* for programs whose load is not seen */
	size_t name_count;
	size_t name_size; /* sizeof(struct xpt_handle_name); 0: as in the first version (error.h) */

	size_t buffer_bytes; /* of the kernel's rings together; 0: 8 MiB */
	size_t report_bytes; /* of samples and traces that wait for callbacks; 0: 256 MiB */
	enum xpt_link link;

	xpt_log_fn log; /* NULL: messages are dropped; comes on the thread that met the condition */
	void *log_context;
	enum xpt_log_level log_level;

	/*
	 * Counters of devices and the kernel (counters.h) that are read around each inference: see
	 * xpt_recording_options.counters_per_inference.
	 */
	const char *const *counters;
	size_t counter_count;

	const char *const *regions; /* functions that are regions, as in xpt_recording_options */
	size_t region_count;

	/*
	 * Processes by name, beside pids or instead: that of the process (its first 15 bytes) or of the file that it runs, without
	 * folders. Those that start later are taken up when they map a library; it never ends by itself then.
	 */
	const char *const *process_names;
	size_t process_name_count;

	int no_wait; /* as in xpt_recording_options, with the limit */
	uint64_t wait_limit;

	/*
	 * CPU time that tracing may take, in percent of that of the targets, as in xpt_recording_options. 0: no limit, but of targets of
	 * continuous profiling XPT_BUDGET_CONTINUOUS, which XPT_BUDGET_NONE prevents.
	 */
	double budget;

	/*
	 * Records each time that a thread with an open call does not run: why (preempted, a lock, I/O...), who ran in its place, who woke
	 * it. Without, only how long it did not run is known. Costs every context switch of the machine some time.
	 */
	int why;
};

/* Checks the options, reads the descriptions, opens the counters. Errors as xpt_recording_create(). */
XPT_API int xpt_session_create(const struct xpt_session_options *options, struct xpt_session **session);

/*
 * Loads the kernel side for all who have joined; later ones are limited to what it has (above). For who wants to know that it works before doing what
 * cannot be undone. -EPERM, -EOPNOTSUPP the kernel lacks something (see xpt_check()), -EALREADY.
 */
XPT_API int xpt_session_open(struct xpt_session *session);

/*
 * Attaches, or starts the command, after xpt_session_open(), if that was not called. -ESRCH no such process, -ENOEXEC cannot be traced,
 * -EALREADY. Not from callbacks.
 */
XPT_API int xpt_session_start(struct xpt_session *session);

/*
 * Returns when all targets have ended: 1; after timeout ns: 0; after xpt_session_interrupt(): -EINTR; -EDEADLK from a
 * callback; another negative errno when the session cannot go on.
 */
XPT_API int xpt_session_wait(struct xpt_session *session, uint64_t timeout);
#define XPT_FOREVER UINT64_MAX

/* Ends a wait of this session, or the next one. Safe in signal handlers. */
XPT_API void xpt_session_interrupt(struct xpt_session *session);

struct xpt_session_status {
	size_t size;		/* sizeof(struct xpt_session_status), set by the caller */
	uint64_t elapsed;	/* ns since the start */
	unsigned int processes; /* watched now */
	unsigned int programs;	/* known now; released ones left out */
	uint64_t calls;		/* recorded so far */
	uint64_t lost;		/* records, for whatever cause */
	uint64_t waiting;	/* reports that wait for their callback */
	uint64_t waiting_bytes;
	/*
	 * CPU time so far, ns, as a budget measures it every second: that which tracing has added to the targets, that of the thread that
	 * collects, and that of the targets, the added one included. All 0: there is no budget.
	 */
	uint64_t added_time, collector_time, targets_time;
	/* Functions that the budget has detached for now, of each process apart: their calls are not counted. */
	unsigned int suspended;
};
/* Fills in as much of status as its size covers. -EINVAL: it has none. */
XPT_API int xpt_session_status(struct xpt_session *session, struct xpt_session_status *status);

/*
 * Visits the causes for which records were lost, with a name of each and how many (docs/troubleshooting.md); they add up to lost. A
 * non-zero return ends the walk and is returned. visit must not call back.
 */
XPT_API int xpt_session_losses(struct xpt_session *session,
			       int (*visit)(void *context, const char *cause, uint64_t count), void *context);

/* Visits the programs that are known now; a non-zero return ends the walk and is returned. visit must not call back. */
XPT_API int xpt_session_programs(struct xpt_session *session,
				 int (*visit)(void *context, const struct xpt_program_info *program), void *context);

/*
 * What one process has of a queue (engine, ring) of a device since the session's start, by the events of its driver, as far as the model
 * has come. Strings are valid during the visit.
 */
struct xpt_queue_use {
	size_t size;	      /* sizeof(struct xpt_queue_use) of the library */
	unsigned int queue;   /* number of the queue, unique in the session, from 1 */
	const char *driver;   /* "gpu_scheduler": by name of its description */
	const char *device;   /* "0000:03:00.0"; a number in decimal, as DRM minors are; "" unknown */
	const char *engine;   /* "gfx_0.0.0"; "" unknown */
	pid_t pid;	      /* that submitted the jobs; 0: not known, or several */
	const char *process;  /* its name; "" where it is not traced */
	uint64_t jobs;	      /* that have ended */
	uint64_t queue_time;  /* ns, sum over jobs: queued until handed to the device */
	uint64_t device_time; /* ns with the device: of n jobs that run at once each has 1/n of the time */
	uint64_t busy_time; /* ns, of the queue, all processes; their device times add up to it, less rounding and those forgotten */
};

/*
 * Visits queues and processes, traced or not. At most 8192 are kept: of those without jobs then the one that had jobs least recently is
 * forgotten, and begins with 0 when it has jobs again. A non-zero return ends the walk and is returned. visit must not call back.
 */
XPT_API int xpt_session_queues(struct xpt_session *session,
			       int (*visit)(void *context, const struct xpt_queue_use *use), void *context);

/* What the command answered: as wait() gives it; -1 when there was none or it still runs. */
XPT_API int xpt_session_command_status(struct xpt_session *session);

/*
 * Detaches and frees, after delivering nothing more; all that has joined must have been destroyed. The command runs on. Not from
 * callbacks.
 */
XPT_API void xpt_session_destroy(struct xpt_session *session);

#ifdef __cplusplus
}
#endif
#endif

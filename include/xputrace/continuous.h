/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Continuous profiling: everything that the chosen processes do is recorded into a window in memory, all the time, and nothing
 * goes to disk until it is saved, on request or by a trigger.
 *
 *	XPT_OPTS(xpt_session_options, targets, .pids = &pid, .pid_count = 1);
 *	XPT_OPTS(xpt_continuous_options, options, .targets = &targets, .output_dir = "/var/tmp/profiles");
 *	XPT_OPTS(xpt_save_options, last, .core = 3, .has_core = 1);
 *	XPT_OPTS(xpt_saved, saved);
 *	struct xpt_continuous *continuous;
 *
 *	if (!xpt_continuous_create(&options, &continuous)) {
 *		xpt_continuous_start(continuous);
 *		... later, any number of times: the latest inference on core 3
 *		xpt_continuous_save(continuous, &last, &saved);
 *		xpt_continuous_destroy(continuous);
 *	}
 *
 * A saved file is a recording: `xputrace report` and xpt_report_create() make a trace of it. It holds what a recording would
 * that had been started at the window's begin: inferences that began earlier are not in it, nor any part of them.
 *
 * Needs root, as recordings do (recording.h). Functions may be called from any thread.
 */
#ifndef XPUTRACE_CONTINUOUS_H
#define XPUTRACE_CONTINUOUS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>
#include <xputrace/recording.h>
#include <xputrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_continuous;

#define XPT_WINDOW_BYTES_MIN (2ull << 20)
#define XPT_WINDOW_BYTES_MAX (1ull << 40)
#define XPT_WINDOW_TIME_MIN 1000000000ull     /* ns */
#define XPT_WINDOW_TIME_MAX 86400000000000ull /* ns */
/* Defaults: */
#define XPT_WINDOW_BYTES (64ull << 20)
#define XPT_WINDOW_TIME 60000000000ull	 /* ns */
#define XPT_SAVE_AFTER 1000000000ull	 /* ns */
#define XPT_SAVE_COOLDOWN 30000000000ull /* ns */
#define XPT_SAVE_FILES 100
#define XPT_SAVE_BYTES (10ull << 30)
#define XPT_SAVE_AFTER_MAX 60000000000ull /* ns */
#define XPT_CONTINUOUS_DIR "./output"
#define XPT_TRIGGERS_MAX 16
#define XPT_NONE UINT64_MAX /* no limit, or no time at all, where 0 is the default */

struct xpt_saved;

/* Everything is copied by xpt_continuous_create(), except the targets' command. Zero means the default. */
struct xpt_continuous_options {
	size_t size; /* sizeof(struct xpt_continuous_options) */

	/*
	 * What is traced, how, and where messages go. Required without a session (below). report_bytes is not used;
	 * counters_per_inference and the interval of the counters are below. Its budget, where it has none, is
	 * XPT_BUDGET_CONTINUOUS percent; XPT_BUDGET_NONE: none.
	 */
	const struct xpt_session_options *targets;

	const char *output_dir; /* of saved files; made if it is missing, its parents are not; NULL: XPT_CONTINUOUS_DIR */
	int has_owner; /* the next two are the owner of the directory, if it is made, and of the files; else the caller is */
	uid_t user;
	gid_t group;

	uint64_t window_bytes; /* of memory for the window, XPT_WINDOW_BYTES_MIN to _MAX; 0: 64 MiB */
	uint64_t window_time; /* ns, XPT_WINDOW_TIME_MIN to _MAX; older records are evicted; XPT_NONE: no limit; 0: 60 s */

	enum xpt_level level;	   /* how much of a runtime is recorded */
	unsigned int sample_every; /* record every Nth inference of each program, at most 1,000,000; 0 or 1: all */

	uint64_t counters_every;    /* ns between two readings of the targets' counters, 100 us to 1 h; 0: 10 ms */
	int counters_per_inference; /* they are read around each inference, too (recording.h) */

	/*
	 * Others on this machine save, query and stop by this name, through a socket in XPT_CONTROL_DIR: 1 to 64 letters, digits, '-',
	 * '_' and '.', which is not the first. NULL: nobody does.
	 */
	const char *name;

	/*
	 * The window is saved when one of these is met, at most XPT_TRIGGERS_MAX:
	 *
	 *	latency > 20ms		an inference has taken longer (also >=; ns, us, ms, s)
	 *	p99 > 10ms over 5s	of a program's inferences of the last 5 s; p50, p99.9..., mean and max
	 *	error			an inference has failed
	 */
	const char *const *triggers;
	size_t trigger_count;

	/* Saves by triggers and signals: */
	uint64_t save_after; /* ns from the trigger to the save, so that the file has what follows, at most 60 s; 0: 1 s */
	uint64_t save_cooldown; /* ns until the next one, at most 24 h; 0: 30 s */
	uint64_t save_files;	/* how many in all; XPT_NONE: no limit; 0: 100 */
	uint64_t save_bytes;	/* in all of them; XPT_NONE: no limit; 0: 10 GiB */

	/*
	 * Keeps a window of what this session traces, beside its profiles, streams and recordings; NULL: a session of its own. Targets,
	 * counters and log are the session's and not set here, and no process is claimed, unless claims is set. Begins with xpt_session_start(), or
	 * if that was before with xpt_continuous_start(); ends with xpt_continuous_stop(), and the session goes on. To be destroyed before it.
	 */
	struct xpt_session *session;

	/*
	 * Called when a file is complete, however it was asked for; NULL: nothing is. reason is what the recording has as its end, such as
	 * "requested". On the collecting thread: it returns at once, and calls no function of this library. What is to be kept is copied.
	 */
	void (*saved)(void *context, const struct xpt_saved *saved, const char *reason);
	void *saved_context;

	/*
	 * With a session that has not been started: non-zero: its targets are claimed, as without one: nobody else profiles them continuously
	 * until xpt_continuous_destroy(), and the session does not trace those that others have claimed.
	 */
	int claims;
};

/* -EINVAL: not a trigger, or one that can never be met: reason gets the cause, cut to size (NULL if size is 0); -ENOMEM. */
XPT_API int xpt_trigger_check(const char *text, char *reason, size_t size);
/* How long an inference takes, ns, that meets a trigger of latency, at least. -ENODATA: it is another one; -EINVAL, -ENOMEM as above. */
XPT_API int xpt_trigger_latency(const char *text, uint64_t *duration);

/*
 * Checks the options, claims the targets, opens the output directory, loads the kernel side. Errors, with a message: -EINVAL no targets,
 * a value out of range, or options that contradict each other; -EBUSY one of the targets is profiled continuously already, by
 * whomever; -EADDRINUSE the name is taken; -ENOTDIR, -EACCES, -EROFS, -ELOOP, -ENAMETOOLONG... the output directory cannot be used;
 * -E2BIG options of a newer library; -ENODATA, as xpt_recording_create(); and those of xpt_session_create() and xpt_session_open().
 */
XPT_API int xpt_continuous_create(const struct xpt_continuous_options *options, struct xpt_continuous **continuous);
/*
 * Attaches, or starts the command, and records from here on. Errors of xpt_session_start(). Where the session is
 * another's: as xpt_recording_start().
 */
XPT_API int xpt_continuous_start(struct xpt_continuous *continuous);

/* What to save. All zero: the whole window. Conditions hold together. */
struct xpt_save_options {
	size_t size; /* sizeof(struct xpt_save_options) */
	pid_t pid;   /* only of this process; 0: of all */
	/* Only inferences of this program, or on this core; the latest one, unless the next two say more: */
	const char *program; /* its whole name; NULL: any */
	uint64_t handle;     /* 0: any */
	int has_core;
	int64_t core;	     /* as the runtime numbers it: that of the call, else that of the load */
	uint64_t inferences; /* maximum number of them, the latest ones */
	uint64_t time;	     /* ns: what began in the last so much of time */
};

struct xpt_saved {
	size_t size;	     /* sizeof(struct xpt_saved), set by the caller */
	char path[4096];     /* of the file; unique, complete and on the disk */
	uint64_t bytes;	     /* of it */
	uint64_t begin, end; /* ns of CLOCK_REALTIME: what it covers */
	uint64_t records;    /* of the kernel and the collector in it */
	uint64_t inferences; /* meant and found; 0 where none were asked for */
	uint64_t lost;	     /* records that were lost since the start, for whatever cause */
	uint64_t duration;   /* ns that saving took */
};

/*
 * Writes a file and returns when it is on the disk. Recording goes on meanwhile. saved may be NULL. -ENOENT: there is no such
 * inference in the window; -EINVAL; -EBUSY: too many saves wait; -ENOSPC, -EDQUOT, -EIO...: the file could not be written, and
 * nothing of it is left; -ECANCELED: stopped meanwhile, or before. -EINVAL also before the start.
 */
XPT_API int xpt_continuous_save(struct xpt_continuous *continuous, const struct xpt_save_options *options,
				struct xpt_saved *saved);

/* As if a trigger had fired. Safe in signal handlers. */
XPT_API void xpt_continuous_trigger(struct xpt_continuous *continuous);

struct xpt_continuous_status {
	size_t size;		/* sizeof(struct xpt_continuous_status), set by the caller */
	pid_t pid;		/* of the collector */
	uint64_t elapsed;	/* ns since the start */
	unsigned int processes; /* watched now */
	uint64_t calls;		/* recorded so far */
	uint64_t lost;		/* records, for whatever cause */
	uint64_t window_time;	/* ns that the window covers */
	uint64_t window_bytes;	/* of memory in use for it */
	uint64_t window_records;
	uint64_t window_inferences;
	uint64_t evicted_records;
	uint64_t evicted_inferences;
	uint64_t saves;	       /* files written */
	uint64_t saved_bytes;  /* in them */
	uint64_t failed_saves; /* could not be written */
	uint64_t triggered;    /* times that a trigger has fired */
	uint64_t suppressed;   /* of them: without a file, for the cooldown, a ceiling or a save under way */
	uint64_t cpu_time;     /* ns of CPU time that the collector has used */
};
/* Fills in as much of status as its size covers. -EINVAL: it has none. */
XPT_API int xpt_continuous_status(struct xpt_continuous *continuous, struct xpt_continuous_status *status);

/*
 * Returns when it has been asked to stop by its name, or was stopped: 1; after timeout ns: 0; after xpt_continuous_interrupt():
 * -EINTR; another negative errno when it cannot go on, or was not started: -EINVAL.
 */
XPT_API int xpt_continuous_wait(struct xpt_continuous *continuous, uint64_t timeout);
XPT_API void xpt_continuous_interrupt(struct xpt_continuous *continuous); /* safe in signal handlers */

/* What the command answered: as wait() gives it; -1 when there was none or it still runs. */
XPT_API int xpt_continuous_command_status(struct xpt_continuous *continuous);

/* Detaches. The window is not saved; saves that are under way are completed. May be called again. */
XPT_API void xpt_continuous_stop(struct xpt_continuous *continuous);
/* Stops it, if it runs, and frees it. NULL is allowed. */
XPT_API void xpt_continuous_destroy(struct xpt_continuous *continuous);

/*
 * The same by the name of a collector on this machine, whichever process it is; log as in options. Errors as above, and: -ENOENT,
 * -ECONNREFUSED no collector runs under the name; -EACCES it is another user's; -ETIMEDOUT no answer in timeout ns; -EPROTO; -EPROTOTYPE
 * an older version runs there.
 */
#define XPT_CONTROL_DIR "/run/xputrace"	 /* the sockets: NAME.sock; user/control/CONTROL.md describes the protocol */
#define XPT_CONTINUOUS_NAME "continuous" /* of the collector where no other is given */

struct xpt_remote {
	size_t size;	  /* sizeof(struct xpt_remote) */
	const char *name; /* NULL: XPT_CONTINUOUS_NAME */
	uint64_t timeout; /* ns; 0: 60 s */
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
};
/* xpt_continuous_save() in the other process. */
XPT_API int xpt_remote_save(const struct xpt_remote *remote, const struct xpt_save_options *options,
			    struct xpt_saved *saved);
/* xpt_continuous_status() of it. */
XPT_API int xpt_remote_status(const struct xpt_remote *remote, struct xpt_continuous_status *status);
XPT_API int xpt_remote_stop(const struct xpt_remote *remote); /* returns when it has ended */

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Continuous profiling: everything that the chosen processes do is recorded into a window in memory, all the time, and nothing
 * goes to disk until somebody asks for what has just happened, or a trigger does.
 *
 *	XPT_OPTS(xpt_session_options, targets, .pids = &pid, .pid_count = 1);
 *	XPT_OPTS(xpt_save_options, last, .core = 3, .has_core = 1);
 *	XPT_OPTS(xpt_saved, saved);
 *	struct xpt_continuous_options *options;
 *	struct xpt_continuous *continuous;
 *
 *	xpt_continuous_options_create(&options);
 *	xpt_continuous_options_set_targets(options, &targets);
 *	xpt_continuous_options_set_output_dir(options, "/var/tmp/profiles");
 *	if (!xpt_continuous_start(options, &continuous)) {
 *		... later, as often as wanted: the latest inference on core 3
 *		xpt_continuous_save(continuous, &last, &saved);
 *		xpt_continuous_stop(continuous);
 *	}
 *	xpt_continuous_options_free(options);
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

struct xpt_continuous_options;

#define XPT_WINDOW_BYTES_MIN (2ull << 20)
#define XPT_WINDOW_BYTES_MAX (1ull << 40)
#define XPT_WINDOW_TIME_MIN 1000000000ull     /* ns */
#define XPT_WINDOW_TIME_MAX 86400000000000ull /* ns */
/* What holds unless it is set: */
#define XPT_WINDOW_BYTES (64ull << 20)
#define XPT_WINDOW_TIME 60000000000ull	 /* ns */
#define XPT_SAVE_AFTER 1000000000ull	 /* ns */
#define XPT_SAVE_COOLDOWN 30000000000ull /* ns */
#define XPT_SAVE_FILES 100
#define XPT_SAVE_BYTES (10ull << 30)
#define XPT_SAVE_AFTER_MAX 60000000000ull /* ns */
#define XPT_CONTINUOUS_DIR "./output"	  /* where files go unless it is set */

/* With the defaults below. -ENOMEM. */
XPT_API int xpt_continuous_options_create(struct xpt_continuous_options **options);
XPT_API void xpt_continuous_options_free(struct xpt_continuous_options *options); /* NULL: nothing */

/*
 * What is watched, how, and where messages go; copied but for the command, which must live until the stop. report_bytes is not
 * used. Must be set. -EINVAL, -E2BIG, -ENOMEM.
 */
XPT_API int xpt_continuous_options_set_targets(struct xpt_continuous_options *options,
					       const struct xpt_session_options *targets);

/* Where files go; made at the start if it is missing, not so the directories above. -EINVAL: empty; -ENAMETOOLONG; -ENOMEM. */
XPT_API int xpt_continuous_options_set_output_dir(struct xpt_continuous_options *options, const char *directory);

/* Whose the directory, if it is made, and the files are; the default is the user that runs this. */
XPT_API void xpt_continuous_options_set_owner(struct xpt_continuous_options *options, uid_t user, gid_t group);

/*
 * How much is kept: bytes of memory (default 64 MiB) and ns (default 60 s, 0: no limit but the bytes). -EINVAL: not within the
 * limits above.
 */
XPT_API int xpt_continuous_options_set_window(struct xpt_continuous_options *options, uint64_t bytes, uint64_t time);

/* How much of a runtime is recorded; default XPT_LEVEL_STANDARD. -EINVAL. */
XPT_API int xpt_continuous_options_set_level(struct xpt_continuous_options *options, enum xpt_level level);

/* Record one inference in so many, of each program; default 1: all. -EINVAL: not from 1 to 1,000,000. */
XPT_API int xpt_continuous_options_set_sampling(struct xpt_continuous_options *options, unsigned int sample_every);

/*
 * The counters of the targets' options are read at this interval, ns (default 10 ms), and if per_inference is not 0 around each
 * inference, too. -EINVAL: not from 100 us to 1 h.
 */
XPT_API int xpt_continuous_options_set_counters(struct xpt_continuous_options *options, uint64_t every,
						int per_inference);

/*
 * Others on this machine can save, ask and stop by this name, through a socket in /run/xputrace (see XPT_CONTROL_DIR below); NULL
 * (default): nobody can. -EINVAL: not 1 to 64 letters, digits, '-', '_' and '.', or it begins with '.'; -ENOMEM.
 */
XPT_API int xpt_continuous_options_set_name(struct xpt_continuous_options *options, const char *name);

/*
 * Saves the window by itself when something happens:
 *
 *	latency > 20ms		an inference has taken longer (also >=; ns, us, ms, s)
 *	p99 > 10ms over 5s	of a program's inferences of the last 5 s; p50, p99.9..., mean and max
 *	error			an inference has failed
 *
 * Several may be added; the first one that fires counts. -EINVAL: not understood, or can never fire: why is in reason, cut to
 * size (reason may be NULL if size is 0); -ENOSPC: more than XPT_TRIGGERS_MAX; -ENOMEM.
 */
XPT_API int xpt_continuous_options_add_trigger(struct xpt_continuous_options *options, const char *text, char *reason,
					       size_t size);
#define XPT_TRIGGERS_MAX 16

/*
 * What holds for saves by triggers and signals: how long after it the file is made, so that it has what follows (ns, default 1 s,
 * at most 60 s); how long after one the next may come (ns, default 30 s); and how many files (default 100) and bytes (default
 * 10 GiB) there may be in all, 0: no limit. -EINVAL.
 */
XPT_API int xpt_continuous_options_set_saving(struct xpt_continuous_options *options, uint64_t after, uint64_t cooldown,
					      uint64_t files, uint64_t bytes);

struct xpt_continuous;

/*
 * Attaches, and records from here on; the options may be freed. Errors, the reason is in the log: -EINVAL no targets, or options
 * that make no sense together; -EBUSY one of the targets is profiled continuously already, by whomever; -EADDRINUSE the name is
 * taken; -ENOTDIR, -EACCES, -EROFS, -ELOOP... the output directory cannot be used; and those of xpt_session_create() and
 * xpt_session_start().
 */
XPT_API int xpt_continuous_start(const struct xpt_continuous_options *options, struct xpt_continuous **continuous);

/* What to save. All zero: the whole window. Conditions hold together. */
struct xpt_save_options {
	size_t size; /* sizeof(struct xpt_save_options) */
	pid_t pid;   /* only of this process; 0: of all */
	/* Only inferences of this program, or on this core; the latest one, unless the next two say more: */
	const char *program; /* its whole name; NULL: any */
	uint64_t handle;     /* 0: any */
	int has_core;
	int64_t core;	     /* as the runtime calls it: that the program was loaded onto, where the call tells none */
	uint64_t inferences; /* the last so many of those that are meant */
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
 * nothing of it is left; -ECANCELED: stopped meanwhile.
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
 * Returns when it has been asked to stop by its name: 1; after timeout ns: 0; after xpt_continuous_interrupt(): -EINTR; another
 * negative errno when it cannot go on.
 */
XPT_API int xpt_continuous_wait(struct xpt_continuous *continuous, uint64_t timeout);
XPT_API void xpt_continuous_interrupt(struct xpt_continuous *continuous); /* safe in signal handlers */

/* What the command answered: as wait() gives it; -1 when there was none or it still runs. */
XPT_API int xpt_continuous_command_status(struct xpt_continuous *continuous);

/* Ends it, saves nothing, frees it. Saves that are under way are completed first. */
XPT_API void xpt_continuous_stop(struct xpt_continuous *continuous);

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

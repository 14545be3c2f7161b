/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A recording: attach to running processes (or start one), collect their calls into accelerator runtimes, write a Chrome
 * trace or a recording file, and report what was seen.
 *
 *	XPT_OPTS(xpt_recording_options, options, .pids = &pid, .pid_count = 1, .output = "trace.json");
 *	struct xpt_recording *recording;
 *
 *	if (!xpt_recording_create(&options, &recording)) {
 *		if (!xpt_recording_start(recording))
 *			xpt_recording_run(recording);
 *		xpt_recording_finish(recording);
 *		xpt_recording_destroy(recording);
 *	}
 *
 * Needs root (CAP_BPF, CAP_PERFMON, CAP_SYS_PTRACE and CAP_CHECKPOINT_RESTORE or CAP_SYS_ADMIN). A thread of its own collects from
 * xpt_recording_start() to xpt_recording_finish(), and calls log and status. One thread uses a recording at a time; only
 * xpt_recording_stop() may be called from others, from callbacks and from signal handlers. Two recordings in one process do
 * not disturb each other.
 *
 * The library keeps what rights the program has, and changes none of them, as they are each thread's own: a program that wants its
 * threads to have fewer gives them up itself, before or after. `xputrace check` names what tracing needs. But for a moment, while a file
 * is opened that a traced program loads a code object from, the collecting thread has the file rights of that program's thread.
 */
#ifndef XPUTRACE_RECORDING_H
#define XPUTRACE_RECORDING_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>
#include <xputrace/target.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_recording;
struct xpt_session; /* session.h */

enum xpt_output {
	XPT_OUTPUT_NONE = 0,
	XPT_OUTPUT_CHROME = 1,	  /* Chrome trace, JSON */
	XPT_OUTPUT_RECORDING = 2, /* recording file, for xpt_report_create() */
	XPT_OUTPUT_ORT = 3,	  /* as ONNX Runtime's own profiler writes, JSON */
	/*
	 * As ONNX Runtime's QNN execution provider writes, CSV: goes behind what a file has of it, as there. Without
	 * timestamps at XPT_LEVEL_BASIC. -EEXIST: the file is something else.
	 */
	XPT_OUTPUT_QNN_CSV = 4,
	XPT_OUTPUT_CSV = 5, /* a row an inference, one flat table (report.h); of reports only */
	/* Flame graphs, of what enum xpt_flame says: */
	XPT_OUTPUT_FOLDED = 6,	   /* a line a stack: its frames with ';' between, and ns */
	XPT_OUTPUT_PPROF = 7,	   /* profile.proto, gzip */
	XPT_OUTPUT_FLAME_SVG = 8,  /* a picture that browsers search and zoom */
	XPT_OUTPUT_SPEEDSCOPE = 9, /* JSON */
	/*
	 * One page for browsers with all of it; it loads nothing. A recording is written to a file without a name beside the page first: it is
	 * lost if the program is killed.
	 */
	XPT_OUTPUT_HTML = 10,
	XPT_OUTPUT_PERFETTO = 11, /* Perfetto's protobuf trace */
	XPT_OUTPUT_SQLITE = 12,	  /* a SQLite database of all that was recorded; of reports only */
};

/* Whose stacks a flame graph is made of, and what they weigh, in ns. Recordings have stacks where they were asked for. */
enum xpt_flame {
	XPT_FLAME_NONE = 0,
	XPT_FLAME_INFERENCE = 1, /* callers of the runtimes: latency of the inferences that they ran */
	XPT_FLAME_DEVICE = 2,	 /* the same: device time of the jobs that were submitted in these */
	XPT_FLAME_OFF_CPU = 3,	 /* places in calls where threads did not run: for how long */
	XPT_FLAME_CPU = 4,	 /* places in calls where threads ran: CPU time */
};

/* What a recording is doing; see xpt_recording_options.status. */
struct xpt_recording_status {
	size_t size;		/* sizeof(struct xpt_recording_status) of the library */
	uint64_t elapsed;	/* ns since the start */
	unsigned int processes; /* traced now */
	unsigned int programs;	/* seen so far */
	uint64_t calls;		/* recorded so far */
	uint64_t lost;		/* for whatever cause */
	uint64_t bytes;		/* written so far */
};

/* How much of a runtime is recorded. */
enum xpt_level {
	XPT_LEVEL_STANDARD = 0, /* all described calls */
	XPT_LEVEL_BASIC = 1,	/* loads and inferences only */
	XPT_LEVEL_DETAILED = 2, /* all calls, and the operators of each inference */
};

/* Everything is copied by xpt_recording_create(), except command. Zero means the default. */
struct xpt_recording_options {
	size_t size; /* sizeof(struct xpt_recording_options): says which fields the caller knows */

	/* What to trace: processes, a command, or everything. Children are followed. */
	const pid_t *pids;
	size_t pid_count;
	char *const *command; /* traced from its first instruction; NULL-terminated */
	int all_processes;    /* non-zero: every process that uses a described runtime, also those that start later */

	/* Which runtimes: */
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

	const struct xpt_handle_name *names;
	size_t name_count;
	size_t name_size; /* sizeof(struct xpt_handle_name); 0: as in the first version (error.h) */

	enum xpt_output format;
	const char *output;	   /* path; "-": standard output */
	uint64_t duration;	   /* ns; 0: until stopped or until all targets have ended */
	unsigned int sample_every; /* record every Nth inference of each program; 0 or 1: all */
	size_t buffer_bytes;	   /* of all rings together; 0: 8 MiB */
	enum xpt_link link;

	xpt_log_fn log; /* NULL: messages are dropped */
	void *log_context;
	enum xpt_log_level log_level;

	void (*status)(void *context,
		       const struct xpt_recording_status *status); /* about 5 times a second; NULL: none */
	void *status_context;

	/* Counters of devices and the kernel that are read meanwhile, whoever causes them (counters.h): */
	const char *const *counters; /* names */
	size_t counter_count;
	uint64_t counters_every; /* ns between two readings; 0: 10 ms */
	/*
	 * They are read around each inference, too, by the kernel. Sums and means of at most 4 perf events in all. task-clock, faults,
	 * context-switches and cpu-migrations are what the thread of the call did, and not known where another one waits; others are what
	 * its CPU or a device did, for everybody; of a CPU, only inferences have a value that end on the one where they began.
	 */
	int counters_per_inference;

	enum xpt_level level;

	/*
	 * Chosen programs: those of which one of these is true, also when they are loaded or get their name later. Only their
	 * inferences are recorded (one in sample_every), with all that lies in them on their thread, and their operators on
	 * other threads where no other inference runs at the same time and sample_every is 1. Inferences of other programs are
	 * counted exactly, as left out; but what lies in their first ones, until the kernel has been updated, is recorded. Calls that
	 * are no inferences are recorded as ever. None: all programs.
	 */
	const struct xpt_program_choice *programs;
	size_t program_count;
	size_t program_size; /* sizeof(struct xpt_program_choice); 0: as in the first version (error.h) */
	const char *match;   /* programs with a name in which this ECMAScript expression is found; NULL: none */

	/*
	 * Functions of any program or library that are regions, from their entry to their return: each "FILE:FUNCTION", glob patterns of
	 * the file's name (or if it holds a '/', of its path) and of the function's symbol or, where it holds "::", its name in C++
	 * without parameters. In a process that runs at attach, ends are reported after its first calls.
	 */
	const char *const *regions;
	size_t region_count;

	/*
	 * Processes by name, beside pids or instead: that of the process (its first 15 bytes) or of the file that it runs, without
	 * folders. Those that start later are taken up when they map a library; it never ends by itself then.
	 */
	const char *const *process_names;
	size_t process_name_count;

	/*
	 * Code objects that are loaded and unloaded are events, with their kernels and hashes (codeobj.h); their bytes are
	 * not kept. A call that loads a large one waits some milliseconds until it has been read.
	 */
	int code_objects;
	/*
	 * Where a thread must not go on before the library has acted, it waits inside its probe, without a signal: in the dynamic
	 * loader of a command until what was mapped has its probes, and at the begin of a call that loads a large code object.
	 * After the limit (ns; 0: 1 s and 500 ms; XPT_WAIT_LIMIT_MAX at most) it goes on, and what may be missing is counted;
	 * after three limits in a row the process does not wait any more. no_wait: nothing ever waits.
	 */
	int no_wait;
	uint64_t wait_limit;	  /* for probes */
	uint64_t code_wait_limit; /* for code objects; of those who share a session, the longest before it starts */
	uint64_t warn_bytes;	  /* before a Chrome trace gets larger than that a warning is logged; 0: 1 GB */

	/*
	 * Records what this session traces, beside its profiles, streams and other recordings; NULL: a session of its own. Targets,
	 * runtimes, drivers, counters, names, regions, buffers, waiting, budget, why and log are the session's and not set here. Begins with
	 * xpt_session_start(), or if that was before with xpt_recording_start(); ends with its own duration, xpt_recording_stop() or xpt_recording_finish(), and the
	 * session goes on. To be destroyed before it. The kernel records what any of them needs; of that, this one gets its own samples
	 * and chosen programs. What runtimes below call inside inferences of programs that are not chosen stays in it.
	 */
	struct xpt_session *session;

	/*
	 * How much CPU time tracing may take, that which it adds to the targets together with the collector's own: in percent of the CPU
	 * time of the targets, XPT_BUDGET_MIN to XPT_BUDGET_MAX; 0 or XPT_BUDGET_NONE: as much as it takes. It is measured while the
	 * recording runs. Beyond the budget first fewer inferences of the most expensive programs are recorded, then operators are not
	 * traced, then the most expensive functions are detached for a while, last those by whose calls inferences are counted; well
	 * below it, the same is taken back. Totals stay exact while a function is attached; calls of one that is detached are not
	 * counted. Every change is an event of the recording and a line of the summary, with what tracing took before it. Targets that
	 * use less count for a tenth of a core and 20 ms a second for each process, all together at most for one core.
	 */
	double budget;

	enum xpt_flame flame; /* of the formats that are flame graphs: which one */
	/*
	 * Records each time that a thread with an open call does not run: why (preempted, a lock, I/O...), who ran in its place, who woke
	 * it. Without, only how long it did not run is known. Costs every context switch of the machine some time.
	 */
	int why;

	/*
	 * stacks: stacks of calls that begin an inference, which show who calls the runtime: the limit a second, for all processes together,
	 * 1 to 1000; 0: none. With why, the same number of threads that leave the CPU in a call: where they wait. samples: stacks of
	 * threads that run in a call, which show where they compute: the rate of the clock of each CPU, 1 to 1000 Hz; 0: none.
	 */
	unsigned int stacks, samples;
};

/*
 * Checks the options, reads the descriptions, loads the kernel side. Errors: -EINVAL bad option or description (see the log),
 * -ENOSPC more chosen programs than XPT_CHOICES_MAX (stream.h),
 * -ENODATA the session was loaded without what this one needs (session.h), -E2BIG options of a newer library that this one does not know, -EPERM not permitted, -EOPNOTSUPP the kernel lacks
 * something (see xpt_check()), -EBUSY... whatever open() gives for the output, and the errors of xpt_counters_open().
 */
XPT_API int xpt_recording_create(const struct xpt_recording_options *options, struct xpt_recording **recording);

/*
 * Attaches, or starts the command. -ESRCH no such process, -ENOEXEC the command or a target cannot be traced, -EALREADY. Where the
 * session is another's: 0 before that starts; then the recording begins, -ECANCELED: that ends, or the error that has ended its tracing.
 */
XPT_API int xpt_recording_start(struct xpt_recording *recording);

enum xpt_end {
	XPT_END_STOPPED = 1, /* xpt_recording_stop() */
	XPT_END_DURATION = 2,
	XPT_END_TARGETS = 3, /* all have ended */
	XPT_END_OUTPUT = 4,  /* the output could not be written */
};

/* Records until one of the ends; which one, or a negative errno: -EINVAL, it has not been started. */
XPT_API int xpt_recording_run(struct xpt_recording *recording);

/* Ends xpt_recording_run() soon. Safe in signal handlers and from other threads; may be called at any time and twice. */
XPT_API void xpt_recording_stop(struct xpt_recording *recording);

/* Detaches, collects what is left, completes the output. Call it also after an error. 0, or the error of the output. */
XPT_API int xpt_recording_finish(struct xpt_recording *recording);

/* Writes the summary table to a descriptor. columns: width of the terminal, 0: nothing is cut. After finish. */
XPT_API int xpt_recording_summary(struct xpt_recording *recording, int descriptor, unsigned int columns);

/*
 * The same as one JSON object (user/report/SCHEMA.md, Summary as JSON: from `complete` on), terminated, which the caller frees.
 * After finish. 0 or -ENOMEM.
 */
XPT_API int xpt_recording_summary_json(struct xpt_recording *recording, char **json);

/*
 * Wait status of the command, as wait() gives it; -1 when there was none or it still runs. One that could not be executed has
 * exited with 127 where it was not found, else with 126.
 */
XPT_API int xpt_recording_command_status(const struct xpt_recording *recording);

/*
 * How many inferences, launches and regions were counted, recorded or not. After finish, which gives a warning when there were
 * none.
 */
XPT_API uint64_t xpt_recording_runs(const struct xpt_recording *recording);

/* Visits every program seen so far; a non-zero return ends the walk and is returned. */
XPT_API int xpt_recording_programs(struct xpt_recording *recording,
				   int (*visit)(void *context, const struct xpt_program_info *program), void *context);

/*
 * Visits every choice that no program was seen for, whether it ran or not; the expression comes as the name of a choice with
 * match set. A non-zero return ends the walk and is returned. After finish.
 */
XPT_API int xpt_recording_unmet(struct xpt_recording *recording,
				int (*visit)(void *context, const struct xpt_program_choice *choice, int match),
				void *context);

/* Detaches and frees; an output that was not finished is cut short. NULL is allowed. */
XPT_API void xpt_recording_destroy(struct xpt_recording *recording);

#ifdef __cplusplus
}
#endif
#endif

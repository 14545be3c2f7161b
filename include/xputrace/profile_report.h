/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What profiling handles (profile.h, stream.h) deliver: reports of inferences with their times, and the files they go
 * into. enum xpt_column has those of the Cloud AI 100 runtime's latency report in their order; user/report/SCHEMA.md has the
 * meaning of each.
 */
#ifndef XPUTRACE_PROFILE_REPORT_H
#define XPUTRACE_PROFILE_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xpt_profile_type {
	XPT_PROFILE_LATENCY = 0,  /* a row a sample */
	XPT_PROFILE_TRACE = 1,	  /* a Chrome trace of the programs, JSON */
	XPT_PROFILE_PERFETTO = 2, /* the same as Perfetto's protobuf trace */
};

/*
 * The six times of an inference. Those in the middle come from the device's kernel driver, as far as it reports them, and
 * are of the jobs that the thread submitted while the call (asynchronous: the enqueue) was open.
 */
enum xpt_sample_time {
	XPT_TIME_CALL_BEGINS = 0,   /* the runtime's call (for an asynchronous inference: the enqueue) */
	XPT_TIME_SUBMIT_BEGINS = 1, /* the first ioctl that hands work to the driver */
	XPT_TIME_SUBMIT_ENDS = 2,   /* the last one has returned */
	XPT_TIME_DEVICE_RUNS = 3,   /* the first job was handed to the device */
	XPT_TIME_DEVICE_DONE = 4,   /* the last job has ended; not before all have */
	XPT_TIME_CALL_ENDS =
		5, /* the call has returned (asynchronous: the wait; launch: its work was seen to be complete) */
	XPT_TIMES = 6,
};

#define XPT_SAMPLE_COUNTERS 4 /* read around an inference, at most */

/* One inference that was recorded. */
struct xpt_sample {
	size_t size;		  /* sizeof(struct xpt_sample), of the library in its reports */
	uint64_t number;	  /* of the inference among those of its program, from 0, counted in the kernel */
	uint64_t time[XPT_TIMES]; /* ns, CLOCK_MONOTONIC; 0: not observed */
	uint64_t enqueued;	 /* ns, when the enqueue or launch call had returned; 0: the inference is synchronous */
	uint64_t bytes;		 /* that the call was given; 0: it does not say */
	int64_t status;		 /* what the call answered */
	const char *status_name; /* NULL: unknown; lives as long as the session */
	int64_t core;		 /* device, core or partition number; see has_core */
	uint32_t tid;		 /* thread of the call or enqueue */
	uint32_t in_queue; /* inferences that the process had enqueued and not waited for, this one left out; known when all are recorded */
	uint8_t has_status, has_core, has_in_queue;
	uint8_t failed; /* the status is an error */
	/*
	 * Jobs of the device that the call or enqueue submitted; 0: none was seen. The sums are of all of them and 0 as
	 * long as one has not ended.
	 */
	uint32_t jobs;
	uint64_t device_time; /* ns, sum: handed to the device until ended; jobs may overlap */
	uint64_t queue_time;  /* ns, sum: queued until handed to the device */
	/*
	 * What the report's counters had while it lasted, in their order and units; of a mean per second. NaN: not known,
	 * as of a launch, or when it ended on another CPU and the counter is of each CPU.
	 */
	double counter[XPT_SAMPLE_COUNTERS];
	/* Of a batch of a language model, of one phase; 0: it is none, or not known. */
	uint64_t prefill_tokens, decode_tokens;
	uint64_t first_token, output_token; /* ns, see XPT_COLUMN_FIRST_TOKEN */
	/*
	 * What the thread did in the call, or in the enqueue and the wait together, without what lay between them. The three times add
	 * up to the duration of these calls. All 0 when has_states is.
	 */
	uint32_t has_states;
	uint32_t major_faults;				   /* page faults with I/O */
	uint64_t cpu_time, waited_time, blocked_time;	   /* ns: ran; waited for a CPU; waited for anything else */
	uint32_t voluntary_switches, involuntary_switches; /* it blocked; it was preempted */
	uint64_t minor_faults;				   /* page faults without I/O */
};

/* What is derived from a sample, in the order of the report, behind the sample's number. */
enum xpt_column {
	XPT_COLUMN_QUEUE_DEPTH = 0,
	XPT_COLUMN_IN_QUEUE = 1,
	XPT_COLUMN_DEVICE_RATE = 2, /* inferences per second */
	XPT_COLUMN_DEVICE_EXECUTE = 3,
	XPT_COLUMN_DEVICE_INPUT_WAIT = 4,
	XPT_COLUMN_DEVICE_OUTPUT_WAIT = 5,
	XPT_COLUMN_HOST_ROUND_TRIP = 6,
	XPT_COLUMN_ENQUEUE = 7,
	XPT_COLUMN_PREPROCESS = 8,
	XPT_COLUMN_SUBMIT = 9,
	XPT_COLUMN_EXECUTE_TOTAL = 10,
	XPT_COLUMN_EXECUTE_TO_CHANNEL = 11,
	XPT_COLUMN_EXECUTE_TO_COMPLETE = 12,
	XPT_COLUMN_POSTPROCESS = 13,
	XPT_COLUMN_TOTAL_ROUND_TRIP = 14,
	/* Of batches of a language model: */
	XPT_COLUMN_PREFILL_TOKENS = 15, /* of a batch of a prompt */
	XPT_COLUMN_DECODE_TOKENS = 16,	/* of one that answers */
	XPT_COLUMN_TOKEN_RATE = 17,	/* tokens a second of the call */
	XPT_COLUMN_FIRST_TOKEN =
		18, /* from the begin of a prompt until the first token of the answer went into this batch */
	XPT_COLUMN_OUTPUT_TOKEN = 19, /* from the begin of the batch before, which gave a token that is in this one */
	/* Of the thread, see cpu_time: */
	XPT_COLUMN_CPU_TIME = 20,
	XPT_COLUMN_WAITED_TIME = 21,
	XPT_COLUMN_BLOCKED_TIME = 22,
	XPT_COLUMNS = 23,
};

/* "totalRoundtripTime(Us)", as in the report's heading; NULL: no such column. Static. */
XPT_API const char *xpt_column_name(enum xpt_column column);
/*
 * The value in thousandths of the column's unit: nanoseconds where the unit is the microsecond. -ENODATA: not observed,
 * -EINVAL: no such column, or a sample without a size; -E2BIG: a sample with fields of a newer library.
 */
XPT_API int xpt_sample_column(const struct xpt_sample *sample, enum xpt_column column, uint64_t *thousandths);

/* What the samples of one program add up to, a column at a time. Quantiles are within 1 %, the others exact. */
struct xpt_column_summary {
	size_t size; /* sizeof(struct xpt_column_summary), set by the caller */
	uint64_t count;
	double min, mean, p50, p90, p95, p99, max,
		deviation; /* in the column's unit; deviation of the sample (n - 1) */
};

/* Bounded histograms of all columns: memory does not depend on the number of samples. */
struct xpt_latencies;

/* NULL: no memory. */
XPT_API struct xpt_latencies *xpt_latencies_create(void);
/* NULL is allowed. */
XPT_API void xpt_latencies_free(struct xpt_latencies *latencies);
/* -ENOMEM: missing from the quantiles of some columns, or from those columns altogether; -EINVAL, -E2BIG as above. */
XPT_API int xpt_latencies_add(struct xpt_latencies *latencies, const struct xpt_sample *sample);
/* As if the samples of from had been added to into, exactly. -ENOMEM as above. */
XPT_API int xpt_latencies_merge(struct xpt_latencies *into, const struct xpt_latencies *from);
/* -ENODATA: no sample had the column; -EINVAL: no such column, or a summary without a size. */
XPT_API int xpt_latencies_get(const struct xpt_latencies *latencies, enum xpt_column column,
			      struct xpt_column_summary *summary);

/*
 * How many values were at most each of the bounds, which are in the column's unit and ascend: within 1 %, as quantiles are; exact where all
 * or none were. counts: as many as bounds. Errors as xpt_latencies_get().
 */
XPT_API int xpt_latencies_buckets(const struct xpt_latencies *latencies, enum xpt_column column, const double *bounds,
				  size_t bound_count, uint64_t *counts);

/* Which stacks of threads, and what they weigh. */
enum xpt_report_stack_kind {
	XPT_REPORT_STACK_CALL = 1, /* of calls that begin an inference: the time of the inferences that they stand for */
	XPT_REPORT_STACK_OFF_CPU = 2, /* of threads that do not run in a call: how long they did not */
	XPT_REPORT_STACK_CPU = 3,     /* of threads that run in a call, met by a clock: the time between two samples */
};

#define XPT_REPORT_STACKS_MAX 64 /* of a program and kind in a report, those that weigh most */

/* Samples with the same stack. */
struct xpt_report_stack {
	enum xpt_report_stack_kind kind;
	int partial; /* non-zero: the frames do not reach the thread's start */
	/*
	 * The innermost first: "matmul", "decode (model.py:12)", "[unknown] (libm.so+0x1f0)". Names are the target's, any bytes. NULL: the
	 * sum of the stacks of this kind that had no room.
	 */
	const char *const *frames;
	size_t frame_count;
	uint64_t count; /* samples; of calls: the inferences that they stand for */
	uint64_t time;	/* ns: what they weigh */
};

/* One program in one report. */
struct xpt_program_report {
	uint32_t id; /* unique in the session, from 1; 0: all those together that had no room in report_bytes */
	pid_t pid;
	const char *process; /* name */
	const char *runtime;
	const char *name; /* the handle in hexadecimal when no name is known */
	uint64_t handle;
	unsigned int generation;	  /* how many programs had this handle in this process before */
	unsigned int sample_every;	  /* every Nth inference was requested */
	uint64_t requested;		  /* samples that were asked for; 0: no limit */
	uint64_t skipped;		  /* inferences left out at the beginning, as asked; not among inferences */
	const struct xpt_sample *samples; /* in the order in which they ended; LATENCY only */
	size_t sample_count;
	size_t sample_size; /* of one of them: XPT_AT() in error.h */
	/*
	 * All inferences of the program that ended in the report's interval (those that sampling left out: began, since
	 * their end is not watched). inferences = samples taken + left out by sampling + lost.
	 */
	uint64_t inferences;
	uint64_t taken;	 /* samples; more than sample_count when only the summary or a trace was requested */
	uint64_t lost;	 /* should have been samples: rings or buffer full, or no wait was seen for what was enqueued */
	uint64_t failed; /* of those taken */
	int released;	 /* non-zero: the program was released, or its process has ended */
	const struct xpt_latencies *latencies; /* of the samples taken; never NULL */
	uint64_t timed;			       /* samples taken with jobs that have all ended */
	uint64_t queue_time, device_time;      /* ns, sums over these: see struct xpt_sample */
	uint64_t is_kernel; /* non-zero: its runtime runs kernels, not models: programs are many, with names of functions */
	/*
	 * Of streams with stacks (struct xpt_stream_options): by kind, and of a kind those that weigh most first. A stack is reported when it
	 * was unwound and its call has ended, which may be after the report of the interval in which it was taken.
	 */
	const struct xpt_report_stack *stacks;
	size_t stack_count;
	size_t stack_size; /* of one of them: XPT_AT() in error.h */
	/* Of the samples taken, the one with the longest round trip, also where there are no rows; slowest_time 0: of none it is known. */
	uint64_t slowest_number;   /* as in struct xpt_sample */
	uint64_t slowest_time;	   /* ns, CLOCK_MONOTONIC, when it ended */
	uint64_t slowest_duration; /* ns */
};

enum xpt_profile_end {
	XPT_PROFILE_INTERVAL = 0, /* the reporting interval is over; the handle goes on */
	XPT_PROFILE_COMPLETE = 1, /* all samples are there */
	XPT_PROFILE_STOPPED = 2,
	XPT_PROFILE_RELEASED = 3, /* the program was released before all samples were there */
};

/* A counter that was read around each inference: xpt_session_options.counters. */
struct xpt_report_counter {
	const char *name; /* as it was asked for */
	const char *unit; /* "" a plain number */
	const char *of;	  /* what it counts: "thread", that of the call; "CPU", "device": whoever had it meanwhile */
};

/* All of it is valid during the callback only. */
struct xpt_profile_report {
	size_t size; /* sizeof(struct xpt_profile_report) of the library */
	enum xpt_profile_type type;
	enum xpt_profile_end end_reason;       /* all but INTERVAL: the last report of this run of the handle */
	const char *name;		       /* of the handle; "" when it has none */
	uint64_t sequence;		       /* of the report since the handle was started, from 0 */
	uint64_t start, end;		       /* ns, CLOCK_MONOTONIC: inferences that ended in (start, end] */
	uint64_t start_realtime, end_realtime; /* the same in ns since 1970 */
	uint64_t late; /* samples here that ended before start, but became known after the report before was closed */
	const struct xpt_program_report *programs; /* streams: those that ran, or left, in the interval */
	size_t program_count;
	size_t program_size; /* of one of them: XPT_AT() in error.h */
	/*
	 * Only XPT_PROFILE_TRACE and XPT_PROFILE_PERFETTO: a complete document, and the place in it where the events stand: comma-separated;
	 * of XPT_PROFILE_PERFETTO all of it, and documents may be appended to each other.
	 */
	const char *trace;
	size_t trace_length;
	const char *trace_events;
	size_t trace_events_length;
	const struct xpt_report_counter *counters; /* of xpt_sample.counter */
	size_t counter_count;			   /* at most XPT_SAMPLE_COUNTERS */
	size_t counter_size;			   /* of one of them: XPT_AT() in error.h */
	const char *host;			   /* where it was recorded */
};

typedef void (*xpt_profile_report_fn)(void *context, const struct xpt_profile_report *report);

/* ---- files ---- */

enum xpt_report_format {
	XPT_FORMAT_SAMPLES = 0, /* CSV, Cloud AI 100 layout: header, then one row a sample, for each program */
	XPT_FORMAT_SUMMARY = 1, /* CSV, Cloud AI 100 layout: one row a program and report */
	XPT_FORMAT_TRACE = 2,	/* Chrome trace; the reports must be of type XPT_PROFILE_TRACE */
	/*
	 * One flat table: one header, one row a sample or a program. A file of a single report, or the first report where single is
	 * set, has only columns with values; where reports follow one another the header has all columns that may get one.
	 */
	XPT_FORMAT_CSV = 3,
	XPT_FORMAT_CSV_SUMMARY = 4,
	XPT_FORMAT_PERFETTO = 5, /* Perfetto trace; the reports must be of type XPT_PROFILE_PERFETTO */
};

/*
 * Writes one report, as the library has handed it out, complete by itself. 0 or what write() says; -EINVAL when the format does not fit
 * the report.
 */
XPT_API int xpt_profile_report_write(const struct xpt_profile_report *report, enum xpt_report_format format,
				     int descriptor);

struct xpt_report_files;

struct xpt_report_files_options {
	size_t size;	  /* sizeof(struct xpt_report_files_options) */
	const char *path; /* "-": standard output, where reports follow one another; as in a device or named pipe */
	enum xpt_report_format format;
	/*
	 * 0: one file a report, PATH with the number of the report before its extension (latency-000001.csv), or just PATH
	 * when single is set. Non-zero: reports follow one another in PATH.
	 */
	int append;
	int single;
	uint64_t rotate_bytes; /* append: begin PATH anew when it would grow beyond this; the old one is PATH.1, ... 0: never */
	unsigned int
		keep; /* files kept: old ones beside PATH, or the newest reports; only own ones are deleted; 0: all */
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
	/*
	 * NULL: a pipe or device that blocks is waited for. Else a process of its own writes into it, reports wait in memory, and
	 * the functions below give up 1 s after the time that is here: ns of CLOCK_MONOTONIC, 0 as long as nobody has requested
	 * the end. A signal handler may set it.
	 */
	const uint64_t *stopped;
};

/* Errors of open(); -EINVAL for options that make no sense together (said through the log). */
XPT_API int xpt_report_files_create(const struct xpt_report_files_options *options, struct xpt_report_files **files);
/*
 * Every file is complete and loadable after each call, also when a call fails (disk full): then the report is left out,
 * the error is returned, and the next report is tried again. Standard output takes nothing more after an error.
 */
XPT_API int xpt_report_files_write(struct xpt_report_files *files, const struct xpt_profile_report *report);
XPT_API uint64_t xpt_report_files_bytes(const struct xpt_report_files *files);	 /* written so far, all files */
XPT_API const char *xpt_report_files_path(const struct xpt_report_files *files); /* last file written; "" before */
/* Completes and closes. 0 or the first error of any write. */
XPT_API int xpt_report_files_close(struct xpt_report_files *files);

#ifdef __cplusplus
}
#endif
#endif

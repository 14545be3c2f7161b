/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explanations from a recording file: where the time of a program's typical inference goes, and what is different in the slowest
 * ones. Needs no root, no target, no particular kernel.
 *
 *	XPT_OPTS(xpt_explain_options, options, .input = "night.xpt");
 *	struct xpt_explain *explain;
 *	char *text;
 *
 *	if (!xpt_explain_create(&options, &explain)) {
 *		if (!xpt_explain_text(explain, 0, &text))
 *			puts(text);
 *		xpt_explain_destroy(explain);
 *	}
 *
 * Two cohorts are compared: typical inferences, with a duration between the 40th and the 60th percentile, and slow ones, the slowest
 * 1 %, at least one. Quantiles of programs with more than 65536 recorded inferences are those of a sample, which is drawn by chance
 * and is the same each time. The duration is divided in two ways that overlap each other: by what the thread of the inference did, and by operators.
 * Each adds up to the duration. The difference of the cohorts' mean durations is divided into causes.
 */
#ifndef XPUTRACE_EXPLAIN_H
#define XPUTRACE_EXPLAIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>
#include <xputrace/target.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_explain;

/* Everything is copied. Zero means the default. */
struct xpt_explain_options {
	size_t size;	   /* sizeof(struct xpt_explain_options) */
	const char *input; /* recording; "-": standard input */
	/* Which inferences, as in struct xpt_report_options: */
	const struct xpt_program_choice *programs;
	size_t program_count;
	size_t program_size; /* sizeof(struct xpt_program_choice); 0: as in the first version (error.h) */
	const char *match;
	const pid_t *pids;
	size_t pid_count;
	uint64_t from, to; /* ns since the recording began; to 0: its end */
	size_t most;	   /* programs that are explained, those with most time in all; 0: all */
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
	void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes; total 0: unknown; NULL: none */
	void *progress_context;
};

/* Means over a cohort, ns an inference. */
struct xpt_explain_part {
	/* "cpu", "waited", "futex", "poll", "io", "ioctl", "fault", "sleep", "other", "blocked", "unknown"; of operators their name */
	const char *name;
	const char *title; /* in words: "waiting for a CPU"; of operators their type */
	double typical, slow;
	double times_typical, times_slow; /* of operators: how often it ran */
};

enum xpt_explain_cohort_index {
	XPT_COHORT_TYPICAL = 0,
	XPT_COHORT_SLOW = 1,
};

struct xpt_explain_cohort {
	uint64_t count, failed; /* inferences */
	uint64_t least, most;	/* ns: of their durations */
	double mean;		/* ns */
	/* Beside their parts, and overlapping them, as means of an inference: */
	double queue, device; /* ns, sums of its jobs: queued until handed to the device, and from then until ended */
	double tracing;	      /* ns that probes took */
	double jobs;	      /* submitted */
	double minor_faults, major_faults; /* page faults without and with I/O */
	double voluntary, involuntary;	   /* context switches: it blocked; it was preempted */
};

/* Causes are disjoint: their differences and the one of what is not explained add up to the program's. */
struct xpt_explain_cause {
	/*
	 * What kind: "waited", "blocked" (name: why, as a part's), "operator" (name: which one, on the CPU), "faults", "queue" and "device"
	 * (of jobs). Of what is not explained: "cpu", "blocked" or "unknown".
	 */
	const char *kind;
	const char *name;     /* "": none */
	const char *title;    /* in words: "waiting for a CPU" */
	int explained;	      /* 0: it is known where the time went, but not why */
	double difference;    /* ns: what slow inferences have more of it */
	double share;	      /* of the program's difference: 0.5 is half */
	uint64_t inferences;  /* slow ones of which it is more than half of what they are slower; 0: unknown */
	const char *evidence; /* lines of text, "": none */
	const char *command;  /* that shows more, without `xputrace`; NULL: none */
};

/* Lives as long as the explanation. */
struct xpt_explain_program {
	size_t size; /* sizeof(struct xpt_explain_program) of the library */
	const char *name, *runtime, *process;
	const pid_t *pids;
	size_t pid_count;
	uint64_t inferences, recorded, failed, lost; /* inferences: counted by the kernel, where it was */
	double total;				     /* ns, all recorded ones together */
	/* ns, of those with a known end; quantiles within 1 %. count 0: there are none, and nothing below. */
	uint64_t count, min, p50, p90, p99, max;
	double mean, deviation;
	const struct xpt_explain_cohort *cohorts; /* by enum xpt_explain_cohort_index */
	size_t cohort_count;
	size_t cohort_size;		       /* of one of them: XPT_AT() in error.h */
	const struct xpt_explain_part *states; /* that are more than 0 in any cohort, and add up to its duration */
	size_t state_count;
	const struct xpt_explain_part
		*operators;    /* most time first, by self time; as the last one, what is outside them */
	size_t operator_count; /* 0: none were recorded */
	size_t part_size;      /* of one of either: XPT_AT() in error.h */
	double difference;     /* ns: mean of slow, less that of typical */
	const struct xpt_explain_cause *causes; /* explained ones first, the largest first */
	size_t cause_count;
	size_t cause_size;   /* of one of them: XPT_AT() in error.h */
	double explained;    /* share of the difference, at most 1 */
	const char *command; /* that shows the slow ones, without `xputrace` */
	const char *missing; /* lines: what was not recorded, and how to; "": nothing */
};

/*
 * Reads the recording, twice. 0 also for one that was cut short, see xpt_explain_complete(). -ENOENT: a program that was chosen is not
 * in it; -EINVAL: an option makes no sense; -E2BIG options of a newer library; -EBADMSG not a recording, -EPROTO of an unknown
 * version; errors of open() otherwise.
 */
XPT_API int xpt_explain_create(const struct xpt_explain_options *options, struct xpt_explain **explain);
/* NULL is allowed. */
XPT_API void xpt_explain_destroy(struct xpt_explain *explain);

XPT_API int xpt_explain_complete(const struct xpt_explain *explain);	     /* 0: the recording was cut short */
XPT_API size_t xpt_explain_program_count(const struct xpt_explain *explain); /* those that are explained */
XPT_API size_t xpt_explain_program_total(const struct xpt_explain *explain); /* those that are too many included */
/* Those with most time in all first. NULL, EINVAL: there is no such program. */
XPT_API const struct xpt_explain_program *xpt_explain_program(const struct xpt_explain *explain, size_t index);

/* In words, for a terminal of this number of columns (0: nothing is cut); terminated, the caller frees it. 0 or -ENOMEM. */
XPT_API int xpt_explain_text(const struct xpt_explain *explain, unsigned int columns, char **text);
/* As one JSON object (user/report/SCHEMA.md, Explanation), as above. */
XPT_API int xpt_explain_json(const struct xpt_explain *explain, char **json);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What differs between recordings, of before and after a change, and whether that is more than noise.
 *
 * A figure of a side is the mean over its recordings, or over the inferences of its only one. With enough recordings of a program, three on
 * one side and four in all, each is one value, and the tests see how much recordings differ from each other: Welch's t test and
 * the rank test by Mann and Whitney, p being twice the smaller one. With fewer, each recording is divided into 16 blocks in order of time, and a
 * bootstrap of whole blocks gives the error (also of pairs of them, the larger one counts). What one recording cannot show
 * is then assumed: how much two recordings of the same program differ (run_noise; waiting for a CPU by all of it, since that depends on
 * what else ran). p values of all rows are adjusted by Benjamini and Hochberg.
 */
#ifndef XPUTRACE_DIFF_H
#define XPUTRACE_DIFF_H

#include <stddef.h>
#include <stdint.h>

#include <xputrace/error.h>
#include <xputrace/target.h>

#ifdef __cplusplus
extern "C" {
#endif

enum xpt_diff_kind {
	XPT_DIFF_DURATION = 0,	 /* "mean", "p50", "p90", "p99": of an inference */
	XPT_DIFF_THROUGHPUT = 1, /* "throughput": inferences a second, while the program ran */
	XPT_DIFF_ERRORS = 2,	 /* "errors": failed inferences, of 1 */
	XPT_DIFF_STATE = 3,	 /* "cpu", "waited", "futex"...: time of an inference, where it went */
	XPT_DIFF_DEVICE = 4,	 /* "device", "queue": time of an inference's jobs, may overlap */
	XPT_DIFF_OPERATOR = 5,	 /* self time of an operator in an inference, of the middle half by duration */
	XPT_DIFF_COUNTER = 6,	 /* of the machine, in no program */
	XPT_DIFF_OUTSIDE = 7,	 /* of an inference's change: CPU time outside operators */
};

/* "duration", "throughput", ..., for machines; NULL: no such kind. Static. */
XPT_API const char *xpt_diff_kind_name(enum xpt_diff_kind kind);

/* One figure. NaN: not known. */
struct xpt_diff_row {
	enum xpt_diff_kind kind;
	const char *name;
	const char *unit;     /* "ns", "1/s", "" a plain number */
	double before, after; /* NaN: it is not there on this side */
	double change;	      /* after - before */
	double percent;	      /* of before; NaN also where that is 0 */
	double low, high;     /* interval of change, confidence 1 - level, of this row alone */
	double p, adjusted;   /* NaN: too little to test */
	int significant;      /* adjusted is at most the level */
};

/* A share of a change. */
struct xpt_diff_part {
	enum xpt_diff_kind kind; /* STATE, OPERATOR: its CPU time, or all of it where states were not recorded; OUTSIDE */
	const char *name;
	double before, after, change; /* ns */
};

/* What the change of a duration consists of: of p50 and p99, in inferences around that quantile. */
struct xpt_diff_cause {
	const char *row;		   /* "mean", "p50", "p99" */
	double change;			   /* ns, as in the row */
	const struct xpt_diff_part *parts; /* the largest change first */
	size_t part_count;
	size_t part_size; /* of one of them: XPT_AT() in error.h */
	double rest;	  /* ns: change without the parts, not attributed */
};

enum xpt_diff_match {
	XPT_DIFF_BY_NAME = 0,	     /* runtime, name, process */
	XPT_DIFF_BY_NAME_ALONE = 1,  /* runtime and name, of processes with different names */
	XPT_DIFF_BY_HASH = 2,	     /* SHA-256 of the model */
	XPT_DIFF_BY_FINGERPRINT = 3, /* of the operators of an inference */
	XPT_DIFF_BY_PROCESS =
		4, /* the only one left of its runtime and process on both sides, one of them without a name of its own */
};

/* "name", "name alone", ..., for machines; NULL: no such match. Static. */
XPT_API const char *xpt_diff_match_name(enum xpt_diff_match match);

/* A program that is on both sides. */
struct xpt_diff_program {
	const char *runtime;
	const char *name, *process; /* as after */
	const char *name_before, *process_before;
	enum xpt_diff_match match;
	int model_changed;				  /* hash or fingerprint are known on both sides and differ */
	uint64_t inferences_before, inferences_after;	  /* counted by the kernel, of all recordings */
	unsigned int recordings_before, recordings_after; /* in which it ran */
	int by_recording;				  /* a recording is one value; else blocks of them are */
	const struct xpt_diff_row *rows;		  /* most significant first */
	size_t row_count;
	size_t row_size;    /* of one of them: XPT_AT() in error.h; as the others below */
	size_t significant; /* rows */
	const struct xpt_diff_cause *causes;
	size_t cause_count;
	size_t cause_size;
};

/* A program that is compared with none. */
struct xpt_diff_unmatched {
	const char *runtime, *name, *process;
	uint64_t inferences;
	int after;     /* it is of the second side */
	int ambiguous; /* several on the other side could be it */
};

/* A condition, and what has become of it. */
struct xpt_diff_check {
	const char *condition; /* as it was given */
	const char *program;   /* that it failed for, or came nearest to; NULL: there is no such row */
	const char *row;
	double before, after, percent;
	double adjusted; /* p value of the row */
	int beyond;	 /* the change is beyond the limit; it may be noise */
	int failed;	 /* and is significant as well */
};

struct xpt_diff {
	size_t size;		 /* sizeof(struct xpt_diff) of the library */
	double level, run_noise; /* as used */
	unsigned int recordings_before, recordings_after;
	const struct xpt_diff_program *programs; /* most significant first */
	size_t program_count;
	size_t program_size;
	const struct xpt_diff_unmatched *unmatched;
	size_t unmatched_count;
	size_t unmatched_size;
	const struct xpt_diff_row *counters; /* of the machine */
	size_t counter_count;
	size_t counter_size;
	const struct xpt_diff_check *checks; /* of conditions, in their order */
	size_t check_count;
	size_t check_size;
	const char *const *notes; /* what makes the sides less comparable, a line each */
	size_t note_count;
	size_t tested;	    /* rows with a p value */
	size_t significant; /* of them */
	int failed;	    /* a check has failed */
};

struct xpt_diff_options {
	size_t size;		   /* sizeof(struct xpt_diff_options) */
	const char *const *before; /* recordings */
	size_t before_count;
	const char *const *after;
	size_t after_count;
	double level;	  /* share of false discoveries among the significant rows, 0 to 0.5; 0: 0.01 */
	double run_noise; /* standard deviation of recordings of the same program, as a share; 0: 0.1; negative: none */
	/*
	 * Conditions that fail the comparison: "p99 > +10%", "throughput < -5%", "waited > +2ms of resnet50". A row (its name, or that of an
	 * operator or counter, in double quotes where it is no word), > or >= or < or <=, the change with its sign, in percent or as a time,
	 * and after "of" one program instead of all. -EINVAL: see xpt_diff_check_condition().
	 */
	const char *const *conditions;
	size_t condition_count;
	/* As in struct xpt_report_options, of both sides. */
	const struct xpt_program_choice *programs;
	size_t program_count;
	size_t program_size;
	const char *match;
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
	void (*progress)(void *context, uint64_t done, uint64_t total); /* bytes, of each side anew; NULL: none */
	void *progress_context;
};

/* -EINVAL: no condition: reason gets the cause, cut to size (NULL if size is 0). */
XPT_API int xpt_diff_check_condition(const char *condition, char *reason, size_t size);

/*
 * Reads both sides and compares them. Everything in *diff lives until xpt_diff_destroy(). Errors as of xpt_report_create(); a recording
 * that was cut short is no error but a note. -EINVAL: no recordings on a side, or an option makes no sense.
 */
XPT_API int xpt_diff_create(const struct xpt_diff_options *options, struct xpt_diff **diff);
XPT_API void xpt_diff_destroy(struct xpt_diff *diff); /* NULL is allowed */

/*
 * As tables for people; safe for a terminal, terminated, to be freed by the caller. columns: width of the terminal, 0: nothing is
 * cut; all: with the rows that are not significant. -ENOMEM.
 */
XPT_API int xpt_diff_text(const struct xpt_diff *diff, unsigned int columns, int all, char **text);
/* As one JSON object (user/report/SCHEMA.md, Comparison as JSON), terminated, to be freed by the caller. -ENOMEM. */
XPT_API int xpt_diff_json(const struct xpt_diff *diff, char **json);
/*
 * As one page for browsers, which loads nothing: what the sides are, their losses and cost, and of each program its rows, what its changes
 * consist of, and the durations of both sides in one drawing; of the 1000 most significant programs. HTML in UTF-8, in which names are
 * text only; terminated, to be freed by the caller. diff: as xpt_diff_create() made it. -ENOMEM.
 */
XPT_API int xpt_diff_html(const struct xpt_diff *diff, char **html);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Latency reports as CSV in the Cloud AI 100 layout: a row a sample, or a row a program. Made piece by piece, so that a report of a million samples
 * needs no buffer of its size. Schema: user/report/SCHEMA.md.
 */
#ifndef XPT_REPORT_LATENCY_LATENCY_H
#define XPT_REPORT_LATENCY_LATENCY_H

#include <stdbool.h>
#include <xputrace/profile_report.h>

#include "base/core/text.h"

/* "complete"; how a report's interval ended, for machines. */
const char *latency_end_name(enum xpt_profile_end end);

/* How far a report has been appended; begins as zeros. */
struct latency_position {
	size_t program, sample;
};

/*
 * Appends the next part of the report, until text is at least enough bytes long or the report is through. Returns
 * whether more is to come. An error is in text, and then nothing more comes.
 */
bool latency_samples(struct text *text, const struct xpt_profile_report *report, struct latency_position *position,
		     size_t enough);
bool latency_summary(struct text *text, const struct xpt_profile_report *report, struct latency_position *position,
		     size_t enough);
/* The heading above the rows of latency_summary(). */
void latency_summary_heading(struct text *text);
/* Heading of a counter's column: "power/energy-pkg/(J)", as a field of CSV. */
void latency_counter_name(struct text *text, const struct xpt_report_counter *counter);

/* ---- pieces of both kinds of tables ---- */

void latency_decimals(struct text *text, unsigned int nanoseconds);   /* nine digits */
void latency_value(struct text *text, bool whole, __u64 thousandths); /* three decimals; of numbers of things none */
/* Inferences in a second of the interval, rounded. False: not known. */
bool latency_rate(const struct xpt_profile_report *report, __u64 inferences, __u64 *thousandths);

#define LATENCY_FIGURES 9
extern const char *const latency_figure_names[LATENCY_FIGURES];
/* All figures of a column, each after a comma. Numbers of things are whole, but for mean and deviation. */
void latency_figures(struct text *text, const struct xpt_latencies *latencies, enum xpt_column column,
		     const char *unknown);

/* ---- flat tables ---- */

/*
 * Inferences as one flat table in CSV (RFC 4180): one header, a row an inference, or a row a program with its figures.
 * What is not known is an empty field; a column that has no value in any row can be left out. Columns:
 * user/report/SCHEMA.md.
 */

/* Bit i: column i is there; the fixed ones are followed by the counters, in their order. */
typedef __u64 flat_columns;

/* One inference. Strings are valid UTF-8 only by luck. */
struct flat_row {
	const char *host, *process, *runtime, *program;
	pid_t pid;
	__u32 program_id;
	__u64 handle;
	__u64 start; /* ns since 1970; 0: not known */
	const struct xpt_sample *sample;
};

/* The columns that have a value in this row. */
flat_columns flat_row_columns(const struct flat_row *row, size_t counter_count);
void flat_add_header(struct text *text, flat_columns columns, const struct xpt_report_counter *counters,
		     size_t counter_count);
void flat_add_row(struct text *text, flat_columns columns, const struct flat_row *row, size_t counter_count);

/*
 * The columns of a report in rows of inferences or, with summary, of programs. all: those that any report of the session may
 * have; else those that have a value in this one.
 */
flat_columns flat_report_columns(const struct xpt_profile_report *report, bool summary, bool all);
void flat_report_header(struct text *text, const struct xpt_profile_report *report, bool summary, flat_columns columns);
/* As latency_samples() and latency_summary(). */
bool flat_report(struct text *text, const struct xpt_profile_report *report, bool summary, flat_columns columns,
		 struct latency_position *position, size_t enough);

#endif

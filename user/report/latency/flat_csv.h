/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Inferences as one flat table in CSV (RFC 4180): one header, a row an inference, or a row a program with its figures. What is
 * not known is an empty field; a column that has no value in any row can be left out. Columns: user/report/SCHEMA.md.
 */
#ifndef XPT_REPORT_LATENCY_FLAT_CSV_H
#define XPT_REPORT_LATENCY_FLAT_CSV_H

#include <xputrace/profile_report.h>

#include "base/core/text.h"
#include "report/latency/latency.h"

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

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

#endif

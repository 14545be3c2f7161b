/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A document that reports are appended to, in any of the formats: its head, the reports piece by piece, and the tail
 * that makes it complete. Text only; files are report_growing.h.
 */
#ifndef XPT_REPORT_LATENCY_REPORT_DOCUMENT_H
#define XPT_REPORT_LATENCY_REPORT_DOCUMENT_H

#include <stdbool.h>
#include <xputrace/profile_report.h>

#include "base/core/text.h"
#include "report/latency/latency.h"

struct report_document {
	enum xpt_report_format format;
	bool single;	      /* one report is expected: a flat table has the columns of the first one only */
	flat_columns columns; /* of a flat table, once there is a report */
	__u64 reports;	      /* in the document */
	__u64 left_out;	      /* could not be written while it was this document's turn */
	bool has_events;
	__u64 inferences, samples, lost; /* of all reports and programs */
	__u64 start, end;		 /* first interval begins, last one ends: CLOCK_MONOTONIC */
};

/* How far one report has been appended; begins with the report and zeros. */
struct report_part {
	const struct xpt_profile_report *report;
	struct latency_position position;
	size_t events; /* bytes of its events that have been appended */
	flat_columns columns;
	bool begun;
};

/* 0, or -EINVAL when the format does not fit the report. */
int report_document_check(const struct xpt_profile_report *report, enum xpt_report_format format);
/* The whole of one report, compressed or not. As xpt_profile_report_write(), and -ENOMEM. */
int report_document_write(const struct xpt_profile_report *report, enum xpt_report_format format, bool compressed,
			  int descriptor);
/* Nothing would be appended. */
bool report_document_skips(const struct xpt_profile_report *report, enum xpt_report_format format);
/*
 * Appends the next piece to text, which was empty, about REPORT_PIECE bytes long; the document's head comes with the
 * first piece of its first report. Returns whether more is to come. An error is in text.
 */
bool report_document_next(const struct report_document *document, struct report_part *part, struct text *text);
#define REPORT_PIECE (1u << 20)
/* The report is in the document. */
void report_document_count(struct report_document *document, const struct xpt_profile_report *report);
/* What completes the document behind its last report; a whole empty document when there is none. last: it is closed. */
void report_document_tail(const struct report_document *document, struct text *text, bool last);

#endif

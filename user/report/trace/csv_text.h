/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of CSV (RFC 4180) with strings that may come from a traced program: in quotes where they need them, quotes
 * doubled. What a spreadsheet would calculate gets an apostrophe before it, and what a terminal would not just show is
 * escaped as text_terminal() does. NULL is "".
 */
#ifndef XPT_REPORT_TRACE_CSV_TEXT_H
#define XPT_REPORT_TRACE_CSV_TEXT_H

#include "base/core/text.h"
#include "base/core/usage.h"

void csv_string(struct text *text, const char *string); /* line ends are kept between the quotes */
void csv_line(struct text *text, const char *string);	/* line ends are escaped: the record stays on its line */

/* What a process uses over time: a row a reading. Schema: user/report/SCHEMA.md. */
void usage_csv_heading(struct text *text);
/* before: the row before this one; NULL: this is the first one. What is not known is N/A. */
void usage_csv_row(struct text *text, const struct process_usage *usage, const struct process_usage *before);

#endif

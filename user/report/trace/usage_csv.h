/* SPDX-License-Identifier: BSD-2-Clause */
/* What a process uses over time, as CSV: a row a reading. Schema: user/report/SCHEMA.md. */
#ifndef XPT_REPORT_TRACE_USAGE_CSV_H
#define XPT_REPORT_TRACE_USAGE_CSV_H

#include "base/core/text.h"
#include "base/core/usage.h"

void usage_csv_heading(struct text *text);
/* before: the row before this one; NULL: this is the first one. What is not known is N/A. */
void usage_csv_row(struct text *text, const struct process_usage *usage, const struct process_usage *before);

#endif

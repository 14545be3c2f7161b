/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fields of CSV (RFC 4180) with strings that may come from a traced program: in quotes where they need them, quotes
 * doubled. What a spreadsheet would calculate gets an apostrophe before it, and what a terminal would not just show is
 * escaped as text_terminal() does. NULL is "".
 */
#ifndef XPT_REPORT_TRACE_CSV_TEXT_H
#define XPT_REPORT_TRACE_CSV_TEXT_H

#include "base/core/text.h"

void csv_string(struct text *text, const char *string); /* line ends are kept between the quotes */
void csv_line(struct text *text, const char *string);	/* line ends are escaped: the record stays on its line */

#endif

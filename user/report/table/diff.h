/* SPDX-License-Identifier: BSD-2-Clause */
/* A comparison (<xputrace/diff.h>) as tables and as JSON. */
#ifndef XPT_REPORT_TABLE_DIFF_H
#define XPT_REPORT_TABLE_DIFF_H

#include <stdbool.h>
#include <stdio.h>
#include <xputrace/diff.h>

#include "base/core/text.h"

/* As xpt_diff_text(). What out thinks of it is left to ferror(). */
int diff_text(const struct xpt_diff *diff, FILE *out, unsigned int columns, bool all);
void diff_json(struct text *text, const struct xpt_diff *diff);
/* For people: the value of a row of that unit, or with a sign a change of it: "+1.90ms"; "-": not known. */
void diff_text_value(struct text *text, double value, const char *unit, bool sign);
/* What a change of p50, p99 or the mean consists of: "+1.90ms p50: +1.70ms run-queue wait, +0.20ms operator `MatMul_3`". */
void diff_text_cause(struct text *text, const struct xpt_diff_cause *cause);
/* How many rows differ, by which test and at which level: one line, or two. */
void diff_text_summary(struct text *text, const struct xpt_diff *diff);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares two studies: see <xputrace/diff.h>, which has what comes out. */
#ifndef XPT_ANALYSIS_DIFF_H
#define XPT_ANALYSIS_DIFF_H

#include <linux/types.h>
#include <stdio.h>
#include <xputrace/diff.h>

#include "analysis/study.h"
#include "base/core/text.h"

#define DIFF_LEVEL 0.01
#define DIFF_RUN_NOISE 0.08

struct diff_options {
	double level, run_noise; /* as in struct xpt_diff_options, but for 0: it is 0 */
	__u64 seed;
	const char *const *conditions;
	size_t condition_count;
};

/* Strings of the result are of the studies, which must outlive it, and of the options' conditions. -EINVAL: a condition; -ENOMEM. */
int diff_create(const struct diff_options *options, const struct study *before, const struct study *after,
		struct xpt_diff **diff);
void diff_free(struct xpt_diff *diff); /* NULL is allowed */

/* As xpt_diff_text(). What out thinks of it is left to ferror(). */
int diff_text(const struct xpt_diff *diff, FILE *out, unsigned int columns, bool all);
void diff_json(struct text *text, const struct xpt_diff *diff);
/* For people: the value of a row of that unit, or with a sign a change of it: "+1.90ms"; "-": not known. */
void diff_text_value(struct text *text, double value, const char *unit, bool sign);
/* What a change of p50, p99 or the mean consists of: "+1.70ms run-queue wait, +0.20ms operator `MatMul_3`". */
void diff_text_cause(struct text *text, const struct xpt_diff_cause *cause);

#endif

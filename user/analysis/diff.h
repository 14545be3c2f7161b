/* SPDX-License-Identifier: BSD-2-Clause */
/* Compares two studies: see <xputrace/diff.h>, which has what comes out. */
#ifndef XPT_ANALYSIS_DIFF_H
#define XPT_ANALYSIS_DIFF_H

#include <linux/types.h>
#include <xputrace/diff.h>

#include "analysis/study.h"

#define DIFF_LEVEL 0.01
#define DIFF_RUN_NOISE 0.1

struct diff_options {
	double level, run_noise; /* as in struct xpt_diff_options, but for 0: it is 0 */
	__u64 seed;
	const char *const *conditions;
	size_t condition_count;
};

/* Strings of the result are of the studies, which must outlive it, and of the options' conditions. -EINVAL: a condition; -ENOMEM. */
int diff_create(const struct diff_options *options, const struct study *before, const struct study *after,
		struct xpt_diff **shown);
void diff_free(struct xpt_diff *shown); /* NULL is allowed */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Count, sum, extremes, deviation, and quantiles within 1 % from a bounded histogram that merges exactly. */
#ifndef XPT_MODEL_STATS_STATISTICS_H
#define XPT_MODEL_STATS_STATISTICS_H

#include <linux/types.h>
#include <stdbool.h>
#include <xputrace/profile_report.h>

struct statistics;

struct statistics *statistics_create(void); /* NULL: no memory */
void statistics_free(struct statistics *statistics);
int statistics_add(struct statistics *statistics,
		   __u64 value); /* -ENOMEM: count and sum are right, quantiles lack it */
int statistics_merge(struct statistics *into, const struct statistics *from);
/* Adds to *statistics, which *view shows; made with the first value. -ENOMEM, as above. */
int statistics_record(struct statistics **statistics, const struct statistics **view, __u64 value);
/* Adds *from to *into, which *view shows; moves it where there is nothing to add it to. Without memory only the quantiles lack it. */
void statistics_fold(struct statistics **into, const struct statistics **view, struct statistics **from);
/* How many values are at most this one: within 1 %, exact where all or none are, and for n * 2^m - 1 with n up to 128. */
__u64 statistics_up_to(const struct statistics *statistics, __u64 value);
/* Zero it to begin with; good for values that ascend, and all of them together cost little more than one. */
struct statistics_cursor {
	unsigned int row, column;
	__u64 seen;
};
__u64 statistics_up_to_next(const struct statistics *statistics, struct statistics_cursor *cursor, __u64 value);

__u64 statistics_count(const struct statistics *statistics);
__u64 statistics_min(const struct statistics *statistics); /* 0 when empty, as the others */
__u64 statistics_max(const struct statistics *statistics);
double statistics_sum(const struct statistics *statistics);
double statistics_mean(const struct statistics *statistics);
double statistics_deviation(const struct statistics *statistics); /* of the sample (n - 1) */
/* quantile in 0..1, nearest rank; within 1 % of the true value, exact at the ends. */
__u64 statistics_quantile(const struct statistics *statistics, double quantile);

/* What the public functions of <xputrace/profile_report.h> lack about the columns. */

/* The column holds whole numbers: inferences, not microseconds or a rate. */
bool latencies_column_whole(enum xpt_column column);

#endif

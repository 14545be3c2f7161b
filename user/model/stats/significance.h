/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether two groups of measurements differ by more than chance. Plain numbers, no recordings: the same input gives the same
 * answer on every machine. Two-sided throughout; a p value is NaN where there is too little to test.
 */
#ifndef XPT_MODEL_STATS_SIGNIFICANCE_H
#define XPT_MODEL_STATS_SIGNIFICANCE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* What is known of a figure: an estimate and how far it may be off. */
struct estimate {
	double value;
	double variance; /* of value, not of what it is of */
	double dof;	 /* degrees of freedom of variance; 0: it is not known */
};

/* The probability that |t| of Student's distribution is at least this; dof > 0, infinite: the normal one. */
double student_p(double t, double dof);
/* |t| that is reached or exceeded with probability p, 0 < p < 1. */
double student_t(double p, double dof);

/* Their mean, with the variance of the mean; of fewer than two, dof is 0. */
struct estimate mean_estimate(const double *values, size_t count);

struct difference {
	double change;	  /* after - before */
	double low, high; /* interval of change, at the confidence 1 - level; NaN: not known */
	double p;	  /* that a change as large is seen without a reason */
};

/* Welch's test: degrees of freedom as by Satterthwaite. */
struct difference welch_difference(const struct estimate *before, const struct estimate *after, double level);
/*
 * Of two groups of values that are independent of each other. Welch's test, or where one has fewer than three values, Student's with a
 * variance that both have in common; p is twice the smaller one of that and rank_test(): few outliers hide nothing. Together fewer than
 * four: NaN.
 */
struct difference group_difference(const double *before, size_t before_count, const double *after, size_t after_count,
				   double level);

#define RANK_EXACT_MAX 40 /* values in both groups: up to here exact, also with ties */

/* Mann-Whitney: p of two groups of values being of one distribution. NaN: a group is empty, or no memory. */
double rank_test(const double *a, size_t a_count, const double *b, size_t b_count);

/* Benjamini-Hochberg: replaces p values by the smallest share of false discoveries at which they are discoveries. NaN stay. -ENOMEM. */
int adjust_p(double *p, size_t count);

/* ---- quantiles of values that follow each other in time ---- */

#define BLOCKS \
	16 /* of one recording: what is shorter than the eighth part of it does not make its blocks depend on each other */
#define BLOCK_LEAST 8 /* values in a block */
#define BLOCKS_MAX 4096

struct weighted {
	double value, weight;
	unsigned int block; /* below blocks */
};

/* Sorts by value, for the functions below. */
void weighted_sort(struct weighted *values, size_t count);
/* Nearest rank: the smallest value that so much of the weight, 0 to 1, is not above. 0 values: 0. */
double weighted_quantile(const struct weighted *sorted, size_t count, double quantile);
/*
 * Estimates of quantiles by a bootstrap of whole blocks, which keeps what neighbours have in common: blocks are drawn with
 * replacement, and the quantile of what they hold is taken, some hundred times. Done with blocks as given and with pairs of neighbours as
 * blocks, of which the larger variance counts: where longer blocks vary more than they should, values depend on each other
 * over longer times. blocks: even, 4 to BLOCKS_MAX; each holds values. quantiles in ascending order. -ENOMEM.
 */
int block_quantiles(const struct weighted *sorted, size_t count, unsigned int blocks, const double *quantiles,
		    size_t quantile_count, __u64 seed, struct estimate *estimates);
/* The same for the mean of blocks with these sums and weights; needs no bootstrap. blocks: even, at least 4. */
struct estimate block_mean(const double *sums, const double *weights, unsigned int blocks);

#endif

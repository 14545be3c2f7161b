/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stats/significance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- Student's distribution ---- */

/* Continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < tiny ? tiny : d);
	result = d;
	for (int i = 1; i < 500; i++) {
		double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
		double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1)), step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		result *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabs(d) < tiny ? tiny : d);
		c = fabs(c) < tiny ? tiny : c;
		step = d * c;
		result *= step;
		if (fabs(step - 1) < 1e-13)
			break;
	}
	return result;
}

/* The regularised one, I_x(a, b). */
static double incomplete_beta(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

double student_p(double t, double dof)
{
	t = fabs(t);
	if (isnan(t) || !(dof > 0))
		return NAN;
	if (isinf(t))
		return 0;
	return dof > 1e7 ? erfc(t / M_SQRT2) : incomplete_beta(dof / 2, 0.5, dof / (dof + t * t));
}

double student_t(double p, double dof)
{
	double low = 0, high = 1;

	while (student_p(high, dof) > p && high < 1e12)
		high *= 2;
	for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
		double middle = (low + high) / 2;

		if (student_p(middle, dof) > p)
			low = middle;
		else
			high = middle;
	}
	return high;
}

/* ---- differences ---- */

struct estimate mean_estimate(const double *values, size_t count)
{
	struct estimate estimate = { .dof = count > 1 ? count - 1 : 0 };
	double squares = 0;

	for (size_t i = 0; i < count; i++)
		estimate.value += values[i] / count;
	for (size_t i = 0; i < count; i++)
		squares += (values[i] - estimate.value) * (values[i] - estimate.value);
	if (count > 1)
		estimate.variance = squares / (count - 1) / count;
	return estimate;
}

static struct difference difference(double before, double after, double variance, double dof, double level)
{
	struct difference result = { .change = after - before, .low = NAN, .high = NAN, .p = NAN };
	double error = sqrt(variance), reach;

	if (!(dof > 0) || isnan(result.change) || isnan(variance))
		return result;
	reach = student_t(level, dof) * error;
	result.low = result.change - reach;
	result.high = result.change + reach;
	result.p = error > 0 ? student_p(result.change / error, dof) : result.change != 0 ? 0 : 1;
	return result;
}

struct difference welch_difference(const struct estimate *before, const struct estimate *after, double level)
{
	const double a = before->variance, b = after->variance;
	double dof = before->dof + after->dof;

	if (!(before->dof > 0) || !(after->dof > 0))
		dof = 0;
	else if (a + b > 0)
		dof = (a + b) * (a + b) / (a * a / before->dof + b * b / after->dof);
	return difference(before->value, after->value, a + b, dof, level);
}

struct difference group_difference(const double *before, size_t before_count, const double *after, size_t after_count,
				   double level)
{
	const struct estimate a = mean_estimate(before, before_count), b = mean_estimate(after, after_count);
	struct difference result;
	double dof = a.dof + b.dof, squares, ranks;

	if (!before_count || !after_count || before_count + after_count < 4)
		return difference(a.value, b.value, 0, 0, level);
	if (before_count < 3 || after_count < 3) {
		squares = a.variance * a.dof * before_count + b.variance * b.dof * after_count;
		result = difference(a.value, b.value, squares / dof * (1.0 / before_count + 1.0 / after_count), dof,
				    level);
	} else {
		result = welch_difference(&a, &b, level);
	}
	ranks = rank_test(before, before_count, after, after_count);
	if (!isnan(ranks))
		result.p = fmin(1, 2 * fmin(result.p, ranks));
	return result;
}

/* ---- ranks ---- */

struct ranked {
	double value;
	bool first;	    /* of the first group */
	unsigned int twice; /* its rank from 1, doubled: values that are alike have the mean of their ranks */
};

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	return a->value < b->value ? -1 : a->value > b->value;
}

/* Returns the sum of t^3 - t over the groups of t values that are alike. */
static double assign_ranks(struct ranked *ranked, size_t count)
{
	double ties = 0;

	for (size_t begin = 0, end; begin < count; begin = end) {
		double alike;

		for (end = begin + 1; end < count && ranked[end].value == ranked[begin].value; end++)
			;
		alike = end - begin;
		ties += alike * alike * alike - alike;
		for (size_t i = begin; i < end; i++)
			ranked[i].twice = begin + 1 + end;
	}
	return ties;
}

/*
 * Every choice of `chosen` of these values is as likely: the share of those with a doubled sum of ranks as far from the middle as sum.
 * ways[k][s]: choices of k values with the sum s. -1: no memory.
 */
static double exact_ranks(const struct ranked *ranked, size_t count, size_t chosen, unsigned int sum)
{
	const size_t sums = count * (count + 1) + 1;
	const double middle = chosen * (count + 1.0), distance = fabs(sum - middle) - 1e-9;
	double *ways = calloc((chosen + 1) * sums, sizeof(*ways)), all = 0, far = 0;

	if (!ways)
		return -1;
	ways[0] = 1;
	for (size_t i = 0; i < count; i++)
		for (size_t k = chosen; k-- > 0;)
			for (size_t s = sums - ranked[i].twice; s-- > 0;)
				ways[(k + 1) * sums + s + ranked[i].twice] += ways[k * sums + s];
	for (size_t s = 0; s < sums; s++) {
		all += ways[chosen * sums + s];
		if (fabs(s - middle) >= distance)
			far += ways[chosen * sums + s];
	}
	free(ways);
	return far / all;
}

double rank_test(const double *a, size_t a_count, const double *b, size_t b_count)
{
	const size_t count = a_count + b_count;
	struct ranked *ranked = calloc(count ?: 1, sizeof(*ranked));
	double ties, sum = 0, distance, variance, p = NAN;

	if (!ranked || !a_count || !b_count) {
		free(ranked);
		return NAN;
	}
	for (size_t i = 0; i < count; i++)
		ranked[i] = (struct ranked){ i < a_count ? a[i] : b[i - a_count], i < a_count, 0 };
	qsort(ranked, count, sizeof(*ranked), compare_ranked);
	ties = assign_ranks(ranked, count);
	for (size_t i = 0; i < count; i++)
		sum += ranked[i].first ? ranked[i].twice : 0;
	if (count <= RANK_EXACT_MAX)
		p = exact_ranks(ranked, count, a_count, sum);
	free(ranked);
	if (count <= RANK_EXACT_MAX)
		return p < 0 ? NAN : p;
	distance = fabs(sum / 2 - a_count * (count + 1) / 2.0) - 0.5; /* corrected for steps */
	variance = (double)a_count * b_count / 12 * (count + 1 - ties / ((double)count * (count - 1)));
	if (!(variance > 0))
		return 1;
	return distance > 0 ? erfc(distance / sqrt(2 * variance)) : 1;
}

/* ---- many tests ---- */

static int compare_pointed(const void *left, const void *right)
{
	const double a = **(double *const *)left, b = **(double *const *)right;

	return a < b ? -1 : a > b;
}

int adjust_p(double *p, size_t count)
{
	double **order = calloc(count ?: 1, sizeof(*order)), least = 1;
	size_t known = 0;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (!isnan(p[i]))
			order[known++] = &p[i];
	qsort(order, known, sizeof(*order), compare_pointed);
	for (size_t i = known; i-- > 0;) {
		least = fmin(least, *order[i] * known / (i + 1));
		*order[i] = least;
	}
	free(order);
	return 0;
}

/* ---- blocks ---- */

#define REPLICATES_MAX 1000
#define REPLICATES_LEAST 200
#define STEPS_MAX (1u << 25) /* values looked at by a bootstrap, beyond REPLICATES_LEAST */
#define QUANTILES_MAX 8

static int compare_weighted(const void *left, const void *right)
{
	const struct weighted *a = left, *b = right;

	return a->value < b->value ? -1 : a->value > b->value;
}

void weighted_sort(struct weighted *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare_weighted);
}

double weighted_quantile(const struct weighted *sorted, size_t count, double quantile)
{
	double all = 0, sum = 0;

	for (size_t i = 0; i < count; i++)
		all += sorted[i].weight;
	for (size_t i = 0; i < count; i++) {
		sum += sorted[i].weight;
		if (sum >= quantile * all * (1 - 1e-12))
			return sorted[i].value;
	}
	return count ? sorted[count - 1].value : 0;
}

/* splitmix64: any seed is good. */
static __u64 draw(__u64 *state)
{
	__u64 z = (*state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

/* Quantiles of the values when block b is there times[b] times. all: their weight then. */
static void replicate(const struct weighted *sorted, size_t count, const unsigned int *times, double all,
		      const double *quantiles, size_t quantile_count, double *results)
{
	size_t next = 0;
	double sum = 0;

	for (size_t i = 0; i < count && next < quantile_count; i++) {
		sum += times[sorted[i].block] * sorted[i].weight;
		while (next < quantile_count && sum >= quantiles[next] * all * (1 - 1e-12))
			results[next++] = sorted[i].value;
	}
	while (next < quantile_count)
		results[next++] = count ? sorted[count - 1].value : 0;
}

/* Variances of the quantiles, where `together` neighbouring blocks are drawn as one. */
static void bootstrap(const struct weighted *sorted, size_t count, unsigned int blocks, unsigned int together,
		      const double *weights, const double *quantiles, size_t quantile_count, __u64 seed,
		      double *variances)
{
	double sums[QUANTILES_MAX] = {}, squares[QUANTILES_MAX] = {}, results[QUANTILES_MAX], origin[QUANTILES_MAX];
	unsigned int times[BLOCKS_MAX], groups = blocks / together;
	size_t replicates = STEPS_MAX / (count ?: 1);

	replicates = replicates > REPLICATES_MAX   ? REPLICATES_MAX :
		     replicates < REPLICATES_LEAST ? REPLICATES_LEAST :
						     replicates;
	for (size_t i = 0; i < replicates; i++) {
		double all = 0;

		memset(times, 0, blocks * sizeof(*times));
		for (unsigned int k = 0; k < groups; k++) {
			unsigned int first = draw(&seed) % groups * together;

			for (unsigned int b = first; b < first + together; b++) {
				times[b]++;
				all += weights[b];
			}
		}
		replicate(sorted, count, times, all, quantiles, quantile_count, results);
		for (size_t q = 0; q < quantile_count; q++) {
			origin[q] = i ? origin[q] : results[q];
			sums[q] += results[q] - origin[q];
			squares[q] += (results[q] - origin[q]) * (results[q] - origin[q]);
		}
	}
	/* A draw of n blocks from n varies (n - 1) / n times as much as n new blocks would. */
	for (size_t q = 0; q < quantile_count; q++)
		variances[q] = fmax(0, (squares[q] - sums[q] * sums[q] / replicates) / (replicates - 1)) * groups /
			       (groups - 1);
}

int block_quantiles(const struct weighted *sorted, size_t count, unsigned int blocks, const double *quantiles,
		    size_t quantile_count, __u64 seed, struct estimate *estimates)
{
	double single[QUANTILES_MAX], paired[QUANTILES_MAX];
	double *weights = calloc(blocks, sizeof(*weights));

	if (!weights)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		weights[sorted[i].block] += sorted[i].weight;
	bootstrap(sorted, count, blocks, 1, weights, quantiles, quantile_count, seed, single);
	bootstrap(sorted, count, blocks, 2, weights, quantiles, quantile_count, ~seed, paired);
	for (size_t q = 0; q < quantile_count; q++)
		estimates[q] = (struct estimate){ weighted_quantile(sorted, count, quantiles[q]),
						  fmax(single[q], paired[q]), blocks / 2.0 - 1 };
	free(weights);
	return 0;
}

/* Variance of the mean of a ratio, of groups of blocks. */
static double ratio_variance(const double *sums, const double *weights, unsigned int blocks, unsigned int together,
			     double mean, double all)
{
	const unsigned int groups = blocks / together;
	double squares = 0;

	for (unsigned int i = 0; i < blocks; i += together) {
		double rest = 0;

		for (unsigned int b = i; b < i + together; b++)
			rest += sums[b] - mean * weights[b];
		squares += rest * rest;
	}
	return squares * groups / (groups - 1.0) / (all * all);
}

struct estimate block_mean(const double *sums, const double *weights, unsigned int blocks)
{
	struct estimate estimate = { .dof = blocks / 2.0 - 1 };
	double sum = 0, all = 0;

	for (unsigned int i = 0; i < blocks; i++) {
		sum += sums[i];
		all += weights[i];
	}
	if (!(all > 0))
		return (struct estimate){ .value = NAN, .variance = NAN };
	estimate.value = sum / all;
	estimate.variance = fmax(ratio_variance(sums, weights, blocks, 1, estimate.value, all),
				 ratio_variance(sums, weights, blocks, 2, estimate.value, all));
	return estimate;
}

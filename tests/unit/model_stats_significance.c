/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stats/significance.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#define NEAR(value, expected, most)                                                                                   \
	do {                                                                                                          \
		const double near_value = (value), near_expected = (expected);                                        \
		cr_assert(fabs(near_value - near_expected) <= (most), "%.12g, not %.12g", near_value, near_expected); \
	} while (0)

static __u64 state = 88172645463325252ULL;

static double uniform(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return ((state >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* By numerical integration of the density, elsewhere; and of tables. */
Test(model_stats_significance, student)
{
	NEAR(student_p(2.228138852, 10), 0.05, 1e-9);
	NEAR(student_p(-1, 1), 0.5, 1e-10);
	NEAR(student_p(0.5, 2.5), 0.6576979199, 1e-7);
	NEAR(student_p(3.5, 7), 0.0099930409, 1e-9);
	NEAR(student_p(12, 3), 0.0012450158, 1e-9);
	NEAR(student_p(2, 25.3), 0.0563440510, 1e-9);
	NEAR(student_p(1.959963985, INFINITY), 0.05, 1e-9);
	NEAR(student_p(0, 5), 1, 1e-12);
	cr_assert_eq(student_p(INFINITY, 5), 0);
	cr_assert(isnan(student_p(NAN, 5)) && isnan(student_p(1, 0)));
	NEAR(student_t(0.01, 5), 4.032142984, 1e-6);
	NEAR(student_t(0.05, 1), 12.70620474, 1e-6);
	NEAR(student_t(0.01, INFINITY), 2.575829304, 1e-6);
}

Test(model_stats_significance, welch)
{
	static const double a[] = { 27.5, 21.0, 19.0, 23.6, 17.0, 17.9, 16.9, 20.1,
				    21.9, 22.6, 23.1, 19.6, 19.0, 21.7, 21.4 },
			    b[] = { 27.1, 22.0, 20.8, 23.4, 23.4, 23.5, 25.8, 22.0, 24.8, 20.2, 21.9, 22.1, 22.9, 30.5 };
	struct estimate first = mean_estimate(a, 15), second = mean_estimate(b, 14);
	struct difference found = welch_difference(&first, &second, 0.05);

	NEAR(found.change, 2.78, 1e-9);
	NEAR(found.p, 0.011616192002641301, 1e-9);
	/* t = 2.7078, 26.953 degrees of freedom */
	NEAR(found.high - found.low, 2 * student_t(0.05, 26.952746503270305) * 2.78 / 2.707777779103324, 1e-6);
	NEAR((found.high + found.low) / 2, 2.78, 1e-9);
	first.dof = 0;
	cr_assert(isnan(welch_difference(&first, &second, 0.05).p));
}

Test(model_stats_significance, groups)
{
	static const double base[] = { 10, 11, 12, 11, 10.5 }, one[] = { 14 }, alike[] = { 10.9, 10.9, 10.9 };
	struct difference found = group_difference(base, 5, one, 1, 0.05);

	/* Of one value only the others' variance is known; its rank is 6 of 6: p = 2 / 6. */
	NEAR(found.change, 3.1, 1e-9);
	NEAR(found.p, 2 * 0.018845481049608703, 1e-9);
	cr_assert(found.low > 0 && found.low < 3.1 && found.high > 3.1);
	cr_assert(isnan(group_difference(base, 2, one, 1, 0.05).p));
	cr_assert(isnan(group_difference(base, 0, one, 1, 0.05).p));
	cr_assert(group_difference(base, 5, alike, 3, 0.05).p > 0.5);
	/* Nothing varies: any change is one. */
	cr_assert_eq(group_difference((double[]){ 1, 1, 1 }, 3, (double[]){ 2, 2, 2 }, 3, 0.01).p, 0);
	cr_assert_eq(group_difference((double[]){ 1, 1, 1 }, 3, (double[]){ 1, 1, 1 }, 3, 0.01).p, 1);
}

/* One value out of line hides nothing: the ranks are as clear as they can be. */
Test(model_stats_significance, outlier)
{
	static const double a[] = { 100, 101, 99, 100, 102, 98, 100, 101 },
			    b[] = { 120, 121, 119, 122, 118, 120, 121, 5000 };
	const struct estimate first = mean_estimate(a, 8), second = mean_estimate(b, 8);

	cr_assert(welch_difference(&first, &second, 0.01).p > 0.1);
	NEAR(group_difference(a, 8, b, 8, 0.01).p, 2 * rank_test(a, 8, b, 8), 1e-12);
	cr_assert(rank_test(a, 8, b, 8) < 0.0005);
}

/* All choices, one after the other. */
static double enumerate(const double *values, size_t count, size_t chosen)
{
	double ranks[16], middle = chosen * (count + 1) / 2.0, sum = 0, all = 0, far = 0;

	for (size_t i = 0; i < count; i++) {
		ranks[i] = 0.5;
		for (size_t k = 0; k < count; k++)
			ranks[i] += values[k] < values[i] ? 1 : values[k] == values[i] ? 0.5 : 0;
		sum += i < chosen ? ranks[i] : 0;
	}
	for (unsigned int set = 0; set < 1u << count; set++) {
		double other = 0;

		if ((size_t)__builtin_popcount(set) != chosen)
			continue;
		for (size_t i = 0; i < count; i++)
			other += set & 1u << i ? ranks[i] : 0;
		all++;
		far += fabs(other - middle) >= fabs(sum - middle) - 1e-9;
	}
	return far / all;
}

Test(model_stats_significance, ranks)
{
	/* The tables of Mann and Whitney: U = 2 of 5 and 5; U = 0 of 5 and 5, of 4 and 4. */
	NEAR(rank_test((double[]){ 1, 2, 3, 4, 7 }, 5, (double[]){ 5, 6, 8, 9, 10 }, 5), 8 / 252.0, 1e-12);
	NEAR(rank_test((double[]){ 1, 2, 3, 4, 5 }, 5, (double[]){ 6, 7, 8, 9, 10 }, 5), 2 / 252.0, 1e-12);
	NEAR(rank_test((double[]){ 5, 6, 7, 8 }, 4, (double[]){ 1, 2, 3, 4 }, 4), 2 / 70.0, 1e-12);
	NEAR(rank_test((double[]){ 1, 2, 3, 4, 8 }, 5, (double[]){ 5, 6, 7, 9, 10 }, 5), 0.05555555555555555, 1e-12);
	NEAR(rank_test((double[]){ 1, 1, 2, 2, 3, 3 }, 6, (double[]){ 2, 3, 3, 4, 4, 4 }, 6), 0.05411255411255411,
	     1e-12);
	NEAR(rank_test((double[]){ 1, 2 }, 2, (double[]){ 3, 4, 5, 6, 7, 8 }, 6), 0.07142857142857142, 1e-12);
	cr_assert_eq(rank_test((double[]){ 1, 1 }, 2, (double[]){ 1, 1 }, 2), 1);
	cr_assert(isnan(rank_test(NULL, 0, (double[]){ 1 }, 1)));
	for (int round = 0; round < 30; round++) {
		double values[12];
		const size_t chosen = 2 + round % 8;

		for (size_t i = 0; i < 12; i++)
			values[i] = floor(uniform() * (round % 2 ? 6 : 1000));
		NEAR(rank_test(values, chosen, values + chosen, 12 - chosen), enumerate(values, 12, chosen), 1e-9);
	}
}

/* Too many to try all choices: of one distribution, also with many values alike, p is below 5 % in 5 % of the cases. */
Test(model_stats_significance, many_ranks)
{
	double a[30], b[30];
	int below[2] = {};

	for (int round = 0; round < 1000; round++) {
		for (size_t i = 0; i < 30; i++) {
			a[i] = floor(normal() * (round % 2 ? 1 : 1000));
			b[i] = floor(normal() * (round % 2 ? 1 : 1000));
		}
		below[round % 2] += rank_test(a, 30, b, 30) <= 0.05;
	}
	for (int i = 0; i < 2; i++)
		cr_assert(below[i] >= 10 && below[i] <= 42, "%d of 500", below[i]);
	for (size_t i = 0; i < 30; i++) {
		a[i] = 5;
		b[i] = 5;
	}
	cr_assert_eq(rank_test(a, 30, b, 30), 1);
	for (size_t i = 0; i < 30; i++)
		b[i] = 6;
	cr_assert(rank_test(a, 30, b, 30) < 1e-12);
}

/* The example of Benjamini and Hochberg (1995): at 5 % four are discoveries. */
Test(model_stats_significance, discoveries)
{
	double p[] = { 0.4262, 0.0001, 0.0004, NAN,    0.0019, 0.0095, 0.0201, 0.0278,
		       0.0298, 0.0344, 0.0459, 0.3240, 0.5719, 0.6528, 0.7590, 1.000 };
	int found = 0;

	cr_assert_eq(adjust_p(p, 16), 0);
	for (size_t i = 0; i < 16; i++)
		found += p[i] <= 0.05;
	cr_assert_eq(found, 4);
	NEAR(p[1], 0.0015, 1e-12);
	NEAR(p[2], 0.0030, 1e-12);
	NEAR(p[4], 0.0095, 1e-12);
	NEAR(p[5], 0.035625, 1e-12);
	NEAR(p[6], 0.0603, 1e-12);
	NEAR(p[7], 0.0298 * 15 / 7, 1e-12);
	NEAR(p[15], 1, 1e-12);
	cr_assert(isnan(p[3]));
	cr_assert_eq(adjust_p(NULL, 0), 0);
}

static struct weighted *series(size_t count, double dependence, double step)
{
	struct weighted *values = calloc(count, sizeof(*values));
	double own = 0;

	for (size_t i = 0; i < count; i++) {
		own = dependence * own + sqrt(1 - dependence * dependence) * normal();
		values[i] = (struct weighted){ 1000 + 50 * own + step, 1, i * BLOCKS / count };
	}
	return values;
}

Test(model_stats_significance, quantiles)
{
	struct weighted values[] = { { 3, 1, 0 }, { 1, 2, 0 }, { 2, 1, 1 }, { 9, 4, 1 } };

	weighted_sort(values, 4);
	cr_assert_eq(weighted_quantile(values, 4, 0), 1);
	cr_assert_eq(weighted_quantile(values, 4, 0.25), 1);
	cr_assert_eq(weighted_quantile(values, 4, 0.26), 2);
	cr_assert_eq(weighted_quantile(values, 4, 0.5), 3);
	cr_assert_eq(weighted_quantile(values, 4, 0.51), 9);
	cr_assert_eq(weighted_quantile(values, 4, 1), 9);
	cr_assert_eq(weighted_quantile(values, 0, 0.5), 0);
}

/* Against theory, of independent values: the error of a quantile is sqrt(q (1 - q) / n) / density. */
Test(model_stats_significance, bootstrap)
{
	static const double wanted[] = { 0.5, 0.9 }, theory[] = { 1.2533, 1.7094 };
	double ratio[2] = {};
	struct estimate found[2], again[2];

	for (int round = 0; round < 10; round++) {
		struct weighted *values = series(4000, 0, 0);

		weighted_sort(values, 4000);
		cr_assert_eq(block_quantiles(values, 4000, BLOCKS, wanted, 2, 1, found), 0);
		cr_assert_eq(block_quantiles(values, 4000, BLOCKS, wanted, 2, 1, again), 0);
		for (int q = 0; q < 2; q++) {
			cr_assert_eq(found[q].variance, again[q].variance, "the same seed gives the same");
			cr_assert_eq(found[q].value, weighted_quantile(values, 4000, wanted[q]));
			ratio[q] += sqrt(found[q].variance) / (theory[q] * 50 / sqrt(4000)) / 10;
		}
		free(values);
	}
	for (int q = 0; q < 2; q++)
		cr_assert(ratio[q] > 0.9 && ratio[q] < 1.5, "error %g times that of theory", ratio[q]);
}

#if !defined(__SANITIZE_ADDRESS__) /* what it computes is computed by others, too */
/* How often two series without a difference differ at 5 %, by the mean, the median and the 90th percentile. */
static void count_alarms(double dependence, int alarms[3])
{
	static const double wanted[] = { 0.5, 0.9 };

	for (int round = 0; round < 100; round++) {
		struct estimate found[2][3];

		for (int s = 0; s < 2; s++) {
			struct weighted *values = series(1600, dependence, 0);
			double sums[BLOCKS] = {}, weights[BLOCKS] = {};

			for (size_t i = 0; i < 1600; i++) {
				sums[values[i].block] += values[i].value;
				weights[values[i].block]++;
			}
			found[s][0] = block_mean(sums, weights, BLOCKS);
			weighted_sort(values, 1600);
			cr_assert_eq(block_quantiles(values, 1600, BLOCKS, wanted, 2, round, &found[s][1]), 0);
			free(values);
		}
		for (int q = 0; q < 3; q++)
			alarms[q] += welch_difference(&found[0][q], &found[1][q], 0.05).p <= 0.05;
	}
}

/* 5 % of 100 is 5; more than 11 come with a chance of 1 in 200. */
Test(model_stats_significance, false_alarms)
{
	static const double dependences[] = { 0, 0.9, 0.98 };

	for (size_t i = 0; i < 3; i++) {
		int alarms[3] = {};

		count_alarms(dependences[i], alarms);
		for (int q = 0; q < 3; q++)
			cr_assert(alarms[q] <= 11, "%d alarms of 100, figure %d, dependence %g", alarms[q], q,
				  dependences[i]);
	}
}
#endif

/* What there is is found: a step of one deviation. */
Test(model_stats_significance, power)
{
	static const double wanted[] = { 0.5, 0.9 };
	struct estimate found[2][2];

	for (int s = 0; s < 2; s++) {
		struct weighted *values = series(1600, 0.9, s ? 50 : 0);

		weighted_sort(values, 1600);
		cr_assert_eq(block_quantiles(values, 1600, BLOCKS, wanted, 2, 1, found[s]), 0);
		free(values);
	}
	for (int q = 0; q < 2; q++) {
		struct difference difference = welch_difference(&found[0][q], &found[1][q], 0.01);

		cr_assert(difference.p < 0.001 && difference.low < 50 && difference.high > 50);
	}
}

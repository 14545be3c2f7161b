/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stats/statistics.h"

#include <criterion/criterion.h>
#include <malloc.h>
#include <math.h>
#include <stdlib.h>

static __u64 state = 88172645463325252ULL;

static __u64 random_next(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static double random_unit(void)
{
	return (double)(random_next() >> 11) / 9007199254740992.0;
}

static __u64 draw(unsigned int distribution)
{
	switch (distribution) {
	case 0: /* uniform */
		return random_next() % 1000000;
	case 1: /* exponential */
		return (__u64)(-log(1 - random_unit()) * 50000);
	case 2: /* log-normal by the product of many */
		return (__u64)exp(10 + 2 * (random_unit() + random_unit() + random_unit() - 1.5));
	case 3: /* two peaks, as with warm and cold caches */
		return random_next() % 10 ? 1000 + random_next() % 50 : 5000000 + random_next() % 100000;
	case 4: /* small numbers */
		return random_next() % 100;
	case 5: /* all alike */
		return 123456789;
	case 6: /* Pareto: a long tail */
		return (__u64)(1000 / pow(1 - random_unit(), 1 / 1.2));
	default: /* any 64 bits */
		return random_next() >> (random_next() % 64);
	}
}

#define DISTRIBUTIONS 8
#define DRAWS 20000

static int compare(const void *left, const void *right)
{
	const __u64 *a = left, *b = right;

	return *a < *b ? -1 : *a > *b;
}

static __u64 exact_quantile(const __u64 *sorted, size_t count, unsigned int thousandth)
{
	size_t rank = (count * thousandth + 999) / 1000;

	return sorted[rank ? rank - 1 : 0];
}

static void check_quantiles(const struct statistics *statistics, __u64 *values, size_t count)
{
	static const unsigned int thousandths[] = { 0, 1, 10, 50, 250, 500, 750, 900, 950, 990, 999, 1000 };
	__u64 expected, got;
	size_t i;

	qsort(values, count, sizeof(*values), compare);
	for (i = 0; i < sizeof(thousandths) / sizeof(thousandths[0]); i++) {
		expected = exact_quantile(values, count, thousandths[i]);
		got = statistics_quantile(statistics, thousandths[i] / 1000.0);
		cr_assert(fabs((double)got - (double)expected) <= (double)expected * 0.01,
			  "quantile %u of 1000: %llu, not %llu", thousandths[i], got, expected);
	}
	cr_assert_eq(statistics_quantile(statistics, 0), values[0]);
	cr_assert_eq(statistics_quantile(statistics, 1), values[count - 1]);
}

Test(model_stats_statistics, quantiles_within_one_percent)
{
	static __u64 values[DRAWS];
	struct statistics *statistics;
	unsigned int distribution;
	size_t i;

	for (distribution = 0; distribution < DISTRIBUTIONS; distribution++) {
		statistics = statistics_create();
		for (i = 0; i < DRAWS; i++) {
			values[i] = draw(distribution);
			cr_assert_eq(statistics_add(statistics, values[i]), 0);
		}
		check_quantiles(statistics, values, DRAWS);
		cr_assert_eq(statistics_count(statistics), DRAWS);
		statistics_free(statistics);
	}
}

Test(model_stats_statistics, every_small_count_has_its_nearest_rank)
{
	__u64 values[101];
	struct statistics *statistics = statistics_create();
	size_t count;

	for (count = 1; count <= 101; count++) {
		values[count - 1] = draw(1);
		statistics_add(statistics, values[count - 1]);
		check_quantiles(statistics, values, count);
	}
	statistics_free(statistics);
}

Test(model_stats_statistics, ranks_are_not_off_by_rounding)
{
	struct statistics *statistics = statistics_create();
	__u64 i;

	/* Below 64 every value has a column of its own, so the rank shows. */
	for (i = 1; i <= 50; i++)
		statistics_add(statistics, i);
	cr_assert_eq(statistics_quantile(statistics, 0.14), 7); /* 0.14 * 50 is 7.000000000000001 in binary */
	cr_assert_eq(statistics_quantile(statistics, 0.5), 25);
	cr_assert_eq(statistics_quantile(statistics, 0.98), 49);
	cr_assert_eq(statistics_quantile(statistics, 0.981), 50);
	statistics_free(statistics);
}

Test(model_stats_statistics, empty_is_zero)
{
	struct statistics *statistics = statistics_create();

	cr_assert_eq(statistics_count(statistics), 0);
	cr_assert_eq(statistics_min(statistics), 0);
	cr_assert_eq(statistics_max(statistics), 0);
	cr_assert_eq(statistics_sum(statistics), 0);
	cr_assert_eq(statistics_mean(statistics), 0);
	cr_assert_eq(statistics_deviation(statistics), 0);
	cr_assert_eq(statistics_quantile(statistics, 0.5), 0);
	statistics_add(statistics, 7);
	cr_assert_eq(statistics_deviation(statistics), 0, "one value has no deviation");
	cr_assert_eq(statistics_quantile(statistics, 0.5), 7);
	cr_assert_eq(statistics_quantile(statistics, NAN), 7);
	cr_assert_eq(statistics_quantile(statistics, -1), 7);
	cr_assert_eq(statistics_quantile(statistics, 2), 7);
	statistics_free(statistics);
	statistics_free(NULL);
}

Test(model_stats_statistics, deviation_of_the_sample)
{
	struct statistics *statistics = statistics_create();
	static const __u64 values[] = { 2, 4, 4, 4, 5, 5, 7, 9 };
	size_t i;

	for (i = 0; i < 8; i++)
		statistics_add(statistics, values[i]);
	cr_assert_float_eq(statistics_mean(statistics), 5.0, 1e-12);
	cr_assert_float_eq(statistics_deviation(statistics), 2.13808993529939518, 1e-12); /* sqrt(32/7) */
	statistics_free(statistics);
}

Test(model_stats_statistics, deviation_survives_a_large_mean)
{
	struct statistics *statistics = statistics_create();
	__u64 i;

	/* Alternating 1 h - 10 ns and 1 h + 10 ns: squares differ in their last digits only. */
	for (i = 0; i < 1000; i++)
		statistics_add(statistics, 3600000000000ULL + (i % 2 ? 10 : -10));
	cr_assert_float_eq(statistics_deviation(statistics), 10 * sqrt(1000.0 / 999), 0.01);
	statistics_free(statistics);
}

Test(model_stats_statistics, extreme_values)
{
	struct statistics *statistics = statistics_create();
	double expected = 18446744073709551615.0;

	cr_assert_eq(statistics_add(statistics, ~(__u64)0), 0);
	cr_assert_eq(statistics_add(statistics, ~(__u64)0), 0);
	cr_assert_eq(statistics_add(statistics, 0), 0);
	cr_assert_eq(statistics_max(statistics), ~(__u64)0);
	cr_assert_eq(statistics_min(statistics), 0);
	cr_assert_float_eq(statistics_sum(statistics), 2 * expected, expected * 1e-12);
	/* squares have gone over 128 bits */
	cr_assert_float_eq(statistics_deviation(statistics), expected / sqrt(3), expected * 1e-6);
	cr_assert_eq(statistics_quantile(statistics, 0.3), 0);
	cr_assert_float_eq((double)statistics_quantile(statistics, 0.5), expected, expected * 0.01);
	statistics_free(statistics);
}

Test(model_stats_statistics, merging_is_exact)
{
	struct statistics *parts[3], *whole = statistics_create(), *merged = statistics_create();
	unsigned int i, thousandth;
	__u64 value;

	for (i = 0; i < 3; i++)
		parts[i] = statistics_create();
	for (i = 0; i < 30000; i++) {
		value = draw(i % DISTRIBUTIONS);
		statistics_add(parts[value % 3], value);
		statistics_add(whole, value);
	}
	for (i = 0; i < 3; i++) {
		cr_assert_eq(statistics_merge(merged, parts[i]), 0);
		statistics_free(parts[i]);
	}
	cr_assert_eq(statistics_count(merged), 30000);
	cr_assert_eq(statistics_min(merged), statistics_min(whole));
	cr_assert_eq(statistics_max(merged), statistics_max(whole));
	cr_assert_eq(statistics_sum(merged), statistics_sum(whole));
	cr_assert_eq(statistics_deviation(merged), statistics_deviation(whole));
	for (thousandth = 0; thousandth <= 1000; thousandth++)
		cr_assert_eq(statistics_quantile(merged, thousandth / 1000.0),
			     statistics_quantile(whole, thousandth / 1000.0));
	statistics_free(merged);
	statistics_free(whole);
}

Test(model_stats_statistics, merging_with_an_empty_one_changes_nothing)
{
	struct statistics *one = statistics_create(), *empty = statistics_create();

	statistics_add(one, 5);
	cr_assert_eq(statistics_merge(one, empty), 0);
	cr_assert_eq(statistics_min(one), 5);
	cr_assert_eq(statistics_merge(empty, one), 0);
	cr_assert_eq(statistics_min(empty), 5);
	cr_assert_eq(statistics_count(empty), 1);
	statistics_free(one);
	statistics_free(empty);
}

/* Few values are kept one by one, more in a histogram: what is merged of both is as if all had been added to one. */
Test(model_stats_statistics, few_and_many_merge_as_one)
{
	static const size_t sizes[] = { 0, 1, 12, 23, 24, 25, 40, 500 };
	const size_t count = sizeof(sizes) / sizeof(sizes[0]);

	for (size_t i = 0; i < count * count; i++) {
		struct statistics *whole = statistics_create(), *parts[] = { statistics_create(), statistics_create() };
		const size_t many[] = { sizes[i / count], sizes[i % count] };
		struct statistics_cursor cursor = {}, other = {};

		for (size_t part = 0; part < 2; part++)
			for (size_t each = 0; each < many[part]; each++) {
				__u64 value = draw((unsigned int)each % DISTRIBUTIONS);

				statistics_add(whole, value);
				statistics_add(parts[part], value);
			}
		cr_assert_eq(statistics_merge(parts[0], parts[1]), 0);
		cr_assert_eq(statistics_count(parts[0]), many[0] + many[1]);
		for (unsigned int thousandth = 0; thousandth <= 1000; thousandth++)
			cr_assert_eq(statistics_quantile(parts[0], thousandth / 1000.0),
				     statistics_quantile(whole, thousandth / 1000.0), "%zu and %zu values: %u of 1000",
				     many[0], many[1], thousandth);
		for (unsigned int bits = 0; bits < 63; bits++)
			cr_assert_eq(statistics_up_to_next(parts[0], &cursor, 1ull << bits),
				     statistics_up_to_next(whole, &other, 1ull << bits), "%zu and %zu values: %u bits",
				     many[0], many[1], bits);
		statistics_free(whole);
		statistics_free(parts[0]);
		statistics_free(parts[1]);
	}
}

#if defined(__SANITIZE_ADDRESS__)
#define MEASURES_MEMORY 0 /* the sanitizer's allocator does not tell */
#else
#define MEASURES_MEMORY 1
#endif

Test(model_stats_statistics, a_few_values_cost_less_than_200_bytes)
{
	struct statistics *statistics;
	struct mallinfo2 before, after;

	if (!MEASURES_MEMORY)
		cr_skip_test("the sanitizer's allocator does not say how much is in use");
	before = mallinfo2();
	statistics = statistics_create();
	for (unsigned int i = 0; i < 20; i++)
		statistics_add(statistics, 1000ull << i);
	after = mallinfo2();
	cr_assert_lt(after.uordblks - before.uordblks, 200);
	statistics_free(statistics);
}

/* More than 32 bits count. */
Test(model_stats_statistics, many_values_merge)
{
	struct statistics *whole = statistics_create(), *merged = NULL;

	statistics_add(whole, 5);
	for (unsigned int i = 0; i < 40; i++) { /* 2^40 of them */
		statistics_free(merged);
		merged = statistics_create();
		cr_assert_eq(statistics_merge(merged, whole), 0);
		cr_assert_eq(statistics_merge(whole, merged), 0);
	}
	cr_assert_eq(statistics_count(whole), 1ull << 40);
	cr_assert_eq(statistics_add(whole, 9), 0);
	cr_assert_eq(statistics_up_to(whole, 8), 1ull << 40);
	statistics_free(whole);
	statistics_free(merged);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/series.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static const double bounds[] = { 1, 2 };

static void begin(struct series_table *table, size_t most)
{
	struct text other = {};

	*table = (struct series_table){
		.most = most, .value_count = 2, .histogram_count = 2, .bounds = bounds, .bound_count = 2
	};
	label_add(&other, "program", "other");
	cr_assert_eq(series_init(table, &other), 0);
	text_free(&other);
}

static struct series *get(struct series_table *table, unsigned int number, double now)
{
	struct text labels = {};
	struct series *series;
	char name[16];

	snprintf(name, sizeof(name), "%u", number);
	label_add(&labels, "program", name);
	series = series_get(table, &labels, now);
	text_free(&labels);
	return series;
}

Test(base_core_series, each_set_of_labels_has_its_own)
{
	struct series_table table;
	struct series *first;

	begin(&table, 1000);
	for (unsigned int i = 0; i < 1000; i++)
		series_add(get(&table, i, i + 1), 0, i);
	first = get(&table, 0, 99);
	cr_assert_eq(first, get(&table, 0, 100));
	cr_assert_eq(first->created, 1);
	cr_assert_eq(table.count, 1000);
	cr_assert_eq(table.dropped, 0);
	for (unsigned int i = 0; i < 1000; i++) {
		cr_assert_eq(get(&table, i, 0)->values[0], i);
		cr_assert(isnan(get(&table, i, 0)->values[1]), "never observed");
	}
	/* Bins of one histogram are not those of another one or series. */
	first->histograms[0].counts[2] = 7;
	cr_assert_eq(first->histograms[1].counts[0], 0);
	cr_assert_eq(get(&table, 1, 0)->histograms[0].counts[2], 0);
	series_free(&table);
}

#if !defined(__SANITIZE_ADDRESS__) /* which ends a program that asks for so much */
Test(base_core_series, without_memory_it_is_the_overflow)
{
	struct series_table table;
	struct series *series;

	begin(&table, 1000);
	table.value_count = (size_t)1 << 60; /* more than there is */
	cr_assert_eq(get(&table, 1, 5), table.overflow);
	cr_assert(table.no_memory && !table.count && table.dropped == 1);
	table.value_count = 2;
	table.no_memory = false;
	series = get(&table, 1, 6);
	cr_assert(series != table.overflow && table.count == 1 && !table.no_memory);
	series_free(&table);
}
#endif

Test(base_core_series, counters_only_grow)
{
	struct series_table table;
	struct series *series;

	begin(&table, 1);
	series = get(&table, 0, 1);
	series_add(series, 0, 2);
	series_add(series, 0, -1);
	series_add(series, 0, NAN);
	series_add(series, 0, 0.5);
	series_add(series, 1, 0);
	cr_assert_eq(series->values[0], 2.5);
	cr_assert_eq(series->values[1], 0);
	series_free(&table);
}

Test(base_core_series, what_has_no_room_is_put_together_and_counted)
{
	struct series_table table;

	begin(&table, 3);
	series_add(series_overflow(&table, 8), 0, 3); /* has no labels */
	for (unsigned int round = 0; round < 10; round++)
		for (unsigned int i = 0; i < 5; i++)
			series_add(get(&table, i, 10 + round), 0, 1);
	cr_assert_eq(table.count, 3);
	cr_assert_eq(table.overflow->values[0], 23);
	cr_assert_eq(table.overflow->created, 8);
	cr_assert_eq(table.dropped, 2, "%llu", (unsigned long long)table.dropped);
	cr_assert_eq(get(&table, 2, 0)->values[0], 10);
	series_free(&table);
}

/* Stale series are removed, others and the overflow count on, and one that comes again is a new one. */
Test(base_core_series, stale)
{
	struct series_table table;
	struct series *kept;

	begin(&table, 3);
	table.clock = 1000;
	series_add(get(&table, 0, 1), 0, 5);
	series_add(get(&table, 1, 1), 0, 6);
	get(&table, 1, 1)->users = 1;
	series_add(get(&table, 2, 1), 0, 7);
	series_add(get(&table, 3, 1), 0, 8);
	table.clock = 1100;
	kept = get(&table, 2, 2);
	series_remove_stale(&table, 100);
	cr_expect_eq(table.removed, 0, "not for longer than 100");
	table.clock = 1101;
	series_remove_stale(&table, 100);
	cr_expect_eq(table.removed, 1, "%llu", table.removed);
	cr_assert_eq(table.count, 2);
	cr_expect_eq(kept, get(&table, 2, 3));
	cr_expect_eq(kept->values[0], 7);
	cr_expect_eq(kept->created, 1);
	cr_expect_eq(get(&table, 1, 3)->values[0], 6, "it has a user");
	cr_expect_eq(table.overflow->values[0], 8);
	series_add(get(&table, 0, 4), 0, 2);
	cr_expect_eq(get(&table, 0, 4)->values[0], 2);
	cr_expect_eq(get(&table, 0, 4)->created, 4);
	cr_expect_eq(table.overflow->values[0], 8);
	cr_expect_eq(table.count, 3);
	series_free(&table);
}

/* A native histogram grows to both sides, and has what was added. */
Test(base_core_series, native_buckets)
{
	struct histogram histogram = {};

	cr_assert_eq(histogram_native_add(&histogram, -5, 2), 0);
	cr_assert_eq(histogram_native_add(&histogram, -2, 3), 0);
	cr_assert_eq(histogram_native_add(&histogram, -9, 1), 0);
	cr_assert_eq(histogram_native_add(&histogram, -5, 4), 0);
	cr_expect_eq(histogram.native.first, -9);
	cr_assert_eq(histogram.native.count, 8);
	for (size_t i = 0; i < 8; i++)
		cr_expect_eq(histogram.native.counts[i], i == 0 ? 1 : i == 4 ? 6 : i == 7 ? 3 : 0, "%zu", i);
	free(histogram.native.counts);
}

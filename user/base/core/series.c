/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/core/link.h"
#include "base/core/vec.h"

#define SECOND 0x84222325cbf29ce4ull

static void release(const struct series_table *table, struct series *series)
{
	if (!series)
		return;
	for (size_t i = 0; series->histograms && i < table->histogram_count; i++) {
		text_free(&series->histograms[i].exemplar.labels);
		free(series->histograms[i].native.counts);
	}
	text_free(&series->labels);
	free(series->values);
	free(series->histograms);
	free(series);
}

static struct series *create(const struct series_table *table, const struct text *labels, double now)
{
	struct series *series = calloc(1, sizeof(*series));
	size_t cells = table->histogram_count * (table->bound_count + 1);
	__u64 *counts;

	if (!series)
		return NULL;
	series->created = now;
	series->values = calloc(table->value_count + 1, sizeof(*series->values));
	/* The counts are behind the histograms. */
	series->histograms = calloc(1,
				    table->histogram_count * sizeof(*series->histograms) + cells * sizeof(__u64) + 1);
	text_bytes(&series->labels, labels->data, labels->length);
	if (!series->values || !series->histograms || series->labels.error) {
		release(table, series);
		return NULL;
	}
	counts = (__u64 *)(series->histograms + table->histogram_count);
	for (size_t i = 0; i < table->histogram_count; i++)
		series->histograms[i] = (struct histogram){ .bounds = table->bounds,
							    .bound_count = table->bound_count,
							    .counts = counts + i * (table->bound_count + 1) };
	for (size_t i = 0; i < table->value_count; i++)
		series->values[i] = NAN;
	return series;
}

int series_init(struct series_table *table, const struct text *overflow)
{
	table->overflow = create(table, overflow, 0);
	return table->overflow ? 0 : -ENOMEM;
}

void series_free(struct series_table *table)
{
	for (size_t i = 0; i < table->count; i++)
		release(table, table->all[i]);
	release(table, table->overflow);
	free(table->all);
	map_free(&table->map);
}

struct series *series_overflow(struct series_table *table, double now)
{
	if (!table->overflow->created)
		table->overflow->created = now;
	return table->overflow;
}

/* Counted once, as long as few others come between. */
static struct series *drop(struct series_table *table, __u64 key, double now)
{
	__u64 *recent = &table->recent[key % (sizeof(table->recent) / sizeof(table->recent[0]))];

	if (*recent != key)
		table->dropped++;
	*recent = key;
	return series_overflow(table, now);
}

struct series *series_get(struct series_table *table, const struct text *labels, double now)
{
	__u64 first = hash_bytes(HASH_BEGIN, labels->data, labels->length),
	      second = hash_bytes(SECOND, labels->data, labels->length);
	struct series *series;

	for (struct map_node *node = map_find(&table->map, first, second); node; node = map_next(node)) {
		series = container_of(node, struct series, node);
		if (series->labels.length == labels->length &&
		    !memcmp(series->labels.data, labels->data, labels->length)) {
			series->used = table->clock;
			return series;
		}
	}
	if (table->count >= table->most)
		return drop(table, first, now);
	series = vec_reserve(table->all, table->count) ? NULL : create(table, labels, now);
	if (!series || map_add(&table->map, &series->node, first, second)) {
		release(table, series);
		table->no_memory = true;
		return drop(table, first, now);
	}
	series->used = table->clock;
	table->all[table->count++] = series;
	return series;
}

void series_remove_stale(struct series_table *table, __u64 age)
{
	for (size_t i = 0; i < table->count;) {
		struct series *series = table->all[i];

		if (series->users || table->clock < series->used || table->clock - series->used <= age) {
			i++;
			continue;
		}
		map_remove(&table->map, &series->node);
		table->all[i] = table->all[--table->count];
		table->removed++;
		release(table, series);
	}
}

int histogram_native_add(struct histogram *histogram, int bucket, __u64 count)
{
	struct native_histogram *native = &histogram->native;
	int first = native->count && native->first < bucket ? native->first : bucket;
	size_t end = native->count ? (size_t)(native->first - first) + native->count : 0, at = (size_t)(bucket - first);
	size_t wanted = at >= end ? at + 1 : end;

	if (!native->count || wanted > native->count) {
		__u64 *grown = calloc(wanted, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		for (size_t i = 0; i < native->count; i++)
			grown[(size_t)(native->first - first) + i] = native->counts[i];
		free(native->counts);
		*native = (struct native_histogram){ first, wanted, grown };
	}
	native->counts[at] += count;
	return 0;
}

void series_add(struct series *series, size_t value, double amount)
{
	if (!(amount >= 0))
		return;
	series->values[value] = isnan(series->values[value]) ? amount : series->values[value] + amount;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/series.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/core/link.h"
#include "base/core/vec.h"

#define SECOND 0x84222325cbf29ce4ull

static void release(struct series *series)
{
	if (!series)
		return;
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
		release(series);
		return NULL;
	}
	counts = (__u64 *)(series->histograms + table->histogram_count);
	for (size_t i = 0; i < table->histogram_count; i++)
		series->histograms[i] = (struct histogram){ table->bounds, table->bound_count,
							    counts + i * (table->bound_count + 1), 0 };
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
		release(table->all[i]);
	release(table->overflow);
	free(table->all);
	map_free(&table->map);
}

/* Counted once, as long as few others come between. */
static struct series *drop(struct series_table *table, __u64 key, double now)
{
	__u64 *recent = &table->recent[key % (sizeof(table->recent) / sizeof(table->recent[0]))];

	if (*recent != key)
		table->dropped++;
	*recent = key;
	if (!table->overflow->created)
		table->overflow->created = now;
	return table->overflow;
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
	if (vec_reserve(table->all, table->count))
		return NULL;
	series = create(table, labels, now);
	if (!series)
		return NULL;
	if (map_add(&table->map, &series->node, first, second)) {
		release(series);
		return NULL;
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
		release(series);
	}
}

void series_add(struct series *series, size_t value, double amount)
{
	if (!(amount >= 0))
		return;
	series->values[value] = isnan(series->values[value]) ? amount : series->values[value] + amount;
}

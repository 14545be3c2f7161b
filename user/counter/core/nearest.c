/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/core/nearest.h"

#include <stdio.h>
#include <string.h>

#include "counter/core/alias.h"

#define NAME_MAX_LENGTH 128
#define OFFERED 3

struct offer {
	char name[NAME_MAX_LENGTH];
	size_t distance;
};

struct search {
	const char *name;
	struct offer best[OFFERED];
	size_t count;
};

static size_t least(size_t a, size_t b, size_t c)
{
	a = a < b ? a : b;
	return a < c ? a : c;
}

/* Letters to insert, to delete and to exchange (Levenshtein's distance). */
static size_t distance_of(const char *from, const char *to)
{
	size_t row[NAME_MAX_LENGTH + 1], length = strlen(to), before, above;

	for (size_t j = 0; j <= length; j++)
		row[j] = j;
	for (size_t i = 0; from[i]; i++) {
		before = row[0];
		row[0] = i + 1;
		for (size_t j = 0; j < length; j++) {
			above = row[j + 1];
			row[j + 1] = least(above + 1, row[j] + 1, before + (from[i] != to[j]));
			before = above;
		}
	}
	return row[length];
}

static int on_counter(void *context, const struct xpt_counter_info *counter)
{
	struct search *search = context;
	struct offer offer;
	size_t at;

	if (strlen(counter->name) >= NAME_MAX_LENGTH || strlen(search->name) >= NAME_MAX_LENGTH)
		return 0;
	offer.distance = distance_of(search->name, counter->name);
	if (offer.distance > strlen(search->name) / 2 + 1)
		return 0;
	snprintf(offer.name, sizeof(offer.name), "%s", counter->name);
	for (at = search->count; at && search->best[at - 1].distance > offer.distance; at--)
		if (at < OFFERED)
			search->best[at] = search->best[at - 1];
	if (at == OFFERED)
		return 0;
	search->best[at] = offer;
	search->count += search->count < OFFERED;
	return 0;
}

void nearest_counters(const struct counter_place *place, const char *name, char text[NEAREST_TEXT_MAX])
{
	struct search search = { .name = name };
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; alias_name(i); i++)
		on_counter(&search, &(struct xpt_counter_info){ .name = alias_name(i) });
	counters_visit(place, on_counter, &search);
	for (size_t i = 0; i < search.count; i++)
		used += (size_t)snprintf(text + used, NEAREST_TEXT_MAX - used, "%s%s", i ? ", " : "",
					 search.best[i].name);
}

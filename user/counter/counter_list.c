/* SPDX-License-Identifier: BSD-2-Clause */
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "base/core/text.h"
#include "counter/alias.h"
#include "counter/counter.h"

typedef int (*visit_fn)(void *context, const struct xpt_counter_info *counter);

struct walk {
	visit_fn visit;
	void *context;
	char name[512];
};

/* The kernel names hardware events on every machine; virtual ones often have no counters for them. */
static bool has_core(const struct pmus *pmus)
{
	static const char *const cores[] = { "cpu", "cpu_core", "armv" };

	for (size_t i = 0; i < pmus->count; i++)
		for (size_t j = 0; j < sizeof(cores) / sizeof(cores[0]); j++)
			if (!strncmp(pmus->items[i].name, cores[j], strlen(cores[j])))
				return true;
	return false;
}

static int visit_kernel_events(const struct walk *walk, bool hardware)
{
	int result = 0;

	for (size_t i = 0; i < kernel_event_count && !result; i++)
		if (kernel_events[i].type != PERF_TYPE_HARDWARE || hardware)
			result = walk->visit(walk->context, &kernel_events[i].info);
	return result;
}

/* "engine-busy,engine=?": with what the caller has to give. */
static void event_name(struct walk *walk, const struct pmu *pmu, const struct pmu_event *event)
{
	const char *term = event->terms;
	size_t used = (size_t)snprintf(walk->name, sizeof(walk->name), "%s/%s", pmu->name, event->name);

	while (term && used < sizeof(walk->name)) {
		size_t length = strcspn(term, ",");

		if (length > 2 && term[length - 1] == '?' && term[length - 2] == '=')
			used += (size_t)snprintf(walk->name + used, sizeof(walk->name) - used, ",%.*s", (int)length,
						 term);
		term = term[length] ? term + length + 1 : NULL;
	}
	if (used < sizeof(walk->name))
		snprintf(walk->name + used, sizeof(walk->name) - used, "/");
}

static int visit_pmu(struct walk *walk, const struct pmu *pmu)
{
	int result = 0;

	for (size_t i = 0; i < pmu->event_count && !result; i++) {
		struct xpt_counter_info info = { .size = sizeof(info), .name = walk->name };

		counter_describe(pmu, &pmu->events[i], &info);
		event_name(walk, pmu, &pmu->events[i]);
		result = walk->visit(walk->context, &info);
	}
	return result;
}

static int on_polled(void *context, const struct polled_info *polled)
{
	struct walk *walk = context;
	struct xpt_counter_info info = { .size = sizeof(info), .name = walk->name };

	counter_describe_polled(polled, &info);
	snprintf(walk->name, sizeof(walk->name), "%s/%s/", polled->source, polled->event);
	return walk->visit(walk->context, &info);
}

int counters_visit(const struct counter_place *place, visit_fn visit, void *context)
{
	struct walk walk = { .visit = visit, .context = context };
	int result = 0;

	for (size_t i = 0; i < place->pmus.count && !result; i++)
		if (counter_of_node(place, &place->pmus.items[i]))
			result = visit_pmu(&walk, &place->pmus.items[i]);
	if (!result)
		result = polled_list(place, on_polled, &walk);
	return result ? result : visit_kernel_events(&walk, has_core(&place->pmus));
}

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

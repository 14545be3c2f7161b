/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/alias.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define SOURCE_MAX 240 /* bytes of the counters' names */

static const struct alias_definition *find_definition(const char *name)
{
	for (size_t i = 0; i < alias_definition_count; i++)
		if (!strcmp(alias_definitions[i].name, name))
			return &alias_definitions[i];
	return NULL;
}

bool alias_is(const char *name)
{
	return find_definition(name) != NULL;
}

const char *alias_name(size_t index)
{
	return index < alias_definition_count ? alias_definitions[index].name : NULL;
}

/* ---- the counters ---- */

int alias_add(struct alias_search *search, struct counter *counter, struct alias_term term)
{
	struct alias *alias = search->alias;

	/* Both arrays have the same count. */
	if (vec_reserve(alias->terms, alias->count) || vec_reserve(alias->counters, alias->count)) {
		counter_free(counter);
		return -ENOMEM;
	}
	alias->terms[alias->count] = term;
	alias->counters[alias->count++] = *counter;
	return 0;
}

/* What is not there is passed over; any other error is logged. */
int alias_try(struct alias_search *search, const char *name, struct counter *counter)
{
	struct counter_place aloud = search->place;
	int error = counter_resolve(&search->place, name, counter);

	if (!error || error == -ENOENT || error == -ENOMEM)
		return error;
	aloud.log = search->log;
	return counter_resolve(&aloud, name, counter);
}

static int search_device(struct alias_search *search, const struct alias_rule *rules)
{
	size_t before = search->alias->count;
	int error = 0;

	for (; rules->find && !error && search->alias->count == before; rules++) {
		error = rules->find(search, rules);
		if (error == -ENOENT)
			error = 0;
	}
	return error;
}

static int search_devices(struct alias_search *search, const struct counter_place *place,
			  const struct alias_rule *rules)
{
	int error = 0;

	for (size_t i = 0; i < place->nodes.count && !error; i++) {
		const struct node *node = &place->nodes.items[i];

		if (place->node && place->node != node)
			continue;
		search->place.node = node;
		error = search_device(search, rules);
	}
	if (error || place->node)
		return error;
	/* A device may have a PMU and no node, or be known to NVIDIA's library alone. */
	search->place.node = NULL;
	return search_device(search, rules);
}

/* ---- their descriptions ---- */

static bool is_named_before(const struct alias *alias, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(alias->counters[i].info.name, alias->counters[index].info.name))
			return true;
	return false;
}

static void write_names(const struct alias *alias, char text[SOURCE_MAX])
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < alias->count; i++) {
		const char *name = alias->counters[i].info.name;

		if (is_named_before(alias, i))
			continue;
		if (used + strlen(name) + sizeof(",...") >= SOURCE_MAX) {
			snprintf(text + used, SOURCE_MAX - used, ",...");
			break;
		}
		used += (size_t)snprintf(text + used, SOURCE_MAX - used, "%s%s", used ? "," : "", name);
	}
}

/* Where one has only its current value, it is no mean. */
static enum xpt_counter_kind kind_of(const struct alias *alias)
{
	bool mean = false, level = false;

	for (size_t i = 0; i < alias->count; i++) {
		enum xpt_counter_kind kind = alias->counters[i].info.kind;

		mean |= alias->terms[i].measure != ALIAS_VALUE || kind == XPT_COUNTER_MEAN;
		level |= alias->terms[i].measure == ALIAS_VALUE && kind == XPT_COUNTER_LEVEL;
	}
	return mean ? XPT_COUNTER_MEAN : level ? XPT_COUNTER_LEVEL : XPT_COUNTER_SUM;
}

static int describe(struct alias *alias, const struct alias_definition *definition)
{
	char source[SOURCE_MAX];
	struct xpt_counter_info info = {
		.name = definition->name,
		.unit = definition->unit,
		.description = definition->description,
		.source = source,
		.kind = kind_of(alias),
		.scale = 1,
	};

	write_names(alias, source);
	alias->highest = definition->highest;
	return counter_info_copy(&info, &alias->info);
}

/* ---- resolving ---- */

static void report_none(const struct counter_place *place, const char *name)
{
	if (place->node)
		log_error(place->log, "%s: the device %s (%s) does not tell it", name, place->node->address,
			  *place->node->driver ? place->node->driver : "no driver");
	else if (!place->nodes.count)
		log_error(place->log, "%s: there is no device here that tells it: see xputrace list devices", name);
	else
		log_error(place->log, "%s: none of the devices here tells it: see xputrace list counters", name);
}

int alias_resolve(const struct counter_place *place, const char *name, struct alias *alias)
{
	const struct alias_definition *definition = find_definition(name);
	struct alias_search search = {
		.place = *place, .alias = alias, .name = name, .log = place->log, .one_device = place->node
	};
	int error;

	*alias = (struct alias){ 0 };
	search.place.log = NULL;
	search.place.highest = definition->highest;
	/* As with units of devices: what everybody does, while the command runs. */
	if (place->mixed)
		search.place.pid = 0;
	error = search_devices(&search, place, definition->rules);
	if (!error && !alias->count) {
		error = search.refused ? search.refused : -ENOENT;
		if (!search.refused)
			report_none(place, name);
	}
	if (!error)
		error = describe(alias, definition);
	if (error)
		alias_free(alias);
	return error;
}

void alias_free(struct alias *alias)
{
	for (size_t i = 0; i < alias->count; i++)
		counter_free(&alias->counters[i]);
	free(alias->counters);
	free(alias->terms);
	counter_info_free(&alias->info);
	*alias = (struct alias){ 0 };
}

int alias_visit(const struct counter_place *place, int (*visit)(void *context, const struct xpt_counter_info *counter),
		void *context)
{
	struct counter_place quiet = *place;
	int result = 0;

	quiet.log = NULL;
	for (size_t i = 0; i < alias_definition_count && !result; i++) {
		char description[SOURCE_MAX + 128];
		struct xpt_counter_info info;
		struct alias alias;

		result = alias_resolve(&quiet, alias_definitions[i].name, &alias);
		if (result == -ENOMEM)
			break;
		if (result) {
			result = 0;
			continue;
		}
		info = alias.info;
		snprintf(description, sizeof(description), "%s: %s", info.description, info.source);
		info.description = description;
		result = visit(context, &info);
		alias_free(&alias);
	}
	return result;
}

/* ---- the value ---- */

/* Clocks are read one after the other, and several units of an engine may work at once: no share is above all. */
static double percent(double part, double whole)
{
	double share = 100 * part / whole;

	return share < 100 ? share : 100;
}

static bool term_value(const struct alias_term *term, const struct alias_sample *before, const struct alias_sample *now,
		       double *value)
{
	double grown = now->value - before->value, total;

	switch (term->measure) {
	case ALIAS_VALUE:
		*value = now->value * term->factor;
		return true;
	case ALIAS_SHARE:
		if (now->ran <= before->ran)
			return false;
		*value = percent(grown * term->factor, (double)(now->ran - before->ran) / 1e9);
		return true;
	case ALIAS_TICKS:
		total = now[1].value - before[1].value;
		if (total <= 0)
			return false;
		*value = percent(grown, total);
		return true;
	case ALIAS_TOTAL:
		break;
	}
	return false;
}

bool alias_value(const struct alias_term *terms, size_t count, bool highest, const struct alias_sample *before,
		 const struct alias_sample *now, double *value)
{
	double result = 0, one;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!term_value(&terms[i], &before[i], &now[i], &one))
			continue;
		if (!highest)
			result += one;
		else if (!any || one > result)
			result = one;
		any = true;
	}
	if (any)
		*value = result;
	return any;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracepoints of drivers as counters of jobs: which ones belong to a device, by the drivers' descriptions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe/driver/driver.h"
#include "device/core/alias_ways.h"
#include "target/tracepoint/tracefs.h"

#define COUNTER_NAME_MAX 160
#define FILTER_MAX 256
#define SCHEDULER "gpu_scheduler"

/* A driver's event as the running kernel has it. */
struct found_event {
	const struct driver_event *event;  /* NULL: it has none */
	const struct driver_field *device; /* the field that has the device's name; NULL: none has */
};

/* Their jobs go through DRM's scheduler: its events report the same for all of them. */
static bool has_scheduler(const char *driver)
{
	static const char *const drivers[] = { "amdgpu",   "amdxdna", "etnaviv", "ethosu", "lima",   "msm", "nouveau",
					       "panfrost", "panthor", "powervr", "radeon", "rocket", "v3d", "xe" };

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(drivers[i], driver))
			return true;
	return false;
}

/* The description with the events of a device's jobs; NULL: there is none. */
static const struct driver *driver_of(const struct drivers *drivers, const struct node *node)
{
	if (has_scheduler(node->driver))
		return drivers_find(drivers, SCHEDULER);
	for (size_t i = 0; i < drivers->count; i++)
		for (size_t j = 0; j < drivers->items[i]->module_count; j++)
			if (!strcmp(drivers->items[i]->modules[j], node->driver))
				return drivers->items[i];
	return NULL;
}

/* The first of the driver's events of that role, in the order of its sets. -EACCES, -EPERM, -ENOMEM. */
static int find_event(const struct tracefs *tracefs, const struct driver *driver, enum xpt_event_role role,
		      struct found_event *found)
{
	int error = 0;

	*found = (struct found_event){ 0 };
	for (size_t i = 0; i < driver->set_count; i++) {
		const struct driver_set *set = &driver->sets[i];

		for (size_t j = 0; j < set->event_count && !error; j++) {
			struct tracepoint tracepoint;

			if (set->events[j].role != role)
				continue;
			error = tracefs_find(tracefs, &set->events[j], &tracepoint);
			if (error || !tracepoint.found)
				continue;
			found->event = tracepoint.event;
			for (size_t k = 0; k < tracepoint.field_count; k++)
				if (tracepoint.fields[k].field->meaning == XPT_FIELD_DEVICE &&
				    tracepoint.fields[k].field->types & DRIVER_STRING)
					found->device = tracepoint.fields[k].field;
			return 0;
		}
	}
	return error;
}

/* The kernel's filter of an event: its condition, and the device; NULL: -ENOMEM. "": all events count. */
static char *filter_of(const struct found_event *found, const struct node *node)
{
	const struct driver_condition *condition = &found->event->condition;
	char text[FILTER_MAX] = "";
	size_t used = 0;

	if (condition->field.name && condition->text)
		used = (size_t)snprintf(text, sizeof(text), "%s %s \"%s\"", condition->field.name,
					condition->differs ? "!=" : "==", condition->text);
	else if (condition->field.name)
		used = (size_t)snprintf(text, sizeof(text), "%s %s %lld", condition->field.name,
					condition->differs ? "!=" : "==", condition->number);
	if (found->device && used < sizeof(text))
		snprintf(text + used, sizeof(text) - used, "%s%s == \"%s\"", used ? " && " : "", found->device->name,
			 node->address);
	return strdup(text);
}

/* ---- jobs ---- */

/* Events without a field for the device count for all; for one of several devices that would be wrong. */
static int refuse(struct alias_search *search, const struct found_event *found, size_t devices)
{
	log_error(search->log,
		  "%s: %s:%s of this kernel does not tell of which of %zu devices a job is: count all, without a device",
		  search->name, found->event->system, found->event->name, devices);
	search->refused = -EOPNOTSUPP;
	return 0;
}

static int add_tracepoint(struct alias_search *search, const struct found_event *found)
{
	char name[COUNTER_NAME_MAX], *filter = filter_of(found, search->place.node);
	struct counter counter;
	int error;

	if (!filter)
		return -ENOMEM;
	snprintf(name, sizeof(name), "%s:%s", found->event->system, found->event->name);
	error = alias_try(search, name, &counter);
	if (error) {
		free(filter);
		return error;
	}
	counter.events[0].of_device = true;
	counter.events[0].of_each_cpu = false;
	if (*filter)
		counter.events[0].filter = filter;
	else
		free(filter);
	return alias_add(search, &counter, (struct alias_term){ ALIAS_VALUE, 1 });
}

static bool is_counted(const struct alias *alias, const struct found_event *found)
{
	char name[COUNTER_NAME_MAX];

	snprintf(name, sizeof(name), "%s:%s", found->event->system, found->event->name);
	for (size_t i = 0; i < alias->count; i++)
		if (!strcmp(alias->counters[i].info.name, name))
			return true;
	return false;
}

static int find_jobs(struct alias_search *search, const struct drivers *drivers, const struct tracefs *tracefs)
{
	const struct counter_place *place = &search->place;
	const struct driver *driver = driver_of(drivers, place->node);
	struct found_event found = { 0 };
	size_t devices = 0;
	int error = driver ? find_event(tracefs, driver, XPT_EVENT_RUN, &found) : 0;

	if (error || !found.event)
		return error;
	for (size_t i = 0; i < place->nodes->count; i++)
		devices += driver_of(drivers, &place->nodes->items[i]) == driver;
	if (!found.device && devices > 1 && search->one_device)
		return refuse(search, &found, devices);
	if (!found.device && is_counted(search->alias, &found))
		return 0;
	return add_tracepoint(search, &found);
}

int alias_find_tracepoint(struct alias_search *search, const struct alias_way *way)
{
	struct drivers *drivers;
	struct tracefs tracefs;
	int error;

	(void)way;
	if (!search->place.node)
		return 0;
	error = drivers_create(NULL, NULL, 0, &drivers);
	if (error)
		return error;
	if (driver_of(drivers, search->place.node)) {
		error = tracefs_open(search->place.tracefs, &tracefs);
		if (error && error != -ENOENT)
			log_error(search->log, "%s: %s", search->name, tracefs_advice(error));
		if (!error) {
			error = find_jobs(search, drivers, &tracefs);
			tracefs_close(&tracefs);
		}
	}
	drivers_free(drivers);
	return error;
}

/* ---- those of the devices here ---- */

static const struct {
	enum xpt_event_role role;
	const char *description;
} shown[] = {
	{ XPT_EVENT_QUEUE, "jobs queued" },
	{ XPT_EVENT_RUN, "jobs run: handed to the device" },
	{ XPT_EVENT_DONE, "jobs done" },
};

static int visit_driver(const struct tracefs *tracefs, const struct driver *driver,
			int (*visit)(void *context, const struct xpt_counter_info *counter), void *context)
{
	struct xpt_counter_info info = { .size = sizeof(info), .unit = "", .source = "tracepoint", .scale = 1 };
	char name[COUNTER_NAME_MAX];
	struct found_event found;
	int result = 0;

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]) && !result; i++) {
		if (find_event(tracefs, driver, shown[i].role, &found))
			break;
		/* Without the condition, other events than these would be counted by that name. */
		if (!found.event || found.event->condition.field.name)
			continue;
		snprintf(name, sizeof(name), "%s:%s", found.event->system, found.event->name);
		info.name = name;
		info.description = shown[i].description;
		result = visit(context, &info);
	}
	return result;
}

static bool was_before(const struct drivers *drivers, const struct counter_place *place, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (driver_of(drivers, &place->nodes->items[i]) == driver_of(drivers, &place->nodes->items[index]))
			return true;
	return false;
}

int alias_visit_tracepoints(const struct counter_place *place,
			    int (*visit)(void *context, const struct xpt_counter_info *counter), void *context)
{
	struct drivers *drivers = NULL;
	struct tracefs tracefs;
	int result;

	if (!place->nodes->count || tracefs_open(place->tracefs, &tracefs))
		return 0;
	result = drivers_create(NULL, NULL, 0, &drivers);
	for (size_t i = 0; i < place->nodes->count && !result; i++) {
		const struct driver *driver = driver_of(drivers, &place->nodes->items[i]);

		if (!driver || (place->node ? place->node != &place->nodes->items[i] : was_before(drivers, place, i)))
			continue;
		result = visit_driver(&tracefs, driver, visit, context);
	}
	if (drivers)
		drivers_free(drivers);
	tracefs_close(&tracefs);
	return result;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/tracepoint/driver_events.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IOCTL_EVENTS 2

/* Which of the driver's modules is not loaded; NULL: none, or none is named. Built-in ones have a folder, too, as a rule. */
static const char *missing_module(const struct driver *driver)
{
	char path[300];

	for (size_t i = 0; i < driver->module_count; i++) {
		snprintf(path, sizeof(path), "/sys/module/%s", driver->modules[i]);
		if (access(path, F_OK))
			return driver->modules[i];
	}
	return NULL;
}

/* Makes a whole sentence of the reason. */
static void complete_reason(const struct tracefs *tracefs, const struct driver *driver,
			    const struct driver_event *event, struct tracepoint *tracepoint, const char *module)
{
	char sentence[2 * TRACEPOINT_REASON_MAX];

	snprintf(sentence, sizeof(sentence), "%s: %s:%s: %s, in %s%s%s%s", driver->name, event->system, event->name,
		 tracepoint->reason, tracefs->kernel, module ? " (module " : "", module ? module : "",
		 module ? " is not loaded)" : "");
	sentence[sizeof(tracepoint->reason) - 1] = '\0';
	memcpy(tracepoint->reason, sentence, sizeof(tracepoint->reason));
}

/* Looks all events of a set up. found: how many are there; missing: how many are not, without optional ones. */
static int find_set(const struct tracefs *tracefs, const struct driver_set *set, struct tracepoint *tracepoints,
		    size_t *found, size_t *missing)
{
	*found = *missing = 0;
	for (size_t i = 0; i < set->event_count; i++) {
		int error = tracefs_find(tracefs, &set->events[i], &tracepoints[i]);

		if (error)
			return error;
		*found += tracepoints[i].found;
		*missing += !tracepoints[i].found && !set->events[i].optional;
	}
	return 0;
}

/* The first set that is whole, else the one of which most was found. */
static int take_set(const struct tracefs *tracefs, const struct driver *driver, struct driver_events *events)
{
	size_t room = 0, best_found = 0, found, missing = 1;
	struct tracepoint *tried;
	int error = 0;

	for (size_t i = 0; i < driver->set_count; i++)
		if (driver->sets[i].event_count > room)
			room = driver->sets[i].event_count;
	tried = calloc(room + 1, sizeof(*tried));
	if (!tried)
		return -ENOMEM;
	for (size_t i = 0; i < driver->set_count && missing; i++) {
		error = find_set(tracefs, &driver->sets[i], tried, &found, &missing);
		if (error)
			break;
		if (i && found <= best_found && missing)
			continue;
		best_found = found;
		events->set = &driver->sets[i];
		events->event_count = events->set->event_count;
		memcpy(events->events, tried, events->event_count * sizeof(*tried));
	}
	free(tried);
	return error;
}

/* Without a device there is nothing to follow, though every kernel has the tracepoints. */
static int add_ioctls(const struct tracefs *tracefs, const struct driver_ioctls *ioctls, struct driver_events *events)
{
	int error = device_nodes_find(ioctls, &events->nodes);

	for (size_t i = 0; !error && i < IOCTL_EVENTS; i++) {
		struct tracepoint *tracepoint = &events->events[events->event_count++];

		error = tracefs_find(tracefs, &ioctls->events[i], tracepoint);
		if (error || events->nodes.count)
			continue;
		tracepoint->found = false;
		snprintf(tracepoint->reason, sizeof(tracepoint->reason), "no device %.80s%s%.60s", ioctls->devices[0],
			 ioctls->bound ? " of driver " : "", ioctls->bound ? ioctls->bound : "");
	}
	return error;
}

/* As described: those of the set, then those of the ioctls. */
static const struct driver_event *event_at(const struct driver_events *events, size_t index)
{
	size_t in_set = events->set ? events->set->event_count : 0;

	return index < in_set ? &events->set->events[index] : &events->driver->ioctls.events[index - in_set];
}

/* Counts what is there, and reports why the rest is not. */
static void conclude(const struct tracefs *tracefs, struct driver_events *events)
{
	const char *module = missing_module(events->driver);
	size_t missing = 0;

	for (size_t i = 0; i < events->event_count; i++) {
		struct tracepoint *tracepoint = &events->events[i];

		events->found += tracepoint->found;
		missing += !tracepoint->found && !event_at(events, i)->optional;
		if (!tracepoint->found)
			complete_reason(tracefs, events->driver, event_at(events, i), tracepoint, module);
	}
	events->state = !events->found ? DRIVER_ABSENT : missing ? DRIVER_PARTIAL : DRIVER_COMPLETE;
}

/* No tracefs: what there would be to find. */
static void leave_unknown(const struct driver *driver, struct driver_events *events)
{
	events->state = DRIVER_UNKNOWN;
	events->event_count = events->set ? events->set->event_count : 0;
	if (driver->ioctls.device_count)
		events->event_count += IOCTL_EVENTS;
	for (size_t i = 0; i < events->event_count; i++) {
		const struct driver_event *event = event_at(events, i);

		events->events[i].event = event;
		snprintf(events->events[i].reason, sizeof(events->events[i].reason),
			 "%s: %s:%s: tracefs cannot be read", driver->name, event->system, event->name);
	}
}

int driver_events_find(const struct tracefs *tracefs, const struct driver *driver, struct driver_events *events)
{
	size_t room = IOCTL_EVENTS;
	int error = 0;

	memset(events, 0, sizeof(*events));
	events->driver = driver;
	events->set = driver->set_count ? &driver->sets[0] : NULL;
	for (size_t i = 0; i < driver->set_count; i++)
		if (driver->sets[i].event_count + IOCTL_EVENTS > room)
			room = driver->sets[i].event_count + IOCTL_EVENTS;
	events->events = calloc(room, sizeof(*events->events));
	if (!events->events) {
		error = -ENOMEM;
		goto out;
	}
	if (!tracefs) {
		leave_unknown(driver, events);
		goto out;
	}
	if (driver->set_count)
		error = take_set(tracefs, driver, events);
	if (!error && driver->ioctls.device_count)
		error = add_ioctls(tracefs, &driver->ioctls, events);
	if (!error)
		conclude(tracefs, events);
out:
	if (error)
		driver_events_free(events);
	return error;
}

void driver_events_free(struct driver_events *events)
{
	device_nodes_free(&events->nodes);
	free(events->events);
	memset(events, 0, sizeof(*events));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/call_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counter/alias.h"
#include "counter/perf_events.h"
#include "counter/sysfs.h"

bool call_events_of_each_cpu(const struct counter *counter)
{
	return !counter->events[0].task && (counter->events[0].of_each_cpu || counter->events[0].cpus.count > 1);
}

const char *call_events_of(const struct counter *counter)
{
	return counter->events[0].task ? "thread" : counter->events[0].of_each_cpu ? "CPU" : "device";
}

static int check(const struct log *log, const struct call_events *events, const struct counter *counter)
{
	const char *name = counter->info.name;

	if (!counter->event_count) {
		log_error(log, "%s: it is no perf event, and cannot be read around inferences", name);
		return -EOPNOTSUPP;
	}
	if (counter->counting != COUNTING_SUM && counter->counting != COUNTING_PER_SECOND) {
		log_error(log, "%s: it does not add up, so that it has no difference around an inference", name);
		return -EOPNOTSUPP;
	}
	if (events->slots + counter->event_count <= XPT_SLOT_MAX)
		return 0;
	log_error(log, "%s: %zu perf events in all, at most %d can be read around inferences", name,
		  events->slots + counter->event_count, XPT_SLOT_MAX);
	return -E2BIG;
}

/* The number of the package that a CPU is in; ~0: not known. */
static __u64 package_of(int cpu)
{
	__u64 package;

	return sysfs_read_number(&package, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu) ? ~0ull :
														package;
}

/* The one of the event's CPUs that counts for this CPU, too: that of its package, else the first. */
static int counted_on(const struct counter_event *event, int cpu)
{
	__u64 package;

	if (event->of_each_cpu || cpus_have(&event->cpus, cpu))
		return cpu;
	package = package_of(cpu);
	for (size_t i = 0; i < event->cpus.count; i++)
		if (package_of(event->cpus.items[i]) == package)
			return event->cpus.items[i];
	return event->cpus.items[0];
}

static int open_slot(const struct log *log, const struct counter *counter, const struct counter_event *event,
		     const struct cpus *online, struct call_events *events)
{
	int *row = events->descriptors + (size_t)events->slots * events->cpus, descriptor;

	events->tasks[events->slots] = event->task;
	if (event->task) {
		events->slots++;
		return 0;
	}
	for (size_t i = 0; i < event->cpus.count; i++) {
		descriptor = perf_event_open_alone(log, counter, event, event->cpus.items[i]);
		if (descriptor < 0)
			return descriptor;
		row[event->cpus.items[i]] = descriptor;
	}
	/* Where the kernel lets a device be read on any CPU, it is; else the reading fails there. */
	for (size_t i = 0; i < online->count && event->cpus.count; i++)
		if (row[online->items[i]] < 0)
			row[online->items[i]] = row[counted_on(event, online->items[i])];
	events->slots++;
	return 0;
}

static int open_counter(const struct counter_place *place, const char *name, struct call_events *events)
{
	struct counter *counter = &events->counters[events->count];
	int error;

	if (alias_is(name)) {
		log_error(place->log,
			  "%s: stands for several counters: name one of them (see `xputrace list counters`)", name);
		return -EOPNOTSUPP;
	}
	error = counter_resolve(place, name, counter);
	if (error)
		return error;
	events->count++;
	error = check(place->log, events, counter);
	for (size_t i = 0; i < counter->event_count && !error; i++)
		error = open_slot(place->log, counter, &counter->events[i], &place->online, events);
	return error;
}

/* As many rows as there may be slots, all empty. */
static int allocate(size_t count, const struct cpus *online, struct call_events *events)
{
	size_t room;

	events->cpus = online->count ? (unsigned int)online->items[online->count - 1] + 1 : 1;
	room = (size_t)XPT_SLOT_MAX * events->cpus;
	events->counters = calloc(count ? count : 1, sizeof(*events->counters));
	events->descriptors = malloc(room * sizeof(*events->descriptors));
	if (!events->counters || !events->descriptors)
		return -ENOMEM;
	memset(events->descriptors, -1, room * sizeof(*events->descriptors));
	return 0;
}

int call_events_open(const struct log *log, const char *tracefs, const char *const *names, size_t count,
		     struct call_events *events)
{
	struct counter_place place;
	int error = counter_place_open(log, XPT_COUNTERS_ALL, XPT_COUNTERS_ALL, 0, &place);

	*events = (struct call_events){ 0 };
	place.tracefs = tracefs;
	if (!error)
		error = allocate(count, &place.online, events);
	for (size_t i = 0; i < count && !error; i++)
		error = open_counter(&place, names[i], events);
	counter_place_close(&place);
	return error;
}

void call_events_release(struct call_events *events)
{
	size_t count = events->descriptors ? (size_t)XPT_SLOT_MAX * events->cpus : 0;

	/* One may stand for several CPUs. */
	for (size_t i = 0; i < count; i++) {
		int descriptor = events->descriptors[i];

		if (descriptor < 0)
			continue;
		close(descriptor);
		for (size_t j = i; j < count; j++)
			if (events->descriptors[j] == descriptor)
				events->descriptors[j] = -1;
	}
}

void call_events_close(struct call_events *events)
{
	call_events_release(events);
	for (size_t i = 0; i < events->count; i++)
		counter_free(&events->counters[i]);
	free(events->counters);
	free(events->descriptors);
	*events = (struct call_events){ 0 };
}

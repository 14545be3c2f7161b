/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that DRM drivers keep for each client. Those of one place that are read one after another share a walk. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/fdinfo_scan.h"
#include "device/polled_source.h"

#define FRESH_NS 10000000 /* so long a walk may answer counters that have not seen it yet */

struct counter {
	struct fdinfo_scan *scan;
	size_t event; /* its index in the scan */
	__u64 walk;   /* the last one that was read */
	char name[FDINFO_EVENT_MAX];
	char description[160];
};

/* Places that have counters, owned by these together. All of a scan is under the lock. */
static pthread_mutex_t scans_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fdinfo_scan *scans;

/* ---- places that are shared ---- */

static int scan_update(struct fdinfo_scan *scan, __u64 seen)
{
	if (scan->walk > seen && clock_monotonic() - scan->walked < FRESH_NS)
		return scan->error;
	return fdinfo_scan_walk(scan);
}

static bool is_same(const char *one, const char *other)
{
	return one && other ? strcmp(one, other) == 0 : one == other;
}

static const char *place_address(const struct polled_place *place)
{
	return place->node ? place->node->address : NULL;
}

/* A process that has ended is not the one which has its number now. */
static bool is_alive(const struct fdinfo_scan *scan)
{
	return !scan->pid || faccessat(scan->folder, "fd", F_OK, 0) == 0;
}

static int scan_get(const struct polled_place *place, struct fdinfo_scan **result)
{
	struct fdinfo_scan *scan;
	int error;

	for (scan = scans; scan; scan = scan->next)
		if (scan->pid == place->pid && is_same(scan->proc, place->proc) && is_same(scan->sysfs, place->sysfs) &&
		    is_same(scan->address, place_address(place)) && is_alive(scan))
			break;
	if (!scan) {
		error = fdinfo_scan_create(place, &scan);
		if (error)
			return error;
		scan->next = scans;
		scans = scan;
	}
	scan->users++;
	*result = scan;
	return 0;
}

static void scan_put(struct fdinfo_scan *scan)
{
	struct fdinfo_scan **link = &scans;

	if (--scan->users)
		return;
	while (*link != scan)
		link = &(*link)->next;
	*link = scan->next;
	fdinfo_scan_free(scan);
}

/* ---- the source ---- */

static void describe(const char *event, enum fdinfo_kind kind, char *description, size_t size, struct polled_info *info)
{
	static const struct {
		const char *prefix, *text, *unit;
		double scale;
		bool level;
	} kinds[] = {
		[FDINFO_ENGINE] = { "engine-", "time in which the engine %s worked for DRM clients", "s", 1e-9, false },
		[FDINFO_CYCLES] = { "cycles-", "cycles in which the engine %s worked for DRM clients", "", 1, false },
		[FDINFO_MEMORY] = { "memory-", "memory of DRM clients in the region %s", "B", 1, true },
	};
	const char *text = kinds[kind].text, *name = event + strlen(kinds[kind].prefix), *hole = strchr(text, '%');

	snprintf(description, size, "%.*s%s%s", (int)(hole - text), text, name, hole + 2);
	*info = (struct polled_info){ "fdinfo",		event, kinds[kind].unit, description, kinds[kind].scale,
				      kinds[kind].level };
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct fdinfo_event *)a)->name, ((const struct fdinfo_event *)b)->name);
}

/* A copy of the events that clients have now: a visit may open counters, which are added to them. */
static int collect_events(const struct polled_place *place, struct fdinfo_event **events, size_t *count)
{
	struct fdinfo_scan *scan;
	int error;

	*events = NULL;
	*count = 0;
	pthread_mutex_lock(&scans_lock);
	error = scan_get(place, &scan);
	if (!error) {
		error = fdinfo_scan_walk(scan);
		if (!error && scan->event_count) {
			*events = calloc(scan->event_count, sizeof(**events));
			error = *events ? 0 : -ENOMEM;
		}
		for (size_t i = 0; !error && i < scan->event_count; i++)
			if (scan->events[i].seen == scan->walk)
				(*events)[(*count)++] = scan->events[i];
		scan_put(scan);
	}
	pthread_mutex_unlock(&scans_lock);
	/* A process that is gone or that may not be looked at has none to list. */
	return error == -ENOMEM ? error : 0;
}

static int list(const struct polled_place *place, polled_visit visit, void *context)
{
	struct fdinfo_event *events;
	size_t count;
	int result = collect_events(place, &events, &count);

	if (count)
		qsort(events, count, sizeof(*events), by_name);
	for (size_t i = 0; !result && i < count; i++) {
		struct polled_info info;
		char description[160];

		describe(events[i].name, events[i].kind, description, sizeof(description), &info);
		result = visit(context, &info);
	}
	free(events);
	return result;
}

static void say_error(const struct polled_place *place, int error)
{
	if (error == -EACCES)
		log_error(place->log, "the open files of process %d may not be looked at: try sudo", (int)place->pid);
	else if (error == -ENODEV && place->pid)
		log_error(place->log, "process %d does not exist", (int)place->pid);
	else if (error != -ENOMEM)
		log_error(place->log, "%s: cannot be read", place->proc);
}

static int open_in_scan(struct counter *counter, const struct polled_place *place, enum fdinfo_kind kind)
{
	struct fdinfo_scan *scan;
	ssize_t index;
	int error = scan_get(place, &scan);

	if (error)
		return error;
	error = scan_update(scan, 0);
	index = error ? error : fdinfo_scan_event(scan, counter->name, kind, true);
	if (index < 0) {
		scan_put(scan);
		return (int)index;
	}
	/* Clients come and go, and show an engine when they first use it. */
	if (scan->events[index].seen != scan->walk)
		log_info(place->log, "fdinfo/%s/: no DRM client has it yet; it counts when one does", counter->name);
	counter->scan = scan;
	counter->event = (size_t)index;
	counter->walk = scan->walk;
	return 0;
}

static int open_counter(const struct polled_place *place, const char *source, const char *event,
			struct polled_info *info, void **state)
{
	struct counter *counter;
	enum fdinfo_kind kind;
	int error;

	if (strcmp(source, "fdinfo") || !fdinfo_event_kind(event, &kind) || !polled_node(place, 0))
		return -ENOENT;
	counter = calloc(1, sizeof(*counter));
	if (!counter)
		return -ENOMEM;
	strcpy(counter->name, event);
	pthread_mutex_lock(&scans_lock);
	error = open_in_scan(counter, place, kind);
	pthread_mutex_unlock(&scans_lock);
	if (error) {
		say_error(place, error);
		free(counter);
		return error == -EIO ? -ENODEV : error;
	}
	describe(counter->name, kind, counter->description, sizeof(counter->description), info);
	*state = counter;
	return 0;
}

static int read_counter(void *state, __u64 *raw)
{
	struct counter *counter = state;
	int error;

	pthread_mutex_lock(&scans_lock);
	error = scan_update(counter->scan, counter->walk);
	if (!error) {
		counter->walk = counter->scan->walk;
		*raw = fdinfo_scan_sum(counter->scan, counter->event);
	}
	pthread_mutex_unlock(&scans_lock);
	return error == -ENODEV || error == -ENOMEM ? error : error ? -EIO : 0;
}

static void close_counter(void *state)
{
	struct counter *counter = state;

	pthread_mutex_lock(&scans_lock);
	scan_put(counter->scan);
	pthread_mutex_unlock(&scans_lock);
	free(counter);
}

const struct polled_source polled_fdinfo = { list, open_counter, read_counter, close_counter };

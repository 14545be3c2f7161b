/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that DRM drivers keep for each client. Those of one place that are read one after another share a walk. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "counter/counter.h"
#include "counter/fdinfo.h"

#define FRESH_NS 10000000 /* ns for which a walk serves counters that have not seen it yet */

/* Of all engines, or regions of memory, that clients have and will have. */
#define ALL_ENGINES "engine-*"
#define ALL_MEMORY "memory-*"

struct usage {
	struct polled polled;
	struct fdinfo_scan *scan;
	size_t event; /* its index in the scan */
	__u64 walk;   /* the last one that was read */
	bool of_all;
	enum fdinfo_kind kind;
	__u64 *before; /* all engines: of each event, at the last read */
	size_t before_count;
	__u64 busiest; /* all engines: sum over the reads of what the busiest one had worked since the read before */
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

static const char *place_address(const struct counter_place *place)
{
	return place->node ? place->node->address : NULL;
}

/* A process that has ended is not the one which has its number now. */
static bool is_alive(const struct fdinfo_scan *scan)
{
	return !scan->pid || faccessat(scan->folder, "fd", F_OK, 0) == 0;
}

static int scan_get(const struct counter_place *place, struct fdinfo_scan **result)
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

/* ---- all engines, all memory ---- */

/* Whether a driver is known to report it for each client, so that no client means zero. */
static bool is_reported(const struct counter_place *place, enum fdinfo_kind kind)
{
	static const struct {
		const char *driver;
		bool engines;
	} drivers[] = {
		{ "amdgpu", true },   { "etnaviv", true }, { "i915", true }, { "msm", true },
		{ "panfrost", true }, { "panthor", true }, { "v3d", true },  { "xe", false },
	};

	for (size_t i = 0; place->node && i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(drivers[i].driver, place->node->driver))
			return kind == FDINFO_MEMORY || drivers[i].engines;
	return false;
}

static bool has_kind(const struct fdinfo_scan *scan, enum fdinfo_kind kind)
{
	for (size_t i = 0; i < scan->event_count; i++)
		if (scan->events[i].kind == kind && scan->events[i].seen)
			return true;
	return false;
}

/* Where there is memory of the device's own, that; else all that clients have in the machine's. */
static __u64 memory_of_all(const struct fdinfo_scan *scan)
{
	bool has_own = false;
	__u64 sum = 0;

	for (size_t i = 0; i < scan->event_count; i++)
		has_own |= fdinfo_is_own_memory(&scan->events[i]);
	for (size_t i = 0; i < scan->event_count; i++)
		if (has_own ? fdinfo_is_own_memory(&scan->events[i]) : scan->events[i].kind == FDINFO_MEMORY)
			sum += fdinfo_scan_sum(scan, i);
	return sum;
}

/* A new engine has done all its reported work since the last read. */
static int add_busiest(struct usage *counter)
{
	const struct fdinfo_scan *scan = counter->scan;
	__u64 most = 0, sum;

	if (scan->event_count > counter->before_count) {
		__u64 *grown = reallocarray(counter->before, scan->event_count, sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(grown + counter->before_count, 0, (scan->event_count - counter->before_count) * sizeof(*grown));
		counter->before = grown;
		counter->before_count = scan->event_count;
	}
	for (size_t i = 0; i < scan->event_count; i++) {
		if (scan->events[i].kind != FDINFO_ENGINE)
			continue;
		sum = fdinfo_scan_sum(scan, i);
		if (sum <= counter->before[i])
			continue;
		most = sum - counter->before[i] > most ? sum - counter->before[i] : most;
		counter->before[i] = sum;
	}
	counter->busiest += most;
	return 0;
}

static int value_of(struct usage *counter, __u64 *raw)
{
	int error = 0;

	if (!counter->of_all) {
		*raw = fdinfo_scan_sum(counter->scan, counter->event);
	} else if (counter->kind == FDINFO_MEMORY) {
		*raw = memory_of_all(counter->scan);
	} else {
		error = add_busiest(counter);
		*raw = counter->busiest;
	}
	return error;
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

	*info = (struct polled_info){ "fdinfo",		event, kinds[kind].unit, description, kinds[kind].scale,
				      kinds[kind].level };
	if (!strcmp(event, ALL_ENGINES))
		info->description = "time in which the busiest engine worked for DRM clients";
	else if (!strcmp(event, ALL_MEMORY))
		info->description = "memory of DRM clients: the device's own, or all where it has none";
	else
		snprintf(description, size, "%.*s%s%s", (int)(hole - text), text, name, hole + 2);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct fdinfo_event *)a)->name, ((const struct fdinfo_event *)b)->name);
}

/* A copy of the events that clients have now: a visit may open counters, which are added to them. */
static int collect_events(const struct counter_place *place, struct fdinfo_event **events, size_t *count)
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
	/* A process that has ended or that may not be read has none to list. */
	return error == -ENOMEM ? error : 0;
}

static int list(const struct counter_place *place, polled_visit visit, void *context)
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

static void report_error(const struct counter_place *place, int error)
{
	if (error == -EACCES)
		log_error(place->log, "cannot read the open files of process %d: permission denied: try sudo",
			  (int)place->pid);
	else if (error == -ENODEV && place->pid)
		log_error(place->log, "process %d does not exist", (int)place->pid);
	else if (error != -ENOMEM)
		log_error(place->log, "%s: cannot be read", place->proc);
}

/* What there has been until now does not count. */
static int begin_all(struct usage *counter, const struct counter_place *place, struct fdinfo_scan *scan)
{
	int error = 0;

	if (!has_kind(scan, counter->kind) && !is_reported(place, counter->kind))
		return -ENOENT;
	if (counter->kind == FDINFO_ENGINE)
		error = add_busiest(counter);
	counter->busiest = 0;
	return error;
}

static int begin_one(struct usage *counter, const struct counter_place *place, struct fdinfo_scan *scan)
{
	ssize_t index = fdinfo_scan_event(scan, counter->name, counter->kind, true);

	if (index < 0)
		return (int)index;
	/* Clients come and go, and show an engine when they first use it. */
	if (scan->events[index].seen != scan->walk)
		log_info(place->log, "fdinfo/%s/: no DRM client has it yet; it counts when one does", counter->name);
	counter->event = (size_t)index;
	return 0;
}

static int open_in_scan(struct usage *counter, const struct counter_place *place)
{
	int error = scan_get(place, &counter->scan);

	if (error)
		return error;
	error = scan_update(counter->scan, 0);
	if (!error)
		error = counter->of_all ? begin_all(counter, place, counter->scan) :
					  begin_one(counter, place, counter->scan);
	counter->walk = counter->scan->walk;
	if (error)
		scan_put(counter->scan);
	return error;
}

static int open_counter(const struct counter_place *place, const char *source, const char *event,
			struct polled_info *info, struct polled **result)
{
	bool engines = !strcmp(event, ALL_ENGINES), of_all = engines || !strcmp(event, ALL_MEMORY);
	enum fdinfo_kind kind = engines ? FDINFO_ENGINE : FDINFO_MEMORY;
	struct usage *counter;
	int error;

	if (strcmp(source, "fdinfo") || (!of_all && !fdinfo_event_kind(event, &kind)) || !polled_node(place, 0))
		return -ENOENT;
	counter = calloc(1, sizeof(*counter));
	if (!counter)
		return -ENOMEM;
	strcpy(counter->name, event);
	counter->of_all = of_all;
	counter->kind = kind;
	pthread_mutex_lock(&scans_lock);
	error = open_in_scan(counter, place);
	pthread_mutex_unlock(&scans_lock);
	if (error) {
		if (error != -ENOENT)
			report_error(place, error);
		free(counter->before);
		free(counter);
		return error == -EIO ? -ENODEV : error;
	}
	describe(counter->name, kind, counter->description, sizeof(counter->description), info);
	*result = &counter->polled;
	return 0;
}

static int read_counter(struct polled *polled, __u64 *raw)
{
	struct usage *counter = (struct usage *)polled;
	int error;

	pthread_mutex_lock(&scans_lock);
	error = scan_update(counter->scan, counter->walk);
	if (!error) {
		counter->walk = counter->scan->walk;
		error = value_of(counter, raw);
	}
	pthread_mutex_unlock(&scans_lock);
	return error == -ENODEV || error == -ENOMEM ? error : error ? -EIO : 0;
}

static void close_counter(struct polled *polled)
{
	struct usage *counter = (struct usage *)polled;

	pthread_mutex_lock(&scans_lock);
	scan_put(counter->scan);
	pthread_mutex_unlock(&scans_lock);
	free(counter->before);
	free(counter);
}

const struct polled_source polled_fdinfo = { list, open_counter, read_counter, close_counter };

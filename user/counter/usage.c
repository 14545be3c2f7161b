/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/usage.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "counter/fdinfo.h"

struct xpt_device_usage {
	struct counter_place place;
	struct nodes owned;
	struct fdinfo_scan *scan; /* NULL: no device of DRM */
	struct nvml_usage *nvml;  /* NULL: none */
	uint64_t read;		  /* ns, CLOCK_MONOTONIC; 0: not yet */
};

int usage_add(struct usage_list *list, struct xpt_device_use use)
{
	return vec_push(list->items, list->count, use);
}

/* ---- clients of DRM ---- */

/* Cycles of an engine whose clock ran on: that share of the time. */
static uint64_t time_of(enum fdinfo_kind kind, const struct fdinfo_reading *reading, uint64_t elapsed)
{
	uint64_t grown = reading->raw > reading->raw_before ? reading->raw - reading->raw_before : 0, ticks;

	if (kind == FDINFO_ENGINE)
		return grown;
	if (!reading->clock_before || reading->clock <= reading->clock_before)
		return 0;
	ticks = reading->clock - reading->clock_before;
	return grown >= ticks ? elapsed : (uint64_t)((double)elapsed * ((double)grown / (double)ticks));
}

/* since: what the client has counted until now is news. */
static struct xpt_device_use use_of(const struct fdinfo_scan *scan, struct fdinfo_client *client, bool since,
				    uint64_t elapsed)
{
	struct xpt_device_use use = { .pid = (pid_t)client->pid, .source = "fdinfo" };
	uint64_t own = 0, time;
	bool has_own = false;

	for (size_t i = 0; i < client->value_count; i++) {
		struct fdinfo_reading *reading = &client->values[i];
		const struct fdinfo_event *event = &scan->events[i];

		if (!reading->has)
			continue;
		if (event->kind == FDINFO_MEMORY) {
			use.has_memory = 1;
			use.memory += reading->raw;
			own += fdinfo_is_own_memory(event) ? reading->raw : 0;
			has_own |= fdinfo_is_own_memory(event);
			continue;
		}
		use.has_time |= event->kind == FDINFO_ENGINE || reading->clock;
		time = since ? time_of(event->kind, reading, elapsed) : 0;
		if (time > use.device_time)
			use.device_time = time;
		reading->raw_before = reading->raw;
		reading->clock_before = reading->clock;
	}
	if (has_own)
		use.memory = own;
	return use;
}

static int index_of(const struct counter_place *place, const char *address)
{
	for (size_t i = 0; i < place->nodes.count; i++)
		if (!strcasecmp(place->nodes.items[i].address, address))
			return (int)i;
	return -1;
}

static int read_clients(struct xpt_device_usage *usage, uint64_t elapsed, struct usage_list *list)
{
	struct fdinfo_scan *scan = usage->scan;
	int error = fdinfo_scan_walk(scan);

	for (size_t i = 0; !error && i < scan->client_count; i++) {
		struct fdinfo_client *client = &scan->clients[i];
		struct xpt_device_use use;

		if (client->seen != scan->walk)
			continue;
		use = use_of(scan, client, usage->read > 0, elapsed);
		use.index = index_of(&usage->place, client->device);
		if (use.index >= 0 && (use.has_time || use.has_memory))
			error = usage_add(list, use);
	}
	return error;
}

/* ---- all ---- */

static int by_device(const void *a, const void *b)
{
	const struct xpt_device_use *one = a, *other = b;

	if (one->index != other->index)
		return one->index < other->index ? -1 : 1;
	return (one->pid > other->pid) - (one->pid < other->pid);
}

/* One a device and process. No process has more time of an engine than there was. */
static void merge(struct usage_list *list, uint64_t elapsed)
{
	size_t kept = 0;

	if (list->count)
		qsort(list->items, list->count, sizeof(*list->items), by_device);
	for (size_t i = 0; i < list->count; i++) {
		struct xpt_device_use *use = &list->items[i], *last = kept ? &list->items[kept - 1] : NULL;

		if (!last || by_device(last, use)) {
			list->items[kept++] = *use;
			continue;
		}
		last->has_time |= use->has_time;
		last->device_time += use->device_time;
		last->has_memory |= use->has_memory;
		last->memory += use->memory;
	}
	list->count = kept;
	for (size_t i = 0; i < kept; i++)
		if (list->items[i].device_time > elapsed)
			list->items[i].device_time = elapsed;
}

int xpt_device_usage_read(struct xpt_device_usage *usage, int (*visit)(void *context, const struct xpt_device_use *use),
			  void *context)
{
	uint64_t now = clock_monotonic(), elapsed = usage->read ? now - usage->read : 0;
	struct usage_list list = {};
	int error = usage->scan ? read_clients(usage, elapsed, &list) : 0;

	if (!error && usage->nvml)
		error = nvml_usage_read(usage->nvml, elapsed, &list);
	usage->read = now;
	merge(&list, elapsed);
	for (size_t i = 0; !error && i < list.count; i++) {
		list.items[i].size = sizeof(list.items[i]);
		error = visit(context, &list.items[i]);
	}
	free(list.items);
	return error;
}

int device_usage_open(const struct counter_place *place, struct xpt_device_usage **result)
{
	struct xpt_device_usage *usage = calloc(1, sizeof(*usage));
	bool drm = false;
	int error = 0;

	if (!usage)
		return -ENOMEM;
	usage->place = *place;
	for (size_t i = 0; i < place->nodes.count; i++)
		drm |= strcmp(place->nodes.items[i].driver, "nvidia") != 0;
	if (drm)
		error = fdinfo_scan_create(&usage->place, &usage->scan);
	if (error != -ENOMEM)
		error = nvml_usage_open(&usage->place, &usage->nvml);
	if (error != -ENOMEM)
		error = usage->scan || usage->nvml ? 0 : -ENODEV;
	if (error) {
		xpt_device_usage_destroy(usage);
		return error;
	}
	*result = usage;
	return 0;
}

int xpt_device_usage_create(struct xpt_device_usage **usage)
{
	struct counter_place place = { .sysfs = "/sys", .proc = "/proc" };
	int error = nodes_find(place.sysfs, &place.nodes);

	if (!error)
		error = device_usage_open(&place, usage);
	if (error)
		nodes_free(&place.nodes);
	else
		(*usage)->owned = place.nodes;
	return error;
}

void xpt_device_usage_destroy(struct xpt_device_usage *usage)
{
	if (!usage)
		return;
	if (usage->scan)
		fdinfo_scan_free(usage->scan);
	nvml_usage_close(usage->nvml);
	nodes_free(&usage->owned);
	free(usage);
}

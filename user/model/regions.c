/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/regions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REGION_NAME_MAX XPT_STRING_MAX

struct open_region {
	struct map_node node;
	struct link link;
	unsigned int process_index;
	const struct function *function;
	bool has_handle;
	__u64 handle;
	__u64 start;
	char name[REGION_NAME_MAX + 1];
};

void regions_init(struct regions *regions, struct sinks *sinks, struct processes *processes)
{
	*regions = (struct regions){ .sinks = sinks, .processes = processes };
	link_init(&regions->open);
}

static void region_close(struct regions *regions, struct open_region *region)
{
	map_remove(&regions->by_thread, &region->node);
	link_remove(&region->link);
	regions->open_count--;
	free(region);
}

static void region_total_free(struct region_total *total)
{
	statistics_free(total->duration);
	free((char *)total->view.name);
	free(total);
}

void regions_free(struct regions *regions)
{
	struct link *link, *following;
	size_t i;

	link_each(link, following, &regions->open) region_close(regions, container_of(link, struct open_region, link));
	for (i = 0; i < regions->count; i++)
		region_total_free(regions->all[i]);
	free(regions->all);
	map_free(&regions->by_thread);
	map_free(&regions->totals);
}

static bool call_has_handle(const struct event_call *call)
{
	return call->have & (1u << XPT_MEANING_PROGRAM);
}

int regions_begin(struct regions *regions, struct process *process, const struct function *function,
		  const struct event_call *call)
{
	struct open_region *region;

	if (regions->open_count >= REGIONS_OPEN_MAX)
		region_close(regions, container_of(regions->open.next, struct open_region, link));
	region = calloc(1, sizeof(*region));
	if (!region)
		return -ENOMEM;
	if (map_add(&regions->by_thread, &region->node, process->view.sort_index, call->tid)) {
		free(region);
		return -ENOMEM;
	}
	region->process_index = process->view.sort_index;
	region->function = function;
	region->has_handle = call_has_handle(call);
	region->handle = call->handle;
	region->start = call->end;
	if (call->name && *call->name)
		snprintf(region->name, sizeof(region->name), "%s", call->name);
	else if (region->has_handle)
		snprintf(region->name, sizeof(region->name), "0x%llx", call->handle);
	else
		snprintf(region->name, sizeof(region->name), "%s", function->view.name);
	link_append(&regions->open, &region->link);
	regions->open_count++;
	return 0;
}

static bool region_is(const struct open_region *region, const struct function *function, const struct event_call *call)
{
	if (region->function->runtime != function->runtime)
		return false;
	if (region->has_handle && call_has_handle(call))
		return region->handle == call->handle;
	if (call->name && *call->name)
		return !strncmp(region->name, call->name, REGION_NAME_MAX);
	/* Neither side says which: the innermost. */
	return !region->has_handle && !call_has_handle(call);
}

static __u64 name_hash(const char *name)
{
	__u64 hash = 0xcbf29ce484222325ULL;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * 0x100000001b3ULL;
	return hash;
}

static struct region_total *region_total_find(const struct regions *regions, const struct process *process,
					      const struct runtime *runtime, const char *name)
{
	struct map_node *node = map_find(&regions->totals, (__u64)process->view.sort_index << 8 | runtime->index,
					 name_hash(name));
	struct region_total *total;

	for (; node; node = map_next(node)) {
		total = container_of(node, struct region_total, node);
		if (!strcmp(total->view.name, name))
			return total;
	}
	return NULL;
}

static struct region_total *region_total_add(struct regions *regions, const struct process *process,
					     const struct runtime *runtime, const char *name)
{
	size_t room = regions->room ? regions->room * 2 : 16;
	struct region_total **all, *total;

	if (regions->count == regions->room) {
		all = realloc(regions->all, room * sizeof(struct region_total *));
		if (!all)
			return NULL;
		regions->all = all;
		regions->room = room;
	}
	total = calloc(1, sizeof(*total));
	if (!total)
		return NULL;
	total->process = process;
	total->runtime = runtime;
	total->view.process = &process->view;
	total->view.runtime = runtime->name;
	total->view.name = strdup(name);
	total->view.duration = total->duration = statistics_create();
	if (!total->view.name || !total->duration ||
	    map_add(&regions->totals, &total->node, (__u64)process->view.sort_index << 8 | runtime->index,
		    name_hash(name))) {
		region_total_free(total);
		return NULL;
	}
	regions->all[regions->count++] = total;
	return total;
}

/* Names are the target's to choose: beyond the limit one of each runtime stands for the others. */
static struct region_total *region_total_get(struct regions *regions, const struct process *process,
					     const struct runtime *runtime, const char *name, __u64 time)
{
	struct region_total *total = region_total_find(regions, process, runtime, name);

	if (total)
		return total;
	if (regions->count >= REGION_TOTALS_MAX) {
		sinks_lose(regions->sinks, XPT_LOSS_NAMES, 1, time);
		process = processes_others(regions->processes);
		name = "(others)";
		total = process ? region_total_find(regions, process, runtime, name) : NULL;
	}
	return total || !process ? total : region_total_add(regions, process, runtime, name);
}

static int region_finish(struct regions *regions, const struct process *process, const struct open_region *region,
			 const struct event_call *call)
{
	const __u64 end = call->start > region->start ? call->start : region->start;
	const struct event event = { .kind = EVENT_REGION,
				     .region = { .tgid = call->tgid,
						 .tid = call->tid,
						 .runtime = region->function->view.runtime,
						 .name = region->name,
						 .start = region->start,
						 .end = end } };
	struct region_total *total;

	sinks_write(regions->sinks, &event);
	total = region_total_get(regions, process, region->function->runtime, region->name, end);
	return total ? statistics_add(total->duration, end - region->start) : -ENOMEM;
}

int regions_end(struct regions *regions, struct process *process, const struct function *function,
		const struct event_call *call)
{
	struct map_node *node = map_find(&regions->by_thread, process->view.sort_index, call->tid);
	struct open_region *region;
	int error;

	for (; node; node = map_next(node)) {
		region = container_of(node, struct open_region, node);
		if (!region_is(region, function, call))
			continue;
		error = region_finish(regions, process, region, call);
		region_close(regions, region);
		return error;
	}
	return 0;
}

void regions_drop_process(struct regions *regions, const struct process *process)
{
	struct link *link, *following;
	struct open_region *region;

	link_each(link, following, &regions->open)
	{
		region = container_of(link, struct open_region, link);
		if (region->process_index == process->view.sort_index)
			region_close(regions, region);
	}
}

int regions_forget_processes(struct regions *regions, __u64 time)
{
	const struct process *others = processes_others(regions->processes);
	size_t i, count = regions->count, kept = 0;
	struct region_total *total, *into;
	int error = 0;

	for (i = 0; i < count; i++) {
		total = regions->all[i];
		if (!total->process->forgotten)
			continue;
		into = others ? region_total_get(regions, others, total->runtime, total->view.name, time) : NULL;
		if (!into || statistics_merge(into->duration, total->duration))
			error = -ENOMEM;
		map_remove(&regions->totals, &total->node);
		region_total_free(total);
		regions->all[i] = NULL;
	}
	for (i = 0; i < regions->count; i++)
		if (regions->all[i])
			regions->all[kept++] = regions->all[i];
	regions->count = kept;
	return error;
}

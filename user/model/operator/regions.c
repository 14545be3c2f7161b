/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operators.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define REQUEST "request=" /* before the id, as include/xputrace/region.h has it */
#define PENDING_MAX 4096

/* The region of a request, which ends just before the one that it is in. */
struct pending_request {
	struct keyed keyed; /* by thread and the handle of the region that it is in */
	__u64 start;
	char id[]; /* terminated */
};

void regions_init(struct regions *regions, struct event_dispatch *events, struct processes *processes)
{
	*regions = (struct regions){ .events = events, .processes = processes };
	name_table_init(&regions->names, REGION_NAMES_MAX, false);
	name_table_init(&regions->requests, REGION_REQUESTS_MAX, false);
	keyed_init(&regions->pending, PENDING_MAX, NULL, NULL);
}

static void region_total_free(struct region_total *total)
{
	statistics_free(total->duration);
	free((char *)total->program.name);
	free(total);
}

void regions_free(struct regions *regions)
{
	size_t i;

	for (i = 0; i < regions->count; i++)
		region_total_free(regions->all[i]);
	free(regions->all);
	name_table_free(&regions->names);
	name_table_free(&regions->requests);
	keyed_free(&regions->pending);
	map_free(&regions->totals);
}

static struct region_total *region_total_find(const struct regions *regions, const struct process *process,
					      const struct runtime *runtime, const char *name)
{
	struct map_node *node = map_find(&regions->totals, (__u64)process->view.sort_index << 8 | runtime->index,
					 text_hash(name));
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
	struct region_total *total;
	char *text;

	if (vec_reserve(regions->all, regions->count))
		return NULL;
	total = calloc(1, sizeof(*total));
	if (!total)
		return NULL;
	total->process = process;
	total->runtime = runtime;
	total->view.process = &process->view;
	total->view.runtime = runtime->name;
	total->view.duration = total->duration = statistics_create();
	if (asprintf(&text, MODEL_REGION_PROGRAM "%s", name) < 0)
		text = NULL;
	else
		total->view.name = text + strlen(MODEL_REGION_PROGRAM);
	total->program = (struct model_program){ .id = REGION_PROGRAM_ID + regions->next_program++,
						 .process = &process->view,
						 .runtime = runtime->name,
						 .runtime_index = runtime->index,
						 .handle = text_hash(name),
						 .name = text,
						 .named = true,
						 .role = XPT_ROLE_REGION_BEGIN };
	if (!text || !total->duration ||
	    map_add(&regions->totals, &total->node, (__u64)process->view.sort_index << 8 | runtime->index,
		    text_hash(name))) {
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
		event_dispatch_lose(regions->events, XPT_LOSS_NAMES, 1, time);
		process = processes_others(regions->processes);
		name = "(others)";
		total = process ? region_total_find(regions, process, runtime, name) : NULL;
	}
	return total || !process ? total : region_total_add(regions, process, runtime, name);
}

/* Numbers stand for texts in the records of regions; what a handle was given counts more. */
static __u64 names_by_number(__u32 tgid)
{
	return (__u64)tgid << 1;
}

static __u64 names_by_handle(__u32 tgid)
{
	return (__u64)tgid << 1 | 1;
}

int regions_name(struct regions *regions, const struct xpt_record_region_name *record)
{
	const __u32 tgid = record->header.tgid;
	const bool request = record->length > strlen(REQUEST) && !memcmp(record->text, REQUEST, strlen(REQUEST));

	/* They are many, and must not displace the names of regions. */
	return name_table_add(request ? &regions->requests : &regions->names, tgid, names_by_number(tgid), record->name,
			      record->text, record->length, record->truncated);
}

int regions_set_name(struct regions *regions, __u32 tgid, __u64 handle, const char *text, bool truncated)
{
	return name_table_add(&regions->names, tgid, names_by_handle(tgid), handle, text, strlen(text), truncated);
}

int regions_name_handle(struct regions *regions, const struct event_call *call)
{
	if (!call->name || !*call->name)
		return 0;
	return regions_set_name(regions, call->tgid, call->handle, call->name, call->name_truncated);
}

void regions_release(struct regions *regions, const struct event_call *call)
{
	name_table_drop(&regions->names, names_by_handle(call->tgid), call->handle);
}

static const struct name *name_find(const struct regions *regions, const struct xpt_record_region *record)
{
	const __u32 tgid = record->header.tgid;
	const struct name *name = NULL;

	if (record->handle)
		name = name_table_find(&regions->names, names_by_handle(tgid), record->handle);
	if (!name && record->name)
		name = name_table_find(&regions->names, names_by_number(tgid), record->name) ?:
			       name_table_find(&regions->requests, names_by_number(tgid), record->name);
	return name;
}

/* The id of the request whose region this is: regions lie at even addresses, and it at the one behind. NULL: it is no such one. */
static const char *request_of(const struct regions *regions, const struct xpt_record_region *record)
{
	const struct name *name = record->handle & 1 ?
					  name_table_find(&regions->requests, names_by_number(record->header.tgid),
							  record->name) :
					  NULL;

	return name ? name->text + strlen(REQUEST) : NULL;
}

static __u64 pending_key(const struct xpt_record_region *record)
{
	return (__u64)record->header.tgid << 32 | record->tid;
}

/* It is kept until the region that it is in has ended. */
static int request_keep(struct regions *regions, const struct xpt_record_region *record, const char *id)
{
	struct pending_request *pending = calloc(1, sizeof(*pending) + strlen(id) + 1);

	if (!pending)
		return -ENOMEM;
	pending->start = record->start;
	strcpy(pending->id, id);
	if (!keyed_add(&regions->pending, &pending->keyed, record->header.tgid, pending_key(record),
		       record->handle - 1))
		return 0;
	free(pending);
	return -ENOMEM;
}

/* What was kept for the region, for the caller to free; NULL: nothing. */
static struct pending_request *request_take(struct regions *regions, const struct xpt_record_region *record)
{
	struct keyed *entry = record->handle ? keyed_find(&regions->pending, pending_key(record), record->handle) :
					       NULL;
	struct pending_request *pending;

	for (; entry; entry = keyed_next(entry)) {
		pending = container_of(entry, struct pending_request, keyed);
		if (pending->start < record->start)
			continue;
		keyed_remove(&regions->pending, entry);
		return pending;
	}
	return NULL;
}

int regions_end(struct regions *regions, const struct process *process, const struct runtime *runtime,
		const struct xpt_record_region *record)
{
	const __u64 end = record->header.time > record->start ? record->header.time : record->start;
	const struct name *name = name_find(regions, record);
	struct event event = { .kind = EVENT_REGION,
			       .region = { .tgid = record->header.tgid,
					   .tid = record->tid,
					   .runtime = runtime->name,
					   .start = record->start,
					   .end = end } };
	const char *id = request_of(regions, record);
	struct pending_request *request;
	struct region_total *total;
	char handle[24];
	int error;

	if (id)
		return request_keep(regions, record, id);
	snprintf(handle, sizeof(handle), "0x%llx", record->handle);
	event.region.name = name ? name->text : handle;
	event.region.name_truncated = name && name->truncated;
	total = region_total_get(regions, process, runtime, event.region.name, end);
	if (!total)
		return -ENOMEM;
	if (total->process == process) {
		event.region.program = &total->program;
		event.region.number = statistics_count(total->duration);
	}
	request = request_take(regions, record);
	event.region.request = request ? request->id : NULL;
	event_dispatch_emit(regions->events, &event);
	error = statistics_add(total->duration, end - record->start);
	free(request);
	return error;
}

void regions_drop_process(struct regions *regions, const struct process *process)
{
	size_t i;

	name_table_drop_owner(&regions->names, process->view.tgid);
	name_table_drop_owner(&regions->requests, process->view.tgid);
	keyed_drop_owner(&regions->pending, process->view.tgid);
	/* Those of the same names that come later are other programs. */
	for (i = 0; i < regions->count; i++) {
		if (regions->all[i]->process != process)
			continue;
		regions->all[i]->program.id = REGION_PROGRAM_ID + regions->next_program++;
		regions->all[i]->program.generation++;
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

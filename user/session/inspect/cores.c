/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/cores.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"

struct inference {
	struct indexed_inference view;
	struct map_node begin; /* by process and begin */
	struct map_node wait;  /* by thread and end */
	__u64 events;
	bool out;
};

/* A core, and how many events of it are written. */
struct core {
	struct map_node node; /* by number, and 0; without number 0 and 1 */
	struct core *next;
	__u64 events;
};

struct inspect_cores {
	const __u8 *roles;
	const struct inspect_settings *settings;
	struct inference *all;	      /* the latest first */
	struct inference **by_thread; /* in order of thread and begin */
	size_t count, room;
	struct map begins, waits, cores;
	struct core *all_cores;
};

static int add(void *context, const struct indexed_inference *view)
{
	size_t room;
	struct inspect_cores *cores = context;
	struct inference *more;

	if (cores->count == cores->room) {
		room = cores->room ? 2 * cores->room : 1024;
		more = reallocarray(cores->all, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		cores->all = more;
		cores->room = room;
	}
	cores->all[cores->count++] = (struct inference){ .view = *view };
	return 0;
}

static int by_thread(const void *a, const void *b)
{
	const struct snapshot_stretch *one = &(*(struct inference *const *)a)->view.stretch;
	const struct snapshot_stretch *other = &(*(struct inference *const *)b)->view.stretch;

	if (one->tid != other->tid)
		return one->tid < other->tid ? -1 : 1;
	return one->begin < other->begin ? -1 : one->begin > other->begin;
}

static int sort(struct inspect_cores *cores)
{
	struct inference *inference;
	int error = 0;

	cores->by_thread = calloc(cores->count ?: 1, sizeof(struct inference *));
	if (!cores->by_thread)
		return -ENOMEM;
	for (size_t i = 0; i < cores->count && !error; i++) {
		inference = &cores->all[i];
		cores->by_thread[i] = inference;
		error = map_add(&cores->begins, &inference->begin, inference->view.stretch.tgid,
				inference->view.stretch.begin);
		if (!error && inference->view.wait_tid)
			error = map_add(&cores->waits, &inference->wait, inference->view.wait_tid, inference->view.end);
	}
	if (!error && cores->count)
		qsort(cores->by_thread, cores->count, sizeof(struct inference *), by_thread);
	return error;
}

int inspect_cores_create(const struct inference_index *recent, __u32 tgid, const __u8 *roles,
			 const struct inspect_settings *settings, struct inspect_cores **result)
{
	struct inspect_cores *cores = calloc(1, sizeof(*cores));
	int error;

	if (!cores)
		return -ENOMEM;
	cores->roles = roles;
	cores->settings = settings;
	error = inference_index_each(recent, tgid, add, cores) ?: sort(cores);
	if (error) {
		inspect_cores_free(cores);
		return error;
	}
	*result = cores;
	return 0;
}

void inspect_cores_free(struct inspect_cores *cores)
{
	struct core *core;

	if (!cores)
		return;
	while ((core = cores->all_cores)) {
		cores->all_cores = core->next;
		free(core);
	}
	map_free(&cores->cores);
	map_free(&cores->begins);
	map_free(&cores->waits);
	free(cores->by_thread);
	free(cores->all);
	free(cores);
}

/* ---- which inference a record is of ---- */

/* The inference that the thread was in. Those of a thread follow each other. */
static struct inference *inference_around(const struct inspect_cores *cores, __u32 tid, __u64 begin, __u64 end)
{
	size_t low = 0, high = cores->count, middle;
	const struct snapshot_stretch *stretch;

	while (low < high) {
		middle = low + (high - low) / 2;
		stretch = &cores->by_thread[middle]->view.stretch;
		if (stretch->tid < tid || (stretch->tid == tid && stretch->begin <= begin))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	stretch = &cores->by_thread[low - 1]->view.stretch;
	return stretch->tid == tid && end <= stretch->end ? cores->by_thread[low - 1] : NULL;
}

static struct inference *of_call(const struct inspect_cores *cores, const struct xpt_record_call *call)
{
	struct map_node *node = NULL;

	/* Object, class, program and the inference's begin are what is fetched for a step. */
	if (cores->roles[call->spec] == XPT_ROLE_OPERATOR && call->valid >> 3 & 1 && call->values > 3)
		node = map_find(&cores->begins, call->header.tgid, call->value[3]);
	if (node)
		return container_of(node, struct inference, begin);
	if (cores->roles[call->spec] == XPT_ROLE_WAIT)
		node = map_find(&cores->waits, call->tid, call->header.time);
	if (node)
		return container_of(node, struct inference, wait);
	return inference_around(cores, call->tid, call->start, call->header.time);
}

static struct inference *of_record(const struct inspect_cores *cores, const struct xpt_record_header *record)
{
	const struct xpt_record_string *string = (const void *)record;
	const struct xpt_record_region *region = (const void *)record;
	const struct xpt_record_ioctl *ioctl = (const void *)record;
	const struct xpt_record_call *call = (const void *)record;

	switch (record->kind) {
	case XPT_RECORD_CALL:
		return call->spec < XPT_SPEC_MAX ? of_call(cores, call) : NULL;
	case XPT_RECORD_STRING:
		return inference_around(cores, string->tid, string->call_start, string->call_start);
	case XPT_RECORD_REGION:
		return inference_around(cores, region->tid, region->start, record->time);
	case XPT_RECORD_IOCTL:
		return inference_around(cores, ioctl->tid, ioctl->start, record->time);
	default:
		return NULL;
	}
}

void inspect_cores_count(struct inspect_cores *cores, const struct xpt_record_header *record)
{
	struct inference *inference = record->kind == XPT_RECORD_STRING ? NULL : of_record(cores, record);

	if (inference)
		inference->events++;
}

bool inspect_cores_wants(const struct inspect_cores *cores, const struct xpt_record_header *record)
{
	const struct inference *inference = of_record(cores, record);

	return !inference || !inference->out;
}

/* ---- which are written ---- */

static struct core *core_get(struct inspect_cores *cores, const struct indexed_inference *inference)
{
	__u64 number = inference->has_core ? (__u64)inference->core : 0;
	struct map_node *node = map_find(&cores->cores, number, !inference->has_core);
	struct core *core;

	if (node)
		return container_of(node, struct core, node);
	core = calloc(1, sizeof(*core));
	if (!core || map_add(&cores->cores, &core->node, number, !inference->has_core)) {
		free(core);
		return NULL;
	}
	core->next = cores->all_cores;
	cores->all_cores = core;
	return core;
}

__u64 inspect_cores_choose(struct inspect_cores *cores)
{
	struct inference *inference;
	struct core *core;
	__u64 left_out = 0;

	for (size_t i = 0; i < cores->count; i++) {
		inference = &cores->all[i];
		core = core_get(cores, &inference->view);
		if (core)
			core->events += inference->events;
		inference->out = (inference->view.has_core &&
				  !inspect_settings_wants_core(cores->settings, inference->view.core)) ||
				 (core && core->events > cores->settings->max_events_per_core);
		left_out += inference->out;
	}
	return left_out;
}

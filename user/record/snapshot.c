/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/snapshot.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "model/link.h"
#include "model/map.h"
#include "record/chunk.h"
#include "record/context.h"

#define READINGS_AROUND 100000000ull /* ns: what counters had just before and after */

struct snapshot {
	__u64 begin;
	struct text context; /* records */
	size_t count;
	struct chunk_part parts[];
};

int snapshot_create(__u64 begin, struct text *context, const struct chunk_part *parts, size_t count,
		    struct snapshot **result)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot) + count * sizeof(*parts));

	if (!snapshot)
		return -ENOMEM;
	snapshot->begin = begin;
	snapshot->context = *context;
	*context = (struct text){};
	snapshot->count = count;
	for (size_t i = 0; i < count; i++) {
		snapshot->parts[i] = parts[i];
		chunk_use(parts[i].chunk);
	}
	*result = snapshot;
	return 0;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	for (size_t i = 0; i < snapshot->count; i++)
		chunk_leave(snapshot->parts[i].chunk);
	text_free(&snapshot->context);
	free(snapshot);
}

__u64 snapshot_begin(const struct snapshot *snapshot)
{
	return snapshot->begin;
}

/* ---- what is wanted ---- */

/* A thread that has returned from a call that began too early: what it did up to then lies in that call, or was before. */
struct thread {
	struct thread *next;
	struct map_node node; /* by tid */
	__u64 end;
};

/* That an inference begins with. */
struct begin {
	struct map_node node; /* by process and time */
};

struct walk {
	const struct snapshot_part *part;
	__u64 from; /* ns */
	struct map threads;
	struct thread *all_threads;
	struct map begins;
	struct begin *all_begins;
	__u64 first, last; /* ns: begin and end of all stretches */
};

static int thread_note(struct walk *walk, __u32 tid, __u64 end)
{
	struct map_node *node = map_find(&walk->threads, tid, 0);
	struct thread *thread = node ? container_of(node, struct thread, node) : calloc(1, sizeof(*thread));

	if (!thread)
		return -ENOMEM;
	if (!node) {
		if (map_add(&walk->threads, &thread->node, tid, 0)) {
			free(thread);
			return -ENOMEM;
		}
		thread->next = walk->all_threads;
		walk->all_threads = thread;
	}
	if (end > thread->end)
		thread->end = end;
	return 0;
}

static int note_threads(struct walk *walk, const struct snapshot *snapshot)
{
	const struct xpt_record_header *record;
	const struct xpt_record_call *call;
	int error = 0;
	__u32 at;

	for (size_t i = 0; i < snapshot->count && !error; i++) {
		for (at = 0; !error && (record = chunk_next(&snapshot->parts[i], &at));) {
			call = (const void *)record;
			if (record->kind == XPT_RECORD_CALL && call->start < walk->from && record->time >= walk->from)
				error = thread_note(walk, call->tid, record->time);
		}
	}
	return error;
}

static int note_stretches(struct walk *walk)
{
	const struct snapshot_part *part = walk->part;
	int error = 0;

	walk->first = ~0ull;
	walk->all_begins = calloc(part->count ?: 1, sizeof(*walk->all_begins));
	if (!walk->all_begins)
		return -ENOMEM;
	for (size_t i = 0; i < part->count && !error; i++) {
		const struct snapshot_stretch *stretch = &part->stretches[i];

		error = map_add(&walk->begins, &walk->all_begins[i].node, stretch->tgid, stretch->begin);
		walk->first = stretch->begin < walk->first ? stretch->begin : walk->first;
		walk->last = stretch->end > walk->last ? stretch->end : walk->last;
	}
	return error;
}

static void walk_free(struct walk *walk)
{
	struct thread *thread;

	while ((thread = walk->all_threads)) {
		walk->all_threads = thread->next;
		free(thread);
	}
	free(walk->all_begins);
	map_free(&walk->threads);
	map_free(&walk->begins);
}

/* Whether it began, on its thread, in time, and in nothing that did not. */
static bool began_in_time(const struct walk *walk, __u32 tid, __u64 begin, __u64 end)
{
	const struct map_node *node;

	if (begin < walk->from)
		return false;
	node = map_find(&walk->threads, tid, 0);
	return !node || end > container_of(node, const struct thread, node)->end;
}

/* The last stretch of the thread that begins at the time or before. NULL: none. */
static const struct snapshot_stretch *stretch_before(const struct snapshot_part *part, __u32 tid, __u64 time)
{
	size_t low = 0, high = part->count, middle;
	const struct snapshot_stretch *stretch;

	while (low < high) {
		middle = low + (high - low) / 2;
		stretch = &part->stretches[middle];
		if (stretch->tid < tid || (stretch->tid == tid && stretch->begin <= time))
			low = middle + 1;
		else
			high = middle;
	}
	stretch = low ? &part->stretches[low - 1] : NULL;
	return stretch && stretch->tid == tid ? stretch : NULL;
}

/* A wait ends an inference where its stretch ends, whenever it has begun. */
static bool in_stretch(const struct walk *walk, __u32 tid, __u64 begin, __u64 end)
{
	const struct snapshot_stretch *stretch;

	if (!walk->part->count)
		return true;
	stretch = stretch_before(walk->part, tid, begin);
	if (stretch && end <= stretch->end)
		return true;
	stretch = stretch_before(walk->part, tid, end);
	return stretch && end == stretch->end;
}

static bool is_of_target(const struct walk *walk, const struct xpt_record_header *record)
{
	return !walk->part->tgid || record->tgid == walk->part->tgid;
}

static bool in_time(const struct walk *walk, __u64 time, __u64 around)
{
	return time >= walk->from &&
	       (!walk->part->count || (time + around >= walk->first && time <= walk->last + around));
}

/* When the inference has begun that it is a step of; 0: it is none, or not known. */
static __u64 step_of(const struct walk *walk, const struct xpt_record_call *call)
{
	bool known = call->valid >> 3 & 1 && call->values > 3;

	return walk->part->roles[call->spec] == XPT_ROLE_OPERATOR && known ? call->value[3] : 0;
}

/* It tells of a program what later calls mean. */
static bool is_control(const struct walk *walk, __u16 spec)
{
	switch (walk->part->roles[spec]) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_NAME:
	case XPT_ROLE_PROGRAM_UNLOAD:
		return true;
	default:
		return false;
	}
}

static bool wants_call(const struct walk *walk, const struct xpt_record_call *call)
{
	const struct xpt_record_header *header = &call->header;
	__u64 inference;

	if (call->spec >= XPT_SPEC_MAX || !began_in_time(walk, call->tid, call->start, header->time))
		return false;
	if (is_control(walk, call->spec))
		return true;
	inference = step_of(walk, call);
	if (!inference)
		return in_stretch(walk, call->tid, call->start, header->time);
	if (inference < walk->from)
		return false;
	return !walk->part->count || map_find(&walk->begins, header->tgid, inference);
}

static bool wants_string(const struct walk *walk, const struct xpt_record_string *string)
{
	if (string->spec >= XPT_SPEC_MAX || !began_in_time(walk, string->tid, string->call_start, string->header.time))
		return false;
	return is_control(walk, string->spec) || in_stretch(walk, string->tid, string->call_start, string->call_start);
}

static bool wants(const struct walk *walk, const struct xpt_record_header *record)
{
	const struct xpt_record_region *region = (const void *)record;
	const struct xpt_record_ioctl *ioctl = (const void *)record;

	switch (record->kind) {
	case XPT_RECORD_CALL:
		return is_of_target(walk, record) && wants_call(walk, (const void *)record);
	case XPT_RECORD_STRING:
		return is_of_target(walk, record) && wants_string(walk, (const void *)record);
	case XPT_RECORD_REGION:
		return is_of_target(walk, record) && began_in_time(walk, region->tid, region->start, record->time) &&
		       in_stretch(walk, region->tid, region->start, record->time);
	case XPT_RECORD_IOCTL:
		return is_of_target(walk, record) && began_in_time(walk, ioctl->tid, ioctl->start, record->time) &&
		       in_stretch(walk, ioctl->tid, ioctl->start, record->time);
	case XPT_RECORD_TASK:
		return is_of_target(walk, record) && record->time >= walk->from;
	case XPT_RECORD_PASS:
		return record->time >= walk->from;
	case XPT_RECORD_EVENT:
	case XPT_RECORD_LOST:
		return in_time(walk, record->time, 0);
	case XPT_RECORD_HELD:
		return is_of_target(walk, record) && in_time(walk, record->time, 0);
	case XPT_RECORD_READING:
		return in_time(walk, record->time, READINGS_AROUND);
	default:
		/* Counts are of all the time that a program has run; an end there is only one. */
		return context_is(record) && (!record->tgid || is_of_target(walk, record));
	}
}

/* ---- walking ---- */

static int walk_context(const struct walk *walk, const struct snapshot *snapshot,
			int (*visit)(void *context, const struct xpt_record_header *record), void *context)
{
	const struct xpt_record_header *record;
	int result = 0;

	for (size_t at = 0; at < snapshot->context.length && !result; at += record->size) {
		record = (const void *)(snapshot->context.data + at);
		if (!record->tgid || is_of_target(walk, record))
			result = visit(context, record);
	}
	return result;
}

int snapshot_each(const struct snapshot *snapshot, const struct snapshot_part *part,
		  int (*visit)(void *context, const struct xpt_record_header *record), void *context)
{
	struct walk walk = { .part = part, .from = part->from > snapshot->begin ? part->from : snapshot->begin };
	const struct xpt_record_header *record;
	int result = note_threads(&walk, snapshot);
	__u32 at;

	if (!result)
		result = note_stretches(&walk);
	if (!result)
		result = walk_context(&walk, snapshot, visit, context);
	for (size_t i = 0; i < snapshot->count; i++) {
		for (at = 0; !result && (record = chunk_next(&snapshot->parts[i], &at));) {
			if (wants(&walk, record))
				result = visit(context, record);
		}
	}
	walk_free(&walk);
	return result;
}

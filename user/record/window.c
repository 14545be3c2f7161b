/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/window.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"

#define CHUNK_MIN (128u << 10) /* room for the largest record */
#define CHUNK_MAX (1u << 20)
#define CHUNKS 64		     /* of a window that is full, or more */
#define CHUNKS_OF_SPAN 8u	     /* a chunk holds no more of the time than such a part */
#define PAST_PART 4		     /* of the bytes, what is kept of processes takes no more than such a part */
#define READINGS_AROUND 100000000ull /* ns: what counters had just before and after */

/* ---- pieces of a window's memory ---- */

/* Shared with snapshots: what has been written stays as it is. */
struct chunk {
	unsigned int users; /* the window and snapshots; atomic */
	__u32 filled;	    /* bytes */
	__u32 records;
	__u64 opened; /* ns: when its first record came; */
	__u64 latest; /* latest time of a record */
	__u64 task;   /* earliest time of a TASK record; UINT64_MAX: none is there */
	char data[];
};

/* Frees it with the last user. */
static void chunk_leave(struct chunk *chunk)
{
	if (__atomic_fetch_sub(&chunk->users, 1, __ATOMIC_ACQ_REL) == 1)
		free(chunk);
}

/* Of a snapshot: as much of a chunk as was there. */
struct chunk_part {
	struct chunk *chunk;
	__u32 filled;
};

/* The records of a part, from the first on: for (at = 0; (record = chunk_next(&part, &at));) */
static inline const struct xpt_record_header *chunk_next(const struct chunk_part *part, __u32 *at)
{
	const struct xpt_record_header *record = (const void *)(part->chunk->data + *at);

	if (*at >= part->filled)
		return NULL;
	*at += record->size;
	return record;
}

struct window {
	struct window_options options;
	__u32 room;	       /* bytes of a chunk's data */
	struct chunk **chunks; /* ring: count of them from first on */
	size_t first, count, places;
	struct past past; /* up to the begin */
	__u64 reserved;	  /* bytes */
	__u64 begin;
	__u64 records, evicted, lost;
	__u64 unknown; /* for want of memory */
};

int window_create(const struct window_options *options, struct window **result)
{
	struct window *window;

	if (options->bytes < WINDOW_BYTES_MIN || options->bytes > WINDOW_BYTES_MAX)
		return -EINVAL;
	window = calloc(1, sizeof(*window));
	if (!window)
		return -ENOMEM;
	window->options = *options;
	window->begin = options->begin;
	window->room = CHUNK_MAX;
	while (window->room > CHUNK_MIN && options->bytes / window->room < CHUNKS)
		window->room /= 2;
	past_init(&window->past, options->bytes / PAST_PART);
	*result = window;
	return 0;
}

void window_free(struct window *window)
{
	if (!window)
		return;
	for (size_t i = 0; i < window->count; i++)
		chunk_leave(window->chunks[(window->first + i) % window->places]);
	past_free(&window->past);
	free(window->chunks);
	free(window);
}

static struct chunk *chunk_at(const struct window *window, size_t index)
{
	return window->chunks[(window->first + index) % window->places];
}

/* ---- what leaves ---- */

/* Up to when it is known what happened to processes: where records are not in order, later ones may have earlier times. */
static __u64 past_end(const struct window *window)
{
	__u64 end = window->begin;

	for (size_t i = 0; i < window->count; i++)
		if (chunk_at(window, i)->task < end)
			end = chunk_at(window, i)->task;
	return end;
}

static void evict(struct window *window)
{
	struct chunk *chunk = chunk_at(window, 0);
	const struct chunk_part part = { chunk, chunk->filled };
	const struct xpt_record_header *record;
	__u64 end;

	for (__u32 at = 0; (record = chunk_next(&part, &at));)
		if (past_is(record))
			window->unknown += past_take(&window->past, record);
	if (chunk->latest >= window->begin)
		window->begin = chunk->latest < UINT64_MAX ? chunk->latest + 1 : UINT64_MAX;
	window->records -= chunk->records;
	window->evicted += chunk->records;
	window->first = (window->first + 1) % window->places;
	window->count--;
	chunk_leave(chunk);
	end = past_end(window);
	if (end)
		window->unknown += past_settle(&window->past, end - 1);
}

static __u64 window_bytes(const struct window *window)
{
	return (__u64)window->count * (sizeof(struct chunk) + window->room) + window->past.context.bytes +
	       window->past.waiting_bytes + window->reserved;
}

static void make_room(struct window *window)
{
	while (window->count > 1 && window_bytes(window) > window->options.bytes)
		evict(window);
}

void window_grow(struct window *window, __u64 bytes)
{
	if (bytes > window->options.bytes && bytes <= WINDOW_BYTES_MAX)
		window->options.bytes = bytes;
}

void window_reserve(struct window *window, __u64 bytes)
{
	window->reserved = bytes;
	make_room(window);
}

void window_expire(struct window *window, __u64 now)
{
	__u64 span = window->options.span;

	if (!span || now < span)
		return;
	while (window->count && chunk_at(window, 0)->latest < now - span)
		evict(window);
}

/* ---- what comes ---- */

static int add_place(struct window *window)
{
	size_t places = window->places ? window->places * 2 : CHUNKS;
	struct chunk **more = calloc(places, sizeof(*more));

	if (!more)
		return -ENOMEM;
	for (size_t i = 0; i < window->count; i++)
		more[i] = chunk_at(window, i);
	free(window->chunks);
	window->chunks = more;
	window->places = places;
	window->first = 0;
	return 0;
}

static struct chunk *add_chunk(struct window *window, __u64 time)
{
	struct chunk *chunk;

	if (window->count == window->places && add_place(window))
		return NULL;
	chunk = malloc(sizeof(*chunk) + window->room);
	if (!chunk)
		return NULL;
	*chunk = (struct chunk){ .users = 1, .opened = time, .task = UINT64_MAX };
	window->chunks[(window->first + window->count++) % window->places] = chunk;
	make_room(window);
	return chunk;
}

static bool has_room(const struct window *window, const struct chunk *chunk, const struct xpt_record_header *record)
{
	__u64 part = window->options.span / CHUNKS_OF_SPAN;

	return chunk->filled + record->size <= window->room && (!part || record->time < chunk->opened + part);
}

int window_add(struct window *window, const struct xpt_record_header *record)
{
	struct chunk *chunk = window->count ? chunk_at(window, window->count - 1) : NULL;

	if (!chunk || !has_room(window, chunk, record))
		chunk = add_chunk(window, record->time);
	if (!chunk) {
		window->lost++;
		return -ENOMEM;
	}
	memcpy(chunk->data + chunk->filled, record, record->size);
	chunk->filled += record->size;
	chunk->records++;
	if (record->time > chunk->latest)
		chunk->latest = record->time;
	if (record->kind == XPT_RECORD_TASK && record->time < chunk->task)
		chunk->task = record->time;
	window->records++;
	return 0;
}

int window_change(struct window *window, const struct past_change *change, const struct xpt_record_text *record)
{
	int error = past_add(&window->past, change, record);

	if (error)
		window->unknown++;
	else
		make_room(window);
	return error;
}

/* ---- looking ---- */

void window_figures(const struct window *window, struct window_figures *figures)
{
	*figures = (struct window_figures){
		.begin = window->begin,
		.bytes = window_bytes(window),
		.records = window->records,
		.evicted = window->evicted,
		.lost = window->lost,
		.unknown = window->unknown + window->past.context.dropped,
	};
}

/* ---- snapshots ---- */

struct snapshot {
	__u64 begin;
	struct past_copy past; /* up to the begin */
	size_t count;
	struct chunk_part parts[];
};

int window_snapshot(const struct window *window, struct snapshot **result)
{
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot) + window->count * sizeof(snapshot->parts[0]));

	if (!snapshot)
		return -ENOMEM;
	snapshot->begin = window->begin;
	for (; snapshot->count < window->count; snapshot->count++) {
		struct chunk *chunk = chunk_at(window, snapshot->count);

		snapshot->parts[snapshot->count] = (struct chunk_part){ chunk, chunk->filled };
		__atomic_fetch_add(&chunk->users, 1, __ATOMIC_RELAXED);
	}
	if (past_save(&window->past, &snapshot->past)) {
		snapshot_free(snapshot);
		return -ENOMEM;
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
	past_copy_free(&snapshot->past);
	free(snapshot);
}

__u64 snapshot_begin(const struct snapshot *snapshot)
{
	return snapshot->begin;
}

/* ---- what is requested ---- */

/* A thread that has returned from a call that began too early: what it did up to then lies in that call, or was before. */
struct thread {
	struct thread *next;
	struct map_node node; /* by tid */
	__u64 end;
};

/* Of a stretch. */
struct place {
	struct map_node begin; /* by process and time */
	struct map_node end;   /* by thread and time */
	__u64 reach;	       /* ns: latest end of those of the thread up to this one */
};

struct walk {
	const struct snapshot *snapshot;
	const struct snapshot_part *part;
	int (*visit)(void *context, const struct xpt_record_header *record);
	void *context;
	__u64 from;	  /* ns */
	struct past past; /* up to there */
	size_t changes;	  /* place in what was reported from there on */
	struct map threads;
	struct thread *all_threads;
	struct map begins, ends; /* of the stretches, */
	struct place *places;	 /* of each */
	__u64 first, last;	 /* ns: begin and end of all */
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

/* What becomes of processes afterwards is known, too, as far as the walk has come. */
static bool is_past(const struct walk *walk, const struct xpt_record_header *record)
{
	return record->kind == XPT_RECORD_TASK || (record->time < walk->from && context_is(record));
}

/* What was before: calls that reach into what is requested, and what was reported. */
static int note_past(struct walk *walk)
{
	const struct snapshot *snapshot = walk->snapshot;
	const struct xpt_record_header *record;
	const struct xpt_record_call *call;
	int error = past_restore(&walk->past, &snapshot->past);

	for (size_t i = 0; i < snapshot->count && !error; i++) {
		for (__u32 at = 0; !error && (record = chunk_next(&snapshot->parts[i], &at));) {
			call = (const void *)record;
			if (record->kind == XPT_RECORD_CALL && call->start < walk->from && record->time >= walk->from)
				error = thread_note(walk, call->tid, record->time);
			else if (is_past(walk, record) && past_take(&walk->past, record))
				error = -ENOMEM;
		}
	}
	if (!error && walk->from && past_settle(&walk->past, walk->from - 1))
		error = -ENOMEM;
	return error;
}

static int note_stretches(struct walk *walk)
{
	const struct snapshot_part *part = walk->part;
	int error = 0;

	walk->first = ~0ull;
	walk->places = calloc(part->count ?: 1, sizeof(*walk->places));
	if (!walk->places)
		return -ENOMEM;
	for (size_t i = 0; i < part->count && !error; i++) {
		const struct snapshot_stretch *stretch = &part->stretches[i];
		struct place *place = &walk->places[i];

		place->reach = stretch->end;
		if (i && stretch[-1].tid == stretch->tid && place[-1].reach > place->reach)
			place->reach = place[-1].reach;
		error = map_add(&walk->begins, &place->begin, stretch->tgid, stretch->begin) ?:
				map_add(&walk->ends, &place->end, stretch->tid, stretch->end);
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
	past_free(&walk->past);
	free(walk->places);
	map_free(&walk->threads);
	map_free(&walk->begins);
	map_free(&walk->ends);
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

/* The latest end of stretches of the thread that begin at the time or before. 0: there are none. */
static __u64 reach_of(const struct walk *walk, __u32 tid, __u64 time)
{
	const struct snapshot_stretch *stretches = walk->part->stretches;
	size_t low = 0, high = walk->part->count, middle;

	while (low < high) {
		middle = low + (high - low) / 2;
		if (stretches[middle].tid < tid || (stretches[middle].tid == tid && stretches[middle].begin <= time))
			low = middle + 1;
		else
			high = middle;
	}
	return low && stretches[low - 1].tid == tid ? walk->places[low - 1].reach : 0;
}

/* A wait ends an inference where its stretch ends, whenever it has begun. */
static bool in_stretch(const struct walk *walk, __u32 tid, __u64 begin, __u64 end)
{
	return !walk->part->count || end <= reach_of(walk, tid, begin) || map_find(&walk->ends, tid, end);
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

/* It defines a program, a region or a stream for later calls. */
static bool is_control(const struct walk *walk, __u16 spec)
{
	switch (walk->part->roles[spec]) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_READY:
	case XPT_ROLE_PROGRAM_NAME:
	case XPT_ROLE_PROGRAM_UNLOAD:
	case XPT_ROLE_REGION_NAME:
	case XPT_ROLE_REGION_RELEASE:
	case XPT_ROLE_MARK:
	case XPT_ROLE_FOLLOW:
	case XPT_ROLE_STREAM:
		return true;
	default:
		return false;
	}
}

static bool wants_call(const struct walk *walk, const struct xpt_record_call *call)
{
	const struct xpt_record_header *header = &call->header;
	__u64 inference;

	if (call->spec >= XPT_SPEC_MAX || call->start < walk->from)
		return false;
	if (is_control(walk, call->spec))
		return true;
	/* What a wait ends was begun elsewhere, and may be there whatever the wait lies in. */
	if (walk->part->roles[call->spec] != XPT_ROLE_WAIT &&
	    !began_in_time(walk, call->tid, call->start, header->time))
		return false;
	inference = step_of(walk, call);
	if (!inference)
		return in_stretch(walk, call->tid, call->start, header->time);
	if (inference < walk->from)
		return false;
	return !walk->part->count || map_find(&walk->begins, header->tgid, inference);
}

static bool wants_string(const struct walk *walk, const struct xpt_record_string *string)
{
	__u64 start = string->call_start;

	if (string->spec >= XPT_SPEC_MAX || start < walk->from)
		return false;
	/* The keys of a wait. */
	return is_control(walk, string->spec) || walk->part->roles[string->spec] == XPT_ROLE_WAIT ||
	       (began_in_time(walk, string->tid, start, string->header.time) &&
		in_stretch(walk, string->tid, start, start));
}

static bool wants(const struct walk *walk, const struct xpt_record_header *record)
{
	const struct xpt_record_region *region = (const void *)record;
	const struct xpt_record_ioctl *ioctl = (const void *)record;
	const struct xpt_record_stack_sample *sample = (const void *)record;
	const struct xpt_record_off_cpu *off = (const void *)record;

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
	case XPT_RECORD_STACK_SAMPLE:
		return is_of_target(walk, record) &&
		       began_in_time(walk, sample->tid, sample->call_start, record->time) &&
		       in_stretch(walk, sample->tid, sample->call_start, sample->call_start);
	case XPT_RECORD_OFF_CPU:
		return is_of_target(walk, record) && began_in_time(walk, off->tid, off->start, record->time) &&
		       in_stretch(walk, off->tid, off->start, record->time);
	case XPT_RECORD_TASK:
		return is_of_target(walk, record) && record->time >= walk->from;
	case XPT_RECORD_PASS:
		return in_time(walk, record->time, READINGS_AROUND);
	case XPT_RECORD_EVENT:
	case XPT_RECORD_CLIENT_EXIT:
	case XPT_RECORD_LOST:
		return in_time(walk, record->time, 0);
	case XPT_RECORD_WAITED:
		return is_of_target(walk, record) && in_time(walk, record->time, 0);
	case XPT_RECORD_READING:
		return in_time(walk, record->time, READINGS_AROUND);
	default:
		/* Counts are of all the time that a program has run; an end there is only one. */
		return context_is(record) && record->time >= walk->from &&
		       (context_is_common(record) || is_of_target(walk, record));
	}
}

/* ---- walking ---- */

static int visit_text(const struct walk *walk, struct text *text)
{
	const struct xpt_record_header *record;
	int result = text->error;

	for (size_t at = 0; at < text->length && !result; at += record->size) {
		record = (const void *)(text->data + at);
		if (context_is_common(record) || is_of_target(walk, record))
			result = walk->visit(walk->context, record);
	}
	text_free(text);
	return result;
}

static int visit_past(const struct walk *walk)
{
	struct text text = {};

	context_write(&walk->past.context, walk->from ? walk->from - 1 : 0, &text);
	return visit_text(walk, &text);
}

/* Reports of a call that is left out because it began too early. */
static int visit_reports(const struct walk *walk, const struct xpt_record_call *call)
{
	const struct xpt_record_header *header = &call->header, *loaded;
	size_t at = 0;
	int result = 0;

	if (walk->part->count || header->kind != XPT_RECORD_CALL || header->time < walk->from ||
	    !is_of_target(walk, header) || call->spec >= XPT_SPEC_MAX || !is_control(walk, call->spec))
		return 0;
	while (!result && (loaded = past_copy_loaded(&walk->snapshot->past, header->tgid, header->time, &at)))
		result = walk->visit(walk->context, loaded);
	return result;
}

/* Where the calls that use a program first are left out, its number is what it was called by. */
static int visit_loaded(struct walk *walk, const struct xpt_record_header *record)
{
	const struct past_copy *past = &walk->snapshot->past;
	const struct xpt_record_header *loaded;
	int result = 0;

	while (walk->part->count && !result && (loaded = past_copy_until(past, record->time, &walk->changes)))
		if (loaded->time >= walk->from && is_of_target(walk, loaded))
			result = walk->visit(walk->context, loaded);
	return result;
}

/* A process has the programs of its parent: where not all is requested, their records may be left out. */
static int visit_inherited(struct walk *walk, const struct xpt_record_header *record)
{
	struct text text = {};

	if ((!walk->part->tgid && !walk->part->count) || record->kind != XPT_RECORD_TASK || record->time < walk->from)
		return 0;
	if (((const struct xpt_record_task *)record)->event != XPT_TASK_FORK || !is_of_target(walk, record))
		return 0;
	if (past_settle(&walk->past, record->time))
		return -ENOMEM;
	context_write_programs(&walk->past.context, record->tgid, record->time, &text);
	return visit_text(walk, &text);
}

static int visit_parts(struct walk *walk)
{
	const struct snapshot *snapshot = walk->snapshot;
	const struct xpt_record_header *record;
	int result = 0;

	for (size_t i = 0; i < snapshot->count && !result; i++) {
		for (__u32 at = 0; !result && (record = chunk_next(&snapshot->parts[i], &at));) {
			result = visit_loaded(walk, record) ?: visit_inherited(walk, record);
			if (!result)
				result = wants(walk, record) ? walk->visit(walk->context, record) :
							       visit_reports(walk, (const void *)record);
		}
	}
	return result;
}

int snapshot_each(const struct snapshot *snapshot, const struct snapshot_part *part,
		  int (*visit)(void *context, const struct xpt_record_header *record), void *context)
{
	struct walk walk = {
		.snapshot = snapshot,
		.part = part,
		.visit = visit,
		.context = context,
		.from = part->from > snapshot->begin ? part->from : snapshot->begin,
	};
	int result;

	past_init(&walk.past, SIZE_MAX);
	result = note_past(&walk) ?: note_stretches(&walk);
	if (!result)
		result = visit_past(&walk);
	if (!result)
		result = visit_parts(&walk);
	walk_free(&walk);
	return result;
}

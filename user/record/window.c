/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/window.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/chunk.h"
#include "record/past.h"

#define CHUNK_MIN (128u << 10) /* room for the largest record */
#define CHUNK_MAX (1u << 20)
#define CHUNKS 64	  /* of a window that is full, or more */
#define CHUNKS_OF_SPAN 8u /* a chunk holds no more of the time than such a part */
#define PAST_PART 4	  /* of the bytes, what is kept of processes takes no more than such a part */

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

void chunk_leave(struct chunk *chunk)
{
	if (__atomic_fetch_sub(&chunk->users, 1, __ATOMIC_ACQ_REL) == 1)
		free(chunk);
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

static int tell(struct window *window, const struct told *told, const struct xpt_record_text *record)
{
	int error = past_tell(&window->past, told, record);

	if (error)
		window->unknown++;
	else
		make_room(window);
	return error;
}

int window_load(struct window *window, __u16 runtime, struct xpt_record_text *record)
{
	const struct told told = { .time = record->header.time,
				   .handle = record->id,
				   .tgid = record->header.tgid,
				   .runtime = runtime,
				   .size = record->header.size };
	int error = tell(window, &told, record);

	free(record);
	return error;
}

void window_release(struct window *window, __u32 tgid, __u16 runtime, __u64 handle, __u64 time)
{
	const struct told told = { .time = time, .tgid = tgid, .runtime = runtime, .handle = handle };

	tell(window, &told, NULL);
}

int window_name_region(struct window *window, struct xpt_record_text *record)
{
	return window_load(window, CONTEXT_REGION, record);
}

void window_release_region(struct window *window, __u32 tgid, __u64 handle, __u64 time)
{
	window_release(window, tgid, CONTEXT_REGION, handle, time);
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

int window_snapshot(const struct window *window, struct snapshot **result)
{
	struct snapshot *snapshot = snapshot_create(window->begin, window->count);

	if (!snapshot)
		return -ENOMEM;
	for (size_t i = 0; i < window->count; i++)
		snapshot_add(snapshot, chunk_at(window, i));
	if (past_save(&window->past, snapshot_past(snapshot))) {
		snapshot_free(snapshot);
		return -ENOMEM;
	}
	*result = snapshot;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/window.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "record/chunk.h"
#include "record/context.h"

#define CHUNK_MIN (128u << 10) /* room for the largest record */
#define CHUNK_MAX (1u << 20)
#define CHUNKS 64	   /* of a window that is full, or more */
#define CHUNKS_OF_SPAN 16u /* a chunk holds no more of the time than such a part */

/* What a program was called from a time on, or that it was released: waits until the window begins later than that. */
struct told {
	struct told *next;
	__u64 time;
	__u32 tgid;
	__u16 runtime;
	__u64 handle;
	struct xpt_record_text *record; /* NULL: released */
};

struct window {
	struct window_options options;
	__u32 room;	       /* bytes of a chunk's data */
	struct chunk **chunks; /* ring: count of them from first on */
	size_t first, count, places;
	struct context context;
	struct told *told, **told_last;
	size_t told_bytes;
	__u64 reserved; /* bytes */
	__u64 begin;
	__u64 records, evicted, lost;
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
	window->told_last = &window->told;
	window->room = CHUNK_MAX;
	while (window->room > CHUNK_MIN && options->bytes / window->room < CHUNKS)
		window->room /= 2;
	context_init(&window->context);
	*result = window;
	return 0;
}

void chunk_leave(struct chunk *chunk)
{
	if (__atomic_fetch_sub(&chunk->users, 1, __ATOMIC_ACQ_REL) == 1)
		free(chunk);
}

static void told_drop(struct window *window)
{
	struct told *told = window->told;

	window->told = told->next;
	if (!window->told)
		window->told_last = &window->told;
	window->told_bytes -= sizeof(*told) + (told->record ? told->record->header.size : 0);
	free(told->record);
	free(told);
}

void window_free(struct window *window)
{
	if (!window)
		return;
	for (size_t i = 0; i < window->count; i++)
		chunk_leave(window->chunks[(window->first + i) % window->places]);
	while (window->told)
		told_drop(window);
	context_free(&window->context);
	free(window->chunks);
	free(window);
}

static struct chunk *chunk_at(const struct window *window, size_t index)
{
	return window->chunks[(window->first + index) % window->places];
}

/* ---- what leaves ---- */

/* Programs that were loaded, named or released up to the time. */
static void told_take(struct window *window, __u64 time)
{
	const struct told *told;

	while ((told = window->told) && told->time <= time) {
		if (!told->record)
			context_release(&window->context, told->tgid, told->runtime, told->handle);
		else if (context_load(&window->context, told->runtime, told->record))
			window->lost++;
		told_drop(window);
	}
}

static void chunk_take(struct window *window, struct chunk *chunk)
{
	const struct chunk_part part = { chunk, chunk->filled };
	const struct xpt_record_header *record;
	__u32 at = 0;

	while ((record = chunk_next(&part, &at))) {
		/* What a process had, a child gets and an exit ends: in the order of time. */
		if (record->kind == XPT_RECORD_TASK)
			told_take(window, record->time);
		else if (!context_is(record))
			continue;
		if (context_take(&window->context, record))
			window->lost++;
	}
}

static void evict(struct window *window)
{
	struct chunk *chunk = chunk_at(window, 0);

	chunk_take(window, chunk);
	if (chunk->latest >= window->begin)
		window->begin = chunk->latest + 1;
	told_take(window, chunk->latest);
	window->records -= chunk->records;
	window->evicted += chunk->records;
	window->first = (window->first + 1) % window->places;
	window->count--;
	chunk_leave(chunk);
}

static __u64 window_bytes(const struct window *window)
{
	return (__u64)window->count * (sizeof(struct chunk) + window->room) + window->context.bytes +
	       window->told_bytes + window->reserved;
}

static void make_room(struct window *window)
{
	while (window->count > 1 && window_bytes(window) > window->options.bytes)
		evict(window);
}

void window_reserve(struct window *window, __u64 bytes)
{
	window->reserved = bytes;
	make_room(window);
}

void window_expire(struct window *window, __u64 now)
{
	__u64 span = window->options.span;

	if (!span)
		return;
	while (window->count && chunk_at(window, 0)->latest + span < now)
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
	*chunk = (struct chunk){ .users = 1, .opened = time };
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
	window->records++;
	return 0;
}

static int tell(struct window *window, const struct told *what)
{
	struct told *told = malloc(sizeof(*told));

	if (!told) {
		window->lost++;
		free(what->record);
		return -ENOMEM;
	}
	*told = *what;
	*window->told_last = told;
	window->told_last = &told->next;
	window->told_bytes += sizeof(*told) + (told->record ? told->record->header.size : 0);
	make_room(window);
	return 0;
}

int window_load(struct window *window, __u16 runtime, struct xpt_record_text *record)
{
	const struct told told = { .time = record->header.time, .runtime = runtime, .record = record };

	return tell(window, &told);
}

void window_release(struct window *window, __u32 tgid, __u16 runtime, __u64 handle, __u64 time)
{
	const struct told told = { .time = time, .tgid = tgid, .runtime = runtime, .handle = handle };

	tell(window, &told);
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
	};
}

int window_snapshot(const struct window *window, struct snapshot **result)
{
	struct chunk_part *parts = calloc(window->count ?: 1, sizeof(*parts));
	struct text context = {};
	int error = parts ? 0 : -ENOMEM;

	if (!error) {
		context_write(&window->context, window->begin, &context);
		error = context.error;
	}
	for (size_t i = 0; !error && i < window->count; i++)
		parts[i] = (struct chunk_part){ chunk_at(window, i), chunk_at(window, i)->filled };
	if (!error)
		error = snapshot_create(window->begin, &context, parts, window->count, result);
	text_free(&context);
	free(parts);
	return error;
}

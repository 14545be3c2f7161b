/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A made-up stream of records as a collector gets them: processes that fork, run other programs and exit, threads with nested
 * calls, inferences with operators on their own and other threads, asynchronous ones, programs that are loaded, named and
 * released, regions, code objects and symbols; the records of three rings, one ring after the other, with a PASS before each round.
 */
#ifndef XPT_TEST_RECORD_STREAM_H
#define XPT_TEST_RECORD_STREAM_H

#include "record_made.h"

#define STREAM_RINGS 3
#define STREAM_PROCESSES 6
#define STREAM_THREADS 4
#define STREAM_HANDLES 9 /* from 1 on: 0 is none */
#define STREAM_DEPTH 5
#define STREAM_KEYS 16
#define STREAM_NAMES 4
#define STREAM_CODE 6 /* code objects of a process, by handle */

struct stream_open {
	enum stream_spec spec;
	__u64 start, handle, key, object;
	struct stream_open *inference; /* of an operator */
	unsigned int operators;	       /* of an execute: open ones */
};

struct stream_thread {
	__u32 tid;
	struct stream_open open[STREAM_DEPTH];
	unsigned int depth;
	__u64 region_start, region_handle, region_name; /* start 0: none is open */
};

struct stream_handle {
	bool live, loaded;
	bool seen;	   /* its load was */
	unsigned int open; /* calls that use it */
	__u64 objects;	   /* address of its first operator */
};

struct stream_process {
	__u32 tgid; /* 0: none */
	struct stream_thread threads[STREAM_THREADS];
	unsigned int thread_count;
	struct stream_handle handles[STREAM_HANDLES];
	__u64 keys[STREAM_KEYS]; /* enqueued and not waited for */
	unsigned int key_count;
	bool names_reported[STREAM_NAMES]; /* of regions, by number */
	bool regions_named[STREAM_NAMES];  /* by handle */
	unsigned int regions_open;
	bool user_named[STREAM_HANDLES];
	bool has_children;	/* what is named later, they may have or not */
	bool forked;		/* what it uses for the first time may have a name from its parent */
	bool ending;		/* only what is open goes on */
	bool code[STREAM_CODE]; /* loaded */
};

struct stream {
	struct text bytes; /* as the collector hands them on */
	struct text rings[STREAM_RINGS];
	struct stream_process processes[STREAM_PROCESSES];
	__u64 seed, now, next_key, next_object;
	__u32 next_id;
	unsigned int filler; /* bytes of a record that nobody wants, after each round */
};

static inline unsigned int stream_random(struct stream *stream, unsigned int below)
{
	stream->seed ^= stream->seed << 13;
	stream->seed ^= stream->seed >> 7;
	stream->seed ^= stream->seed << 17;
	return (unsigned int)((stream->seed >> 20) % below);
}

static inline __u64 stream_tick(struct stream *stream)
{
	return stream->now += 1 + stream_random(stream, 500);
}

static inline struct text *stream_ring(struct stream *stream)
{
	return &stream->rings[stream_random(stream, STREAM_RINGS)];
}

/* ---- processes ---- */

static inline void stream_emit_process(struct stream *stream, const struct stream_process *process)
{
	char text[128];

	snprintf(text, sizeof(text), "{\"name\":\"process%llu\",\"command\":\"c\",\"parent\":1}", stream->now);
	stream_text(stream_ring(stream), XPT_RECORD_PROCESS, process->tgid, stream_tick(stream), 0, text);
}

static inline void stream_emit_classes(struct stream *stream, const struct stream_process *process)
{
	char text[64];

	for (unsigned int i = 1; i < 4; i++) {
		snprintf(text, sizeof(text), "n::Class%u_%llu", i, stream->now);
		stream_text(stream_ring(stream), XPT_RECORD_CLASS, process->tgid, stream_tick(stream), i, text);
	}
}

static inline void stream_add_thread(struct stream *stream, struct stream_process *process)
{
	struct stream_thread *thread = &process->threads[process->thread_count++];
	char text[32];

	*thread = (struct stream_thread){ .tid = process->thread_count == 1 ? process->tgid : ++stream->next_id };
	snprintf(text, sizeof(text), "thread%u", thread->tid);
	stream_text(stream_ring(stream), XPT_RECORD_THREAD, process->tgid, stream_tick(stream), thread->tid, text);
}

static inline bool stream_is_busy(const struct stream_process *process)
{
	for (unsigned int i = 0; i < process->thread_count; i++)
		if (process->threads[i].depth || process->threads[i].region_start)
			return true;
	return false;
}

/* The child runs each program that it has from its parent once: what it is called follows from that. */
static inline void stream_begin(struct stream *stream, struct stream_process *process, struct stream_process *parent)
{
	*process = (struct stream_process){ .tgid = ++stream->next_id, .forked = parent };
	if (parent) {
		stream_task(stream_ring(stream), XPT_TASK_FORK, process->tgid, parent->tgid, stream_tick(stream));
		parent->has_children = true;
		for (unsigned int i = 0; i < STREAM_HANDLES; i++)
			process->handles[i] = (struct stream_handle){ .live = parent->handles[i].live,
								      .objects = stream->next_object += 3 };
	}
	stream_emit_process(stream, process);
	stream_add_thread(stream, process);
	for (__u64 handle = 1; handle < STREAM_HANDLES; handle++) {
		__u64 start = stream_tick(stream);

		if (process->handles[handle].live)
			stream_call(stream_ring(stream), process->tgid, process->tgid, STREAM_EXECUTE, start,
				    stream_tick(stream), 0, &handle, 1);
	}
	if (!parent || stream_random(stream, 2))
		stream_emit_classes(stream, process);
}

static inline void stream_end(struct stream *stream, struct stream_process *process)
{
	struct stream_process empty = { .tgid = process->tgid };

	memcpy(empty.user_named, process->user_named, sizeof(empty.user_named));
	empty.has_children = process->has_children;

	if (stream_random(stream, 2)) {
		stream_task(stream_ring(stream), XPT_TASK_EXIT, process->tgid, 0, stream_tick(stream));
		process->tgid = 0;
		return;
	}
	stream_task(stream_ring(stream), XPT_TASK_EXEC, process->tgid, 0, stream_tick(stream));
	*process = empty;
	stream_emit_process(stream, process);
	stream_add_thread(stream, process);
	if (stream_random(stream, 2))
		stream_emit_classes(stream, process);
}

/* ---- calls ---- */

static inline void stream_emit_nodes(struct stream *stream, __u32 tgid, __u64 objects)
{
	char text[128];

	for (unsigned int i = 0; i < 3; i++) {
		snprintf(text, sizeof(text), "{\"class\":%u,\"name\":\"/node/%llu\",\"type\":\"T%u\"}", i + 1,
			 objects + i, i);
		if (stream_random(stream, 3))
			stream_text(stream_ring(stream), XPT_RECORD_NODE, tgid, stream_tick(stream), objects + i, text);
	}
}

/* Any execute that is open in the process. NULL: none. */
static inline struct stream_open *stream_inference(struct stream *stream, struct stream_process *process)
{
	unsigned int first = stream_random(stream, process->thread_count);

	for (unsigned int i = 0; i < process->thread_count; i++) {
		struct stream_thread *thread = &process->threads[(first + i) % process->thread_count];

		for (unsigned int depth = thread->depth; depth--;)
			if (thread->open[depth].spec == STREAM_EXECUTE)
				return &thread->open[depth];
	}
	return NULL;
}

static inline struct stream_open *stream_push(struct stream *stream, struct stream_thread *thread,
					      enum stream_spec spec)
{
	struct stream_open *open = &thread->open[thread->depth++];

	*open = (struct stream_open){ .spec = spec, .start = stream_tick(stream) };
	return open;
}

static inline bool stream_executes(const struct stream_thread *thread)
{
	for (unsigned int i = 0; i < thread->depth; i++)
		if (thread->open[i].spec != STREAM_COPY)
			return true;
	return false;
}

static inline void stream_open_operator(struct stream *stream, struct stream_process *process,
					struct stream_thread *thread)
{
	struct stream_open *inference = stream_inference(stream, process), *open;

	if (!inference || (thread->depth && !stream_executes(thread)))
		return;
	for (unsigned int i = 0; i < thread->depth; i++) /* another one's does not run inside an inference */
		if (thread->open[i].spec != STREAM_COPY && &thread->open[i] != inference &&
		    thread->open[i].inference != inference)
			return;
	open = stream_push(stream, thread, STREAM_OPERATOR);
	open->handle = inference->handle;
	open->object = process->handles[inference->handle].objects + stream_random(stream, 3);
	open->inference = inference;
	inference->operators++;
	process->handles[inference->handle].open++;
}

static inline void stream_open_program(struct stream *stream, struct stream_process *process,
				       struct stream_thread *thread)
{
	__u64 number = 1 + stream_random(stream, STREAM_HANDLES - 1);
	struct stream_handle *handle = &process->handles[number];
	unsigned int what = stream_random(stream, 100);
	struct stream_open *open;
	char text[32];

	snprintf(text, sizeof(text), "program%llu", stream->now);
	if (stream_executes(thread))
		return;
	if (!handle->live && handle->open)
		return;
	if (!handle->live && what < 10 && !process->user_named[number] &&
	    !process->forked) { /* it was loaded before anybody looked */
		*handle = (struct stream_handle){ .live = true, .objects = stream->next_object += 3 };
	} else if (!handle->live) {
		open = stream_push(stream, thread, STREAM_LOAD);
		if (what < 80)
			stream_string(stream_ring(stream), process->tgid, thread->tid, STREAM_LOAD, 0, open->start,
				      text);
		handle->open++;
		handle->live = true;
		handle->loaded = false;
		handle->seen = true;
		handle->objects = stream->next_object += 3;
		open->handle = number;
		stream_emit_nodes(stream, process->tgid, handle->objects);
	} else if (handle->open && !handle->loaded) {
		return;
	} else if (what < 4 && !handle->open) {
		handle->live = false;
		handle->open++;
		stream_push(stream, thread, STREAM_UNLOAD)->handle = number;
	} else if (what < 8 && !handle->open && !process->has_children) {
		open = stream_push(stream, thread, STREAM_NAME);
		stream_string(stream_ring(stream), process->tgid, thread->tid, STREAM_NAME, 1, open->start, text);
		handle->open++;
		handle->loaded = false;
		handle->objects = stream->next_object += 3; /* maybe another program */
		open->handle = number;
	} else if (what < 9 && handle->seen && !process->has_children) {
		process->user_named[number] = true;
		stream_text(stream_ring(stream), XPT_RECORD_NAMED, process->tgid, stream_tick(stream), number, text);
	} else {
		open = stream_push(stream, thread, what < 30 ? STREAM_ENQUEUE : STREAM_EXECUTE);
		open->handle = number;
		open->key = ++stream->next_key;
		handle->open++;
	}
}

static inline void stream_open_region(struct stream *stream, struct stream_process *process,
				      struct stream_thread *thread)
{
	__u64 number = 1 + stream_random(stream, STREAM_NAMES - 1);
	struct stream_open *open;
	char text[32];

	snprintf(text, sizeof(text), "region%llu", stream->now);
	if (stream_random(stream, 2)) { /* by its name */
		if (!process->names_reported[number])
			stream_region_name(stream_ring(stream), process->tgid, stream_tick(stream), number, text);
		process->names_reported[number] = true;
		thread->region_start = stream_tick(stream);
		thread->region_name = number;
		thread->region_handle = 0;
		process->regions_open++;
	} else if (process->regions_named[number] && stream_random(stream, 4)) {
		thread->region_start = stream_tick(stream);
		thread->region_name = 0;
		thread->region_handle = number;
		process->regions_open++;
	} else if (!process->regions_open && !stream_executes(thread)) {
		open = stream_push(stream, thread,
				   process->regions_named[number] ? STREAM_REGION_RELEASE : STREAM_REGION_NAME);
		open->handle = number;
		process->regions_named[number] = false;
		process->regions_open++; /* until it is done */
		if (open->spec == STREAM_REGION_NAME)
			stream_string(stream_ring(stream), process->tgid, thread->tid, open->spec, 1, open->start,
				      text);
	}
}

static inline void stream_open_call(struct stream *stream, struct stream_process *process, struct stream_thread *thread)
{
	unsigned int what = stream_random(stream, 100);

	if (thread->depth == STREAM_DEPTH)
		return;
	if (what < 10 && !thread->region_start)
		stream_open_region(stream, process, thread);
	else if (what < 40)
		stream_open_operator(stream, process, thread);
	else if (what < 50)
		stream_push(stream, thread, STREAM_COPY);
	else if (what < 60 && process->key_count && !stream_executes(thread))
		stream_push(stream, thread, STREAM_WAIT)->key = process->keys[--process->key_count];
	else
		stream_open_program(stream, process, thread);
}

static inline void stream_close_call(struct stream *stream, struct stream_process *process,
				     struct stream_thread *thread)
{
	struct stream_open *open = &thread->open[thread->depth - 1];
	__u64 values[4] = { open->handle }, time;
	unsigned int count = 1;

	if (open->operators)
		return;
	time = stream_tick(stream);
	switch (open->spec) {
	case STREAM_LOAD:
		values[1] = 4096;
		count = 2;
		break;
	case STREAM_ENQUEUE:
		values[1] = open->key;
		count = 2;
		if (process->key_count < STREAM_KEYS)
			process->keys[process->key_count++] = open->key;
		break;
	case STREAM_WAIT:
		values[0] = open->key;
		break;
	case STREAM_REGION_NAME:
	case STREAM_REGION_RELEASE:
		process->regions_named[open->handle] = open->spec == STREAM_REGION_NAME;
		process->regions_open--;
		break;
	case STREAM_OPERATOR:
		open->inference->operators--;
		values[0] = open->object;
		values[1] = 1 + open->object % 3;
		values[2] = open->handle;
		values[3] = open->inference->start;
		count = 4;
		break;
	default:
		break;
	}
	if (open->spec <= STREAM_ENQUEUE || open->spec == STREAM_OPERATOR) {
		process->handles[open->handle].open--;
		process->handles[open->handle].loaded = true;
	}
	thread->depth--;
	stream_call(stream_ring(stream), process->tgid, thread->tid, open->spec, open->start, time, thread->depth,
		    values, count);
}

/* All from one ring: they are made where their order is known. Handle 0 is none; now and then one is unloaded that is not there. */
static inline void stream_load_code(struct stream *stream, struct stream_process *process, __u32 tid)
{
	unsigned int number = stream_random(stream, STREAM_CODE);
	char text[256];

	if (process->code[number] || !stream_random(stream, 20)) {
		stream_text(&stream->rings[0], XPT_RECORD_CODE_UNLOADED, process->tgid, stream_tick(stream), number,
			    "");
		process->code[number] = false;
		return;
	}
	snprintf(text, sizeof(text),
		 "{\"uri\":\"memory://%u#offset=0x%x&size=4096\",\"kind\":\"elf\",\"name\":\"code%llu\",\"size\":4096,"
		 "\"tid\":%u,\"waited_ns\":%u,\"kernels\":[\"k\"]}",
		 process->tgid, number, stream->now, tid, stream_random(stream, 2) * 1000);
	stream_text(&stream->rings[0], XPT_RECORD_CODE_OBJECT, process->tgid, stream_tick(stream), number, text);
	process->code[number] = number;
}

/* Any time, of a handle that may be known or not. */
static inline void stream_emit_symbol(struct stream *stream, struct stream_process *process)
{
	char text[32];

	if (process->has_children)
		return;
	snprintf(text, sizeof(text), "symbol%llu", stream->now);
	stream_text(stream_ring(stream), XPT_RECORD_SYMBOL, process->tgid, stream_tick(stream),
		    1 + stream_random(stream, STREAM_HANDLES - 1), text);
}

static inline void stream_act(struct stream *stream, struct stream_process *process, struct stream_thread *thread)
{
	unsigned int what = stream_random(stream, 100);

	if (thread->region_start && what < 10) {
		stream_region(stream_ring(stream), process->tgid, thread->tid, thread->region_start,
			      stream_tick(stream), thread->region_handle, thread->region_name);
		thread->region_start = 0;
		process->regions_open--;
	} else if (thread->depth && what < 55) {
		stream_close_call(stream, process, thread);
	} else if (!process->ending) {
		stream_open_call(stream, process, thread);
	}
}

static inline void stream_step(struct stream *stream)
{
	struct stream_process *process = &stream->processes[stream_random(stream, STREAM_PROCESSES)];
	struct stream_process *parent = &stream->processes[stream_random(stream, STREAM_PROCESSES)];
	unsigned int what = stream_random(stream, 1000);

	if (!process->tgid)
		stream_begin(stream, process, parent->tgid && stream_random(stream, 4) ? parent : NULL);
	else if (process->ending && !stream_is_busy(process))
		stream_end(stream, process);
	else if (what < 3)
		process->ending = true;
	else if (what < 10 && process->thread_count < STREAM_THREADS)
		stream_add_thread(stream, process);
	else if (what < 20)
		stream_load_code(stream, process, process->threads[0].tid);
	else if (what < 25)
		stream_emit_symbol(stream, process);
	else
		stream_act(stream, process, &process->threads[stream_random(stream, process->thread_count)]);
}

/* ---- handing on ---- */

static inline void stream_init(struct stream *stream, __u64 seed)
{
	*stream = (struct stream){ .seed = seed * 0x9e3779b97f4a7c15 + 1, .now = 1000000, .next_id = 100 };
	stream_describe(&stream->bytes);
}

static inline void stream_free(struct stream *stream)
{
	text_free(&stream->bytes);
	for (unsigned int i = 0; i < STREAM_RINGS; i++)
		text_free(&stream->rings[i]);
}

/* So many steps, and what they have made as the reader finds it: one ring after the other. */
static inline void stream_round(struct stream *stream, unsigned int steps)
{
	char filler[8192] __attribute__((aligned(8))) = {};
	struct xpt_record_header *record = (void *)filler;

	while (steps--)
		stream_step(stream);
	stream_pass(&stream->bytes, stream_tick(stream));
	for (unsigned int i = 0; i < STREAM_RINGS; i++) {
		text_bytes(&stream->bytes, stream->rings[i].data, stream->rings[i].length);
		stream->rings[i].length = 0;
	}
	if (!stream->filler)
		return;
	*record = (struct xpt_record_header){ XPT_RECORD_CALLER, (__u16)stream->filler, 1, stream_tick(stream) };
	text_bytes(&stream->bytes, filler, stream->filler);
}

#endif

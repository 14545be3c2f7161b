/* SPDX-License-Identifier: BSD-2-Clause */
/* Hand-made records for the tests of the model, and a sink that keeps every event with copies of its strings. */
#ifndef XPT_TEST_MODEL_RECORDS_H
#define XPT_TEST_MODEL_RECORDS_H

#include <criterion/criterion.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/core/model.h"
#include "model/stats/statistics.h"

struct seen {
	struct event event;
	char name[64];	  /* of whatever the event is about */
	char program[64]; /* name of its program when it came */
	unsigned int program_id, generation;
};

struct fixture {
	struct model *model;
	struct seen *seen;
	size_t count, room;
	size_t kinds[32];
	bool quiet; /* only counted by kind */
};

static inline const char *event_text(const struct event *event)
{
	switch (event->kind) {
	case EVENT_PROCESS:
		return event->process->name;
	case EVENT_THREAD:
		return event->thread.name;
	case EVENT_CALL:
		return event->call.name ? event->call.name : event->call.function->name;
	case EVENT_INFERENCE:
	case EVENT_UNPAIRED:
		return event->inference.function->name;
	case EVENT_COUNTER:
		return event->counter.name;
	case EVENT_PROGRAM:
		return event->program.program->name;
	case EVENT_TASK:
		return event->task.name;
	case EVENT_REGION:
		return event->region.name;
	case EVENT_JOB:
		return event->job.name;
	case EVENT_DEVICE:
		return event->device.event;
	case EVENT_IOCTL:
		return event->ioctl.name;
	default:
		return "";
	}
}

static inline const struct model_program *event_program_of(const struct event *event)
{
	if (event->kind == EVENT_CALL)
		return event->call.program;
	if (event->kind == EVENT_INFERENCE || event->kind == EVENT_UNPAIRED)
		return event->inference.program;
	if (event->kind == EVENT_COUNT)
		return event->count.program;
	if (event->kind == EVENT_JOB)
		return event->job.program;
	return event->kind == EVENT_PROGRAM ? event->program.program : NULL;
}

static inline int fixture_write(void *context, const struct event *event)
{
	const struct model_program *program = event_program_of(event);
	struct fixture *fixture = context;
	struct seen *seen;

	fixture->kinds[event->kind]++;
	if (fixture->quiet)
		return 0;
	if (fixture->count == fixture->room) {
		fixture->room = fixture->room ? fixture->room * 2 : 64;
		fixture->seen = realloc(fixture->seen, fixture->room * sizeof(*fixture->seen));
	}
	seen = &fixture->seen[fixture->count++];
	memset(seen, 0, sizeof(*seen));
	seen->event = *event;
	snprintf(seen->name, sizeof(seen->name), "%s", event_text(event));
	if (program) {
		snprintf(seen->program, sizeof(seen->program), "%s", program->name);
		seen->program_id = program->id;
		seen->generation = program->generation;
	}
	return 0;
}

static inline struct fixture *fixture_create(void)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	cr_assert_eq(model_create(NULL, &fixture->model), 0);
	cr_assert_eq(model_add_sink(fixture->model, (struct event_sink){ fixture_write, fixture }), 0);
	return fixture;
}

static inline void fixture_free(struct fixture *fixture)
{
	model_free(fixture->model);
	free(fixture->seen);
	free(fixture);
}

/* The nth event of this kind, from 0; NULL: there are fewer. */
static inline const struct seen *seen_nth(const struct fixture *fixture, enum event_kind kind, size_t nth)
{
	size_t i;

	for (i = 0; i < fixture->count; i++)
		if (fixture->seen[i].event.kind == kind && !nth--)
			return &fixture->seen[i];
	return NULL;
}

static inline int feed_text(struct fixture *fixture, unsigned int kind, __u32 tgid, __u64 time, __u64 id,
			    const char *text)
{
	char bytes[4096] __attribute__((aligned(8))) = {};
	struct xpt_record_text *record = (void *)bytes;

	record->header.kind = (__u16)kind;
	record->header.size = (__u16)XPT_ALIGN8(sizeof(*record) + strlen(text));
	record->header.tgid = tgid;
	record->header.time = time;
	record->id = id;
	record->length = (__u32)strlen(text);
	memcpy(record->text, text, strlen(text));
	return model_feed(fixture->model, &record->header);
}

static inline int feed_pass(struct fixture *fixture, __u64 time)
{
	struct xpt_record_header pass = { .kind = XPT_RECORD_PASS, .size = sizeof(pass), .time = time };

	return model_feed(fixture->model, &pass);
}

struct call_record {
	struct xpt_record_call call;
	__u64 value[XPT_FETCH_MAX + 1 + 2 * sizeof(struct xpt_counts) / 8];
};

/* A call with all its fetches valid; the values follow. */
static inline struct call_record call_make(unsigned int spec, __u32 tgid, __u32 tid, __u64 start, __u64 end,
					   unsigned int values, ...)
{
	struct call_record record = {};
	va_list arguments;
	unsigned int i;

	record.call.header.kind = XPT_RECORD_CALL;
	record.call.header.size = (__u16)(sizeof(record.call) + values * 8);
	record.call.header.tgid = tgid;
	record.call.header.time = end;
	record.call.start = start;
	record.call.tid = tid;
	record.call.spec = (__u16)spec;
	record.call.valid = 0xff;
	record.call.values = (__u8)values;
	record.call.sample = 1;
	va_start(arguments, values);
	for (i = 0; i < values; i++)
		record.value[i] = va_arg(arguments, __u64);
	va_end(arguments);
	return record;
}

static inline int feed_call(struct fixture *fixture, struct call_record record)
{
	return model_feed(fixture->model, &record.call.header);
}

#define U(n) ((__u64)(n))
#define CALL_1(fixture, ...) cr_assert_eq(feed_call(fixture, call_make(__VA_ARGS__)), 0)

static inline int feed_string(struct fixture *fixture, unsigned int spec, unsigned int fetch, __u32 tgid, __u32 tid,
			      __u64 call_start, const char *text, size_t length)
{
	char bytes[512] __attribute__((aligned(8))) = {};
	struct xpt_record_string *record = (void *)bytes;

	record->header.kind = XPT_RECORD_STRING;
	record->header.size = (__u16)XPT_ALIGN8(sizeof(*record) + length);
	record->header.tgid = tgid;
	record->header.time = call_start;
	record->call_start = call_start;
	record->tid = tid;
	record->spec = (__u16)spec;
	record->fetch = (__u8)fetch;
	record->length = (__u32)length;
	memcpy(record->text, text, length);
	return model_feed(fixture->model, &record->header);
}

static inline int feed_task(struct fixture *fixture, enum xpt_task_event event, __u32 tgid, __u32 other, __u64 time,
			    const char *name)
{
	struct xpt_record_task record = { .header = { XPT_RECORD_TASK, sizeof(record), tgid, time } };
	size_t length = strlen(name);

	record.tid = tgid;
	record.event = (__u8)event;
	record.other = other;
	memcpy(record.name, name, length < sizeof(record.name) ? length : sizeof(record.name));
	return model_feed(fixture->model, &record.header);
}

static inline int feed_total(struct fixture *fixture, __u32 tgid, unsigned int runtime, unsigned int spec_and_1,
			     __u64 handle, __u64 time, __u64 calls)
{
	struct xpt_record_total record = { .header = { XPT_RECORD_TOTAL, sizeof(record), tgid, time } };

	record.key.tgid = tgid;
	record.key.runtime = (__u16)runtime;
	record.key.spec = (__u16)spec_and_1;
	record.key.handle = handle;
	record.count.calls = calls;
	record.count.lost = 1;
	return model_feed(fixture->model, &record.header);
}

/* What the kernel has counted since so long: calls that began, and of them left out and lost. */
static inline struct xpt_record_count count_make(__u32 tgid, unsigned int spec_and_1, __u64 handle, __u64 since,
						 __u64 time, __u64 calls, __u64 left_out, __u64 lost)
{
	return (struct xpt_record_count){
		.header = { XPT_RECORD_COUNT, sizeof(struct xpt_record_count), tgid, time },
		.key = { .tgid = tgid, .spec = (__u16)spec_and_1, .handle = handle },
		.count = { .calls = calls, .left_out = left_out, .lost = lost },
		.since = since,
	};
}

static inline int feed_count(struct fixture *fixture, struct xpt_record_count record)
{
	return model_feed(fixture->model, &record.header);
}

/* The final counts of what a COUNT would tell. */
static inline int feed_final(struct fixture *fixture, struct xpt_record_count count)
{
	struct xpt_record_total record = { .header = count.header, .key = count.key, .count = count.count };

	record.header.kind = XPT_RECORD_TOTAL;
	record.header.size = sizeof(record);
	return model_feed(fixture->model, &record.header);
}

/* The number of the call among those of its program, which stands behind the values. */
static inline struct call_record call_number(struct call_record record, __u64 number)
{
	record.call.flags |= XPT_CALL_NUMBERED;
	record.value[record.call.values] = number;
	record.call.header.size = (__u16)(sizeof(record.call) + (record.call.values + 1u) * 8);
	return record;
}

/* The functions of a made-up runtime "toy" with index 0, and the same launch in "low" with index 1. */
enum toy {
	TOY_LOAD,	    /* name 0 (string), program 1 @return, parent 2, size 3, status 4 */
	TOY_NAME,	    /* program 0, name 1 (string) */
	TOY_UNLOAD,	    /* program 0, status 1 */
	TOY_EXECUTE,	    /* program 0, size 1, core 2, status 3 */
	TOY_ENQUEUE,	    /* program 0, key 1 @return, stream 2, status 3 */
	TOY_WAIT,	    /* key 0, count 1, status 2 */
	TOY_SYNC,	    /* stream 0, status 1 */
	TOY_FINISH,	    /* status 0 */
	TOY_LAUNCH,	    /* program 0, stream 1, key 2 @return */
	TOY_COPY,	    /* size 0, status 1 */
	TOY_ALLOC,	    /* size 0, address 1 @return; returns a handle */
	TOY_FREE,	    /* address 0 */
	TOY_BEGIN,	    /* of regions: what REGION records refer to */
	TOY_REGION_NAME,    /* program 0, name 1 (string) */
	TOY_REGION_RELEASE, /* program 0 */
	LOW_LAUNCH,	    /* program 0, stream 1 */
	LOW_EXECUTE,	    /* program 0 */
	TOY_OPERATOR,	    /* object 0, class 1, program 2, inference 3 */
};

#define F(meaning, type) "{\"meaning\":\"" meaning "\",\"type\":\"" type "\"}"
#define R(meaning, type) "{\"meaning\":\"" meaning "\",\"type\":\"" type "\",\"at_return\":true}"
#define STATUS R("status", "s32")

static inline void feed_spec(struct fixture *fixture, unsigned int index, unsigned int runtime, const char *function,
			     const char *role, enum xpt_success success, const char *fetches)
{
	char text[2048];

	snprintf(text, sizeof(text),
		 "{\"runtime\":%u,\"function\":\"%s\",\"role\":\"%s\",\"success\":%d,\"status\":true,"
		 "\"counted_by\":\"program\",\"fetches\":[%s]}",
		 runtime, function, role, success, fetches);
	cr_assert_eq(feed_text(fixture, XPT_RECORD_SPEC, 0, 0, index, text), 0, "spec of %s", function);
}

static inline struct fixture *fixture_toy(void)
{
	struct fixture *f = fixture_create();
	const enum xpt_success zero = XPT_SUCCESS_ZERO32, always = XPT_SUCCESS_ALWAYS;

	cr_assert_eq(feed_text(f, XPT_RECORD_RUNTIME, 0, 0, 0,
			       "{\"name\":\"toy\",\"title\":\"Toy\",\"statuses\":["
			       "{\"value\":600,\"class\":\"pending\",\"name\":\"TOY_NOT_READY\"},"
			       "{\"value\":-5,\"class\":\"error\",\"name\":\"TOY_OUT_OF_MEMORY\"},"
			       "{\"value\":1,\"class\":\"ok\",\"name\":\"TOY_BREAK\"}]}"),
		     0);
	cr_assert_eq(feed_text(f, XPT_RECORD_RUNTIME, 0, 0, 1, "{\"name\":\"low\",\"statuses\":[]}"), 0);
	feed_spec(f, TOY_LOAD, 0, "toy_load", "program.load", zero,
		  F("name", "string") "," R("program", "u64") "," F("parent", "u64") "," F("size", "u64") "," STATUS);
	feed_spec(f, TOY_NAME, 0, "toy_name", "program.name", always, F("program", "u64") "," F("name", "string"));
	feed_spec(f, TOY_UNLOAD, 0, "toy_unload", "program.unload", zero, F("program", "u64") "," STATUS);
	feed_spec(f, TOY_EXECUTE, 0, "toy_execute", "execute", zero,
		  F("program", "u64") "," F("size", "u64") "," F("core", "s32") "," STATUS);
	feed_spec(f, TOY_ENQUEUE, 0, "toy_enqueue", "enqueue", zero,
		  F("program", "u64") "," R("key", "u64") "," F("stream", "u64") "," STATUS);
	feed_spec(f, TOY_WAIT, 0, "toy_wait", "wait", zero, F("key", "u64") "," R("count", "u8") "," STATUS);
	feed_spec(f, TOY_SYNC, 0, "toy_sync", "wait", zero, F("stream", "u64") "," STATUS);
	feed_spec(f, TOY_FINISH, 0, "toy_finish", "wait", zero, STATUS);
	feed_spec(f, TOY_LAUNCH, 0, "toy_launch", "launch", always,
		  F("program", "u64") "," F("stream", "u64") "," R("key", "u64"));
	feed_spec(f, TOY_COPY, 0, "toy_copy", "copy", zero, F("size", "u64") "," STATUS);
	feed_spec(f, TOY_ALLOC, 0, "toy_alloc", "alloc", XPT_SUCCESS_NONZERO, F("size", "u64") "," R("address", "u64"));
	feed_spec(f, TOY_FREE, 0, "toy_free", "free", always, F("address", "u64"));
	feed_spec(f, TOY_BEGIN, 0, "toy_begin", "region.begin", always, F("program", "u64") "," F("name", "string"));
	feed_spec(f, TOY_REGION_NAME, 0, "toy_region_name", "region.name", always,
		  F("program", "u64") "," F("name", "string"));
	feed_spec(f, TOY_REGION_RELEASE, 0, "toy_region_release", "region.release", always, F("program", "u64"));
	feed_spec(f, LOW_LAUNCH, 1, "low_launch", "launch", always, F("program", "u64") "," F("stream", "u64"));
	feed_spec(f, LOW_EXECUTE, 1, "low_execute", "execute", always, F("program", "u64"));
	feed_spec(f, TOY_OPERATOR, 0, "Compute", "operator", always,
		  F("object", "u64") "," F("class", "u64") "," F("program", "u64") "," F("inference", "u64"));
	return f;
}

/* A load of handle with a name (NULL: none) by process and thread 1. */
static inline void toy_load(struct fixture *f, __u64 handle, const char *name, __u64 start, __u64 end)
{
	struct call_record record = call_make(TOY_LOAD, 1, 1, start, end, 4, handle, U(0), U(4096), U(0));

	record.call.valid = 0x1a; /* no parent */
	if (name) {
		record.call.valid |= 1;
		cr_assert_eq(feed_string(f, TOY_LOAD, 0, 1, 1, start, name, strlen(name)), 0);
	}
	cr_assert_eq(feed_call(f, record), 0);
}

static inline void toy_execute(struct fixture *f, __u32 tgid, __u64 handle, __u64 start, __u64 end)
{
	CALL_1(f, TOY_EXECUTE, tgid, tgid, start, end, 4, handle, U(64), U(2), U(0));
}

static inline void toy_unload(struct fixture *f, __u64 handle, __u64 start, __u64 end)
{
	CALL_1(f, TOY_UNLOAD, 1, 1, start, end, 2, handle, U(0));
}

/* The kept program with this handle and generation of process tgid. NULL: none. */
static inline const struct model_program *toy_program(const struct fixture *f, __u32 tgid, __u64 handle,
						      unsigned int generation)
{
	const struct model_program *program;
	size_t i;

	for (i = 0; i < model_program_count(f->model); i++) {
		program = model_program(f->model, i);
		if (program->process->tgid == tgid && program->handle == handle && program->generation == generation)
			return program;
	}
	return NULL;
}

#endif

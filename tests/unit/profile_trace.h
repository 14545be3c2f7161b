/* SPDX-License-Identifier: BSD-2-Clause */
/* Events for a trace of chosen programs, and its document. */
#ifndef XPT_TEST_PROFILE_TRACE_H
#define XPT_TEST_PROFILE_TRACE_H

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profile/trace/trace.h"

/* Times are in microseconds here, and so are those of documents: no digit is lost on the way. */
#define US 1000ULL

#define TGID 100
#define MAIN 100
#define OTHER 101

static const struct recording_info info = {
	.monotonic_time = 9007199254740993,
	.realtime = 1790000000123456789,
	.host = "host\"\n",
	.kernel = "6.1.0",
	.machine = "x86_64",
	.version = "0.1",
	.command = "xputrace stream",
	.boot_id = "b",
	.cpus = 2,
};

static const struct model_function execute = { 1, "nrt_execute", "nrt", 3, XPT_ROLE_EXECUTE, false, 3, false };
static const struct model_function wait_function = { 2, "nrta_wait", "nrt", 3, XPT_ROLE_WAIT, false, 3, false };
static const struct model_function enqueue = { 3, "nrta_enqueue", "nrt", 3, XPT_ROLE_ENQUEUE, false, 3, false };
static const struct model_function copy = { 4, "nrt_copy", "nrt", 3, XPT_ROLE_COPY, false, 3, false };
static const struct model_process node = { .tgid = TGID, .name = "node", .command = "node server.js", .sort_index = 4 };
static const struct model_process python = { .tgid = 200, .name = "python", .command = "", .sort_index = 5 };

/* Programs with odd numbers are wanted. */
static inline struct model_program program_of(unsigned int id, const char *name)
{
	return (struct model_program){
		.id = id, .process = &node, .runtime = "nrt", .name = name, .handle = 0xabc0 + id, .loaded = 1
	};
}

struct fixture {
	struct trace_names *names;
	struct trace_text *text;
	struct trace *trace;
	struct xpt_profile_report report;
	cJSON *json; /* after finish() */
	__u64 lost;
	bool none; /* events are in no report */
	unsigned int asked;
};

static inline bool wants(void *context, const struct event *event)
{
	struct fixture *fixture = context;
	const struct model_program *program = NULL;

	fixture->asked++;
	cr_assert_not(fixture->none, "asked though there is no report");
	if (event->kind == EVENT_CALL) {
		cr_assert_not(event->call.layer);
		program = event->call.program;
	} else if (event->kind == EVENT_INFERENCE) {
		program = event->inference.program;
	} else if (event->kind == EVENT_PROGRAM) {
		program = event->program.program;
	} else {
		cr_assert_fail("asked for an event of kind %d", event->kind);
	}
	cr_assert_not_null(program);
	return program->id & 1;
}

static inline void start(struct fixture *fixture)
{
	struct event event = { .kind = EVENT_PROCESS, .process = &node };

	*fixture = (struct fixture){ 0 };
	fixture->names = trace_names_create();
	fixture->text = trace_text_create(fixture->names, NULL);
	fixture->trace = trace_create(wants, fixture, false);
	cr_assert(fixture->names && fixture->text && fixture->trace);
	fixture->report.name = "a \"stream\"";
	trace_names_event(fixture->names, &event);
	event.process = &python;
	trace_names_event(fixture->names, &event);
}

static inline void end(struct fixture *fixture)
{
	cJSON_Delete(fixture->json);
	trace_free(fixture->trace);
	trace_text_free(fixture->text);
	trace_names_free(fixture->names);
}

static inline void finish(struct fixture *fixture)
{
	struct xpt_profile_report *report = &fixture->report;
	const char *after;

	cr_assert_eq(trace_text_finish(fixture->text, &info, report), 0);
	fixture->json = cJSON_ParseWithLengthOpts(report->trace, report->trace_length, &after, false);
	cr_assert_not_null(fixture->json, "%.*s", (int)report->trace_length, report->trace);
	cr_assert_eq(after, report->trace + report->trace_length, "bytes after the document");
}

/* A copy of a string that ends at the end of its memory, so that reading on is seen. */
static inline char *fresh(const char *string)
{
	return string ? strdup(string) : NULL;
}

static inline void spoil(char *string)
{
	if (string)
		memset(string, '#', strlen(string));
	free(string);
}

static inline void feed(struct fixture *fixture, const struct event *event)
{
	trace_names_event(fixture->names, event);
	cr_assert_eq(trace_event(fixture->trace, event, fixture->none ? NULL : fixture->text, &fixture->lost), 0);
}

/* All that the event points to is gone afterwards, as it may be in the model. */
static inline void feed_call(struct fixture *fixture, struct event_call call)
{
	struct event event = { .kind = EVENT_CALL, .call = call };
	char *program_name = call.program ? fresh(call.program->name) : NULL, *name = fresh(call.name);
	char *status_name = fresh(call.status_name);
	struct model_program *program = NULL;

	if (call.program) {
		program = malloc(sizeof(*program));
		*program = *call.program;
		program->name = program_name;
		event.call.program = program;
	}
	event.call.name = name;
	event.call.name_length = name ? strlen(name) : 0;
	event.call.status_name = status_name;
	feed(fixture, &event);
	spoil(program_name);
	spoil(name);
	spoil(status_name);
	if (program)
		memset(program, 0x5a, sizeof(*program));
	free(program);
}

/* tid, depth, begin and end in microseconds; program 0: a copy. */
static inline void feed_span(struct fixture *fixture, __u32 tid, unsigned int depth, __u64 begin, __u64 finished,
			     unsigned int id)
{
	char name[32];
	struct model_program program;

	snprintf(name, sizeof(name), "program %u", id);
	program = program_of(id, name);
	feed_call(fixture, (struct event_call){ .function = id ? &execute : &copy,
						.program = id ? &program : NULL,
						.start = begin * US,
						.end = finished * US,
						.tgid = TGID,
						.tid = tid,
						.depth = depth,
						.sample = 1 });
}

static inline void feed_region(struct fixture *fixture, __u32 tid, __u64 begin, __u64 finished, const char *text)
{
	char *name = fresh(text);
	const struct event event = {
		.kind = EVENT_REGION,
		.region = { .tgid = TGID,
			    .tid = tid,
			    .runtime = "vaccel",
			    .name = name,
			    .start = begin * US,
			    .end = finished * US },
	};

	feed(fixture, &event);
	spoil(name);
}

static inline void feed_task(struct fixture *fixture, __u32 tgid, enum xpt_task_event what, __u64 time)
{
	const struct event event = {
		.kind = EVENT_TASK,
		.task = { .tgid = tgid, .tid = tgid, .what = what, .time = time * US, .name = "new" }
	};

	feed(fixture, &event);
}

static inline void feed_thread(struct fixture *fixture, __u32 tgid, __u32 tid, const char *text)
{
	char *name = fresh(text);
	struct event event = { .kind = EVENT_THREAD };

	event.thread.tgid = tgid;
	event.thread.tid = tid;
	event.thread.name = name;
	feed(fixture, &event);
	spoil(name);
}

static inline void feed_wait(struct fixture *fixture, unsigned int depth, __u64 begin, __u64 finished, __u64 flow)
{
	feed_call(fixture, (struct event_call){ .function = &wait_function,
						.start = begin * US,
						.end = finished * US,
						.tgid = TGID,
						.tid = OTHER,
						.depth = depth,
						.sample = 1,
						.flow_in = flow });
}

static inline void feed_inference(struct fixture *fixture, unsigned int id, __u64 begin, __u64 finished, __u64 flow)
{
	char name[32];
	struct model_program program;
	struct event event = { .kind = EVENT_INFERENCE,
			       .inference = { .program = &program,
					      .function = &enqueue,
					      .id = flow,
					      .start = begin * US,
					      .end = finished * US,
					      .tgid = TGID,
					      .tid = MAIN,
					      .wait_tid = OTHER } };

	snprintf(name, sizeof(name), "program %u", id);
	program = program_of(id, name);
	feed(fixture, &event);
}

/* ---- looking at the document ---- */

static const cJSON *at(const cJSON *json, const char *name)
{
	return cJSON_GetObjectItemCaseSensitive(json, name);
}

static const char *string_at(const cJSON *json, const char *name)
{
	const char *value = cJSON_GetStringValue(at(json, name));

	return value ? value : "";
}

static inline double number_at(const cJSON *json, const char *name)
{
	return cJSON_IsNumber(at(json, name)) ? at(json, name)->valuedouble : -1;
}

/* How many events there are with this phase and name; NULL: any. */
static inline int count(const struct fixture *fixture, const char *phase, const char *name)
{
	const cJSON *event;
	int found = 0;

	cJSON_ArrayForEach(event, at(fixture->json, "traceEvents"))
		found += (!phase || !strcmp(string_at(event, "ph"), phase)) &&
			 (!name || !strcmp(string_at(event, "name"), name));
	return found;
}

/* Is there exactly one such span, with this end? */
static inline bool has_span(const struct fixture *fixture, __u32 tid, __u64 begin, __u64 finished)
{
	const cJSON *event;
	int found = 0;

	cJSON_ArrayForEach(event, at(fixture->json, "traceEvents"))
		found += !strcmp(string_at(event, "ph"), "X") && number_at(event, "pid") == TGID &&
			 number_at(event, "tid") == tid && number_at(event, "ts") == begin &&
			 number_at(event, "dur") == finished - begin;
	return found == 1;
}

static const cJSON *event_with(const struct fixture *fixture, const char *phase, const char *name)
{
	const cJSON *event;

	cJSON_ArrayForEach(event, at(fixture->json, "traceEvents")) {
		if (!strcmp(string_at(event, "ph"), phase) && !strcmp(string_at(event, "name"), name))
			return event;
	}
	cr_assert_fail("no event %s %s", phase, name);
	return NULL;
}

#endif

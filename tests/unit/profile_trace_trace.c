/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trace/trace.h"

#include <cjson/cJSON.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static const struct model_function execute = { 1, "nrt_execute", "nrt", 3, XPT_ROLE_EXECUTE, false };
static const struct model_function wait_function = { 2, "nrta_wait", "nrt", 3, XPT_ROLE_WAIT, false };
static const struct model_function enqueue = { 3, "nrta_enqueue", "nrt", 3, XPT_ROLE_ENQUEUE, false };
static const struct model_function copy = { 4, "nrt_copy", "nrt", 3, XPT_ROLE_COPY, false };
static const struct model_process node = { .tgid = TGID, .name = "node", .command = "node server.js", .sort_index = 4 };
static const struct model_process python = { .tgid = 200, .name = "python", .command = "", .sort_index = 5 };

/* Programs with odd numbers are wanted. */
static struct model_program program_of(unsigned int id, const char *name)
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

static bool wants(void *context, const struct event *event)
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

static void start(struct fixture *fixture)
{
	struct event event = { .kind = EVENT_PROCESS, .process = &node };

	*fixture = (struct fixture){ 0 };
	fixture->names = trace_names_create();
	fixture->text = trace_text_create(fixture->names);
	fixture->trace = trace_create(wants, fixture, false);
	cr_assert(fixture->names && fixture->text && fixture->trace);
	fixture->report.name = "a \"stream\"";
	trace_names_event(fixture->names, &event);
	event.process = &python;
	trace_names_event(fixture->names, &event);
}

static void end(struct fixture *fixture)
{
	cJSON_Delete(fixture->json);
	trace_free(fixture->trace);
	trace_text_free(fixture->text);
	trace_names_free(fixture->names);
}

static void finish(struct fixture *fixture)
{
	struct xpt_profile_report *report = &fixture->report;
	const char *after;

	cr_assert_eq(trace_text_finish(fixture->text, &info, report), 0);
	fixture->json = cJSON_ParseWithLengthOpts(report->trace, report->trace_length, &after, false);
	cr_assert_not_null(fixture->json, "%.*s", (int)report->trace_length, report->trace);
	cr_assert_eq(after, report->trace + report->trace_length, "bytes after the document");
}

/* A copy of a string that ends at the end of its memory, so that reading on is seen. */
static char *fresh(const char *string)
{
	return string ? strdup(string) : NULL;
}

static void spoil(char *string)
{
	if (string)
		memset(string, '#', strlen(string));
	free(string);
}

static void feed(struct fixture *fixture, const struct event *event)
{
	trace_names_event(fixture->names, event);
	cr_assert_eq(trace_event(fixture->trace, event, fixture->none ? NULL : fixture->text, &fixture->lost), 0);
}

/* All that the event points to is gone afterwards, as it may be in the model. */
static void feed_call(struct fixture *fixture, struct event_call call)
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
static void feed_span(struct fixture *fixture, __u32 tid, unsigned int depth, __u64 begin, __u64 finished,
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

static void feed_region(struct fixture *fixture, __u32 tid, __u64 begin, __u64 finished, const char *text)
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

static void feed_task(struct fixture *fixture, __u32 tgid, enum xpt_task_event what, __u64 time)
{
	const struct event event = {
		.kind = EVENT_TASK,
		.task = { .tgid = tgid, .tid = tgid, .what = what, .time = time * US, .name = "new" }
	};

	feed(fixture, &event);
}

static void feed_thread(struct fixture *fixture, __u32 tgid, __u32 tid, const char *text)
{
	char *name = fresh(text);
	struct event event = { .kind = EVENT_THREAD };

	event.thread.tgid = tgid;
	event.thread.tid = tid;
	event.thread.name = name;
	feed(fixture, &event);
	spoil(name);
}

static void feed_wait(struct fixture *fixture, unsigned int depth, __u64 begin, __u64 finished, __u64 flow)
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

static void feed_inference(struct fixture *fixture, unsigned int id, __u64 begin, __u64 finished, __u64 flow)
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

static double number_at(const cJSON *json, const char *name)
{
	return cJSON_IsNumber(at(json, name)) ? at(json, name)->valuedouble : -1;
}

/* How many events there are with this phase and name; NULL: any. */
static int count(const struct fixture *fixture, const char *phase, const char *name)
{
	const cJSON *event;
	int found = 0;

	cJSON_ArrayForEach(event, at(fixture->json, "traceEvents"))
		found += (!phase || !strcmp(string_at(event, "ph"), phase)) &&
			 (!name || !strcmp(string_at(event, "name"), name));
	return found;
}

/* Is there exactly one such span, with this end? */
static bool has_span(const struct fixture *fixture, __u32 tid, __u64 begin, __u64 finished)
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

/* ---- calls ---- */

Test(profile_trace_trace, wanted_calls_with_what_is_nested_in_them)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 2, 12, 13, 0);
	feed_span(&fixture, MAIN, 1, 11, 14, 0);
	feed_span(&fixture, OTHER, 1, 11, 15, 0); /* another thread: not in the call */
	feed_span(&fixture, MAIN, 1, 15, 16, 2);
	feed_span(&fixture, MAIN, 0, 10, 20, 1);
	feed_span(&fixture, OTHER, 0, 10, 21, 2);
	feed_span(&fixture, MAIN, 1, 22, 23, 0);
	feed_span(&fixture, MAIN, 0, 21, 24, 2);
	feed_span(&fixture, MAIN, 0, 25, 26, 0);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 4);
	cr_expect(has_span(&fixture, MAIN, 12, 13));
	cr_expect(has_span(&fixture, MAIN, 11, 14));
	cr_expect(has_span(&fixture, MAIN, 15, 16));
	cr_expect(has_span(&fixture, MAIN, 10, 20));
	cr_expect_eq(count(&fixture, "X", "program 1"), 1);
	cr_expect_eq(count(&fixture, "X", "program 2"), 1, "nested: its name has been kept");
	cr_expect_eq(fixture.lost, 0);
	end(&fixture);
}

/* Within calls that are not wanted; and a wanted one in a wanted one is there once. */
Test(profile_trace_trace, wanted_calls_that_are_nested)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 2, 12, 13, 0);
	feed_span(&fixture, MAIN, 1, 11, 14, 1);
	feed_span(&fixture, MAIN, 1, 15, 16, 0);
	feed_span(&fixture, MAIN, 0, 10, 20, 2);
	feed_span(&fixture, MAIN, 1, 31, 32, 0);
	feed_span(&fixture, MAIN, 1, 33, 34, 3);
	feed_span(&fixture, MAIN, 0, 30, 35, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 5);
	cr_expect(has_span(&fixture, MAIN, 12, 13));
	cr_expect(has_span(&fixture, MAIN, 11, 14));
	cr_expect(has_span(&fixture, MAIN, 31, 32));
	cr_expect(has_span(&fixture, MAIN, 33, 34));
	cr_expect(has_span(&fixture, MAIN, 30, 35));
	end(&fixture);
}

/* The call around them was left out by sampling: the next one is not around them. */
Test(profile_trace_trace, nested_in_a_call_that_was_not_recorded)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 1, 11, 12, 0);
	feed_span(&fixture, MAIN, 1, 13, 14, 0);
	feed_span(&fixture, MAIN, 1, 31, 32, 0);
	feed_span(&fixture, MAIN, 0, 30, 33, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	cr_expect(has_span(&fixture, MAIN, 31, 32));
	cr_expect(has_span(&fixture, MAIN, 30, 33));
	cr_expect_eq(fixture.lost, 0);
	end(&fixture);
}

/* It lies within the next call by time only. */
Test(profile_trace_trace, instant_at_the_begin_of_its_neighbour)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 1, 10, 10, 0);
	feed_span(&fixture, MAIN, 2, 10, 10, 0);
	feed_span(&fixture, MAIN, 1, 10, 20, 1);
	feed_span(&fixture, MAIN, 0, 5, 30, 2);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	end(&fixture);
}

Test(profile_trace_trace, layers_are_not_asked_for)
{
	struct fixture fixture;
	struct model_program program = program_of(1, "p");

	start(&fixture);
	feed_call(&fixture, (struct event_call){ .function = &execute,
						 .program = &program,
						 .layer = true,
						 .tgid = TGID,
						 .tid = MAIN,
						 .depth = 1,
						 .start = 2 * US,
						 .end = 3 * US });
	cr_expect_eq(fixture.asked, 0);
	feed_span(&fixture, MAIN, 0, 1, 4, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	end(&fixture);
}

/* What belongs to no report is held all the same: the call around it may end in one. */
Test(profile_trace_trace, into_no_report)
{
	struct fixture fixture;

	start(&fixture);
	fixture.none = true;
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	feed_span(&fixture, MAIN, 1, 4, 5, 1);
	feed_wait(&fixture, 1, 4, 6, 9);
	feed_inference(&fixture, 1, 1, 6, 9);
	fixture.none = false;
	feed_span(&fixture, MAIN, 0, 3, 7, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	cr_expect(has_span(&fixture, MAIN, 4, 5));
	cr_expect(has_span(&fixture, MAIN, 3, 7));
	cr_expect_eq(count(&fixture, "b", NULL), 0);
	end(&fixture);
}

Test(profile_trace_trace, all_values_of_a_nested_call_are_kept)
{
	struct fixture fixture;
	struct model_program program = program_of(2, "in\"ner\n\377");
	const cJSON *arguments;

	start(&fixture);
	feed_call(&fixture, (struct event_call){ .function = &execute,
						 .program = &program,
						 .start = 2 * US,
						 .end = 3 * US,
						 .tgid = TGID,
						 .tid = MAIN,
						 .depth = 1,
						 .sample = 4,
						 .have = 1u << XPT_MEANING_STATUS | 1u << XPT_MEANING_SIZE |
							 1u << XPT_MEANING_NAME,
						 .status = -7,
						 .status_name = "NRT_FAIL\\",
						 .outcome = OUTCOME_FAILED,
						 .size = 4096,
						 .name = "kernel\001" });
	feed_span(&fixture, MAIN, 0, 1, 4, 1);
	finish(&fixture);
	arguments = at(event_with(&fixture, "X", "in\"ner\n\xef\xbf\xbd"), "args");
	cr_expect_str_eq(string_at(arguments, "program"), "in\"ner\n\xef\xbf\xbd");
	cr_expect_eq(number_at(arguments, "program_id"), 2);
	cr_expect_str_eq(string_at(arguments, "status_name"), "NRT_FAIL\\");
	cr_expect_eq(at(arguments, "status")->valuedouble, -7);
	cr_expect_str_eq(string_at(arguments, "name"), "kernel\001");
	cr_expect_eq(number_at(arguments, "size"), 4096);
	cr_expect_eq(number_at(arguments, "sample"), 4);
	end(&fixture);
}

/* ---- a tree of calls at random, against what its shape says ---- */

#define SPANS_MAX 4000

struct span {
	int parent; /* -1: none */
	unsigned int depth, id;
	__u64 begin, finished;
};

struct forest {
	struct span spans[SPANS_MAX];
	int order[SPANS_MAX]; /* of their ends */
	int count, ended;
	__u64 now;
	unsigned int seed;
};

static unsigned int chance(struct forest *forest, unsigned int of)
{
	forest->seed = forest->seed * 1103515245 + 12345;
	return (forest->seed >> 16) % of;
}

static void grow(struct forest *forest, int parent, unsigned int depth)
{
	int self = forest->count++;
	struct span *span = &forest->spans[self];

	*span = (struct span){ .parent = parent, .depth = depth, .id = chance(forest, 4), .begin = ++forest->now };
	while (depth < 5 && forest->count < SPANS_MAX && chance(forest, 5) < 2)
		grow(forest, self, depth + 1);
	span->finished = ++forest->now;
	forest->order[forest->ended++] = self;
}

static bool is_shown(const struct forest *forest, int span)
{
	for (; span >= 0; span = forest->spans[span].parent)
		if (forest->spans[span].id & 1)
			return true;
	return false;
}

Test(profile_trace_trace, as_the_shape_of_the_calls_says)
{
	static struct forest forest = { .seed = 7 };
	struct fixture fixture;
	const struct span *span;
	int i, shown = 0;

	start(&fixture);
	while (forest.count < SPANS_MAX)
		grow(&forest, -1, 0);
	for (i = 0; i < forest.ended; i++) {
		span = &forest.spans[forest.order[i]];
		feed_span(&fixture, MAIN, span->depth, span->begin, span->finished, span->id);
	}
	finish(&fixture);
	for (i = 0; i < forest.count; i++)
		shown += is_shown(&forest, i);
	cr_expect_eq(count(&fixture, "X", NULL), shown);
	for (i = 0; i < forest.count; i += 17) {
		span = &forest.spans[i];
		cr_expect_eq(has_span(&fixture, MAIN, span->begin, span->finished), is_shown(&forest, i), "%d", i);
	}
	cr_expect_gt(shown, 1000);
	cr_expect_lt(shown, 3900);
	end(&fixture);
}

/* ---- waits and inferences ---- */

static void feed_enqueue(struct fixture *fixture, unsigned int id, __u64 begin, __u64 finished, __u64 flow)
{
	struct model_program program = program_of(id, "p");

	feed_call(fixture, (struct event_call){ .function = &enqueue,
						.program = &program,
						.start = begin * US,
						.end = finished * US,
						.tgid = TGID,
						.tid = MAIN,
						.flow_out = flow });
}

Test(profile_trace_trace, wait_comes_with_its_inference)
{
	struct fixture fixture;
	const cJSON *arrow;

	start(&fixture);
	feed_enqueue(&fixture, 1, 10, 11, 51);
	feed_enqueue(&fixture, 2, 12, 13, 52);
	feed_span(&fixture, OTHER, 1, 15, 16, 0);
	feed_wait(&fixture, 0, 14, 20, 51);
	feed_inference(&fixture, 1, 10, 20, 51);
	feed_wait(&fixture, 0, 21, 30, 52);
	feed_inference(&fixture, 2, 12, 30, 52);
	feed_wait(&fixture, 0, 31, 32, 0);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 3);
	cr_expect(has_span(&fixture, MAIN, 10, 11));
	cr_expect(has_span(&fixture, OTHER, 14, 20));
	cr_expect(has_span(&fixture, OTHER, 15, 16), "nested in the wait");
	cr_expect_eq(count(&fixture, "b", "program 1"), 1);
	cr_expect_eq(count(&fixture, "e", "program 1"), 1);
	cr_expect_eq(count(&fixture, "s", NULL), 1);
	cr_expect_eq(count(&fixture, "f", NULL), 1);
	arrow = event_with(&fixture, "f", "inference");
	cr_expect_str_eq(string_at(arrow, "id"), string_at(event_with(&fixture, "s", "inference"), "id"));
	cr_expect_str_eq(string_at(arrow, "id"), "0x33");
	cr_expect_eq(number_at(arrow, "tid"), OTHER);
	cr_expect_float_eq(number_at(arrow, "ts"), 19.999, 1e-6);
	end(&fixture);
}

/* One wait for a whole stream: it is there once, whichever of its inferences are wanted. */
Test(profile_trace_trace, one_wait_for_many_inferences)
{
	struct fixture fixture;
	const struct event counter = {
		.kind = EVENT_COUNTER,
		.counter = { .tgid = TGID, .time = 20 * US, .runtime = "nrt", .name = "queue depth" }
	};

	start(&fixture);
	feed_wait(&fixture, 1, 14, 20, 54);
	feed_inference(&fixture, 2, 9, 20, 51);
	feed_inference(&fixture, 1, 10, 20, 52);
	feed_inference(&fixture, 4, 11, 20, 53);
	feed_inference(&fixture, 3, 12, 20, 54);
	feed(&fixture, &counter);
	feed_span(&fixture, OTHER, 0, 13, 21, 1); /* around the wait, which has been shown already */
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	cr_expect(has_span(&fixture, OTHER, 14, 20));
	cr_expect_eq(count(&fixture, "b", NULL), 2);
	cr_expect_eq(count(&fixture, "f", NULL), 2);
	cr_expect_eq(count(&fixture, "C", "nrt queue depth"), 1);
	end(&fixture);
}

/* A wait that ended nothing wanted is like any other call. */
Test(profile_trace_trace, wait_of_others_in_a_wanted_call)
{
	struct fixture fixture;

	start(&fixture);
	feed_wait(&fixture, 1, 14, 20, 51);
	feed_inference(&fixture, 2, 9, 20, 51);
	feed_wait(&fixture, 1, 22, 24, 52);
	feed_region(&fixture, OTHER, 21, 25, "region");
	feed_span(&fixture, OTHER, 0, 13, 30, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 4);
	cr_expect(has_span(&fixture, OTHER, 14, 20));
	cr_expect(has_span(&fixture, OTHER, 22, 24));
	cr_expect_eq(count(&fixture, "b", NULL), 0);
	end(&fixture);
}

/* The wait came before the enqueue had returned, or belongs to another call: no arrow ends where there is nothing. */
Test(profile_trace_trace, inference_without_its_wait)
{
	struct fixture fixture;

	start(&fixture);
	feed_wait(&fixture, 0, 14, 20, 0);
	feed_enqueue(&fixture, 1, 10, 21, 51);
	feed_inference(&fixture, 1, 10, 20, 51);
	feed_wait(&fixture, 0, 22, 23, 52);
	feed_inference(&fixture, 3, 10, 24, 53);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 1);
	cr_expect_eq(count(&fixture, "b", NULL), 2);
	cr_expect_eq(count(&fixture, "f", NULL), 0);
	end(&fixture);
}

/* ---- regions ---- */

Test(profile_trace_trace, regions_around_and_inside)
{
	struct fixture fixture;

	start(&fixture);
	feed_region(&fixture, MAIN, 1, 5, "before");
	feed_region(&fixture, MAIN, 12, 13, "inside");
	feed_region(&fixture, OTHER, 12, 14, "elsewhere");
	feed_span(&fixture, MAIN, 0, 10, 20, 1);
	feed_region(&fixture, MAIN, 9, 21, "around");
	feed_region(&fixture, MAIN, 22, 23, "after");
	feed_region(&fixture, MAIN, 8, 24, "around all");
	feed_span(&fixture, MAIN, 0, 25, 26, 2);
	feed_region(&fixture, MAIN, 25, 27, "around others");
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 4);
	cr_expect_eq(count(&fixture, "X", "inside"), 1);
	cr_expect_eq(count(&fixture, "X", "around"), 1);
	cr_expect_eq(count(&fixture, "X", "around all"), 1);
	end(&fixture);
}

/* ---- what is no span ---- */

Test(profile_trace_trace, only_of_processes_in_the_document)
{
	struct fixture fixture;
	struct model_program wanted = program_of(1, "a\"b"), other = program_of(2, "q");
	struct event counter = {
		.kind = EVENT_COUNTER,
		.counter = { .tgid = TGID, .time = 1 * US, .runtime = "nrt", .name = "device memory", .value = 5 }
	};
	struct event held = { .kind = EVENT_WAITED,
			      .waited = { .tgid = TGID, .start = 1 * US, .end = 2 * US, .sites = 3 } };
	struct event lost = { .kind = EVENT_LOST, .lost = { .cause = XPT_LOSS_RING_FULL, .time = 3 * US, .count = 7 } };
	struct event loaded = { .kind = EVENT_PROGRAM, .program = { .program = &other, .time = 4 * US } };
	struct event counts = { .kind = EVENT_COUNT, .count = { .program = &wanted, .time = 4 * US } };
	struct event unpaired = { .kind = EVENT_UNPAIRED, .inference = { .program = &wanted, .function = &enqueue } };

	start(&fixture);
	feed(&fixture, &counter);
	feed(&fixture, &held);
	feed(&fixture, &lost);
	feed(&fixture, &loaded);
	feed_task(&fixture, TGID, XPT_TASK_EXEC, 4);
	feed_span(&fixture, MAIN, 0, 5, 6, 1);
	feed(&fixture, &counter);
	feed(&fixture, &held);
	feed(&fixture, &lost);
	feed(&fixture, &counts);
	feed(&fixture, &unpaired);
	loaded.program.program = &wanted;
	feed(&fixture, &loaded);
	loaded.program.released = true;
	feed(&fixture, &loaded);
	counter.counter.tgid = held.waited.tgid = 200;
	feed(&fixture, &counter);
	feed(&fixture, &held);
	feed_task(&fixture, 200, XPT_TASK_EXIT, 9);
	feed_task(&fixture, TGID, XPT_TASK_EXIT, 10);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 1);
	cr_expect_eq(count(&fixture, "C", NULL), 1);
	cr_expect_eq(count(&fixture, "b", "waited"), 1);
	cr_expect_eq(count(&fixture, "i", "lost 7: ring_full"), 1);
	cr_expect_eq(number_at(event_with(&fixture, "i", "lost 7: ring_full"), "pid"), TGID);
	cr_expect_eq(count(&fixture, "i", "program loaded: a\"b"), 1);
	cr_expect_eq(count(&fixture, "i", "program released: a\"b"), 1);
	cr_expect_eq(count(&fixture, "i", "exit"), 1);
	cr_expect_eq(count(&fixture, "i", NULL), 4);
	end(&fixture);
}

Test(profile_trace_trace, process_that_exits_is_forgotten)
{
	static const enum xpt_task_event ends[] = { XPT_TASK_EXIT, XPT_TASK_EXEC };
	struct fixture fixture;
	size_t i;

	for (i = 0; i < 2; i++) {
		start(&fixture);
		feed_span(&fixture, MAIN, 1, 11, 12, 0);
		feed_task(&fixture, TGID, ends[i], 13);
		feed_span(&fixture, MAIN, 0, 10, 20,
			  1); /* of another life, with the same numbers and too long a call */
		finish(&fixture);
		cr_expect_eq(count(&fixture, "X", NULL), 1);
		cr_expect_eq(fixture.lost, 0);
		end(&fixture);
	}
}

/* ---- limits ---- */

Test(profile_trace_trace, too_much_in_one_call)
{
	const __u64 more = 100, nested = TRACE_HELD_MAX + more;
	struct fixture fixture;
	__u64 i;

	start(&fixture);
	for (i = 0; i < nested; i++)
		feed_span(&fixture, MAIN, 1, 10 + 2 * i, 11 + 2 * i, 0);
	cr_expect_eq(fixture.lost, 0, "nothing is known to have been wanted");
	feed_span(&fixture, MAIN, 0, 1, 20 + 2 * nested, 1);
	feed_span(&fixture, MAIN, 0, 21 + 2 * nested, 22 + 2 * nested, 1);
	cr_expect_eq(fixture.lost, more);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), TRACE_HELD_MAX + 2);
	cr_expect_not(has_span(&fixture, MAIN, 10, 11), "the oldest had to go");
	end(&fixture);
}

/* The calls around are not recorded, for ever: that is no loss, and others are not kept from being held. */
Test(profile_trace_trace, nested_in_nothing_without_end)
{
	struct fixture fixture;
	__u64 i;

	start(&fixture);
	for (i = 0; i < 3 * TRACE_HELD_MAX; i++)
		feed_span(&fixture, MAIN, 1, 10 + 2 * i, 11 + 2 * i, 0);
	feed_span(&fixture, OTHER, 1, 10 + 2 * i, 11 + 2 * i, 0);
	feed_span(&fixture, OTHER, 0, 9 + 2 * i, 12 + 2 * i, 1);
	feed_span(&fixture, MAIN, 0, 9 + 2 * i, 12 + 2 * i, 1);
	cr_expect_eq(fixture.lost, 0, "%llu", fixture.lost);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 3);
	end(&fixture);
}

/* What a call at depth 0 has settled makes no room scarce, whether the call was wanted or not. */
Test(profile_trace_trace, settled_ones_are_not_held)
{
	struct fixture fixture;
	unsigned int id;
	__u64 i;

	for (id = 1; id <= 2; id++) {
		start(&fixture);
		feed_span(&fixture, OTHER, 1, 5, 6, 0);
		for (i = 10; i < 10 + 4 * (TRACE_HELD_MAX + 10ULL); i += 4) {
			feed_span(&fixture, MAIN, 1, i, i + 1, 0); /* its call was left out */
			feed_span(&fixture, MAIN, 0, i + 2, i + 3, id);
		}
		feed_span(&fixture, OTHER, 0, 4, i, 1);
		finish(&fixture);
		cr_expect(has_span(&fixture, OTHER, 5, 6), "%u", id);
		cr_expect_eq(fixture.lost, 0);
		end(&fixture);
	}
}

/* Threads come and go without a word. */
Test(profile_trace_trace, threads_without_end)
{
	struct fixture fixture;
	__u32 tid;

	start(&fixture);
	for (tid = 1000; tid < 21000; tid++) {
		feed_thread(&fixture, TGID, tid, "worker");
		feed_region(&fixture, tid, 1, 2, "region");
	}
	cr_expect_eq(fixture.lost, 0, "%llu", fixture.lost);
	feed_span(&fixture, 20999, 0, 1, 3, 1);
	feed_span(&fixture, 1000, 0, 1, 3, 1);
	feed_span(&fixture, 1000, 1, 4, 5, 0);
	for (tid = 1001; tid < 9000; tid++)
		feed_span(&fixture, tid, 1, 4, 5, 0);
	cr_expect_gt(fixture.lost, 0, "calls of threads that had to go may have been wanted");
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", "region"), 1, "that of the thread which was used last");
	cr_expect_eq(count(&fixture, "M", "thread_name"), 1, "names are bounded, too: the first has gone");
	end(&fixture);
}

/* ---- names ---- */

Test(profile_trace_trace, names_stand_once)
{
	struct fixture fixture;
	struct event renamed = { .kind = EVENT_PROCESS };
	struct model_process process = node;
	const cJSON *event;

	start(&fixture);
	feed_thread(&fixture, TGID, MAIN, "ma\"in\377");
	feed_thread(&fixture, TGID, 150, "not in it");
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	feed_span(&fixture, OTHER, 0, 1, 3, 1);
	feed_span(&fixture, MAIN, 0, 4, 5, 1);
	feed_thread(&fixture, TGID, OTHER, "late");
	process.name = "renamed";
	renamed.process = &process;
	feed(&fixture, &renamed);
	process.name = "changed";
	finish(&fixture);
	cr_expect_eq(count(&fixture, "M", "process_name"), 1);
	cr_expect_str_eq(string_at(at(event_with(&fixture, "M", "process_name"), "args"), "name"), "renamed");
	cr_expect_str_eq(string_at(at(event_with(&fixture, "M", "process_labels"), "args"), "command"),
			 "node server.js");
	cr_expect_eq(count(&fixture, "M", "thread_name"), 2);
	cJSON_ArrayForEach(event, at(fixture.json, "traceEvents")) {
		if (!strcmp(string_at(event, "name"), "thread_name"))
			cr_expect_str_eq(string_at(at(event, "args"), "name"),
					 number_at(event, "tid") == MAIN ? "ma\"in\xef\xbf\xbd" : "late");
	}
	end(&fixture);
}

/* A new process got the numbers of one that is gone: the names of the old one's threads are not its. */
Test(profile_trace_trace, names_of_another_life)
{
	struct model_process next = { .tgid = TGID, .name = "next", .command = "", .sort_index = 9 };
	const struct event event = { .kind = EVENT_PROCESS, .process = &next };
	struct fixture fixture;

	start(&fixture);
	feed_thread(&fixture, TGID, MAIN, "old");
	feed(&fixture, &event);
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	finish(&fixture);
	cr_expect_str_eq(string_at(at(event_with(&fixture, "M", "process_name"), "args"), "name"), "next");
	cr_expect_eq(count(&fixture, "M", "thread_name"), 0);
	end(&fixture);
}

/* ---- the document ---- */

static void check_head(const struct fixture *fixture)
{
	const cJSON *origin = at(fixture->json, "otherData");
	const cJSON *metadata = at(fixture->json, "metadata");

	cr_expect_str_eq(string_at(fixture->json, "displayTimeUnit"), "ns");
	cr_expect_str_eq(string_at(origin, "host"), "host\"\n");
	cr_expect_str_eq(string_at(at(origin, "clock"), "monotonic_ns"), "9007199254740993");
	cr_expect_str_eq(string_at(metadata, "boot_id"), "b");
	cr_expect(cJSON_IsTrue(at(metadata, "complete")));
}

Test(profile_trace_trace, metadata_tells_of_the_report)
{
	const struct xpt_program_report programs[] = {
		{ .id = 7,
		  .pid = TGID,
		  .process = "node",
		  .runtime = "nrt",
		  .name = "res\"net\n\377",
		  .handle = ~0ULL,
		  .generation = 2,
		  .sample_every = 4,
		  .requested = 100,
		  .inferences = 40,
		  .taken = 9,
		  .lost = 1,
		  .failed = 2,
		  .released = 1 },
		{ .id = 8,
		  .pid = 200,
		  .process = "python",
		  .runtime = "hip",
		  .name = "q",
		  .handle = 1,
		  .sample_every = 1,
		  .skipped = 3,
		  .inferences = 2,
		  .taken = 2 },
	};
	const cJSON *metadata, *program;
	struct fixture fixture;

	start(&fixture);
	fixture.report.end_reason = XPT_PROFILE_RELEASED;
	fixture.report.sequence = 12;
	fixture.report.start = 5 * US;
	fixture.report.end = 9 * US;
	fixture.report.start_realtime = 1790000000123456789;
	fixture.report.programs = programs;
	fixture.report.program_count = 2;
	feed_span(&fixture, MAIN, 0, 6, 7, 1);
	finish(&fixture);
	check_head(&fixture);
	metadata = at(fixture.json, "metadata");
	cr_expect_str_eq(string_at(metadata, "profile"), "a \"stream\"");
	cr_expect_str_eq(string_at(metadata, "end_reason"), "released");
	cr_expect_eq(number_at(metadata, "sequence"), 12);
	cr_expect_eq(number_at(metadata, "start_us"), 5);
	cr_expect_eq(number_at(metadata, "end_us"), 9);
	cr_expect_str_eq(string_at(metadata, "start_realtime_ns"), "1790000000123456789");
	cr_expect_eq(number_at(metadata, "inferences"), 42);
	cr_expect_eq(number_at(metadata, "samples"), 11);
	cr_expect_eq(number_at(metadata, "lost"), 1);
	cr_assert_eq(cJSON_GetArraySize(at(metadata, "programs")), 2);
	program = cJSON_GetArrayItem(at(metadata, "programs"), 0);
	cr_expect_eq(number_at(program, "id"), 7);
	cr_expect_str_eq(string_at(program, "name"), "res\"net\n\xef\xbf\xbd");
	cr_expect_str_eq(string_at(program, "process"), "node");
	cr_expect_str_eq(string_at(program, "runtime"), "nrt");
	cr_expect_str_eq(string_at(program, "handle"), "0xffffffffffffffff");
	cr_expect_eq(number_at(program, "generation"), 2);
	cr_expect_eq(number_at(program, "sample_every"), 4);
	cr_expect_eq(number_at(program, "requested"), 100);
	cr_expect_eq(number_at(program, "inferences"), 40);
	cr_expect_eq(number_at(program, "samples"), 9);
	cr_expect_eq(number_at(program, "lost"), 1);
	cr_expect_eq(number_at(program, "failed"), 2);
	cr_expect(cJSON_IsTrue(at(program, "released")));
	program = cJSON_GetArrayItem(at(metadata, "programs"), 1);
	cr_expect_eq(number_at(program, "pid"), 200);
	cr_expect_eq(number_at(program, "skipped"), 3);
	cr_expect_null(at(program, "requested"));
	cr_expect(cJSON_IsFalse(at(program, "released")));
	end(&fixture);
}

Test(profile_trace_trace, document_without_events)
{
	struct fixture fixture;

	start(&fixture);
	finish(&fixture);
	check_head(&fixture);
	cr_expect_eq(count(&fixture, NULL, NULL), 0);
	cr_expect_eq(fixture.report.trace_events_length, 0);
	end(&fixture);
}

/* The part for those who put several documents together: it stands for the same events. */
static void check_events_part(const struct fixture *fixture)
{
	const struct xpt_profile_report *report = &fixture->report;
	size_t length = report->trace_events_length;
	char *text = malloc(length + 3);
	cJSON *array;

	text[0] = '[';
	memcpy(text + 1, report->trace_events, length);
	strcpy(text + 1 + length, "]");
	array = cJSON_Parse(text);
	cr_assert_not_null(array, "%s", text);
	cr_expect(cJSON_Compare(array, at(fixture->json, "traceEvents"), true));
	cr_expect_geq(report->trace_events, report->trace);
	cJSON_Delete(array);
	free(text);
}

Test(profile_trace_trace, events_alone)
{
	struct fixture fixture;

	start(&fixture);
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	feed_span(&fixture, MAIN, 0, 3, 4, 3);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "X", NULL), 2);
	check_events_part(&fixture);
	end(&fixture);
}

/* A command line may be longer than what is set aside for the head. */
Test(profile_trace_trace, long_head)
{
	struct recording_info long_info = info;
	struct fixture fixture;
	char *command = malloc(300001);

	memset(command, '"', 300000);
	command[300000] = 0;
	long_info.command = command;
	start(&fixture);
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	cr_assert_eq(trace_text_finish(fixture.text, &long_info, &fixture.report), 0);
	fixture.json = cJSON_ParseWithLength(fixture.report.trace, fixture.report.trace_length);
	cr_assert_not_null(fixture.json);
	cr_expect_str_eq(string_at(at(fixture.json, "otherData"), "command"), command);
	cr_expect_eq(count(&fixture, "X", NULL), 1);
	check_events_part(&fixture);
	end(&fixture);
	free(command);
}

Test(profile_trace_trace, bytes_are_counted)
{
	struct fixture fixture;
	size_t before;
	__u64 i;

	start(&fixture);
	before = trace_text_bytes(fixture.text);
	for (i = 0; i < 10000; i++)
		feed_span(&fixture, MAIN, 0, 2 * i, 2 * i + 1, 1);
	finish(&fixture);
	cr_expect_geq(trace_text_bytes(fixture.text) - before, fixture.report.trace_length / 2);
	cr_expect_geq(trace_text_bytes(fixture.text), fixture.report.trace_length);
	end(&fixture);
	trace_free(NULL);
	trace_text_free(NULL);
	trace_names_free(NULL);
}

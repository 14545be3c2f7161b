/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile_trace.h"

/* ---- what is no span ---- */

Test(profile_trace_trace_document, only_of_processes_in_the_document)
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

Test(profile_trace_trace_document, process_that_exits_is_forgotten)
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

Test(profile_trace_trace_document, too_much_in_one_call)
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
Test(profile_trace_trace_document, nested_in_nothing_without_end)
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
Test(profile_trace_trace_document, settled_ones_are_not_held)
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
Test(profile_trace_trace_document, threads_without_end)
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

Test(profile_trace_trace_document, names_stand_once)
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
Test(profile_trace_trace_document, names_of_another_life)
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

static void feed_life(struct fixture *fixture, __u32 tgid, unsigned int life, const char *name)
{
	const struct model_process process = { .tgid = tgid, .name = name, .command = "", .sort_index = life };
	const struct event event = { .kind = EVENT_PROCESS, .process = &process };

	feed(fixture, &event);
	feed_thread(fixture, tgid, tgid, name);
}

static void feed_short_lives(struct fixture *fixture, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		feed_life(fixture, 1000 + i, 10 + i, "short");
		feed_task(fixture, 1000 + i, XPT_TASK_EXIT, 1);
	}
}

/* However many come and go, one that lives keeps its name. */
Test(profile_trace_trace_document, names_of_a_process_that_lives)
{
	struct fixture fixture;

	start(&fixture);
	feed_thread(&fixture, TGID, MAIN, "main");
	feed_short_lives(&fixture, TRACE_NAMES_MAX + 10);
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	finish(&fixture);
	cr_expect_eq(count(&fixture, "M", "process_name"), 1);
	cr_expect_eq(count(&fixture, "M", "thread_name"), 1);
	end(&fixture);
}

Test(profile_trace_trace_document, names_of_processes_that_have_ended)
{
	static const unsigned int others[] = { TRACE_NAMES_ENDED - 1, TRACE_NAMES_ENDED };
	struct fixture fixture;

	for (unsigned int i = 0; i < 2; i++) {
		start(&fixture);
		feed_thread(&fixture, TGID, MAIN, "main");
		feed_task(&fixture, TGID, XPT_TASK_EXIT, 1);
		feed_short_lives(&fixture, others[i]);
		feed_span(&fixture, MAIN, 0, 1, 2, 1);
		finish(&fixture);
		cr_expect_eq(count(&fixture, "M", "process_name"), !i);
		cr_expect_eq(count(&fixture, "M", "thread_name"), !i);
		end(&fixture);
	}
	/* Another process has its number when its names would be dropped. */
	start(&fixture);
	feed_task(&fixture, TGID, XPT_TASK_EXIT, 1);
	feed_life(&fixture, TGID, 9, "next");
	feed_short_lives(&fixture, TRACE_NAMES_ENDED);
	feed_span(&fixture, MAIN, 0, 1, 2, 1);
	finish(&fixture);
	cr_expect_str_eq(string_at(at(event_with(&fixture, "M", "process_name"), "args"), "name"), "next");
	cr_expect_eq(count(&fixture, "M", "thread_name"), 1);
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

Test(profile_trace_trace_document, metadata_tells_of_the_report)
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

Test(profile_trace_trace_document, document_without_events)
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

Test(profile_trace_trace_document, events_alone)
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
Test(profile_trace_trace_document, long_head)
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

Test(profile_trace_trace_document, bytes_are_counted)
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

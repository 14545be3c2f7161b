/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/chrome.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report_records.h"
#include "report_trace.h"

static const struct model_function execute = {
	.index = 1,
	.name = "nrt_execute",
	.runtime = "nrt",
	.role = XPT_ROLE_EXECUTE,
};
static const struct model_function wait_function = {
	.index = 2,
	.name = "nrta_wait",
	.runtime = "nrt",
	.role = XPT_ROLE_WAIT,
};
static const struct model_function enqueue = {
	.index = 3,
	.name = "nrta_enqueue",
	.runtime = "nrt",
	.role = XPT_ROLE_ENQUEUE,
};
static const struct model_process process = {
	.tgid = 100,
	.name = "node",
	.command = "node server.js",
	.sort_index = 4,
};
static const struct model_program program = {
	.id = 7,
	.process = &process,
	.runtime = "nrt",
	.name = "resnet50",
	.handle = 0xabc,
};

static struct event call_event(void)
{
	return (struct event){
		.kind = EVENT_CALL,
		.call = {
			.function = &execute,
			.program = &program,
			.start = 123456789012345,
			.end = 123456789013345,
			.tgid = 100,
			.tid = 101,
			.sample = 1,
			.have = 1 << XPT_MEANING_PROGRAM | 1 << XPT_MEANING_STATUS | 1 << XPT_MEANING_CORE,
			.handle = 0xabc,
			.core = -1,
			.outcome = OUTCOME_OK,
		},
	};
}

Test(report_chrome_chrome, empty)
{
	cJSON *json = document(NULL, 0);
	const cJSON *origin = at(json, "otherData");

	cr_assert_eq(count_events(json), 0);
	cr_assert_str_eq(string_at(json, "displayTimeUnit"), "ns");
	cr_assert_str_eq(string_at(origin, "host"), "host\"\n");
	cr_assert_str_eq(string_at(at(origin, "clock"), "monotonic_ns"), "9007199254740993");
	cr_assert_str_eq(string_at(at(origin, "clock"), "realtime_ns"), "1790000000123456789");
	/* Without an END record nobody knows whether this was all. */
	cr_assert(cJSON_IsFalse(at(at(json, "metadata"), "complete")));
	cr_assert(cJSON_IsNull(at(at(json, "metadata"), "tracing")));
	cJSON_Delete(json);
}

Test(report_chrome_chrome, call)
{
	struct event events[3] = { call_event(), call_event(), call_event() };
	const cJSON *event;
	cJSON *json;

	events[1].call.outcome = OUTCOME_FAILED;
	events[1].call.status = -5;
	events[1].call.status_name = "NRT_TIMEOUT";
	events[1].call.sample = 16;
	events[1].call.layer = true;
	events[1].call.name = "tensor\0x";
	events[1].call.name_length = 8;
	events[2].call.no_end = true;
	events[2].call.program = NULL;
	json = document(events, 3);
	event = event_at(json, 0);
	cr_assert_str_eq(string_at(event, "ph"), "X");
	cr_assert_eq(number_at(event, "pid"), 100);
	cr_assert_eq(number_at(event, "tid"), 101);
	cr_assert_float_eq(number_at(event, "ts"), 123456789012.345, 1e-4);
	cr_assert_float_eq(number_at(event, "dur"), 1.0, 1e-9);
	cr_assert_str_eq(string_at(event, "name"), "resnet50");
	cr_assert_str_eq(string_at(event, "cat"), "nrt,execute");
	cr_assert_str_eq(string_at(at(event, "args"), "function"), "nrt_execute");
	cr_assert_str_eq(string_at(at(event, "args"), "role"), "execute");
	cr_assert_str_eq(string_at(at(event, "args"), "program"), "resnet50");
	cr_assert_str_eq(string_at(at(event, "args"), "handle"), "0xabc");
	cr_assert_eq(number_at(at(event, "args"), "program_id"), 7);
	cr_assert_eq(number_at(at(event, "args"), "core"), -1);
	cr_assert_eq(number_at(at(event, "args"), "status"), 0);
	cr_assert_null(at(at(event, "args"), "failed"));
	cr_assert_null(at(at(event, "args"), "sample"));
	cr_assert_null(at(at(event, "args"), "size"), "a value that the call had not");
	event = event_at(json, 1);
	cr_assert_str_eq(string_at(event, "name"), "nrt_execute", "a layer is not the program's run");
	cr_assert_str_eq(string_at(event, "cname"), "terrible");
	cr_assert(cJSON_IsTrue(at(at(event, "args"), "failed")));
	cr_assert(cJSON_IsTrue(at(at(event, "args"), "layer")));
	cr_assert_eq(number_at(at(event, "args"), "status"), -5);
	cr_assert_str_eq(string_at(at(event, "args"), "status_name"), "NRT_TIMEOUT");
	cr_assert_eq(number_at(at(event, "args"), "sample"), 16);
	event = event_at(json, 2);
	cr_assert_str_eq(string_at(event, "ph"), "i");
	cr_assert_str_eq(string_at(event, "s"), "t");
	cr_assert_str_eq(string_at(event, "name"), "nrt_execute");
	cr_assert_null(at(event, "dur"));
	cJSON_Delete(json);
}

/* The text itself: a parser with doubles would not see a digit that is missing. */
Test(report_chrome_chrome, times_are_exact)
{
	struct event event = call_event();
	struct model *model = empty_model();
	char *path = temporary(), *text;
	struct event_file *writer = create(path);
	size_t length;

	event.call.start = 9007199254740993001ull;
	event.call.end = event.call.start + 7;
	write_event(writer, &event);
	cr_assert_eq(event_file_close(writer, model), 0);
	text = read_file(path, &length);
	cr_assert_not_null(strstr(text, "\"ts\":9007199254740993.001,\"dur\":0.007,"));
	free(text);
	unlink(path);
	free(path);
	model_free(model);
}

/* The arrow's ends must lie within the slices they belong to, and be joined by name, category and id. */
Test(report_chrome_chrome, flow_from_enqueue_to_wait)
{
	struct event events[3] = { call_event(), call_event(), { .kind = EVENT_INFERENCE } };
	const cJSON *start, *finish;
	cJSON *json;

	events[0].call.function = &enqueue;
	events[0].call.start = 1000000;
	events[0].call.end = 1001000;
	events[0].call.flow_out = 42;
	events[1].call.function = &wait_function;
	events[1].call.tid = 102;
	events[1].call.start = 1002000;
	events[1].call.end = 1009000;
	events[1].call.flow_in = 42;
	events[2].inference = (struct event_inference){
		.program = &program,
		.function = &enqueue,
		.id = 42,
		.start = 1000000,
		.end = 1009000,
		.tgid = 100,
		.tid = 101,
		.wait_tid = 102,
		.outcome = OUTCOME_OK,
	};
	json = document(events, 3);
	cr_assert_eq(count_events(json), 6);
	start = event_at(json, 1);
	finish = event_at(json, 5);
	cr_assert_str_eq(string_at(start, "ph"), "s");
	cr_assert_str_eq(string_at(finish, "ph"), "f");
	cr_assert_str_eq(string_at(finish, "bp"), "e");
	cr_assert_str_eq(string_at(start, "id"), string_at(finish, "id"));
	cr_assert_str_eq(string_at(start, "cat"), string_at(finish, "cat"));
	cr_assert_str_eq(string_at(start, "name"), string_at(finish, "name"));
	cr_assert_eq(number_at(start, "tid"), 101);
	cr_assert_eq(number_at(finish, "tid"), 102);
	cr_assert(number_at(start, "ts") >= 1000 && number_at(start, "ts") < 1001);
	cr_assert(number_at(finish, "ts") >= 1002 && number_at(finish, "ts") < 1009);
	/* The inference itself, as a span that may overlap with others. */
	cr_assert_str_eq(string_at(event_at(json, 3), "ph"), "b");
	cr_assert_str_eq(string_at(event_at(json, 3), "name"), "resnet50");
	cr_assert_eq(number_at(event_at(json, 3), "ts"), 1000);
	cr_assert_str_eq(string_at(event_at(json, 4), "ph"), "e");
	cr_assert_eq(number_at(event_at(json, 4), "ts"), 1009);
	cr_assert_str_eq(string_at(event_at(json, 3), "id"), string_at(event_at(json, 4), "id"));
	cJSON_Delete(json);
}

Test(report_chrome_chrome, other_kinds)
{
	struct event events[] = {
		{ .kind = EVENT_PROCESS, .process = &process },
		{ .kind = EVENT_THREAD, .thread = { 100, 101, "worker" } },
		{ .kind = EVENT_COUNTER, .counter = { 100, 5000, "nrt", "queue depth", 3 } },
		{ .kind = EVENT_COUNTER, .counter = { 100, 5000, "nrt", "device memory", 4096 } },
		{ .kind = EVENT_LOST, .lost = { XPT_LOSS_RING_FULL, 1000, 2000, 17 } },
		{ .kind = EVENT_WAITED, .waited = { .tgid = 100, .start = 1000, .end = 3000, .sites = 5 } },
		{ .kind = EVENT_TASK, .task = { 101, 101, 100, 1, XPT_TASK_FORK, 0, NULL } },
		{ .kind = EVENT_TASK, .task = { 101, 101, 0, 1, XPT_TASK_EXEC, 0, "sh" } },
		{ .kind = EVENT_TASK, .task = { 101, 101, 0, 1, XPT_TASK_EXIT, 3 << 8, NULL } },
		{ .kind = EVENT_TASK, .task = { 101, 101, 0, 1, XPT_TASK_EXIT, 9, NULL } },
		{ .kind = EVENT_REGION, .region = { 100, 101, "vaccel", "load", 1000, 4000 } },
		{ .kind = EVENT_PROGRAM, .program = { &program, 1000, true } },
	};
	cJSON *json = document(events, sizeof(events) / sizeof(events[0]));

	cr_assert_eq(count_events(json), 15);
	cr_assert_str_eq(string_at(event_at(json, 0), "name"), "process_name");
	cr_assert_str_eq(string_at(at(event_at(json, 0), "args"), "name"), "node");
	cr_assert_eq(number_at(at(event_at(json, 1), "args"), "sort_index"), 4);
	cr_assert_str_eq(string_at(at(event_at(json, 2), "args"), "labels"), "node server.js");
	cr_assert_str_eq(string_at(event_at(json, 3), "name"), "thread_name");
	cr_assert_eq(number_at(event_at(json, 3), "tid"), 101);
	cr_assert_str_eq(string_at(event_at(json, 4), "name"), "nrt queue depth");
	cr_assert_eq(number_at(at(event_at(json, 4), "args"), "inferences"), 3);
	cr_assert_eq(number_at(at(event_at(json, 5), "args"), "bytes"), 4096);
	cr_assert_str_eq(string_at(event_at(json, 6), "s"), "g");
	cr_assert_eq(number_at(event_at(json, 6), "pid"), 100, "an instant of a process that there is not");
	cr_assert_str_eq(string_at(event_at(json, 6), "name"), "lost 17: ring_full");
	cr_assert_eq(number_at(at(event_at(json, 6), "args"), "count"), 17);
	cr_assert_str_eq(string_at(event_at(json, 7), "ph"), "b");
	cr_assert_eq(number_at(at(event_at(json, 7), "args"), "sites"), 5);
	cr_assert_eq(number_at(event_at(json, 8), "ts"), 3);
	cr_assert_eq(number_at(at(event_at(json, 9), "args"), "parent"), 100);
	cr_assert_str_eq(string_at(at(event_at(json, 10), "args"), "name"), "sh");
	cr_assert_eq(number_at(at(event_at(json, 11), "args"), "status"), 3);
	cr_assert_eq(number_at(at(event_at(json, 12), "args"), "signal"), 9);
	cr_assert_str_eq(string_at(event_at(json, 13), "name"), "load");
	cr_assert_str_eq(string_at(event_at(json, 13), "cat"), "region,vaccel");
	cr_assert_eq(number_at(event_at(json, 13), "dur"), 3);
	cr_assert_str_eq(string_at(event_at(json, 14), "name"), "program released: resnet50");
	cJSON_Delete(json);
}

/* Every byte value in every string that can come from outside, alone and cut off, and one that is very long. */
Test(report_chrome_chrome, hostile_strings)
{
	char bytes[4] = "", *path = temporary(), *huge = malloc((1 << 20) + 1);
	struct model_process odd_process = { .tgid = 1, .name = bytes, .command = bytes };
	struct model_program odd_program = { .process = &odd_process, .runtime = bytes, .name = bytes };
	struct model_function odd_function = { .index = 9, .name = bytes, .runtime = bytes, .role = XPT_ROLE_EXECUTE };
	struct event_file *writer = create(path);
	struct model *model = empty_model();
	struct event event = call_event();
	unsigned int byte;
	cJSON *json;

	for (byte = 1; byte < 256; byte++) {
		bytes[0] = byte;
		bytes[1] = byte >= 0xe0 ? 0x9f : '"';
		bytes[2] = byte % 2 ? '\\' : 0;
		odd_function.index = byte;
		event.call.function = &odd_function;
		event.call.program = byte % 3 ? &odd_program : NULL;
		event.call.status_name = bytes;
		event.call.name = bytes;
		event.call.name_length = sizeof(bytes);
		write_event(writer, &event);
		write_event(writer, &(struct event){ .kind = EVENT_PROCESS, .process = &odd_process });
		write_event(writer, &(struct event){ .kind = EVENT_THREAD, .thread = { 1, 1, bytes } });
		write_event(writer, &(struct event){ .kind = EVENT_REGION, .region = { 1, 1, bytes, bytes, 1, 2 } });
		write_event(writer, &(struct event){ .kind = EVENT_COUNTER, .counter = { 1, 1, bytes, bytes, 2 } });
		write_event(writer, &(struct event){ .kind = EVENT_PROGRAM, .program = { &odd_program, 1, true } });
		write_event(writer, &(struct event){ .kind = EVENT_TASK,
						     .task = { .tgid = 1, .what = XPT_TASK_EXEC, .name = bytes } });
	}
	memset(huge, '\x01', 1 << 20);
	event.call.name = huge;
	event.call.name_length = 1 << 20;
	write_event(writer, &event);
	odd_process.command = odd_process.name = huge;
	huge[1 << 20] = 0;
	write_event(writer, &(struct event){ .kind = EVENT_PROCESS, .process = &odd_process });
	cr_assert_eq(event_file_close(writer, model), 0);
	json = parse_file(path);
	cr_assert_eq(count_events(json), 255 * 9 + 4);
	cJSON_Delete(json);
	model_free(model);
	unlink(path);
	free(path);
	free(huge);
}

Test(report_chrome_chrome, file_is_whole_after_every_flush)
{
	char *path = temporary();
	struct event_file *writer = create(path);
	struct model *model = empty_model();
	struct event event = call_event();
	int flush, i;

	for (flush = 0; flush < 20; flush++) {
		cJSON *json = parse_file(path);

		cr_assert_eq(count_events(json), flush * (flush - 1) / 2);
		cr_assert(cJSON_IsFalse(at(at(json, "metadata"), "complete")));
		cJSON_Delete(json);
		for (i = 0; i < flush; i++)
			write_event(writer, &event);
		cr_assert_eq(event_file_flush(writer), 0);
		cr_assert_eq(event_file_flush(writer), 0);
	}
	cr_assert_eq(event_file_close(writer, model), 0);
	model_free(model);
	unlink(path);
	free(path);
}

static void totals_of_model(const char *end, cJSON **result)
{
	char *path = temporary();
	struct event_file *writer = create(path);
	struct model *model = empty_model();
	int i;

	cr_assert_eq(model_add_sink(model, event_file_sink(writer)), 0);
	feed_descriptions(model);
	for (i = 0; i < 100; i++)
		feed_call(model, SPEC_EXECUTE, 1240, 1000000 + i * 1000, 1000500 + i * 1000, 0x5000, i < 3 ? 2 : 0);
	feed_call(model, SPEC_COPY, 1240, 2000000, 2000900, 4096, 0);
	feed_lost(model, XPT_LOSS_RING_FULL, 7, 1000, 2100000);
	feed_total(model, (struct xpt_program_key){ RECORDS_TGID, 3, 0, 0x5000 },
		   (struct xpt_program_count){ .calls = 1700, .left_out = 1593, .lost = 7, .layers = 2 }, 2200000);
	if (end)
		feed_text(model, XPT_RECORD_END, 0, 0, 2300000, end);
	cr_assert_eq(model_flush(model), 0);
	cr_assert_eq(event_file_close(writer, model), 0);
	model_free(model);
	*result = parse_file(path);
	unlink(path);
	free(path);
}

Test(report_chrome_chrome, totals)
{
	const cJSON *metadata, *entry;
	cJSON *json;

	totals_of_model(RECORDS_END, &json);
	metadata = at(json, "metadata");
	cr_assert(cJSON_IsTrue(at(metadata, "complete")));
	cr_assert_str_eq(string_at(metadata, "kernel"), "6.1.0");
	cr_assert_eq(cJSON_GetArraySize(at(metadata, "programs")), 1);
	entry = cJSON_GetArrayItem(at(metadata, "programs"), 0);
	cr_assert_str_eq(string_at(entry, "name"), "nrt model 1");
	cr_assert_str_eq(string_at(entry, "name_source"), "order");
	cr_assert_str_eq(string_at(entry, "handle"), "0x5000");
	cr_assert(cJSON_IsFalse(at(entry, "named")));
	cr_assert_str_eq(string_at(entry, "runtime"), "nrt");
	cr_assert_str_eq(string_at(entry, "role"), "execute");
	cr_assert_str_eq(string_at(entry, "process"), "node");
	cr_assert_eq(number_at(entry, "pid"), RECORDS_TGID);
	cr_assert_eq(number_at(entry, "calls"), 1700);
	cr_assert_eq(number_at(entry, "left_out"), 1593);
	cr_assert_eq(number_at(entry, "lost"), 7);
	cr_assert_eq(number_at(entry, "layers"), 2);
	cr_assert_eq(number_at(entry, "recorded"), 100);
	cr_assert_eq(number_at(entry, "errors"), 3);
	cr_assert_eq(number_at(at(entry, "latency_ns"), "count"), 100);
	cr_assert_eq(number_at(at(entry, "latency_ns"), "mean"), 500);
	cr_assert_eq(number_at(at(entry, "latency_ns"), "sum"), 50000);
	cr_assert_eq(number_at(at(entry, "latency_ns"), "deviation"), 0);
	entry = cJSON_GetArrayItem(at(metadata, "functions"), 0);
	cr_assert_str_eq(string_at(entry, "function"), "nrt_tensor_write");
	cr_assert_eq(number_at(entry, "bytes"), 4096);
	cr_assert_eq(number_at(entry, "recorded"), 1);
	cr_assert_eq(cJSON_GetArraySize(at(metadata, "queues")), 0);
	cr_assert_null(at(cJSON_GetArrayItem(at(metadata, "programs"), 0), "jobs"));
	cr_assert_null(at(entry, "calls"), "an exact total that nobody has reported");
	cr_assert_eq(number_at(at(metadata, "lost"), "ring_full"), 7);
	cr_assert_eq(number_at(at(metadata, "lost"), "output"), 0, "causes without a loss stand there, too");
	for (int cause = 0; cause <= XPT_LOSS_STACKS; cause++)
		cr_assert_not_null(at(at(metadata, "lost"), loss_name(cause)), "%s is not there", loss_name(cause));
	cr_assert_eq(number_at(at(at(metadata, "tracing"), "collector"), "max_rss_bytes"), 12582912);
	cJSON_Delete(json);
}

/* Jobs from their records to the document: queues and programs at its end, and the place of a queue in it. */
Test(report_chrome_chrome, totals_of_queues)
{
	char *path = temporary();
	struct event_file *writer = create(path);
	struct model *model = empty_model();
	const cJSON *metadata, *entry, *event;
	int spans = 0;
	__u64 i;
	cJSON *json;

	cr_assert_eq(model_add_sink(model, event_file_sink(writer)), 0);
	feed_descriptions(model);
	feed_driver(model);
	for (i = 1; i <= 10; i++) {
		feed_event(model, EVENT_QUEUED, 1240, 1000000 * i + 1000, i, "gfx_0");
		feed_event(model, EVENT_RUNS, 0, 1000000 * i + 3000, i, NULL);
		if (i == 10)
			feed_event(model, EVENT_FAILED, 0, 1000000 * i + 7000, i, NULL);
		feed_event(model, EVENT_DONE, 0, 1000000 * i + 8000, i, NULL);
		feed_call(model, SPEC_EXECUTE, 1240, 1000000 * i, 1000000 * i + 10000, 0x5000, 0);
	}
	feed_event(model, EVENT_QUEUED, 0, 20000000, 77, "gfx_0");
	feed_event(model, EVENT_RUNS, 0, 20001000, 77, NULL);
	feed_event(model, EVENT_DONE, 0, 20004000, 77, NULL);
	feed_text(model, XPT_RECORD_END, 0, 0, 30000000, RECORDS_END);
	cr_assert_eq(model_flush(model), 0);
	cr_assert_eq(event_file_close(writer, model), 0);
	model_free(model);
	json = parse_file(path);
	metadata = at(json, "metadata");
	entry = cJSON_GetArrayItem(at(metadata, "programs"), 0);
	cr_assert_eq(number_at(entry, "jobs"), 10);
	cr_assert_eq(number_at(entry, "failed_jobs"), 1);
	cr_assert_eq(number_at(entry, "device_ns"), 50000);
	cr_assert_eq(number_at(entry, "queue_ns"), 20000);
	cr_assert_eq(number_at(entry, "busy_ns"), 50000);
	cr_assert_eq(cJSON_GetArraySize(at(metadata, "queues")), 1);
	entry = cJSON_GetArrayItem(at(metadata, "queues"), 0);
	cr_assert_str_eq(string_at(entry, "driver"), "toy");
	cr_assert_str_eq(string_at(entry, "device"), "0000:03:00.0");
	cr_assert_str_eq(string_at(entry, "engine"), "gfx_0");
	cr_assert_eq(number_at(entry, "jobs"), 11);
	cr_assert_eq(number_at(entry, "failed_jobs"), 1);
	cr_assert_eq(number_at(entry, "target_jobs"), 10);
	cr_assert_eq(number_at(entry, "first_us"), 1001);
	cr_assert_eq(number_at(entry, "last_us"), 20004);
	cr_assert_eq(number_at(entry, "busy_us"), 53);
	cr_assert_eq(number_at(entry, "target_us"), 50);
	cJSON_ArrayForEach(event, at(json, "traceEvents"))
		spans += !strcmp(string_at(event, "ph"), "X") && number_at(event, "pid") == number_at(entry, "pid") &&
			 number_at(event, "tid") == number_at(entry, "tid");
	cr_assert_eq(spans, 11);
	cr_assert_eq(number_at(at(metadata, "lost"), "jobs"), 0);
	cr_assert_eq(number_at(at(metadata, "lost"), "nested"), 0);
	cJSON_Delete(json);
	unlink(path);
	free(path);
}

Test(report_chrome_chrome, closing_text_that_is_no_json_breaks_nothing)
{
	cJSON *json;

	totals_of_model("{\"duration_ns\":}]}", &json);
	cr_assert(cJSON_IsNull(at(at(json, "metadata"), "tracing")));
	cJSON_Delete(json);
}

/* An independent reader that knows nothing of this project. */
Test(report_chrome_chrome, another_parser)
{
	struct event event = call_event();
	char *path = temporary(), command[256];
	struct event_file *writer = create(path);
	struct model *model = empty_model();

	if (system("python3 -c pass 2>/dev/null"))
		cr_skip_test("python3 is not installed");
	event.call.name = "\xff\x00\x1f\"\\\xed\xa0\x80";
	event.call.name_length = 8;
	write_event(writer, &event);
	cr_assert_eq(event_file_close(writer, model), 0);
	snprintf(command, sizeof(command),
		 "python3 -c 'import json; d = json.load(open(\"%s\", encoding=\"utf-8\")); "
		 "a = d[\"traceEvents\"][0][\"args\"][\"name\"]; "
		 "assert a == \"\\ufffd\\0\\x1f\\\"\\\\\\ufffd\\ufffd\\ufffd\", a'",
		 path);
	cr_assert_eq(system(command), 0, "%s", command);
	model_free(model);
	unlink(path);
	free(path);
}

/* ---- files that fail ---- */

Test(report_chrome_chrome, pipe_gets_one_document)
{
	struct model *model = empty_model();
	struct event event = call_event();
	struct event_file *writer;
	char *text = calloc(1, 65536);
	int pipes[2], i;
	ssize_t length;
	cJSON *json;

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(event_file_create(NULL, &chrome_format, NULL, pipes[1], &info, &writer), 0);
	for (i = 0; i < 10; i++) {
		write_event(writer, &event);
		cr_assert_eq(event_file_flush(writer), 0);
	}
	cr_assert_eq(event_file_close(writer, model), 0);
	length = read(pipes[0], text, 65535);
	cr_assert_gt(length, 0);
	json = parse_text(text, length);
	cr_assert_eq(count_events(json), 10);
	cJSON_Delete(json);
	free(text);
	close(pipes[0]);
	model_free(model);
}

Test(report_chrome_chrome, output_that_takes_nothing)
{
	struct event_file *writer;

	cr_assert_eq(event_file_create(NULL, &chrome_format, "/dev/full", -1, &info, &writer), -ENOSPC);
	cr_assert_eq(event_file_create(NULL, &chrome_format, "/nonexistent/trace.json", -1, &info, &writer), -ENOENT);
	cr_assert_eq(event_file_create(NULL, &chrome_format, NULL, -1, &info, &writer), -EBADF);
}

/* A limit on the size of files stands for a full disk: the write that reaches it is short, the next one fails. */
static void write_to_full_disk(const char *path, rlim_t limit, bool flush_often)
{
	struct rlimit before, size;
	struct event_file *writer;
	struct model *model = empty_model();
	struct event event = call_event();
	struct event_sink sink;
	int error = 0, i;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(getrlimit(RLIMIT_FSIZE, &before), 0);
	size = (struct rlimit){ limit, before.rlim_max };
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &size), 0);
	cr_assert_eq(event_file_create(NULL, &chrome_format, path, -1, &info, &writer), 0);
	sink = event_file_sink(writer);
	for (i = 0; i < 100000 && !error; i++) {
		error = sink.write(sink.context, &event);
		if (!error && flush_often && i % 10 == 0)
			error = event_file_flush(writer);
	}
	cr_assert_eq(error, -EFBIG);
	cr_assert_eq(sink.write(sink.context, &event), -EFBIG);
	cr_assert_eq(event_file_flush(writer), -EFBIG);
	cJSON_Delete(parse_file(path)); /* already now, not only when it is closed */
	cr_assert_eq(event_file_close(writer, model), -EFBIG);
	model_free(model);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &before), 0);
}

Test(report_chrome_chrome, full_disk_leaves_a_whole_file)
{
	rlim_t limit;

	/* Over more than the length of one event, so that the limit cuts it everywhere. */
	for (limit = 4096; limit < 4096 + 300; limit += 7) {
		char *path = temporary();
		cJSON *json;

		write_to_full_disk(path, limit, true);
		json = parse_file(path);
		cr_assert_geq(count_events(json), 1);
		cr_assert(cJSON_IsFalse(at(at(json, "metadata"), "complete")));
		cJSON_Delete(json);
		unlink(path);
		free(path);
	}
}

Test(report_chrome_chrome, full_disk_in_a_large_write)
{
	char *path = temporary();
	cJSON *json;

	write_to_full_disk(path, (3 << 20) + 12345, false);
	json = parse_file(path);
	cr_assert_gt(count_events(json), 1000);
	/* The totals fit, because they take less than the write that failed. */
	cr_assert_str_eq(string_at(at(json, "metadata"), "output_error"), strerror(EFBIG));
	cJSON_Delete(json);
	unlink(path);
	free(path);
}

/* Writes until it is killed; says how many events it has flushed. */
static void write_until_killed(const char *path, volatile int *flushed, int ready)
{
	struct event_file *writer;
	struct event event = call_event();
	struct event_sink sink;
	char name[4000];
	int i;

	memset(name, 'n', sizeof(name));
	event.call.name = name; /* large writes are more likely to be cut in two */
	event.call.name_length = sizeof(name);
	if (event_file_create(NULL, &chrome_format, path, -1, &info, &writer) || event_file_detach(writer, NULL))
		_exit(1);
	sink = event_file_sink(writer);
	if (write(ready, "", 1) != 1)
		_exit(1);
	for (;;) {
		for (i = 0; i < 100; i++)
			if (sink.write(sink.context, &event))
				_exit(1);
		/* Where it is busy the events stay for the next time, which no kill may come before. */
		if (event_file_settle(writer))
			_exit(1);
		*flushed += 100;
		if (*flushed >= 20000)
			pause();
	}
}

Test(report_chrome_chrome, killed_writer_leaves_a_whole_file)
{
	volatile int *flushed = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *path = temporary();
	int round, most_lost = 0;

	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	srand(1);
	for (round = 0; round < 100; round++) {
		int pipes[2], count;
		pid_t writer;
		cJSON *json;
		char byte;

		*flushed = 0;
		cr_assert_eq(pipe(pipes), 0);
		writer = fork();
		if (!writer)
			write_until_killed(path, flushed, pipes[1]);
		close(pipes[1]);
		cr_assert_eq(read(pipes[0], &byte, 1), 1);
		close(pipes[0]);
		usleep(rand() % 8000);
		kill(writer, SIGKILL);
		cr_assert_eq(waitpid(writer, NULL, 0), writer);
		/* Whoever writes for it is a child now, and ends when the file is complete. */
		cr_assert_gt(waitpid(-1, NULL, 0), 0);
		json = parse_file(path);
		count = count_events(json);
		if (*flushed - count > most_lost)
			most_lost = *flushed - count;
		/* What had been reported as flushed is there; at most the flush that was going on is there as well. */
		cr_assert(count >= *flushed && count <= *flushed + 100, "%d of %d", count, *flushed);
		cJSON_Delete(json);
	}
	cr_assert_eq(most_lost, 0);
	munmap((void *)flushed, 4096);
	unlink(path);
	free(path);
}

/* ---- outputs that block ---- */

/* Reads the pipe to its end into a file. */
static pid_t read_into(int from, const char *path)
{
	static char bytes[1 << 16];
	pid_t pid = fork();
	ssize_t got;
	int to;

	if (pid)
		return pid;
	to = open(path, O_WRONLY | O_TRUNC);
	while ((got = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, got) != got)
			_exit(1);
	_exit(got ? 1 : 0);
}

static int count_phase(const cJSON *json, const char *phase)
{
	const cJSON *event;
	int count = 0;

	cJSON_ArrayForEach(event, at(json, "traceEvents"))
		count += !strcmp(string_at(event, "ph"), phase);
	return count;
}

/* A reader that stops and goes on: the document is whole, and no arrow ends that has not begun. */
Test(report_chrome_chrome, a_pipe_that_is_not_read_for_a_while)
{
	struct event call = call_event(), named = { .kind = EVENT_PROCESS, .process = &process };
	struct event inference = {
		.kind = EVENT_INFERENCE,
		.inference = { .function = &enqueue, .program = &program, .tgid = 100, .tid = 101, .wait_tid = 102 },
	};
	struct event_file *writer;
	int ends[2], calls = 0, status;
	uint64_t stopped = 0, lost;
	char *path = temporary();
	struct event_sink sink;
	struct model *model;
	cJSON *json;
	pid_t reader;

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(model_create(NULL, &model), 0);
	cr_assert_eq(event_file_create(NULL, &chrome_format, NULL, ends[1], &info, &writer), 0);
	cr_assert_eq(event_file_detach(writer, &stopped), 0);
	sink = event_file_sink(writer);
	for (; !event_file_lost(writer); calls++) {
		call.call.start++;
		call.call.flow_out = calls + 1;
		cr_assert_eq(sink.write(sink.context, &call), 0);
	}
	cr_assert_gt(calls, 100000);
	/* This one's call was left out. */
	inference.inference.id = calls;
	inference.inference.start = call.call.start;
	inference.inference.end = call.call.end;
	cr_assert_eq(sink.write(sink.context, &named), 0);
	reader = read_into(ends[0], path);
	while (lost = event_file_lost(writer), sink.write(sink.context, &call), calls++,
	       event_file_lost(writer) != lost)
		usleep(1000);
	cr_assert_eq(sink.write(sink.context, &inference), 0);
	/* And this one's was not. */
	inference.inference.id = call.call.flow_out = calls + 1;
	inference.inference.start = ++call.call.start;
	cr_assert_eq(sink.write(sink.context, &call), 0);
	cr_assert_eq(sink.write(sink.context, &inference), 0);
	calls++;
	cr_assert_eq(event_file_settle(writer), 0);
	cr_assert_eq(event_file_lost(writer), lost);
	cr_assert_eq(event_file_close(writer, model), 0);
	close(ends[0]);
	cr_assert_eq(waitpid(reader, &status, 0), reader);
	cr_assert_eq(status, 0);
	json = parse_file(path);
	cr_assert_eq(count_phase(json, "X") + (int)lost, calls);
	cr_assert_eq(count_phase(json, "b"), 1);
	cr_assert_eq(count_phase(json, "f"), 1);
	cr_assert_geq(count_phase(json, "M"), 1, "the name of the process was left out");
	cJSON_Delete(json);
	model_free(model);
	unlink(path);
	free(path);
}

Test(report_chrome_chrome, changes_that_keep_the_budget)
{
	struct model_budget_change changes[] = {
		{ .time = 1000,
		  .action = BUDGET_SAMPLING,
		  .tgid = 100,
		  .name = "res\"net",
		  .every = 8,
		  .programs = 2,
		  .cost = 4.1,
		  .budget = 2 },
		{ .time = 2000, .action = BUDGET_OPERATORS, .cost = 3, .budget = 2 },
		{ .time = 3000, .action = BUDGET_SITE, .tgid = 100, .name = "nrt_execute", .on = true, .since = 1500 },
	};
	struct event events[3];
	const cJSON *event;
	cJSON *json;

	for (int i = 0; i < 3; i++)
		events[i] = (struct event){ .kind = EVENT_BUDGET, .budget = &changes[i] };
	json = document(events, 3);
	cr_assert_eq(count_events(json), 5, "and the name and place of its process");
	event = event_at(json, 0);
	cr_assert_str_eq(string_at(event, "name"), "process_name");
	cr_assert_str_eq(string_at(at(event, "args"), "name"), "budget");
	cr_assert_eq(number_at(event, "pid"), (1u << 30) + 1026);
	event = event_at(json, 2);
	cr_assert_str_eq(string_at(event, "ph"), "i");
	cr_assert_eq(number_at(event, "pid"), (1u << 30) + 1026);
	cr_assert_float_eq(number_at(event, "ts"), 1, 1e-9);
	cr_assert_str_eq(string_at(event, "name"), "sampling: 1 in 8");
	cr_assert_str_eq(string_at(at(event, "args"), "action"), "sampling");
	cr_assert_str_eq(string_at(at(event, "args"), "program"), "res\"net");
	cr_assert_eq(number_at(at(event, "args"), "every"), 8);
	cr_assert_eq(number_at(at(event, "args"), "programs"), 2);
	cr_assert_eq(number_at(at(event, "args"), "pid"), 100);
	cr_assert_float_eq(number_at(at(event, "args"), "cost"), 4.1, 1e-9);
	cr_assert_float_eq(number_at(at(event, "args"), "budget"), 2, 1e-9);
	cr_assert_str_eq(string_at(event_at(json, 3), "name"), "operators off");
	event = event_at(json, 4);
	cr_assert_str_eq(string_at(event, "name"), "nrt_execute on");
	cr_assert_float_eq(number_at(at(event, "args"), "since_us"), 1.5, 1e-9);
	cr_assert(cJSON_IsTrue(at(at(event, "args"), "on")));
	cJSON_Delete(json);
}

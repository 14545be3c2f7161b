/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How many typical calls a second one core turns into a trace. Usage: trace_write chrome|perfetto [EVENTS [FILE [detached]]]; detached:
 * a process of its own writes, as in a recording, and events that it has no room for are waited for.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "report/chrome/chrome.h"
#include "report/perfetto/perfetto.h"

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static const struct model_process process = { .tgid = 4242, .name = "node", .command = "node server.js" };
static const struct model_program program = {
	.id = 1,
	.process = &process,
	.runtime = "onnxruntime",
	.name = "squeezenet1.1.onnx",
};
static const struct model_function function = {
	.index = 1,
	.name = "Run",
	.runtime = "onnxruntime",
	.role = XPT_ROLE_EXECUTE,
};

static struct event typical_call(void)
{
	return (struct event){
		.kind = EVENT_CALL,
		.call = {
			.function = &function,
			.program = &program,
			.start = 3600000000000,
			.tgid = 4242,
			.tid = 4250,
			.sample = 1,
			.have = 1 << XPT_MEANING_PROGRAM | 1 << XPT_MEANING_STATUS,
			.handle = 0x7f3412345670,
			.outcome = OUTCOME_OK,
		},
	};
}

int main(int argc, char **argv)
{
	const struct recording_info info = { .host = "bench" };
	bool perfetto = argc > 1 && !strcmp(argv[1], "perfetto");
	__u64 count = argc > 2 ? strtoull(argv[2], NULL, 10) : 5000000, i;
	struct event event = typical_call();
	struct event_file *writer;
	struct event_sink sink;
	struct model *model;
	double start, took;
	__u64 bytes;

	if (event_file_create(NULL, perfetto ? &perfetto_format : &chrome_format, argc > 3 ? argv[3] : "/dev/null", -1,
			      &info, &writer) ||
	    model_create(NULL, &model))
		return 1;
	if (argc > 4 && (event_file_detach(writer, NULL) || event_file_settle(writer)))
		return 1;
	sink = event_file_sink(writer);
	start = seconds();
	for (i = 0; i < count; i++) {
		event.call.start += 1234567;
		event.call.end = event.call.start + 987654;
		if (sink.write(sink.context, &event))
			return 1;
	}
	if (event_file_settle(writer))
		return 1;
	took = seconds() - start;
	bytes = event_file_bytes(writer);
	printf("{\"bench\":\"%s_write\",\"events\":%llu,\"bytes\":%llu,\"events_per_second\":%.0f}\n",
	       perfetto ? "perfetto" : "chrome", (unsigned long long)count, (unsigned long long)bytes, count / took);
	if (event_file_close(writer, model))
		return 1;
	model_free(model);
	return 0;
}

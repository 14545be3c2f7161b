/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/event_file.h"

#include <cjson/cJSON.h>

#include "report_operators.h"

#define BEGIN 1000000ull

/* What has been written, read by another parser. Frees the fixture. */
static cJSON *document(struct fixture *f, struct event_file *file, const char *path)
{
	const char *end;
	size_t length;
	char *text = file_finish(f, file, path, &length);
	cJSON *json = cJSON_ParseWithOpts(text, &end, true);

	cr_assert(cJSON_IsArray(json), "%s", text);
	cr_assert_eq(end, text + length);
	free(text);
	unlink(path);
	return json;
}

static const char *string_of(const cJSON *object, const char *name)
{
	return cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
}

static const char *argument(const cJSON *event, const char *name)
{
	return string_of(cJSON_GetObjectItemCaseSensitive(event, "args"), name);
}

static long long number_of(const cJSON *object, const char *name)
{
	const cJSON *number = cJSON_GetObjectItemCaseSensitive(object, name);

	cr_assert(cJSON_IsNumber(number), "no number %s", name);
	cr_assert_eq(number->valuedouble, (double)(long long)number->valuedouble, "%s is not whole", name);
	return (long long)number->valuedouble;
}

static const cJSON *expect(const cJSON *json, int index, const char *category, const char *name, long long start,
			   long long duration)
{
	const cJSON *event = cJSON_GetArrayItem(json, index);

	cr_assert_not_null(event, "no event %d", index);
	cr_assert_str_eq(string_of(event, "cat"), category, "event %d", index);
	cr_assert_str_eq(string_of(event, "name"), name, "event %d", index);
	cr_assert_str_eq(string_of(event, "ph"), "X");
	cr_assert_eq(number_of(event, "ts"), start, "event %d: %lld", index, number_of(event, "ts"));
	cr_assert_eq(number_of(event, "dur"), duration, "event %d: %lld", index, number_of(event, "dur"));
	cr_assert(cJSON_IsObject(cJSON_GetObjectItemCaseSensitive(event, "args")));
	return event;
}

Test(report_trace_ort, nothing_is_a_document)
{
	struct fixture *f = fixture_operators();
	char *path = file_path();
	cJSON *json = document(f, file_of(f, &ort_format, path, BEGIN), path);

	cr_assert_eq(cJSON_GetArraySize(json), 0);
	cJSON_Delete(json);
	free(path);
}

Test(report_trace_ort, operators_and_their_runs)
{
	struct fixture *f = fixture_operators();
	char *path = file_path();
	struct event_file *file = file_of(f, &ort_format, path, BEGIN);
	const cJSON *event;
	cJSON *json;

	toy_node(f, 0x200, "\"name\":\"/fc/Gemm\",\"type\":\"Gemm\",\"index\":3,\"provider\":\"CPUExecutionProvider\"");
	toy_load(f, 0x10, "model", 1100000, 1200000);
	toy_operator(f, 7, 0x100, TOY_CLASS, 1300000, 1300400, 1301600);
	toy_operator(f, 7, 0x200, TOY_CLASS, 1300000, 1301600, 1302499);
	toy_operator(f, 7, 0x300, TOY_INNER_CLASS, 0, 1302500, 1303000);
	CALL_1(f, TOY_EXECUTE, 1, 7, 1300000, 1310000, 4, 0x10, U(64), U(2), U(0));
	toy_unload(f, 0x10, 1400000, 1410000);
	json = document(f, file, path);

	cr_assert_eq(cJSON_GetArraySize(json), 4);
	event = expect(json, 0, "Node", "FusedGemm#1_kernel_time", 300, 2);
	cr_expect_eq(number_of(event, "pid"), 1);
	cr_expect_eq(number_of(event, "tid"), 7);
	cr_expect_str_eq(argument(event, "op_name"), "FusedGemm");
	cr_expect_null(argument(event, "provider"));
	cr_expect_null(argument(event, "node_index"));
	cr_expect_str_eq(argument(event, "program"), "model");
	event = expect(json, 1, "Node", "/fc/Gemm_kernel_time", 302, 0); /* it begins where the other one ends */
	cr_expect_str_eq(argument(event, "op_name"), "Gemm");
	cr_expect_str_eq(argument(event, "provider"), "CPUExecutionProvider");
	cr_expect_str_eq(argument(event, "node_index"), "3");
	event = expect(json, 2, "Node", "If#1_kernel_time", 303, 0);
	cr_expect_str_eq(argument(event, "op_name"), "If");
	cr_expect_null(argument(event, "program"), "its inference is not known");
	event = expect(json, 3, "Session", "model_run", 300, 10);
	cr_expect_eq(number_of(event, "tid"), 7);
	cr_expect_str_eq(argument(event, "program"), "model");
	cr_expect_str_eq(argument(event, "program_id"), "1");
	cJSON_Delete(json);
	free(path);
}

Test(report_trace_ort, launches_and_what_is_left_out)
{
	struct fixture *f = fixture_operators();
	char *path = file_path();
	struct event_file *file = file_of(f, &ort_format, path, BEGIN);
	struct call_record entry = call_make(TOY_EXECUTE, 1, 1, 1600000, 1600000, 4, U(0x10), U(64), U(2), U(0));
	const cJSON *event;
	cJSON *json;

	toy_load(f, 0x10, "kernel \"k\"\n\xff", 1100000, 1200000);
	CALL_1(f, TOY_LAUNCH, 1, 1, 1300000, 1305000, 3, U(0x10), U(1), U(77));
	CALL_1(f, TOY_COPY, 1, 1, 1400000, 1500000, 2, U(64), U(0));
	entry.call.flags |= XPT_CALL_NO_END;
	cr_assert_eq(feed_call(f, entry), 0);
	json = document(f, file, path);

	cr_assert_eq(cJSON_GetArraySize(json), 1);
	event = expect(json, 0, "Api", "toy_launch", 300, 5);
	cr_expect_str_eq(argument(event, "kernel"), "kernel \"k\"\n\357\277\275");
	cJSON_Delete(json);
	free(path);
}

/* With the names that the profiler itself gives to what its providers tell: the type, and the operator's own event. */
Test(report_trace_ort, launches_in_operators)
{
	struct fixture *f = fixture_operators();
	char *path = file_path();
	struct event_file *file = file_of(f, &ort_format, path, BEGIN);
	const cJSON *event;
	cJSON *json;

	toy_node(f, 0x200, "\"name\":\"a \\\"b\\\"\",\"type\":\"Gemm\"");
	toy_load(f, 0x60, "multiply", 1100000, 1200000);
	for (__u64 start = 1302000; start <= 1306000; start += 4000) {
		struct call_record launch = call_make(TOY_LAUNCH, 1, 7, start, start + 1000, 3, U(0x60), U(1), U(0));

		launch.call.depth = 1;
		launch.call.valid = 3;
		cr_assert_eq(feed_call(f, launch), 0);
	}
	toy_operator(f, 7, 0x200, TOY_CLASS, 1300000, 1305000, 1308000);
	json = document(f, file, path);

	cr_assert_eq(cJSON_GetArraySize(json), 3);
	expect(json, 0, "Node", "a \"b\"_kernel_time", 305, 3);
	event = expect(json, 1, "Api", "toy_launch", 306, 1);
	cr_expect_str_eq(argument(event, "kernel"), "multiply");
	cr_expect_str_eq(argument(event, "op_name"), "Gemm");
	cr_expect_str_eq(argument(event, "parent_name"), "a \"b\"_kernel_time");
	event = expect(json, 2, "Api", "toy_launch", 302, 1);
	cr_expect_str_eq(argument(event, "kernel"), "multiply");
	cr_expect_null(argument(event, "op_name"), "it was before the operator");
	cr_expect_null(argument(event, "parent_name"));
	cJSON_Delete(json);
	free(path);
}

Test(report_trace_ort, hostile_names)
{
	struct fixture *f = fixture_operators();
	char *path = file_path();
	struct event_file *file = file_of(f, &ort_format, path, BEGIN);
	const cJSON *event;
	cJSON *json;

	toy_node(f, 0x200, "\"name\":\"a\\\"},{\\\"b\\n\",\"type\":\"T\\\\\",\"provider\":\"\\u0001\"");
	toy_operator(f, 7, 0x200, TOY_CLASS, 1300000, 1301000, 1302000);
	json = document(f, file, path);
	cr_assert_eq(cJSON_GetArraySize(json), 1);
	event = expect(json, 0, "Node", "a\"},{\"b\n_kernel_time", 301, 1);
	cr_expect_str_eq(argument(event, "op_name"), "T\\");
	cr_expect_str_eq(argument(event, "provider"), "\001");
	cJSON_Delete(json);
	free(path);
}

/* What began before the recording did is shown from its begin on. */
Test(report_trace_ort, earlier_than_the_recording)
{
	struct fixture *f = fixture_operators();
	char *path = file_path();
	struct event_file *file = file_of(f, &ort_format, path, 5000000);
	cJSON *json;

	toy_execute(f, 1, 0x10, 4000000, 5006000);
	toy_execute(f, 1, 0x10, 5007000, 5008000);
	json = document(f, file, path);
	expect(json, 0, "Session", "model_run", 0, 6);
	expect(json, 1, "Session", "model_run", 7, 1);
	cJSON_Delete(json);
	free(path);
}

Test(report_trace_ort, kernels_of_devices)
{
	static const struct model_queue queue = { .engine = "compute0" }, nameless = { .engine = "" };
	static const struct model_operator op = { .type = "MatMul", .label = "/fc/MatMul" };
	struct event event = { .kind = EVENT_JOB,
			       .job = { .queue = &queue,
					.name = "matmul",
					.runs = 1200000,
					.done = 1203000,
					.tgid = 1,
					.tid = 9,
					.target = true } };
	struct fixture *f = fixture_operators();
	char *path = file_path();
	struct event_file *file = file_of(f, &ort_format, path, BEGIN);
	const struct event_sink sink = event_file_sink(file);
	const cJSON *shown;
	cJSON *json;

	cr_assert_eq(sink.write(sink.context, &event), 0);
	event.job.queue = &nameless;
	event.job.op = &op;
	cr_assert_eq(sink.write(sink.context, &event), 0);
	event.job.target = false;
	cr_assert_eq(sink.write(sink.context, &event), 0);
	event.job.target = true;
	event.job.done = 0;
	cr_assert_eq(sink.write(sink.context, &event), 0);
	json = document(f, file, path);
	cr_assert_eq(cJSON_GetArraySize(json), 2);
	shown = expect(json, 0, "Kernel", "matmul", 200, 3);
	cr_expect_str_eq(argument(shown, "stream"), "compute0");
	cr_expect_null(argument(shown, "op_name"));
	cr_expect_null(argument(shown, "parent_name"));
	shown = expect(json, 1, "Kernel", "matmul", 200, 3);
	cr_expect_str_eq(argument(shown, "stream"), "queue");
	cr_expect_str_eq(argument(shown, "op_name"), "MatMul");
	cr_expect_str_eq(argument(shown, "parent_name"), "/fc/MatMul_kernel_time");
	cJSON_Delete(json);
	free(path);
}

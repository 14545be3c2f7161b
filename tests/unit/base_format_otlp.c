/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/format/otlp.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/format/protobuf.h"

/* ---- lists ---- */

Test(base_format_otlp, pairs)
{
	struct otlp_pairs pairs = {};

	cr_assert_eq(otlp_pairs_parse(&pairs, " a = 1 ,b=x%20y%2C%3d , c=, a=2,,d==e=%c3%A9"), 0);
	cr_assert_eq(pairs.count, 3);
	cr_expect_str_eq(pairs.all[0].name, "a");
	cr_expect_str_eq(pairs.all[0].value, "2");
	cr_expect_str_eq(pairs.all[1].value, "x y,=");
	cr_expect_str_eq(pairs.all[2].name, "d");
	cr_expect_str_eq(pairs.all[2].value, "=e=\xc3\xa9");
	otlp_pairs_free(&pairs);
	for (const char **wrong = (const char *[]){ "a", "=1", "a=%", "a=%4", "a=%4g", "a=%00", "a=1,b", NULL }; *wrong;
	     wrong++) {
		cr_expect_eq(otlp_pairs_parse(&pairs, *wrong), -EINVAL, "%s", *wrong);
		otlp_pairs_free(&pairs);
	}
}

/* ---- requests ---- */

static void render_one(struct exposition *to, struct metric metric, const struct text *labels, double value,
		       double created)
{
	exposition_family(to, &metric);
	exposition_value(to, labels, value, created);
}

static const struct metric times = { "gen_ai_server_time_to_first_token_seconds", "seconds", "Times.",
				     METRIC_HISTOGRAM };

static void encode(struct otlp_encoder *encoder, bool json, bool exponential)
{
	static const double bounds[] = { 0.25, 1 };
	static __u64 counts[] = { 2, 0, 300 };
	static struct otlp_pair host = { "host.name", "a\"b" };
	static const struct otlp_pairs resource = { &host, 1 };
	static __u64 native[] = { 2, 0, 300 };
	struct histogram histogram = { .bounds = bounds,
				       .bound_count = 2,
				       .counts = counts,
				       .sum = 6.5,
				       .native = { .first = -15, .count = 3, .counts = native },
				       .exemplar = { .value = 0.5, .time = 1700000000.125 } };
	struct exposition to = { .sink = &encoder->sink };
	struct text labels = {}, none = {};

	*encoder = (struct otlp_encoder){ .json = json,
					  .exponential = exponential,
					  .resource = &resource,
					  .scope_name = "x",
					  .scope_version = "1",
					  .time = 1700000000500000001 };
	otlp_begin(encoder);
	label_add(&labels, "program", "quote\" back\\slash\nline caf\xc3\xa9");
	label_add(&labels, "pod_uid", "p");
	label_add(&histogram.exemplar.labels, "inference", "9");
	label_add(&histogram.exemplar.labels, "pid", "77");
	render_one(&to, (struct metric){ "xputrace_inference_errors", NULL, "Errors.", METRIC_COUNTER }, &labels, 3,
		   1700000000.25);
	exposition_value(&to, &none, 4, 1700000001);
	render_one(&to, (struct metric){ "xputrace_none", NULL, "No value.", METRIC_GAUGE }, &labels, NAN, 0);
	render_one(&to, (struct metric){ "hw_gpu_utilization_ratio", "ratio", "Share.", METRIC_GAUGE }, &none, 0.1, 5);
	render_one(&to, (struct metric){ "hw_gpu_memory_usage_bytes", "bytes", "Memory.", METRIC_GAUGE }, &none, 7, 5);
	exposition_family(&to, &times);
	exposition_histogram(&to, &none, &histogram, 1700000000.25);
	exposition_end(&to);
	cr_assert_eq(otlp_end(encoder), 0);
	cr_assert_eq(encoder->count, 1);
	cr_expect_eq(encoder->requests[0].points, 5);
	text_free(&labels);
	text_free(&histogram.exemplar.labels);
}

static void release(struct otlp_encoder *encoder)
{
	for (size_t i = 0; i < encoder->count; i++)
		text_free(&encoder->requests[i].body);
	free(encoder->requests);
}

#define EXEMPLAR                                                                                                      \
	"\"exemplars\":[{\"filteredAttributes\":[{\"key\":\"xputrace.inference\",\"value\":{\"stringValue\":\"9\"}}," \
	"{\"key\":\"process.pid\",\"value\":{\"stringValue\":\"77\"}}],\"timeUnixNano\":\"1700000000125000000\",\"asDouble\":0.5}]"

Test(base_format_otlp, json)
{
	static const char expected[] =
		"{\"resourceMetrics\":[{\"resource\":{\"attributes\":[{\"key\":\"host.name\",\"value\":{\"stringValue\":\"a\\\"b\"}}]},"
		"\"scopeMetrics\":[{\"scope\":{\"name\":\"x\",\"version\":\"1\"},\"metrics\":["
		"{\"name\":\"xputrace.inference.errors\",\"description\":\"Errors.\",\"unit\":\"{error}\",\"sum\":{\"dataPoints\":["
		"{\"attributes\":[{\"key\":\"xputrace.program\",\"value\":{\"stringValue\":\"quote\\\" back\\\\slash\\u000aline caf\xc3\xa9\"}},"
		"{\"key\":\"k8s.pod.uid\",\"value\":{\"stringValue\":\"p\"}}],"
		"\"startTimeUnixNano\":\"1700000000250000000\",\"timeUnixNano\":\"1700000000500000001\",\"asDouble\":3},"
		/* No point begins after its end. */
		"{\"attributes\":[],\"startTimeUnixNano\":\"1700000000500000001\",\"timeUnixNano\":\"1700000000500000001\",\"asDouble\":4}],"
		"\"aggregationTemporality\":2,\"isMonotonic\":true}},"
		"{\"name\":\"hw.gpu.utilization\",\"description\":\"Share.\",\"unit\":\"1\",\"gauge\":{\"dataPoints\":["
		"{\"attributes\":[],\"timeUnixNano\":\"1700000000500000001\",\"asDouble\":0.10000000000000001}]}},"
		"{\"name\":\"hw.gpu.memory.usage\",\"description\":\"Memory.\",\"unit\":\"By\",\"sum\":{\"dataPoints\":["
		"{\"attributes\":[],\"timeUnixNano\":\"1700000000500000001\",\"asDouble\":7}],"
		"\"aggregationTemporality\":2,\"isMonotonic\":false}},"
		"{\"name\":\"gen_ai.server.time_to_first_token\",\"description\":\"Times.\",\"unit\":\"s\",\"histogram\":{\"dataPoints\":["
		"{\"attributes\":[],\"startTimeUnixNano\":\"1700000000250000000\",\"timeUnixNano\":\"1700000000500000001\","
		"\"count\":\"302\",\"sum\":6.5,\"bucketCounts\":[\"2\",\"0\",\"300\"],\"explicitBounds\":[0.25,1]," EXEMPLAR
		"}],"
		"\"aggregationTemporality\":2}}]}]}]}";
	/* Above 2^(-16/8) and at most 2^(-15/8) are number -16. */
	static const char exponential[] =
		"\"exponentialHistogram\":{\"dataPoints\":["
		"{\"attributes\":[],\"startTimeUnixNano\":\"1700000000250000000\",\"timeUnixNano\":\"1700000000500000001\","
		"\"count\":\"302\",\"sum\":6.5,\"scale\":3,\"positive\":{\"offset\":-16,\"bucketCounts\":[\"2\",\"0\",\"300\"]}," EXEMPLAR
		"}],\"aggregationTemporality\":2}}]}]}]}";
	struct otlp_encoder encoder;
	struct text *body;

	encode(&encoder, true, false);
	body = &encoder.requests[0].body;
	cr_expect(json_is_object(body->data, body->length));
	text_bytes(body, "", 1);
	cr_expect_str_eq(body->data, expected);
	release(&encoder);
	encode(&encoder, true, true);
	body = &encoder.requests[0].body;
	cr_expect(json_is_object(body->data, body->length));
	text_bytes(body, "", 1);
	cr_expect_str_eq(body->data + body->length - sizeof(exponential), exponential);
	release(&encoder);
}

/* One of a program, one of none with a file. */
static void encode_spans(struct otlp_encoder *spans, bool json)
{
	static const struct otlp_pairs resource = {};
	static const struct otlp_file file = { "/a\xff/b.xpt", "latency of a was 2 s (> 1 s)", 1ull << 33 };
	struct exemplar exemplar = { .value = 0.5,
				     .time = 1700000000.125,
				     .has_span = true,
				     .trace_id = { 0xab, [15] = 1 },
				     .span_id = { 0x0c, [7] = 2 } };
	struct text program = {}, unnamed = {};

	*spans = (struct otlp_encoder){
		.json = json, .is_of_spans = true, .resource = &resource, .scope_name = "1", .scope_version = "1"
	};
	label_add(&unnamed, "runtime", "r");
	label_add(&program, "program", "a\"b");
	label_add(&exemplar.labels, "pid", "77");
	otlp_add_span(spans, &program, &exemplar, NULL);
	otlp_add_span(spans, &unnamed, &exemplar, &file);
	cr_assert_eq(otlp_end(spans), 0);
	cr_assert_eq(spans->count, 1);
	cr_expect_eq(spans->requests[0].points, 2);
	text_free(&program);
	text_free(&unnamed);
	text_free(&exemplar.labels);
}

#define SPAN(name)                                                                                                 \
	"{\"traceId\":\"ab000000000000000000000000000001\",\"spanId\":\"0c00000000000002\",\"name\":\"" name       \
	"\",\"kind\":1,\"startTimeUnixNano\":\"1699999999625000000\",\"endTimeUnixNano\":\"1700000000125000000\"," \
	"\"attributes\":[{\"key\":"
#define OF_FILE                                                                         \
	"{\"key\":\"file.path\",\"value\":{\"stringValue\":\"/a\xef\xbf\xbd/b.xpt\"}}," \
	"{\"key\":\"file.size\",\"value\":{\"intValue\":\"8589934592\"}},"              \
	"{\"key\":\"xputrace.save.reason\",\"value\":{\"stringValue\":\"latency of a was 2 s (> 1 s)\"}}"

Test(base_format_otlp, spans)
{
	static const char expected[] =
		"{\"resourceSpans\":[{\"resource\":{\"attributes\":[]},\"scopeSpans\":[{\"scope\":{\"name\":\"1\",\"version\":\"1\"},"
		"\"spans\":[" SPAN(
			"a\\\"b") "\"xputrace.program\",\"value\":{\"stringValue\":\"a\\\"b\"}},"
				  "{\"key\":\"process.pid\",\"value\":{\"stringValue\":\"77\"}}]}," SPAN(
					  "") "\"xputrace.runtime\",\"value\":{\"stringValue\":\"r\"}},"
					      "{\"key\":\"process.pid\",\"value\":{\"stringValue\":\"77\"}}," OF_FILE
					      "]}]}]}]}";
	struct otlp_encoder spans;

	encode_spans(&spans, true);
	text_bytes(&spans.requests[0].body, "", 1);
	cr_expect_str_eq(spans.requests[0].body.data, expected);
	release(&spans);
}

/* The n-th field with that number, from 0. */
static struct pb_field field_of(struct pb_field message, unsigned int number, unsigned int n)
{
	struct pb_reader reader = pb_reader(message.bytes, message.value);
	struct pb_field field;

	do
		cr_assert_eq(pb_next(&reader, &field), 1, "no field %u", number);
	while (field.number != number || n--);
	return field;
}

static double double_of(struct pb_field field)
{
	double value;

	cr_assert_eq(field.type, PB_FIXED64);
	memcpy(&value, field.end - 8, sizeof(value)); /* little-endian, as the machines that tests run on */
	return value;
}

static __u64 fixed_of(struct pb_field field)
{
	__u64 value;

	cr_assert_eq(field.type, PB_FIXED64);
	memcpy(&value, field.end - 8, sizeof(value));
	return value;
}

static void expect_text(struct pb_field field, const char *text)
{
	cr_expect(field.type == PB_BYTES && field.value == strlen(text) && !memcmp(field.bytes, text, field.value),
		  "%s", text);
}

/* Numbers of fields from opentelemetry-proto. */
Test(base_format_otlp, protobuf)
{
	struct otlp_encoder encoder;
	struct pb_field scope, metric, sum, point, attribute;
	struct pb_field request = { 0 };

	encode(&encoder, false, false);
	request.bytes = (const unsigned char *)encoder.requests[0].body.data;
	request.value = encoder.requests[0].body.length;
	attribute = field_of(field_of(field_of(request, 1, 0), 1, 0), 1, 0);
	expect_text(field_of(attribute, 1, 0), "host.name");
	expect_text(field_of(field_of(attribute, 2, 0), 1, 0), "a\"b");
	scope = field_of(field_of(request, 1, 0), 2, 0);
	expect_text(field_of(field_of(scope, 1, 0), 1, 0), "x");
	metric = field_of(scope, 2, 0);
	expect_text(field_of(metric, 1, 0), "xputrace.inference.errors");
	expect_text(field_of(metric, 3, 0), "{error}");
	sum = field_of(metric, 7, 0);
	cr_expect_eq(field_of(sum, 2, 0).value, 2);
	cr_expect_eq(field_of(sum, 3, 0).value, 1);
	point = field_of(sum, 1, 0);
	cr_expect_eq(fixed_of(field_of(point, 2, 0)), 1700000000250000000);
	cr_expect_eq(fixed_of(field_of(point, 3, 0)), 1700000000500000001);
	cr_expect_eq(double_of(field_of(point, 4, 0)), 3);
	expect_text(field_of(field_of(point, 7, 1), 1, 0), "k8s.pod.uid");
	cr_expect_eq(double_of(field_of(field_of(field_of(field_of(scope, 2, 1), 5, 0), 1, 0), 4, 0)), 0.1);
	point = field_of(field_of(field_of(scope, 2, 3), 9, 0), 1, 0);
	cr_expect_eq(fixed_of(field_of(point, 4, 0)), 302);
	cr_expect_eq(double_of(field_of(point, 5, 0)), 6.5);
	cr_expect_eq(field_of(point, 6, 0).value, 3 * 8);
	cr_expect_eq(field_of(point, 7, 0).value, 2 * 8);
	point = field_of(point, 8, 0);
	expect_text(field_of(field_of(point, 7, 1), 1, 0), "process.pid");
	cr_expect_eq(fixed_of(field_of(point, 2, 0)), 1700000000125000000);
	cr_expect_eq(double_of(field_of(point, 3, 0)), 0.5);
	release(&encoder);

	encode(&encoder, false, true);
	request.bytes = (const unsigned char *)encoder.requests[0].body.data;
	request.value = encoder.requests[0].body.length;
	point = field_of(field_of(field_of(field_of(field_of(request, 1, 0), 2, 0), 2, 3), 10, 0), 1, 0);
	cr_expect_eq(fixed_of(field_of(point, 4, 0)), 302);
	cr_expect_eq(field_of(point, 6, 0).value, 3 << 1);
	cr_expect_eq(field_of(field_of(point, 8, 0), 1, 0).value, (16 << 1) - 1);
	cr_expect_eq(field_of(field_of(point, 8, 0), 2, 0).value, 4, "300 takes two bytes");
	expect_text(field_of(field_of(field_of(point, 11, 0), 7, 0), 1, 0), "xputrace.inference");
	release(&encoder);
}

/* Large ones become several requests, each with the whole head of its points. */
Test(base_format_otlp, split)
{
	static const struct otlp_pairs resource;
	static const struct metric metric = { "x_runs", NULL, "Runs.", METRIC_COUNTER };
	size_t points = 0;

	for (int json = 0; json < 2; json++) {
		struct otlp_encoder encoder = {
			.json = json, .resource = &resource, .scope_name = "x", .scope_version = "1"
		};
		struct exposition to = { .sink = &encoder.sink };
		struct text labels = {}, none = {};
		char longest[LABEL_BYTES_MAX + 1] = "";

		memset(longest, 'l', LABEL_BYTES_MAX);
		label_add(&labels, "program", longest);
		otlp_begin(&encoder);
		exposition_family(&to, &metric);
		for (int i = 0; i < 20000; i++)
			exposition_value(&to, i ? &labels : &none, i, 1);
		cr_assert_eq(otlp_end(&encoder), 0);
		cr_expect_gt(encoder.count, 2);
		for (size_t i = 0; i < encoder.count; i++) {
			struct text *body = &encoder.requests[i].body;
			struct pb_field request = { .bytes = (unsigned char *)body->data, .value = body->length };

			cr_expect_lt(body->length, OTLP_BODY_BYTES + 1024);
			points += encoder.requests[i].points;
			if (json)
				cr_expect(json_is_object(body->data, body->length));
			else
				expect_text(field_of(field_of(field_of(field_of(request, 1, 0), 2, 0), 2, 0), 1, 0),
					    "x.runs");
		}
		text_free(&labels);
		release(&encoder);
	}
	cr_expect_eq(points, 40000);
}

Test(base_format_otlp, nothing)
{
	struct otlp_encoder encoder = { 0 };

	otlp_begin(&encoder);
	cr_expect_eq(otlp_end(&encoder), 0);
	cr_expect_eq(encoder.count, 0);
}

/* A point or span without some of its labels would be one of another series. */
Test(base_format_otlp, labels_without_memory)
{
	static const struct otlp_pairs resource;
	static const struct metric metric = { "x_runs", NULL, "Runs.", METRIC_COUNTER };
	struct otlp_encoder encoder = { .resource = &resource, .scope_name = "x", .scope_version = "1" };
	struct exposition to = { .sink = &encoder.sink };
	struct exemplar exemplar = { .has_span = true };
	struct text labels = {};

	label_add(&labels, "program", "a");
	text_fail(&labels);
	otlp_begin(&encoder);
	exposition_family(&to, &metric);
	exposition_value(&to, &labels, 1, 0);
	cr_expect_eq(encoder.requests[0].points, 1);
	cr_expect_eq(otlp_end(&encoder), -ENOMEM);
	cr_expect_eq(encoder.count, 0);
	encoder = (struct otlp_encoder){
		.is_of_spans = true, .resource = &resource, .scope_name = "x", .scope_version = "1"
	};
	otlp_add_span(&encoder, &labels, &exemplar, NULL);
	cr_expect_eq(otlp_end(&encoder), -ENOMEM);
	text_free(&labels);
}

/* ---- answers ---- */

static struct otlp_answer parse(bool json, bool success, const char *bytes, size_t length)
{
	struct otlp_answer answer;

	otlp_answer_parse(&answer, json, success, bytes, length);
	return answer;
}

#define PARSE(json, success, text) parse(json, success, text, sizeof(text) - 1)

Test(base_format_otlp, answers)
{
	struct otlp_answer answer = PARSE(false, true,
					  "\x0a\x09\x08\x96\x01\x12\x04"
					  "bad\x1b");

	cr_expect_eq(answer.rejected, 150);
	cr_expect_str_eq(answer.message, "bad\\x1b");
	answer = PARSE(false, true, "");
	cr_expect(!answer.rejected && !*answer.message);
	answer = PARSE(false, false,
		       "\x08\x03\x12\x03"
		       "why");
	cr_expect_str_eq(answer.message, "why");
	/* -1 */
	answer = PARSE(false, true, "\x0a\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
	cr_expect_eq(answer.rejected, 0);
	answer = PARSE(true, true,
		       " {\"partialSuccess\": {\"rejectedDataPoints\": \"12\", \"errorMessage\": \"l\\u00e9\"}}");
	cr_expect_eq(answer.rejected, 12);
	cr_expect_str_eq(answer.message, "l\xc3\xa9");
	answer = PARSE(true, true, "{\"partialSuccess\":{\"rejectedDataPoints\":7}}");
	cr_expect_eq(answer.rejected, 7);
	answer = PARSE(true, false, "{\"code\":3,\"message\":\"why\"}");
	cr_expect_str_eq(answer.message, "why");
	answer = PARSE(true, true, "<html>");
	cr_expect(!answer.rejected && !*answer.message);
}

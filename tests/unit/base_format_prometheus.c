/* SPDX-License-Identifier: BSD-2-Clause */
/* Prometheus's protobuf format, as a reader of messages finds it; tests/e2e/test_agent.py has a real Prometheus read it. */
#include "base/format/prometheus.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/format/protobuf.h"

/* Fields in their order: "1=text 3=0 4{...}", numbers that are doubles as %g. */
static void describe(struct text *to, const void *bytes, size_t length, const char *nested)
{
	struct pb_reader reader = pb_reader(bytes, length);
	struct pb_field field;
	char line[64];

	while (pb_next(&reader, &field) == 1) {
		snprintf(line, sizeof(line), "%s%u", to->length && to->data[to->length - 1] != '{' ? " " : "",
			 field.number);
		text_string(to, line);
		if (field.type == PB_BYTES && *nested == (char)('0' + field.number % 10)) {
			text_literal(to, "{");
			describe(to, field.bytes, field.value, nested + 1);
			text_literal(to, "}");
		} else if (field.type == PB_BYTES) {
			text_literal(to, "=");
			text_bytes(to, (const char *)field.bytes, field.value);
		} else if (field.type == PB_FIXED64) {
			double value;

			memcpy(&value, field.end - sizeof(value), sizeof(value));
			snprintf(line, sizeof(line), "=%g", value);
			text_string(to, line);
		} else {
			snprintf(line, sizeof(line), "=%llu", field.value);
			text_string(to, line);
		}
	}
}

/* The families, each behind its length, without what is inside of metrics. */
static size_t count_families(const struct text *text)
{
	const unsigned char *at = (const unsigned char *)text->data, *end = at + text->length;
	size_t count = 0;

	while (at < end) {
		__u64 length;
		size_t size = pb_take(at, end, &length);

		cr_assert(size && length <= (size_t)(end - at) - size);
		at += size + length;
		count++;
	}
	return count;
}

static const struct metric runs = { "x_runs", NULL, "Runs.", METRIC_COUNTER };
static const struct metric size_of = { "x_size_bytes", "bytes", "Size.", METRIC_GAUGE };
static const struct metric times = { "x_time_seconds", "seconds", "Times.", METRIC_HISTOGRAM };

Test(base_format_prometheus, values)
{
	struct prometheus_encoder encoder;
	struct text text = {}, labels = {}, none = {}, found = {};
	struct exposition to = { .sink = &encoder.sink };
	const unsigned char *second;
	__u64 length;

	prometheus_begin(&encoder, &text);
	label_add(&labels, "program", "a\"b");
	exposition_family(&to, &size_of); /* without samples it is left out */
	exposition_family(&to, &runs);
	exposition_value(&to, &labels, 3, 1700000000.5);
	exposition_family(&to, &size_of);
	exposition_value(&to, &none, 1.5, 0);
	exposition_end(&to);
	prometheus_end(&encoder);
	cr_assert_eq(text.error, 0);
	cr_assert_eq(count_families(&text), 2);
	second = (const unsigned char *)text.data;
	second += pb_take(second, second + text.length, &length) + length;
	describe(&found, text.data + 1, length, "43");
	text_literal(&found, "");
	cr_expect(found.length && !memcmp(found.data, "1=x_runs_total 2=Runs. 3=0 4{", 29), "%.*s", (int)found.length,
		  found.data);
	cr_expect_not_null(memmem(found.data, found.length, "3{1=3 3=", 8));
	cr_expect_not_null(memmem(text.data, text.length, "a\"b", 3), "values are not escaped");
	text_clear(&found, ~(size_t)0);
	describe(&found, second + 1, *second, "42");
	cr_expect(found.length == strlen("1=x_size_bytes 2=Size. 3=1 4{2{1=1.5}}") &&
			  !memcmp(found.data, "1=x_size_bytes 2=Size. 3=1 4{2{1=1.5}}", found.length),
		  "%.*s", (int)found.length, found.data);
	text_free(&found);
	text_free(&labels);
	text_free(&text);
}

/* Buckets -9, -5 and -4 with 1, 6 and 2: spans of 1 and 2, deltas 1, 5, -4. */
Test(base_format_prometheus, native_buckets)
{
	static const double bounds[] = { 0.25, 1 };
	static __u64 counts[] = { 2, 4, 3 }, native[] = { 1, 0, 0, 0, 6, 2 };
	const struct histogram histogram = {
		.bounds = bounds, .bound_count = 2, .counts = counts, .sum = 6.5, .native = { -9, 6, native }
	};
	struct prometheus_encoder encoder;
	struct text text = {}, none = {}, found = {};
	struct exposition to = { .sink = &encoder.sink };
	const char *const wanted = "1=9 2=6.5 3{1=2 2=0.25} 3{1=6 2=1} 3{1=9 2=inf} 5=6 6=2.93874e-39 7=0 "
				   "12=\b\x11\x10\x01 12=\b\x06\x10\x02 13=2 13=10 13=7";
	const unsigned char *at;
	__u64 length;
	size_t size;

	prometheus_begin(&encoder, &text);
	exposition_family(&to, &times);
	exposition_histogram(&to, &none, &histogram, 0);
	prometheus_end(&encoder);
	cr_assert_eq(count_families(&text), 1);
	at = (const unsigned char *)text.data;
	size = pb_take(at, at + text.length, &length);
	describe(&found, at + size, length, "473");
	cr_assert_not_null(found.data);
	cr_expect_not_null(memmem(found.data, found.length, wanted, strlen(wanted)), "%.*s", (int)found.length,
			   found.data);
	text_free(&found);
	text_free(&text);
}

/* A sample without some of its labels would be one of another series. */
Test(base_format_prometheus, labels_without_memory)
{
	struct text text = {}, labels = {};
	struct prometheus_encoder encoder;
	struct exposition to = { .out = &text, .sink = &encoder.sink };

	label_add(&labels, "program", "a");
	text_fail(&labels);
	prometheus_begin(&encoder, &text);
	exposition_family(&to, &runs);
	exposition_value(&to, &labels, 1, 0);
	prometheus_end(&encoder);
	cr_expect_eq(text.error, -ENOMEM);
	text_free(&text);
	text_free(&labels);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/format/prometheus.h"

#include <math.h>

#include "base/core/link.h"
#include "base/format/protobuf.h"

/* Numbers of fields. */
enum { FAMILY_NAME = 1, FAMILY_HELP = 2, FAMILY_TYPE = 3, FAMILY_METRIC = 4 };
enum { METRIC_LABEL = 1, METRIC_OF_GAUGE = 2, METRIC_OF_COUNTER = 3, METRIC_OF_HISTOGRAM = 7 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { VALUE = 1, COUNTER_CREATED = 3 };
enum { TIME_SECONDS = 1, TIME_NANOSECONDS = 2 };
enum {
	HISTOGRAM_COUNT = 1,
	HISTOGRAM_SUM = 2,
	HISTOGRAM_BUCKET = 3,
	HISTOGRAM_SCHEMA = 5,
	HISTOGRAM_ZERO_THRESHOLD = 6,
	HISTOGRAM_ZERO_COUNT = 7,
	HISTOGRAM_SPAN = 12,
	HISTOGRAM_DELTA = 13,
	HISTOGRAM_CREATED = 15
};
enum { BUCKET_COUNT = 1, BUCKET_BOUND = 2, BUCKET_EXEMPLAR = 3 };
enum { EXEMPLAR_LABEL = 1, EXEMPLAR_VALUE = 2, EXEMPLAR_TIME = 3 };
enum { SPAN_OFFSET = 1, SPAN_LENGTH = 2 };

#define ZERO_THRESHOLD 0x1p-128 /* the one of Prometheus's own libraries: nothing is at or below it */

static __u64 zigzag(__s64 value)
{
	return (__u64)value << 1 ^ (value < 0 ? ~0ull : 0);
}

static void add_labels(struct text *out, unsigned int field, const struct text *labels)
{
	const char *at = labels->data, *end = at + labels->length, *name;
	struct text value = {};
	size_t length;

	while (labels->length && label_next(&at, end, &name, &length, &value)) {
		size_t begin = pb_begin(out, field);

		pb_bytes(out, LABEL_NAME, name, length);
		pb_bytes(out, LABEL_VALUE, value.data, value.length);
		pb_end(out, begin);
	}
	if (value.error || labels->error) /* they are not all there */
		text_fail(out);
	text_free(&value);
}

static void add_time(struct text *out, unsigned int field, double time)
{
	double seconds = floor(time);
	size_t begin;

	if (time <= 0)
		return;
	begin = pb_begin(out, field);
	pb_number(out, TIME_SECONDS, (__u64)seconds);
	pb_number(out, TIME_NANOSECONDS, (__u64)((time - seconds) * 1e9));
	pb_end(out, begin);
}

static void add_bucket(struct text *out, __u64 count, double bound, const struct exemplar *exemplar)
{
	size_t begin = pb_begin(out, HISTOGRAM_BUCKET), inside;
	struct text labels = {};

	pb_number(out, BUCKET_COUNT, count);
	pb_double(out, BUCKET_BOUND, bound);
	if (exemplar) {
		exemplar_labels(exemplar, &labels);
		if (labels.error)
			text_fail(out);
		inside = pb_begin(out, BUCKET_EXEMPLAR);
		add_labels(out, EXEMPLAR_LABEL, &labels);
		text_free(&labels);
		pb_double(out, EXEMPLAR_VALUE, exemplar->value);
		add_time(out, EXEMPLAR_TIME, exemplar->time);
		pb_end(out, inside);
	}
	pb_end(out, begin);
}

/* Numbers of buckets are relative to the end of the span before, counts to the bucket before. */
static void add_native(struct text *out, const struct native_histogram *native)
{
	__s64 before = 0;
	int end = 0;

	pb_number(out, HISTOGRAM_SCHEMA, zigzag(NATIVE_SCHEMA));
	pb_double(out, HISTOGRAM_ZERO_THRESHOLD, ZERO_THRESHOLD);
	pb_number(out, HISTOGRAM_ZERO_COUNT, 0);
	for (size_t i = 0, length; i < native->count; i += length) {
		int first = native->first + (int)i;
		size_t begin;

		length = 0;
		while (i + length < native->count && native->counts[i + length])
			length++;
		if (!length) {
			length = 1;
			continue;
		}
		begin = pb_begin(out, HISTOGRAM_SPAN);
		pb_number(out, SPAN_OFFSET, zigzag(first - end));
		pb_number(out, SPAN_LENGTH, length);
		pb_end(out, begin);
		end = first + (int)length;
	}
	for (size_t i = 0; i < native->count; i++) {
		if (!native->counts[i])
			continue;
		pb_number(out, HISTOGRAM_DELTA, zigzag((__s64)native->counts[i] - before));
		before = (__s64)native->counts[i];
	}
}

/* ---- the sink ---- */

static void end_family(struct prometheus_encoder *encoder)
{
	unsigned char length[PB_VARINT_MAX];

	if (encoder->has_metrics) {
		text_bytes(encoder->out, (const char *)length,
			   (size_t)(pb_put(length, encoder->family.length) - length));
		text_bytes(encoder->out, encoder->family.data, encoder->family.length);
	}
	if (encoder->family.error)
		encoder->out->error = encoder->family.error;
	text_clear(&encoder->family, ~(size_t)0);
	encoder->has_metrics = false;
}

static void on_family(struct exposition_sink *sink, const struct metric *metric)
{
	static const unsigned int types[] = { [METRIC_COUNTER] = 0, [METRIC_GAUGE] = 1, [METRIC_HISTOGRAM] = 4 };
	struct prometheus_encoder *encoder = container_of(sink, struct prometheus_encoder, sink);
	struct text *out = &encoder->family;
	size_t begin;

	end_family(encoder);
	encoder->type = metric->type;
	begin = pb_begin(out, FAMILY_NAME);
	text_string(out, metric->name);
	if (metric->type == METRIC_COUNTER)
		text_literal(out, "_total");
	pb_end(out, begin);
	pb_string(out, FAMILY_HELP, metric->help);
	pb_number(out, FAMILY_TYPE, types[metric->type]);
}

static void on_value(struct exposition_sink *sink, const struct text *labels, double value, double created)
{
	struct prometheus_encoder *encoder = container_of(sink, struct prometheus_encoder, sink);
	struct text *out = &encoder->family;
	size_t begin = pb_begin(out, FAMILY_METRIC), inside;

	add_labels(out, METRIC_LABEL, labels);
	inside = pb_begin(out, encoder->type == METRIC_COUNTER ? METRIC_OF_COUNTER : METRIC_OF_GAUGE);
	pb_double(out, VALUE, value);
	if (encoder->type == METRIC_COUNTER)
		add_time(out, COUNTER_CREATED, created);
	pb_end(out, inside);
	pb_end(out, begin);
	encoder->has_metrics = true;
}

static void on_histogram(struct exposition_sink *sink, const struct text *labels, const struct histogram *histogram,
			 double created)
{
	struct prometheus_encoder *encoder = container_of(sink, struct prometheus_encoder, sink);
	struct text *out = &encoder->family;
	const struct exemplar *exemplar = histogram->exemplar.labels.length ? &histogram->exemplar : NULL;
	size_t begin = pb_begin(out, FAMILY_METRIC), inside, bucket = 0;
	__u64 count = 0, seen = 0;

	for (size_t i = 0; i <= histogram->bound_count; i++)
		count += histogram->counts[i];
	if (exemplar)
		bucket = histogram_bucket(histogram, exemplar->value);
	add_labels(out, METRIC_LABEL, labels);
	inside = pb_begin(out, METRIC_OF_HISTOGRAM);
	pb_number(out, HISTOGRAM_COUNT, count);
	pb_double(out, HISTOGRAM_SUM, histogram->sum);
	for (size_t i = 0; i <= histogram->bound_count; i++) {
		seen += histogram->counts[i];
		add_bucket(out, seen, i < histogram->bound_count ? histogram->bounds[i] : INFINITY,
			   exemplar && i == bucket ? exemplar : NULL);
	}
	if (histogram->native.count)
		add_native(out, &histogram->native);
	add_time(out, HISTOGRAM_CREATED, created);
	pb_end(out, inside);
	pb_end(out, begin);
	encoder->has_metrics = true;
}

void prometheus_begin(struct prometheus_encoder *encoder, struct text *out)
{
	*encoder = (struct prometheus_encoder){ .sink = { on_family, on_value, on_histogram }, .out = out };
}

void prometheus_end(struct prometheus_encoder *encoder)
{
	end_family(encoder);
	text_free(&encoder->family);
}

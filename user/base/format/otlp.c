/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/format/otlp.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "base/core/link.h"
#include "base/core/vec.h"
#include "base/format/protobuf.h"

#define NAME_BYTES 256
#define CUMULATIVE 2 /* AggregationTemporality */

/* Numbers of fields of the two kinds of histograms that differ. */
enum { HISTOGRAM_ATTRIBUTES = 9, HISTOGRAM_EXEMPLARS = 8, EXPONENTIAL_ATTRIBUTES = 1, EXPONENTIAL_EXEMPLARS = 11 };

#define SPAN_KIND_INTERNAL 1

/* ---- lists of names and values ---- */

void otlp_pairs_free(struct otlp_pairs *pairs)
{
	for (size_t i = 0; i < pairs->count; i++) {
		free(pairs->all[i].name);
		free(pairs->all[i].value);
	}
	free(pairs->all);
	*pairs = (struct otlp_pairs){ 0 };
}

int otlp_pairs_set(struct otlp_pairs *pairs, const char *name, const char *value)
{
	char *name_copy, *value_copy;

	if (!value || !*value)
		return 0;
	value_copy = strdup(value);
	if (!value_copy)
		return -ENOMEM;
	for (size_t i = 0; i < pairs->count; i++)
		if (!strcmp(pairs->all[i].name, name)) {
			free(pairs->all[i].value);
			pairs->all[i].value = value_copy;
			return 0;
		}
	name_copy = strdup(name);
	if (!name_copy || vec_push(pairs->all, pairs->count, (struct otlp_pair){ name_copy, value_copy })) {
		free(name_copy);
		free(value_copy);
		return -ENOMEM;
	}
	return 0;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 'a' - 'A';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* %XX becomes a byte, in place. False: it is none, or 0. */
static bool decode_percent(char *text)
{
	char *to = text;

	for (; *text; text++) {
		int high, low;

		*to++ = *text;
		if (*text != '%')
			continue;
		high = digit_of(text[1]);
		low = high < 0 ? -1 : digit_of(text[2]);
		if (low < 0 || !(high | low))
			return false;
		to[-1] = (char)(high << 4 | low);
		text += 2;
	}
	*to = '\0';
	return true;
}

/* Without spaces around it, in place. */
static char *trim(char *text)
{
	char *end;

	text += strspn(text, " \t");
	end = text + strlen(text);
	while (end > text && (end[-1] == ' ' || end[-1] == '\t'))
		*--end = '\0';
	return text;
}

int otlp_pairs_parse(struct otlp_pairs *pairs, const char *text)
{
	char *copy = strdup(text), *rest = copy, *part;
	int error = copy ? 0 : -ENOMEM;

	while (!error && (part = strsep(&rest, ","))) {
		char *equals = strchr(part, '='), *name, *value;

		if (!*trim(part)) /* "a=1," */
			continue;
		if (!equals) {
			error = -EINVAL;
			break;
		}
		*equals = '\0';
		name = trim(part);
		value = trim(equals + 1);
		if (!*name || !decode_percent(name) || !decode_percent(value))
			error = -EINVAL;
		else
			error = otlp_pairs_set(pairs, name, value);
	}
	free(copy);
	return error;
}

/* ---- names ---- */

/* Words of names that are one part of them. */
static const char *const compounds[] = { "gen_ai",	    "time_to_first_token", "time_per_output_token",
					 "resident_memory", "start_time",	   "last_report",
					 "build_info" };

static const char *const units[][2] = {
	{ "seconds", "s" }, { "bytes", "By" }, { "ratio", "1" }, { "joules", "J" }, { "hertz", "Hz" },
};

/* What is counted by metrics without a unit; the first word that is found. */
static const char *const counted[][2] = {
	{ "errors", "{error}" },      { "tokens", "{token}" },	       { "points", "{data_point}" },
	{ "jobs", "{job}" },	      { "calls", "{call}" },	       { "events", "{event}" },
	{ "processes", "{process}" }, { "programs", "{program}" },     { "series", "{series}" },
	{ "retries", "{request}" },   { "inferences", "{inference}" }, { "suppressed", "{trigger}" },
	{ "saves", "{file}" },
};

/* Names that OpenTelemetry's conventions have for labels; others get a prefix. */
static const char *const attributes[][2] = {
	{ "process", "process.executable.name" },
	{ "pid", "process.pid" },
	{ "container", "container.id" },
	{ "pod_uid", "k8s.pod.uid" },
	{ "hw_id", "hw.id" },
	{ "hw_type", "hw.type" },
	{ "hw_name", "hw.name" },
	{ "gen_ai_token_type", "gen_ai.token.type" },
};

/* An underscore becomes a dot, but in compounds; without the unit. */
static void name_of(const struct metric *metric, char *name)
{
	size_t length = strlen(metric->name), unit = metric->unit ? strlen(metric->unit) : 0;
	const char *kept;

	if (unit && length > unit + 1 && metric->name[length - unit - 1] == '_' &&
	    !strcmp(metric->name + length - unit, metric->unit))
		length -= unit + 1;
	snprintf(name, NAME_BYTES, "%.*s", (int)length, metric->name);
	for (char *at = name; *at; at++)
		if (*at == '_')
			*at = '.';
	for (size_t i = 0; i < sizeof(compounds) / sizeof(compounds[0]); i++) {
		kept = strstr(metric->name, compounds[i]);
		if (kept && strlen(name) >= (size_t)(kept - metric->name) + strlen(compounds[i]))
			memcpy(name + (kept - metric->name), compounds[i], strlen(compounds[i]));
	}
}

static const char *unit_of(const struct metric *metric)
{
	for (size_t i = 0; metric->unit && i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(metric->unit, units[i][0]))
			return units[i][1];
	for (size_t i = 0; !metric->unit && i < sizeof(counted) / sizeof(counted[0]); i++)
		if (strstr(metric->name, counted[i][0]))
			return counted[i][1];
	return "";
}

/* What the conventions have as a sum that goes up and down. */
static bool is_sum(const struct metric *metric)
{
	return metric->type == METRIC_COUNTER || !strcmp(metric->name, "hw_gpu_memory_usage_bytes");
}

/* ---- messages in both encodings: field is the number in protobuf, key the name in JSON ---- */

static struct text *body(struct otlp_encoder *to)
{
	return &to->requests[to->count - 1].body;
}

static void begin_message(struct otlp_encoder *to, unsigned int field, const char *key)
{
	if (to->json)
		json_begin(body(to), key, '{');
	else
		to->begins[to->depth++] = pb_begin(body(to), field);
}

static void end_message(struct otlp_encoder *to)
{
	if (to->json)
		json_end(body(to), '}');
	else
		pb_end(body(to), to->begins[--to->depth]);
}

/* A repeated field: in protobuf its elements alone. */
static void begin_list(struct otlp_encoder *to, const char *key)
{
	if (to->json)
		json_begin(body(to), key, '[');
}

static void end_list(struct otlp_encoder *to)
{
	if (to->json)
		json_end(body(to), ']');
}

static void add_string(struct otlp_encoder *to, unsigned int field, const char *key, const char *value)
{
	if (to->json)
		json_add_text(body(to), key, value);
	else
		pb_string(body(to), field, value);
}

static void add_fixed(struct otlp_encoder *to, unsigned int field, const char *key, __u64 value)
{
	if (to->json)
		json_add_long(body(to), key, value);
	else
		pb_fixed(body(to), field, value);
}

static void add_double(struct otlp_encoder *to, unsigned int field, const char *key, double value)
{
	if (to->json)
		json_add_real(body(to), key, value);
	else
		pb_double(body(to), field, value);
}

/* Bytes; JSON has them in hexadecimal, not in base64. */
static void add_id(struct otlp_encoder *to, unsigned int field, const char *key, const unsigned char *id, size_t length)
{
	char digits[33];

	if (!to->json) {
		pb_bytes(body(to), field, id, length);
		return;
	}
	bytes_to_digits(id, length, digits);
	json_add_text(body(to), key, digits);
}

static void begin_attribute(struct otlp_encoder *to, unsigned int field, const char *name)
{
	begin_message(to, field, NULL);
	add_string(to, 1, "key", name);
	begin_message(to, 2, "value");
}

static void end_attribute(struct otlp_encoder *to)
{
	end_message(to);
	end_message(to);
}

static void add_attribute(struct otlp_encoder *to, unsigned int field, const char *name, const char *value)
{
	begin_attribute(to, field, name);
	add_string(to, 1, "stringValue", value);
	end_attribute(to);
}

static void add_attribute_number(struct otlp_encoder *to, unsigned int field, const char *name, __u64 value)
{
	begin_attribute(to, field, name);
	if (to->json)
		json_add_long(body(to), "intValue", value);
	else
		pb_number(body(to), 3, value);
	end_attribute(to);
}

/* Elements of a list that is open. */
static void add_labels(struct otlp_encoder *to, unsigned int field, const struct text *labels)
{
	const char *at = labels->data, *end = at + labels->length, *label;
	struct text value = {};
	char name[NAME_BYTES];
	size_t length;

	if (labels->error) /* they are not all there */
		text_fail(body(to));
	while (label_next(&at, end, &label, &length, &value)) {
		text_bytes(&value, "", 1);
		if (value.error) {
			text_fail(body(to));
			break;
		}
		snprintf(name, sizeof(name), "xputrace.%.*s", (int)length, label);
		for (size_t i = 0; i < sizeof(attributes) / sizeof(attributes[0]); i++)
			if (strlen(attributes[i][0]) == length && !memcmp(attributes[i][0], label, length))
				snprintf(name, sizeof(name), "%s", attributes[i][1]);
		add_attribute(to, field, name, value.data);
	}
	text_free(&value);
}

/* ---- requests ---- */

/*
 * ExportMetricsServiceRequest with one ResourceMetrics, with one ScopeMetrics, whose list of metrics is left open; or the same of traces,
 * whose fields have the same numbers.
 */
static bool open_request(struct otlp_encoder *to)
{
	if (to->error || vec_push(to->requests, to->count, (struct otlp_request){ 0 })) {
		to->error = -ENOMEM;
		return false;
	}
	if (to->json)
		json_begin(body(to), NULL, '{');
	begin_list(to, to->is_of_spans ? "resourceSpans" : "resourceMetrics");
	begin_message(to, 1, NULL);
	begin_message(to, 1, "resource");
	begin_list(to, "attributes");
	for (size_t i = 0; i < to->resource->count; i++)
		add_attribute(to, 1, to->resource->all[i].name, to->resource->all[i].value);
	end_list(to);
	end_message(to);
	begin_list(to, to->is_of_spans ? "scopeSpans" : "scopeMetrics");
	begin_message(to, 2, NULL);
	begin_message(to, 1, "scope");
	add_string(to, 1, "name", to->scope_name);
	add_string(to, 2, "version", to->scope_version);
	end_message(to);
	begin_list(to, to->is_of_spans ? "spans" : "metrics");
	to->is_open = true;
	return true;
}

static void close_metric(struct otlp_encoder *to)
{
	bool sum = to->in_metric && is_sum(&to->metric);

	if (!to->in_metric)
		return;
	to->in_metric = false;
	end_list(to);
	if (to->json && (sum || to->metric.type == METRIC_HISTOGRAM))
		json_add_unsigned(body(to), "aggregationTemporality", CUMULATIVE);
	else if (sum || to->metric.type == METRIC_HISTOGRAM)
		pb_number(body(to), 2, CUMULATIVE);
	if (to->json && sum)
		json_add_bool(body(to), "isMonotonic", to->metric.type == METRIC_COUNTER);
	else if (sum)
		pb_number(body(to), 3, to->metric.type == METRIC_COUNTER);
	end_message(to);
	end_message(to);
}

static void close_request(struct otlp_encoder *to)
{
	if (!to->is_open)
		return;
	close_metric(to);
	to->is_open = false;
	end_list(to);
	end_message(to);
	end_list(to);
	end_message(to);
	end_list(to);
	if (to->json)
		json_end(body(to), '}');
	if (body(to)->error)
		to->error = -ENOMEM;
}

/* Metric, with its list of points left open. */
static void open_metric(struct otlp_encoder *to)
{
	char name[NAME_BYTES];

	name_of(&to->metric, name);
	begin_message(to, 2, NULL);
	add_string(to, 1, "name", name);
	add_string(to, 2, "description", to->metric.help);
	add_string(to, 3, "unit", unit_of(&to->metric));
	if (to->metric.type == METRIC_HISTOGRAM && to->exponential)
		begin_message(to, 10, "exponentialHistogram");
	else if (to->metric.type == METRIC_HISTOGRAM)
		begin_message(to, 9, "histogram");
	else if (is_sum(&to->metric))
		begin_message(to, 7, "sum");
	else
		begin_message(to, 5, "gauge");
	begin_list(to, "dataPoints");
	to->in_metric = true;
}

/* ns since 1970, of s: as a whole they would lose digits. 0: before. */
static __u64 nanoseconds(double time)
{
	__u64 seconds = time > 0 ? (__u64)time : 0;

	return time > 0 ? seconds * 1000000000 + (__u64)((time - (double)seconds) * 1e9) : 0;
}

/* There is a request with room for one more. False: there is no memory. */
static bool have_request(struct otlp_encoder *to)
{
	if (to->is_open && body(to)->length > OTLP_BODY_BYTES)
		close_request(to);
	if (!to->is_open && !open_request(to))
		return false;
	to->requests[to->count - 1].points++;
	return true;
}

/* A point of the family, up to its value; created as exposition_value(). False: there is no memory. */
static bool begin_point(struct otlp_encoder *to, unsigned int attributes_field, const struct text *labels,
			double created)
{
	__u64 start = nanoseconds(created);

	if (!have_request(to))
		return false;
	if (!to->in_metric)
		open_metric(to);
	begin_message(to, 1, NULL);
	begin_list(to, "attributes");
	add_labels(to, attributes_field, labels);
	end_list(to);
	if (start && to->metric.type != METRIC_GAUGE)
		add_fixed(to, 2, "startTimeUnixNano", start < to->time ? start : to->time);
	add_fixed(to, 3, "timeUnixNano", to->time);
	return true;
}

static void on_family(struct exposition_sink *sink, const struct metric *metric)
{
	struct otlp_encoder *to = container_of(sink, struct otlp_encoder, sink);

	if (to->is_open)
		close_metric(to);
	to->metric = *metric;
}

static void on_value(struct exposition_sink *sink, const struct text *labels, double value, double created)
{
	struct otlp_encoder *to = container_of(sink, struct otlp_encoder, sink);

	if (!isfinite(value) || !begin_point(to, 7, labels, created))
		return;
	add_double(to, 4, "asDouble", value);
	end_message(to);
}

/* The list of counts: the field, and in JSON the key. */
static void add_counts(struct otlp_encoder *to, unsigned int field, const __u64 *counts, size_t count, bool fixed)
{
	unsigned char bytes[PB_VARINT_MAX];
	size_t packed;

	if (to->json) {
		begin_list(to, "bucketCounts");
		for (size_t i = 0; i < count; i++)
			json_add_long(body(to), NULL, counts[i]);
		end_list(to);
		return;
	}
	packed = pb_begin(body(to), field);
	for (size_t i = 0; i < count; i++) {
		if (fixed)
			pb_put_fixed(body(to), counts[i]);
		else
			text_bytes(body(to), (const char *)bytes, (size_t)(pb_put(bytes, counts[i]) - bytes));
	}
	pb_end(body(to), packed);
}

static void add_explicit(struct otlp_encoder *to, const struct histogram *histogram)
{
	size_t packed;

	add_counts(to, 6, histogram->counts, histogram->bound_count + 1, true);
	if (to->json) {
		begin_list(to, "explicitBounds");
		for (size_t i = 0; i < histogram->bound_count; i++)
			json_add_real(body(to), NULL, histogram->bounds[i]);
		end_list(to);
		return;
	}
	packed = pb_begin(body(to), 7);
	for (size_t i = 0; i < histogram->bound_count; i++)
		pb_put_double(body(to), histogram->bounds[i]);
	pb_end(body(to), packed);
}

/* A sint32. */
static void add_signed(struct otlp_encoder *to, unsigned int field, const char *key, int value)
{
	if (to->json)
		json_add_signed(body(to), key, value);
	else
		pb_number(body(to), field, (__u32)value << 1 ^ (value < 0 ? ~0u : 0));
}

/* Number i there has the values above 2^(i/8) and at most 2^((i+1)/8). */
static void add_exponential(struct otlp_encoder *to, const struct native_histogram *native)
{
	add_signed(to, 6, "scale", NATIVE_SCHEMA);
	begin_message(to, 8, "positive");
	add_signed(to, 1, "offset", native->first - 1);
	add_counts(to, 2, native->counts, native->count, false);
	end_message(to);
}

static void add_exemplar(struct otlp_encoder *to, unsigned int field, const struct exemplar *exemplar)
{
	if (!exemplar->labels.length)
		return;
	begin_list(to, "exemplars");
	begin_message(to, field, NULL);
	begin_list(to, "filteredAttributes");
	add_labels(to, 7, &exemplar->labels);
	end_list(to);
	add_fixed(to, 2, "timeUnixNano", nanoseconds(exemplar->time));
	add_double(to, 3, "asDouble", exemplar->value);
	if (exemplar->has_span) {
		add_id(to, 4, "spanId", exemplar->span_id, sizeof(exemplar->span_id));
		add_id(to, 5, "traceId", exemplar->trace_id, sizeof(exemplar->trace_id));
	}
	end_message(to);
	end_list(to);
}

static void add_file(struct otlp_encoder *to, unsigned int field, const struct otlp_file *file)
{
	add_attribute(to, field, "file.path", file->path);
	add_attribute_number(to, field, "file.size", file->bytes);
	add_attribute(to, field, "xputrace.save.reason", file->reason);
}

void otlp_add_span(struct otlp_encoder *to, const struct text *labels, const struct exemplar *exemplar,
		   const struct otlp_file *file)
{
	const char *at = labels->data, *end = at + labels->length, *label;
	__u64 ended = nanoseconds(exemplar->time), took = nanoseconds(exemplar->value);
	struct text name = {};
	bool named = false;
	size_t length;

	if (!have_request(to))
		return;
	while (!named && label_next(&at, end, &label, &length, &name))
		named = length == strlen("program") && !memcmp(label, "program", length);
	if (!named)
		text_clear(&name, ~(size_t)0);
	text_bytes(&name, "", 1);
	if (name.error)
		text_fail(body(to));
	begin_message(to, 2, NULL);
	add_id(to, 1, "traceId", exemplar->trace_id, sizeof(exemplar->trace_id));
	add_id(to, 2, "spanId", exemplar->span_id, sizeof(exemplar->span_id));
	add_string(to, 5, "name", name.error ? "" : name.data);
	if (to->json)
		json_add_unsigned(body(to), "kind", SPAN_KIND_INTERNAL);
	else
		pb_number(body(to), 6, SPAN_KIND_INTERNAL);
	add_fixed(to, 7, "startTimeUnixNano", took < ended ? ended - took : 0);
	add_fixed(to, 8, "endTimeUnixNano", ended);
	begin_list(to, "attributes");
	add_labels(to, 9, labels);
	add_labels(to, 9, &exemplar->labels);
	if (file)
		add_file(to, 9, file);
	end_list(to);
	end_message(to);
	text_free(&name);
}

static void on_histogram(struct exposition_sink *sink, const struct text *labels, const struct histogram *histogram,
			 double created)
{
	struct otlp_encoder *to = container_of(sink, struct otlp_encoder, sink);
	const __u64 *counts = to->exponential ? histogram->native.counts : histogram->counts;
	size_t buckets = to->exponential ? histogram->native.count : histogram->bound_count + 1;
	__u64 count = 0;

	for (size_t i = 0; i < buckets; i++)
		count += counts[i];
	if (!isfinite(histogram->sum) ||
	    !begin_point(to, to->exponential ? EXPONENTIAL_ATTRIBUTES : HISTOGRAM_ATTRIBUTES, labels, created))
		return;
	add_fixed(to, 4, "count", count);
	add_double(to, 5, "sum", histogram->sum);
	if (to->exponential)
		add_exponential(to, &histogram->native);
	else
		add_explicit(to, histogram);
	add_exemplar(to, to->exponential ? EXPONENTIAL_EXEMPLARS : HISTOGRAM_EXEMPLARS, &histogram->exemplar);
	end_message(to);
}

void otlp_begin(struct otlp_encoder *encoder)
{
	encoder->sink = (struct exposition_sink){ on_family, on_value, on_histogram };
}

int otlp_end(struct otlp_encoder *encoder)
{
	close_request(encoder);
	if (encoder->error) {
		for (size_t i = 0; i < encoder->count; i++)
			text_free(&encoder->requests[i].body);
		free(encoder->requests);
		encoder->requests = NULL;
		encoder->count = 0;
	}
	return encoder->error;
}

/* ---- answers ---- */

static void set_message(struct otlp_answer *answer, const void *bytes, size_t length)
{
	struct text shown = {};

	text_terminal(&shown, bytes, length, sizeof(answer->message) / 4 - 1);
	if (!shown.error && shown.length)
		snprintf(answer->message, sizeof(answer->message), "%.*s", (int)shown.length, shown.data);
	text_free(&shown);
}

static void parse_json(struct otlp_answer *answer, bool success, const char *body, size_t length)
{
	struct json_part object = { body, length }, part;
	char *decoded, digits[24];

	if (!json_is_object(body, length))
		return;
	if (success)
		object = json_member(object, "partialSuccess");
	part = json_inside(json_member(object, success ? "errorMessage" : "message"));
	decoded = part.length ? malloc(part.length) : NULL;
	if (decoded)
		set_message(answer, decoded, json_decode(part, decoded));
	free(decoded);
	part = json_member(object, "rejectedDataPoints");
	if (!part.length)
		part = json_member(object, "rejectedSpans");
	if (success && part.length) {
		snprintf(digits, sizeof(digits), "%.*s", (int)part.length, part.text);
		answer->rejected = strtoull(digits + (*digits == '"'), NULL, 10);
	}
}

static void parse_protobuf(struct otlp_answer *answer, bool success, const void *body, size_t length)
{
	struct pb_reader reader = pb_reader(body, length);
	struct pb_field field;

	while (pb_next(&reader, &field) == 1) {
		if (success && field.number == 1 && field.type == PB_BYTES) { /* partial_success */
			struct pb_reader inner = pb_reader(field.bytes, field.value);

			while (pb_next(&inner, &field) == 1)
				if (field.number == 1 && field.type == PB_VARINT)
					answer->rejected = field.value;
				else if (field.number == 2 && field.type == PB_BYTES)
					set_message(answer, field.bytes, field.value);
		} else if (!success && field.number == 2 && field.type == PB_BYTES) { /* google.rpc.Status.message */
			set_message(answer, field.bytes, field.value);
		}
	}
}

void otlp_answer_parse(struct otlp_answer *answer, bool json, bool success, const void *body, size_t length)
{
	*answer = (struct otlp_answer){ 0 };
	if (json)
		parse_json(answer, success, body, length);
	else
		parse_protobuf(answer, success, body, length);
	if (answer->rejected >> 63) /* int64 */
		answer->rejected = 0;
}

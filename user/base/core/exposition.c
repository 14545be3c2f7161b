/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/exposition.h"

#include <math.h>
#include <stdlib.h>
#include <strings.h>

/* ---- labels ---- */

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

static void add_escaped(struct text *out, const char *bytes, size_t length)
{
	__u32 character;
	size_t size;

	for (size_t i = 0; i < length; i += size ?: 1) {
		size = text_decode(bytes + i, length - i, &character);
		if (!size || !character)
			text_literal(out, REPLACEMENT);
		else if (character == '\n')
			text_literal(out, "\\n");
		else if (character == '"' || character == '\\')
			text_bytes(out, (char[]){ '\\', (char)character }, 2);
		else
			text_bytes(out, bytes + i, size);
	}
}

void label_add(struct text *labels, const char *name, const char *value)
{
	if (!value || !*value)
		return;
	if (labels->length)
		text_literal(labels, ",");
	text_string(labels, name);
	text_literal(labels, "=\"");
	add_escaped(labels, value, text_cut(value, strlen(value), LABEL_BYTES_MAX));
	text_literal(labels, "\"");
}

bool label_next(const char **at, const char *end, const char **name, size_t *name_length, struct text *value)
{
	const char *equals = *at < end ? memchr(*at, '=', (size_t)(end - *at)) : NULL;

	if (!equals)
		return false;
	*name = *at;
	*name_length = (size_t)(equals - *at);
	text_clear(value, ~(size_t)0);
	for (equals += 2; equals < end && *equals != '"'; equals++) {
		if (*equals == '\\' && ++equals < end && *equals == 'n')
			text_literal(value, "\n");
		else if (equals < end)
			text_bytes(value, equals, 1);
	}
	*at = end - equals > 2 ? equals + 2 : end;
	return true;
}

/* ---- the format that is asked for ---- */

/* The quality of one range of the header, 0 to 1. */
static double quality(const char *range, size_t length)
{
	const char *end = range + length;

	for (const char *at = range; at + 3 < end; at++)
		if (*at == ';') {
			at += 1 + strspn(at + 1, " \t");
			if (at + 2 < end && (*at == 'q' || *at == 'Q') && at[1] == '=')
				return strtod(at + 2, NULL);
			at--;
		}
	return 1;
}

static bool is_type(const char *range, size_t length, const char *type)
{
	size_t size = strlen(type);

	return length >= size && !strncasecmp(range, type, size) && (length == size || strchr("; \t", range[size]));
}

struct qualities {
	double protobuf, openmetrics, text;
};

static bool has(const char *range, size_t length, const char *parameter)
{
	const char *found = memmem(range, length, parameter, strlen(parameter));

	return found && (found + strlen(parameter) == range + length || strchr("; \t", found[strlen(parameter)]));
}

static struct qualities find_qualities(const char *accept)
{
	struct qualities found = {};

	while (accept && *accept) {
		size_t length;

		accept += strspn(accept, ", \t");
		length = strcspn(accept, ",");
		if (is_type(accept, length, "application/openmetrics-text"))
			found.openmetrics = fmax(found.openmetrics, quality(accept, length));
		else if (is_type(accept, length, "text/plain"))
			found.text = fmax(found.text, quality(accept, length));
		else if (is_type(accept, length, "application/vnd.google.protobuf") &&
			 has(accept, length, "proto=io.prometheus.client.MetricFamily") &&
			 has(accept, length, "encoding=delimited"))
			found.protobuf = fmax(found.protobuf, quality(accept, length));
		accept += length;
	}
	return found;
}

bool exposition_wants_openmetrics(const char *accept)
{
	const struct qualities found = find_qualities(accept);

	return found.openmetrics > 0 && found.openmetrics >= found.text;
}

bool exposition_wants_protobuf(const char *accept)
{
	const struct qualities found = find_qualities(accept);

	return found.protobuf > 0 && found.protobuf >= found.openmetrics && found.protobuf >= found.text;
}

/* ---- samples ---- */

static void add_number(struct text *out, double value)
{
	if (isnan(value))
		text_literal(out, "NaN");
	else if (isinf(value))
		text_string(out, value > 0 ? "+Inf" : "-Inf");
	else if (value >= 0 && value < 0x1p53 && value == floor(value))
		text_unsigned(out, (__u64)value);
	else
		text_real(out, value);
}

void exposition_family(struct exposition *exposition, const struct metric *metric)
{
	static const char *const types[] = { "counter", "gauge", "histogram" };
	/* OpenMetrics names a family of counters without the end of its samples. */
	const char *end = metric->type == METRIC_COUNTER && !exposition->openmetrics ? "_total" : "";
	const char *const lines[][2] = { { "# HELP ", metric->help },
					 { "# TYPE ", types[metric->type] },
					 { "# UNIT ", metric->unit } };

	exposition->metric = metric;
	if (exposition->sink) {
		exposition->sink->family(exposition->sink, metric);
		return;
	}
	for (size_t i = 0; i < (exposition->openmetrics && metric->unit ? 3 : 2); i++) {
		text_string(exposition->out, lines[i][0]);
		text_string(exposition->out, metric->name);
		text_string(exposition->out, end);
		text_literal(exposition->out, " ");
		text_string(exposition->out, lines[i][1]);
		text_literal(exposition->out, "\n");
	}
}

/* le: "": none; the line is not ended. */
static void add_sample_open(struct exposition *exposition, const char *end, const struct text *labels, const char *le,
			    size_t le_length, double value)
{
	struct text *out = exposition->out;

	if (labels->error) /* they are not all there */
		text_fail(out);
	text_string(out, exposition->metric->name);
	text_string(out, end);
	if (labels->length || le_length) {
		text_literal(out, "{");
		text_bytes(out, labels->data, labels->length);
		if (labels->length && le_length)
			text_literal(out, ",");
		if (le_length) {
			text_literal(out, "le=\"");
			text_bytes(out, le, le_length);
			text_literal(out, "\"");
		}
		text_literal(out, "}");
	}
	text_literal(out, " ");
	add_number(out, value);
}

static void add_sample(struct exposition *exposition, const char *end, const struct text *labels, const char *le,
		       size_t le_length, double value)
{
	add_sample_open(exposition, end, labels, le, le_length, value);
	text_literal(exposition->out, "\n");
}

static void add_id(struct text *labels, const char *name, const unsigned char *id, size_t length)
{
	char digits[33];

	bytes_to_digits(id, length, digits);
	label_add(labels, name, digits);
}

void exemplar_labels(const struct exemplar *exemplar, struct text *labels)
{
	text_bytes(labels, exemplar->labels.data, exemplar->labels.length);
	if (!exemplar->has_span)
		return;
	add_id(labels, "trace_id", exemplar->trace_id, sizeof(exemplar->trace_id));
	add_id(labels, "span_id", exemplar->span_id, sizeof(exemplar->span_id));
}

static void add_exemplar(struct exposition *exposition, const struct exemplar *exemplar)
{
	struct text *out = exposition->out, labels = {};

	exemplar_labels(exemplar, &labels);
	if (labels.error)
		text_fail(out);
	text_literal(out, " # {");
	text_bytes(out, labels.data, labels.length);
	text_free(&labels);
	text_literal(out, "} ");
	add_number(out, exemplar->value);
	text_literal(out, " ");
	text_real_exact(out, exemplar->time);
}

size_t histogram_bucket(const struct histogram *histogram, double value)
{
	size_t bucket = 0;

	while (bucket < histogram->bound_count && value > histogram->bounds[bucket])
		bucket++;
	return bucket;
}

static void add_created(struct exposition *exposition, const struct text *labels, double created)
{
	if (exposition->openmetrics && created > 0)
		add_sample(exposition, "_created", labels, "", 0, created);
}

void exposition_value(struct exposition *exposition, const struct text *labels, double value, double created)
{
	bool counter = exposition->metric->type == METRIC_COUNTER;

	if (exposition->sink) {
		exposition->sink->value(exposition->sink, labels, value, created);
		return;
	}
	add_sample(exposition, counter ? "_total" : "", labels, "", 0, value);
	if (counter)
		add_created(exposition, labels, created);
}

void exposition_histogram(struct exposition *exposition, const struct text *labels, const struct histogram *histogram,
			  double created)
{
	size_t exemplar = histogram->exemplar.labels.length && exposition->openmetrics ?
				  histogram_bucket(histogram, histogram->exemplar.value) :
				  histogram->bound_count + 1;
	char room[64];
	__u64 count = 0;

	if (exposition->sink) {
		exposition->sink->histogram(exposition->sink, labels, histogram, created);
		return;
	}
	for (size_t i = 0; i <= histogram->bound_count; i++) {
		struct text le = { .data = room, .capacity = sizeof(room) };

		count += histogram->counts[i];
		if (i == histogram->bound_count)
			text_literal(&le, "+Inf");
		else /* OpenMetrics wants 1.0 instead of 1 */
			text_real(&le, histogram->bounds[i]);
		if (i < histogram->bound_count && !memchr(le.data, '.', le.length) && !memchr(le.data, 'e', le.length))
			text_literal(&le, ".0");
		add_sample_open(exposition, "_bucket", labels, le.data, le.length, (double)count);
		if (i == exemplar)
			add_exemplar(exposition, &histogram->exemplar);
		text_literal(exposition->out, "\n");
	}
	add_sample(exposition, "_sum", labels, "", 0, histogram->sum);
	add_sample(exposition, "_count", labels, "", 0, (double)count);
	add_created(exposition, labels, created);
}

void exposition_end(struct exposition *exposition)
{
	if (exposition->openmetrics && !exposition->sink)
		text_literal(exposition->out, "# EOF\n");
}

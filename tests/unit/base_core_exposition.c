/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/exposition.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <math.h>
#include <string.h>

static void expect(struct text *text, const char *expected)
{
	text_bytes(text, "", 1);
	cr_expect_str_eq(text->data, expected);
	text_free(text);
	*text = (struct text){};
}

Test(base_core_exposition, labels)
{
	struct text labels = {};
	char longer[LABEL_BYTES_MAX + 8];

	label_add(&labels, "none", NULL);
	label_add(&labels, "empty", "");
	label_add(&labels, "a", "x");
	label_add(&labels, "b", "quote\" back\\slash line\nbreak\ttab");
	label_add(&labels, "c", "caf\xc3\xa9 \xf0\x9f\xa6\x99");
	label_add(&labels, "d",
		  "\xff"
		  "a\xc3(\xed\xa0\x80");
	expect(&labels, "a=\"x\",b=\"quote\\\" back\\\\slash line\\nbreak\ttab\",c=\"caf\xc3\xa9 \xf0\x9f\xa6\x99\","
			"d=\"\xef\xbf\xbd"
			"a\xef\xbf\xbd(\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	/* Cut, but not within a character. */
	memset(longer, 'x', sizeof(longer));
	memcpy(longer + LABEL_BYTES_MAX - 1, "\xc3\xa9", 3);
	label_add(&labels, "e", longer);
	cr_assert_eq(labels.length, strlen("e=\"\"") + LABEL_BYTES_MAX - 1);
	text_free(&labels);
}

Test(base_core_exposition, labels_back)
{
	static const char *const values[] = { "x", "quote\" back\\slash line\nbreak\ttab,=", "caf\xc3\xa9" };
	static const char *const names[] = { "a", "bb", "c_c" };
	struct text labels = {}, value = {};
	const char *at, *name;
	size_t length, i = 0;

	for (i = 0; i < 3; i++)
		label_add(&labels, names[i], values[i]);
	at = labels.data;
	for (i = 0; label_next(&at, labels.data + labels.length, &name, &length, &value); i++) {
		cr_assert_lt(i, 3);
		cr_expect(length == strlen(names[i]) && !memcmp(name, names[i], length));
		cr_expect(value.length == strlen(values[i]) && !memcmp(value.data, values[i], value.length));
	}
	cr_expect_eq(i, 3);
	text_free(&value);
	text_free(&labels);
}

static void render(struct text *text, bool openmetrics)
{
	static const struct metric counter = { "x_runs", NULL, "Runs.", METRIC_COUNTER };
	static const struct metric gauge = { "x_size_bytes", "bytes", "Size.", METRIC_GAUGE };
	static const struct metric times = { "x_time_seconds", "seconds", "Times.", METRIC_HISTOGRAM };
	static const double bounds[] = { 0.25, 1 };
	static __u64 counts[] = { 2, 0, 3 };
	struct histogram histogram = { .bounds = bounds,
				       .bound_count = 2,
				       .counts = counts,
				       .sum = 6.5,
				       .exemplar = { .value = 0.25, .time = 1700000000.125 } };
	struct exposition to = { .out = text, .openmetrics = openmetrics };
	struct text labels = {}, none = {};

	label_add(&labels, "program", "a");
	label_add(&histogram.exemplar.labels, "inference", "7");
	exposition_family(&to, &counter);
	exposition_value(&to, &labels, 9007199254740991.0, 1700000000.5);
	exposition_value(&to, &none, 0, 0);
	exposition_family(&to, &gauge);
	exposition_value(&to, &none, 1.5, 17);
	exposition_value(&to, &none, -INFINITY, 0);
	exposition_value(&to, &none, NAN, 0);
	exposition_family(&to, &times);
	exposition_histogram(&to, &labels, &histogram, 1700000000.5);
	exposition_end(&to);
	text_free(&labels);
	text_free(&histogram.exemplar.labels);
}

Test(base_core_exposition, exemplar_with_span)
{
	struct exemplar exemplar = { .has_span = true, .trace_id = { 1, [15] = 0xfe }, .span_id = { 0x20, [7] = 3 } };
	struct text labels = {};

	label_add(&exemplar.labels, "pid", "7");
	exemplar_labels(&exemplar, &labels);
	expect(&labels, "pid=\"7\",trace_id=\"010000000000000000000000000000fe\",span_id=\"2000000000000003\"");
	text_free(&exemplar.labels);
}

/* A sample without some of its labels would be one of another series. */
Test(base_core_exposition, labels_without_memory)
{
	static const struct metric metric = { "x_runs", NULL, "Runs.", METRIC_COUNTER };
	struct text text = {}, labels = {};
	struct exposition to = { .out = &text };

	label_add(&labels, "program", "a");
	text_fail(&labels);
	exposition_family(&to, &metric);
	exposition_value(&to, &labels, 1, 0);
	exposition_end(&to);
	cr_expect_eq(text.error, -ENOMEM);
	text_free(&text);
	text_free(&labels);
}

Test(base_core_exposition, text_format)
{
	struct text text = {};

	render(&text, false);
	expect(&text, "# HELP x_runs_total Runs.\n"
		      "# TYPE x_runs_total counter\n"
		      "x_runs_total{program=\"a\"} 9007199254740991\n"
		      "x_runs_total 0\n"
		      "# HELP x_size_bytes Size.\n"
		      "# TYPE x_size_bytes gauge\n"
		      "x_size_bytes 1.5\n"
		      "x_size_bytes -Inf\n"
		      "x_size_bytes NaN\n"
		      "# HELP x_time_seconds Times.\n"
		      "# TYPE x_time_seconds histogram\n"
		      "x_time_seconds_bucket{program=\"a\",le=\"0.25\"} 2\n"
		      "x_time_seconds_bucket{program=\"a\",le=\"1.0\"} 2\n"
		      "x_time_seconds_bucket{program=\"a\",le=\"+Inf\"} 5\n"
		      "x_time_seconds_sum{program=\"a\"} 6.5\n"
		      "x_time_seconds_count{program=\"a\"} 5\n");
}

Test(base_core_exposition, openmetrics)
{
	struct text text = {};

	render(&text, true);
	expect(&text, "# HELP x_runs Runs.\n"
		      "# TYPE x_runs counter\n"
		      "x_runs_total{program=\"a\"} 9007199254740991\n"
		      "x_runs_created{program=\"a\"} 1700000000.5\n"
		      "x_runs_total 0\n"
		      "# HELP x_size_bytes Size.\n"
		      "# TYPE x_size_bytes gauge\n"
		      "# UNIT x_size_bytes bytes\n"
		      "x_size_bytes 1.5\n"
		      "x_size_bytes -Inf\n"
		      "x_size_bytes NaN\n"
		      "# HELP x_time_seconds Times.\n"
		      "# TYPE x_time_seconds histogram\n"
		      "# UNIT x_time_seconds seconds\n"
		      "x_time_seconds_bucket{program=\"a\",le=\"0.25\"} 2 # {inference=\"7\"} 0.25 1700000000.125\n"
		      "x_time_seconds_bucket{program=\"a\",le=\"1.0\"} 2\n"
		      "x_time_seconds_bucket{program=\"a\",le=\"+Inf\"} 5\n"
		      "x_time_seconds_sum{program=\"a\"} 6.5\n"
		      "x_time_seconds_count{program=\"a\"} 5\n"
		      "x_time_seconds_created{program=\"a\"} 1700000000.5\n"
		      "# EOF\n");
}

Test(base_core_exposition, accept)
{
	static const struct {
		const char *header;
		bool openmetrics, protobuf;
	} headers[] = {
		{ NULL, false, false },
		{ "", false, false },
		{ "*/*", false, false },
		{ "text/plain", false, false },
		{ "application/openmetrics-text", true, false },
		{ "Application/OpenMetrics-Text; version=1.0.0", true, false },
		{ "application/openmetrics-textual", false, false },
		/* Prometheus 2.42 */
		{ "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  true, false },
		/* Prometheus 3, with protobuf first */
		{ "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2",
		  true, true },
		/* Prometheus 2.42 with native histograms */
		{ "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,application/openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
		  true, true },
		{ "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=text", false,
		  false },
		{ "application/vnd.google.protobuf;proto=other;encoding=delimited", false, false },
		{ "application/vnd.google.protobuf; encoding=delimited; proto=io.prometheus.client.MetricFamily; q=0.4, text/plain;q=0.5",
		  false, false },
		{ "text/plain;q=0.9, application/openmetrics-text; version=1.0.0; q=0.3", false, false },
		{ "application/openmetrics-text;q=0", false, false },
		{ ",, ;;q=,;q", false, false },
	};

	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		cr_expect_eq(exposition_wants_openmetrics(headers[i].header), headers[i].openmetrics, "%s",
			     headers[i].header);
	for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
		cr_expect_eq(exposition_wants_protobuf(headers[i].header), headers[i].protobuf, "%s",
			     headers[i].header);
}

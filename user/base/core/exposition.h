/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics as Prometheus reads them: its text format 0.0.4, and OpenMetrics 1.0. The samples of a family follow its
 * head, each with the labels of its series, which are text that was escaped once.
 */
#ifndef XPT_BASE_CORE_EXPOSITION_H
#define XPT_BASE_CORE_EXPOSITION_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/text.h"

#define EXPOSITION_TEXT "text/plain; version=0.0.4; charset=utf-8"
#define EXPOSITION_OPENMETRICS "application/openmetrics-text; version=1.0.0; charset=utf-8"
#define LABEL_BYTES_MAX 256 /* of a value, before it is escaped; longer ones are cut */

/* Appends name="value" to labels, with a comma where something is before it: valid UTF-8, escaped. "" and NULL add nothing. */
void label_add(struct text *labels, const char *name, const char *value);

/*
 * Takes apart what label_add() has made: *at is its first byte at the beginning. The name lies in it; value becomes the text
 * without escapes. False: there are no more.
 */
bool label_next(const char **at, const char *end, const char **name, size_t *name_length, struct text *value);

/* Whether an Accept header (NULL: none) prefers OpenMetrics to the text format, by its quality values. */
bool exposition_wants_openmetrics(const char *accept);
/* Whether it prefers Prometheus's protobuf format to both, see base/format/prometheus.h. */
bool exposition_wants_protobuf(const char *accept);

enum metric_type { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };

struct metric {
	const char *name; /* without _total: "xputrace_inferences" */
	const char *unit; /* that the name ends in: "seconds"; NULL: none */
	const char *help; /* neither backslashes nor line breaks */
	enum metric_type type;
};

#define EXEMPLAR_LABELS_MAX 128 /* characters of names and values, as OpenMetrics has it */

/* One sample in place of many. */
struct exemplar {
	struct text labels; /* as of a series; empty: there is none */
	double value, time; /* in the metric's unit; s since 1970 */
	__u64 update;	    /* the owner's number of the update that brought it */
	bool has_span;
	unsigned char trace_id[16], span_id[8]; /* W3C trace context; of has_span */
};

/* Appends its labels, with trace_id and span_id where it has a span. */
void exemplar_labels(const struct exemplar *exemplar, struct text *labels);

#define NATIVE_SCHEMA 3
#define NATIVE_PER_OCTAVE (1 << NATIVE_SCHEMA)

/* The same samples in buckets of an eighth of an octave: number i has those above 2^((i-1)/8) and at most 2^(i/8). */
struct native_histogram {
	int first; /* number of the first one */
	size_t count;
	__u64 *counts;
};

/* Samples up to each bound, not cumulative; the last one is of those beyond. */
struct histogram {
	const double *bounds; /* in the metric's unit, ascending */
	size_t bound_count;
	__u64 *counts; /* bound_count + 1 */
	double sum;
	struct exemplar exemplar;
	struct native_histogram native; /* empty: there is none */
};

/* The bucket in which the value is; bound_count: beyond all. */
size_t histogram_bucket(const struct histogram *histogram, double value);

/* Another format: gets what the functions below are called with. */
struct exposition_sink {
	void (*family)(struct exposition_sink *sink, const struct metric *metric);
	void (*value)(struct exposition_sink *sink, const struct text *labels, double value, double created);
	void (*histogram)(struct exposition_sink *sink, const struct text *labels, const struct histogram *histogram,
			  double created);
};

struct exposition {
	struct text *out;
	bool openmetrics;
	struct exposition_sink *sink; /* instead of the text; NULL: none */
	const struct metric *metric;  /* the family that samples are of */
};

/* The head of a family. */
void exposition_family(struct exposition *exposition, const struct metric *metric);
/* A sample of the family; labels may be empty, and if they lack memory so does what is made. created: s since 1970, for counters; 0: not known. */
void exposition_value(struct exposition *exposition, const struct text *labels, double value, double created);
void exposition_histogram(struct exposition *exposition, const struct text *labels, const struct histogram *histogram,
			  double created);
/* OpenMetrics marks the end. */
void exposition_end(struct exposition *exposition);

#endif

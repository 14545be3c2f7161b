/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics and spans as OTLP 1.x has them (https://opentelemetry.io/docs/specs/otlp/): bodies of requests that export them, in protobuf or
 * JSON, and what the answers to these hold. Names, units and attributes are those of OpenTelemetry: made from those of the text formats by one rule,
 * so that a server which turns them into names for Prometheus has the same ones again.
 */
#ifndef XPT_BASE_FORMAT_OTLP_H
#define XPT_BASE_FORMAT_OTLP_H

#include "base/core/exposition.h"

#define OTLP_TYPE_PROTOBUF "application/x-protobuf"
#define OTLP_TYPE_JSON "application/json"
#define OTLP_BODY_BYTES (2u << 20) /* a request that has grown beyond is followed by another one */

/* ---- lists of names and values, as environment variables have them ---- */

struct otlp_pair {
	char *name, *value; /* owned */
};

/* Begins as zeros. */
struct otlp_pairs {
	struct otlp_pair *all;
	size_t count;
};

/*
 * Adds those of "name=value,name=value": values with %XX decoded, without space around. A name that is there already gets the new value.
 * -EINVAL: it is no such list, or a value has a 0 byte; -ENOMEM: then some may have been added.
 */
int otlp_pairs_parse(struct otlp_pairs *pairs, const char *text);
/* Adds one, or replaces its value; value NULL or "": nothing is done. 0 or -ENOMEM. */
int otlp_pairs_set(struct otlp_pairs *pairs, const char *name, const char *value);
void otlp_pairs_free(struct otlp_pairs *pairs);

/* ---- requests ---- */

struct otlp_request {
	struct text body; /* the caller frees it */
	size_t points;	  /* data points, or spans */
};

/* An exposition with this sink becomes requests; those of spans consist of what otlp_add_span() is called with. */
struct otlp_encoder {
	struct exposition_sink sink; /* first; of metrics only */
	bool is_of_spans;
	bool json;
	bool exponential; /* histograms are the native ones, with an exponential scale */
	const struct otlp_pairs *resource;
	const char *scope_name, *scope_version;
	__u64 time; /* ns since 1970, of all points; no start is later */
	struct otlp_request *requests;
	size_t count;
	int error; /* 0 or -ENOMEM: there are no requests */

	/* What follows is the encoder's own. */
	struct metric metric; /* of the family: the caller's does not stay */
	bool is_open;	      /* a request */
	bool in_metric;
	size_t begins[8];
	unsigned int depth;
};

/* Sets the sink; the members up to time have been set, and the rest are zeros. */
void otlp_begin(struct otlp_encoder *encoder);

/* A recording that has what a span is about. */
struct otlp_file {
	const char *path, *reason; /* reason: why it was saved */
	__u64 bytes;
};

/*
 * A trace of one span: the inference that the exemplar, which has a span, is about, named as its program. labels: of the series. file:
 * NULL: there is none.
 */
void otlp_add_span(struct otlp_encoder *to, const struct text *labels, const struct exemplar *exemplar,
		   const struct otlp_file *file);
/* Completes the requests, which the caller frees with their bodies; 0 or -ENOMEM. Without points there are none. */
int otlp_end(struct otlp_encoder *encoder);

/* ---- answers ---- */

struct otlp_answer {
	__u64 rejected;	   /* points or spans that were not accepted, of a success */
	char message[512]; /* what the server says, for a terminal; "": nothing */
};

/* From the body of an answer, which may be anything. success: to an export, else to a failed one. */
void otlp_answer_parse(struct otlp_answer *answer, bool json, bool success, const void *body, size_t length);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Metrics in Prometheus's protobuf format: messages io.prometheus.client.MetricFamily (https://github.com/prometheus/client_model), each
 * behind its length. Histograms have native buckets beside the classic ones, and exemplars.
 */
#ifndef XPT_BASE_FORMAT_PROMETHEUS_H
#define XPT_BASE_FORMAT_PROMETHEUS_H

#include "base/core/exposition.h"

#define PROMETHEUS_TYPE "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

/* An exposition with this sink becomes messages. */
struct prometheus_encoder {
	struct exposition_sink sink; /* first */
	struct text *out;
	/* What follows is the encoder's own. */
	struct text family;
	enum metric_type type;
	bool has_metrics;
};

void prometheus_begin(struct prometheus_encoder *encoder, struct text *out);
/* out->error: no memory. */
void prometheus_end(struct prometheus_encoder *encoder);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* xputrace agent: what the programs and devices of a host do, as metrics. */
#ifndef XPT_CLI_AGENT_AGENT_H
#define XPT_CLI_AGENT_AGENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xputrace/profile_report.h>
#include <xputrace/session.h>

#include "base/core/exposition.h"
#include "base/core/text.h"

/* ---- metrics.c: the figures; functions may be called from any thread ---- */

struct agent_metrics;

struct agent_metrics_options {
	size_t max_series;
	bool kernels;	/* each kernel has a series of its own */
	uint64_t stale; /* ns without anything new after which series of what has ended are removed */
};

/* 0 or -ENOMEM. */
int agent_metrics_create(const struct agent_metrics_options *options, struct agent_metrics **result);
void agent_metrics_free(struct agent_metrics *metrics);
/* From the next update on the slowest inference of a program gets a span if it takes so long, ns. */
void agent_metrics_give_spans(struct agent_metrics *metrics, uint64_t slow);
/* Adds a report, and reads devices and the state of the session. */
void agent_metrics_update(struct agent_metrics *metrics, struct xpt_session *session,
			  const struct xpt_profile_report *report);
/* All of them. */
void agent_metrics_expose(struct agent_metrics *metrics, struct exposition *to);
enum agent_format { AGENT_TEXT, AGENT_OPENMETRICS, AGENT_PROTOBUF, AGENT_FORMATS };

/* Appends them. text->error: no memory. */
void agent_metrics_render(struct agent_metrics *metrics, enum agent_format format, struct text *text);
/* Changes with each update. */
uint64_t agent_metrics_version(struct agent_metrics *metrics);

/* The spans that the latest update has given: an exemplar each, with the labels of its series. span() calls none of these functions. */
void agent_metrics_spans(struct agent_metrics *metrics,
			 void (*span)(void *context, const struct text *labels, const struct exemplar *exemplar),
			 void *context);

/* Whenever they are exposed, more() adds its own, and calls none of these functions: one for each context. NULL: not any more. */
void agent_metrics_extend(struct agent_metrics *metrics, void (*more)(void *context, struct exposition *to),
			  void *context);

/* ---- devices.c: what processes have of devices ---- */

#define AGENT_DEVICES_MAX 64

struct agent_devices;

/* A device of this machine, with its use as a whole. */
struct agent_device {
	int index; /* as in xpt_device_info */
	char address[64];
	const struct text *labels;
	double busy; /* s, in the interval; negative: not known */
};

/* max_series: of each device. 0 or -ENOMEM. */
int agent_devices_create(const struct agent_metrics_options *options, struct agent_devices **result);
void agent_devices_free(struct agent_devices *devices); /* NULL is allowed */
/* An interval has passed. now: s since 1970, when series begin that are new in it. */
void agent_devices_update(struct agent_devices *devices, struct xpt_session *session, const struct agent_device *known,
			  size_t count, double now);
/* started: s since 1970, when counters began that have no begin of their own. */
void agent_devices_render(const struct agent_devices *devices, struct exposition *to, double started);

/* ---- http.c: the server ---- */

#define AGENT_LISTEN "127.0.0.1:9464"

struct agent_server;

/* NULL: it can be listened on "PORT", "ADDRESS:PORT", "[ADDRESS]:PORT", "unix:PATH"; else why not. */
const char *agent_listen_refused(const char *where);
/* Listens, and serves /metrics in a thread without capabilities until the end. -errno: the address cannot be used. */
int agent_server_create(const char *where, struct agent_metrics *metrics, struct agent_server **result);
/* Cuts off clients that take too long; to be called every now and then. */
void agent_server_tick(struct agent_server *server);
void agent_server_destroy(struct agent_server *server); /* NULL is allowed */

/* ---- saves.c: the flight recorder in the agent's session ---- */

struct saving;
struct agent_saves;

/* A file with what happened from begin to end, ns since 1970. */
struct agent_file {
	char path[4096], reason[256];
	uint64_t bytes, begin, end;
};

/* Before the session starts. Reports errors, also of its options, as xpt_continuous_create(). saving is used until the end. */
int agent_saves_create(struct saving *saving, struct xpt_session *session, struct agent_metrics *metrics,
		       struct agent_saves **result);
/* Reads its state, at the end of an interval. */
void agent_saves_update(struct agent_saves *saves);
/* Whether at the latest update a trigger had fired whose file was not there yet. */
bool agent_saves_pending(struct agent_saves *saves);
/* The first of the latest files that has all of a time. False: none has. */
bool agent_saves_find(struct agent_saves *saves, uint64_t begin, uint64_t end, struct agent_file *file);
/* Completes the file that is being written; no other one follows. Before the session stops. */
void agent_saves_stop(struct agent_saves *saves);
void agent_saves_destroy(struct agent_saves *saves); /* NULL is allowed */

/* ---- push.c: sends the metrics and spans to a server of OpenTelemetry's protocol ---- */

#define AGENT_QUEUE (4u << 20)

struct agent_push;

/* NULL: metrics can be sent to what --otlp has; else why not. */
const char *agent_push_refused(const char *url);
/*
 * url: of the option; NULL: of the environment variables of OpenTelemetry's specification of exporters, which give everything else in any
 * case. Wrong settings are reported. *result NULL: no endpoint is configured. -EINVAL (reported): not a URL; -ENOMEM. To be called before
 * there are threads. queue: bytes of requests of each kind that wait. spans: those of the metrics are sent, too, if they have an endpoint.
 */
int agent_push_create(const char *url, uint64_t queue, bool spans, struct agent_metrics *metrics,
		      struct agent_push **result);
/*
 * Queues the metrics as they are, with the spans of their latest update; time: ns since 1970. Where a file that may have the inference of a
 * span is being saved, the span waits for it until one of the next calls. saves: NULL: there are none.
 */
void agent_push_add(struct agent_push *push, struct agent_saves *saves, uint64_t time);
/* Where they are sent to, without what may be secret; spans: NULL where none are. */
const char *agent_push_url(const struct agent_push *push, bool spans);
/* Sends what waits, for some seconds at most. NULL is allowed. */
void agent_push_destroy(struct agent_push *push);

#endif

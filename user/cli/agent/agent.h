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
/* Adds a report, and reads devices and the state of the session. */
void agent_metrics_update(struct agent_metrics *metrics, struct xpt_session *session,
			  const struct xpt_profile_report *report);
/* Appends all of them. text->error: no memory. */
void agent_metrics_render(struct agent_metrics *metrics, bool openmetrics, struct text *text);
/* Changes with each update. */
uint64_t agent_metrics_version(struct agent_metrics *metrics);

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
/* An interval has passed. now: s since 1970. */
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

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the model as trace events in JSON. No files: only the text. */
#ifndef XPT_REPORT_CHROME_EVENTS_H
#define XPT_REPORT_CHROME_EVENTS_H

#include "base/core/text.h"
#include "model/stream/event.h"
#include "report/chrome/jobs.h"

/* What is the same in every call of a function, escaped once. */
struct chrome_function {
	const struct model_function *function;
	struct text text;
};

struct chrome_events {
	struct text *text; /* of the owner, who empties it: events that have not been taken yet */
	bool any;	   /* the next event is not the first one: it follows a comma */
	__u32 first_tgid;  /* first process: gives global instants a place that exists */
	__u64 wait_count;  /* makes the identifiers of waits */
	bool counters;	   /* the process of the counters' tracks has been named */
	struct chrome_function functions[XPT_SPEC_MAX]; /* by index of the function */
	struct chrome_jobs jobs;			/* the owner sets its devices, or nothing of them is shown */
};

/* Appends what the event becomes: nothing, one trace event or several. Fails only through text.error. */
void chrome_events_add(struct chrome_events *events, const struct event *event);
/* Frees what events holds, neither events nor its text. */
void chrome_events_free(struct chrome_events *events);

#endif

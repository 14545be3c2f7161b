/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What lies in and between inferences, for the timeline of a page: operators, what threads waited for, other calls, regions, jobs. The
 * time is divided into windows; where more spans come than have room, those of one window in 2, in 4 and so on are kept, with all that
 * began in these.
 */
#ifndef XPT_PAGE_SPANS_H
#define XPT_PAGE_SPANS_H

#include "model/core/model.h"
#include "page/names.h"

#define PAGE_SPANS_MAX 200000u /* about 2 MB of a page */
#define PAGE_WINDOW_BITS 24
#define PAGE_WINDOW (1ull << PAGE_WINDOW_BITS) /* ns */

/* Numbers are part of pages. */
enum page_span_kind {
	PAGE_OPERATOR = 0, /* detail: name of its type */
	PAGE_BLOCKED = 1,  /* detail: enum xpt_off_cpu; name: who woke it */
	PAGE_CALL = 2,	   /* but of calls that are a whole inference */
	PAGE_REGION = 3,
	PAGE_JOB = 4,	 /* thread: id of the queue; detail: ns/1024 that it was in the queue before */
	PAGE_WAITED = 5, /* detail: enum xpt_off_cpu; name: who ran in its place */
};

struct page_span {
	__u64 start, duration;
	__u32 thread, name, detail;
	enum page_span_kind kind;
};

#define PAGE_DRIVER_EVENTS_MAX 20000u /* of memory, and others; all are counted */
#define PAGE_DRIVER_TOTALS_MAX 256    /* further ones are the last */

/* Failed jobs, errors, resets and memory events of drivers. Numbers are part of pages. */
enum page_driver_kind {
	PAGE_JOB_FAILED = 0, /* event: name of the job */
	PAGE_DRIVER_ERROR = 1,
	PAGE_DRIVER_RESET = 2,
	PAGE_DRIVER_MEMORY = 3,
};

/* Those of one kind, with the same names and status. */
struct page_driver_total {
	enum page_driver_kind kind;
	__u32 driver, event, device, engine; /* names */
	bool has_status;
	__s64 status;
	__u64 count, bytes, first, last; /* times of the first and the last one */
};

struct page_driver_event {
	__u64 time, size; /* size 0: unknown */
	__u32 total;	  /* index */
};

struct page_spans {
	struct page_names *names;
	struct page_driver_total *driver_totals;
	struct page_driver_event *driver_events;
	size_t driver_total_count, driver_event_count;
	__u64 driver_kept[2], driver_seen[2]; /* of memory; others */
	__u64 origin;			      /* begin of the first window; 0: at the first span */
	unsigned int every;		      /* windows that one stands for: a power of 2 */
	__u64 seen;			      /* spans, those that are not kept included */
	struct page_span *all;
	size_t count;
};

void page_spans_init(struct page_spans *spans, struct page_names *names);
void page_spans_free(struct page_spans *spans);
/* A sink of the model. -ENOMEM. */
int page_spans_event(void *context, const struct event *event);
/* Whether all that began then is kept. */
bool page_spans_shown(const struct page_spans *spans, __u64 time);

#endif

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

struct page_spans {
	struct page_names *names;
	__u64 origin;	    /* begin of the first window; 0: at the first span */
	unsigned int every; /* windows that one stands for: a power of 2 */
	__u64 seen;	    /* spans, those that are not kept included */
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "page/spans.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/vec.h"

void page_spans_init(struct page_spans *spans, struct page_names *names)
{
	*spans = (struct page_spans){ .names = names, .every = 1 };
}

void page_spans_free(struct page_spans *spans)
{
	free(spans->all);
}

bool page_spans_shown(const struct page_spans *spans, __u64 time)
{
	/* What comes late may be before the first window. */
	return !((__s64)(time - spans->origin) >> PAGE_WINDOW_BITS & (spans->every - 1));
}

static void thin(struct page_spans *spans)
{
	size_t kept = 0;

	spans->every *= 2;
	for (size_t i = 0; i < spans->count; i++) {
		if (page_spans_shown(spans, spans->all[i].start))
			spans->all[kept++] = spans->all[i];
	}
	spans->count = kept;
}

/* One window may have more than there is room for: its last ones are left out then. */
#define EVERY_MOST (1u << 24)

static int add(struct page_spans *spans, const struct page_span *span)
{
	spans->seen++;
	if (!spans->origin)
		spans->origin = span->start;
	while (spans->count >= PAGE_SPANS_MAX && spans->every < EVERY_MOST)
		thin(spans);
	if (spans->count >= PAGE_SPANS_MAX || !page_spans_shown(spans, span->start))
		return 0;
	return vec_push(spans->all, spans->count, *span);
}

static int add_call(struct page_spans *spans, const struct event_call *call)
{
	const bool is_operator = call->function->role == XPT_ROLE_OPERATOR;

	if (call->no_end || call->layer || call->function->role == XPT_ROLE_EXECUTE)
		return 0;
	return add(spans,
		   &(struct page_span){ .start = call->start,
					.duration = call->end - call->start,
					.thread = page_thread(spans->names, call->tgid, call->tid),
					.name = page_name(spans->names, is_operator && call->op ? call->op->label :
												  call->function->name),
					.detail = is_operator && call->op ? page_name(spans->names, call->op->type) : 0,
					.kind = is_operator ? PAGE_OPERATOR : PAGE_CALL });
}

static int add_off_cpu(struct page_spans *spans, const struct event_off_cpu *off)
{
	const __u32 thread = page_thread(spans->names, off->tgid, off->tid);
	struct page_span span = { .start = off->start,
				  .duration = off->woken - off->start,
				  .thread = thread,
				  .name = page_name(spans->names, off->waker),
				  .detail = off->reason,
				  .kind = PAGE_BLOCKED };
	int error = off->woken > off->start ? add(spans, &span) : 0;

	span.start = off->woken;
	span.duration = off->end - off->woken;
	span.name = page_name(spans->names, off->next);
	span.kind = PAGE_WAITED;
	return error ?: span.duration ? add(spans, &span) : 0;
}

static int add_job(struct page_spans *spans, const struct event_job *job)
{
	const __u64 start = job->runs ?: job->queued;

	if (!start || !job->done)
		return 0;
	return add(spans,
		   &(struct page_span){ .start = start,
					.duration = job->done - start,
					.thread = job->queue->id,
					.name = page_name(spans->names, job->name),
					.detail = job->queued && job->runs ? (job->runs - job->queued) / 1024 : 0,
					.kind = PAGE_JOB });
}

int page_spans_event(void *context, const struct event *event)
{
	struct page_spans *spans = context;

	switch (event->kind) {
	case EVENT_PROCESS:
		page_thread_named(spans->names, event->process->tgid, 0, event->process->name);
		return 0;
	case EVENT_THREAD:
		page_thread_named(spans->names, event->thread.tgid, event->thread.tid, event->thread.name);
		return 0;
	case EVENT_CALL:
		return add_call(spans, &event->call);
	case EVENT_OFF_CPU:
		return add_off_cpu(spans, &event->off_cpu);
	case EVENT_REGION:
		return add(spans, &(struct page_span){
					  .start = event->region.start,
					  .duration = event->region.end - event->region.start,
					  .thread = page_thread(spans->names, event->region.tgid, event->region.tid),
					  .name = page_name(spans->names, event->region.name),
					  .kind = PAGE_REGION });
	case EVENT_JOB:
		return add_job(spans, &event->job);
	default:
		return 0;
	}
}

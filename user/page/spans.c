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
	free(spans->driver_totals);
	free(spans->driver_events);
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

/* ---- what drivers report ---- */

static bool is_same(const struct page_driver_total *one, const struct page_driver_total *other)
{
	return one->kind == other->kind && one->driver == other->driver && one->event == other->event &&
	       one->device == other->device && one->engine == other->engine && one->has_status == other->has_status &&
	       one->status == other->status;
}

/* Of the same kind, which is made where there is none; the last one when there are too many. -ENOMEM. */
static int find_total(struct page_spans *spans, const struct page_driver_total *wanted, size_t *index)
{
	for (*index = 0; *index < spans->driver_total_count; ++*index)
		if (is_same(&spans->driver_totals[*index], wanted))
			return 0;
	if (*index < PAGE_DRIVER_TOTALS_MAX)
		return vec_push(spans->driver_totals, spans->driver_total_count, *wanted);
	--*index;
	return 0;
}

static int add_driver_event(struct page_spans *spans, const struct page_driver_total *wanted, __u64 time, __u64 size)
{
	const int other = wanted->kind != PAGE_DRIVER_MEMORY;
	struct page_driver_total *total;
	size_t index;
	int error = find_total(spans, wanted, &index);

	if (error)
		return error;
	total = &spans->driver_totals[index];
	if (!total->count++ || time < total->first)
		total->first = time;
	if (time > total->last)
		total->last = time;
	total->bytes += size;
	spans->driver_seen[other]++;
	if (spans->driver_kept[other] >= PAGE_DRIVER_EVENTS_MAX)
		return 0;
	spans->driver_kept[other]++;
	return vec_push(spans->driver_events, spans->driver_event_count,
			(struct page_driver_event){ .time = time, .size = size, .total = (__u32)index });
}

static int add_failed_job(struct page_spans *spans, const struct event_job *job)
{
	const bool has_status = job->have & 1u << XPT_FIELD_STATUS;

	return add_driver_event(spans,
				&(struct page_driver_total){ .kind = PAGE_JOB_FAILED,
							     .driver = page_name(spans->names, job->queue->driver),
							     .event = page_name(spans->names, job->name),
							     .device = page_name(spans->names, job->queue->device),
							     .engine = page_name(spans->names, job->queue->engine),
							     .has_status = has_status,
							     .status = has_status ? job->status : 0 },
				job->time, 0);
}

static int add_device_event(struct page_spans *spans, const struct event_device *device)
{
	const bool has_status = device->have & 1u << XPT_FIELD_STATUS;

	return add_driver_event(spans,
				&(struct page_driver_total){
					.kind = device->role == XPT_EVENT_ERROR ? PAGE_DRIVER_ERROR :
						device->role == XPT_EVENT_RESET ? PAGE_DRIVER_RESET :
										  PAGE_DRIVER_MEMORY,
					.driver = page_name(spans->names, device->driver),
					.event = page_name(spans->names, device->event),
					.device = page_name(spans->names, device->device),
					.engine = page_name(spans->names, device->engine),
					.has_status = has_status,
					.status = has_status ? device->status : 0 },
				device->time, device->have & 1u << XPT_FIELD_SIZE ? device->size : 0);
}

/* A job, and once more if it has failed. */
static int add_ended_job(struct page_spans *spans, const struct event_job *job)
{
	int error = add_job(spans, job);

	return error ?: job->failed ? add_failed_job(spans, job) : 0;
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
		return add_ended_job(spans, &event->job);
	case EVENT_DEVICE:
		return add_device_event(spans, &event->device);
	default:
		return 0;
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What is not of one program: queues of devices, counters, code objects, spans. */
#include <math.h>

#include "base/core/json.h"
#include "page/parts.h"

static void add_bins(struct text *text, const char *key, const float *values, unsigned int bins)
{
	json_begin(text, key, '[');
	for (unsigned int i = 0; values && i < bins; i++) {
		json_key(text, NULL);
		text_real(text, isfinite(values[i]) ? round((double)values[i] * 1e6) / 1e6 : NAN);
	}
	json_end(text, ']');
}

void page_add_queues(struct text *text, struct page_parts *parts)
{
	const struct study *study = parts->document->study;

	json_begin(text, "queues", '[');
	for (size_t i = 0; i < study->queue_count; i++) {
		const struct study_queue *queue = &study->queues[i];

		json_begin(text, NULL, '{');
		json_add_unsigned(text, "id", queue->queue->id);
		json_add_text(text, "driver", queue->queue->driver);
		json_add_text(text, "device", queue->queue->device);
		json_add_text(text, "engine", queue->queue->engine);
		json_add_unsigned(text, "total", queue->queue->jobs);
		json_add_unsigned(text, "failed", queue->queue->failed);
		json_add_unsigned(text, "busy_ns", queue->queue->busy_time);
		add_bins(text, "busy", queue->busy, study->bins);
		add_bins(text, "waiting", queue->waiting, study->bins);
		json_end(text, '}');
	}
	json_end(text, ']');
}

void page_add_counters(struct text *text, struct page_parts *parts)
{
	const struct study *study = parts->document->study;

	json_begin(text, "counters", '[');
	for (size_t i = 0; i < study->counter_count; i++) {
		const struct study_counter *counter = &study->counters[i];

		json_begin(text, NULL, '{');
		json_add_text(text, "name", counter->counter->name);
		json_add_text(text, "unit", counter->counter->unit);
		json_add_text(text, "description", counter->counter->description);
		json_add_text(text, "kind", model_counter_kind_name(counter->counter->kind));
		json_add_real(text, "total_mean", counter->counter->mean);
		add_bins(text, "min", counter->min, study->bins);
		add_bins(text, "mean", counter->mean, study->bins);
		add_bins(text, "max", counter->max, study->bins);
		json_end(text, '}');
	}
	json_end(text, ']');
}

void page_add_code(struct text *text, struct page_parts *parts)
{
	const struct model *model = parts->document->model;
	const size_t count = model_code_object_count(model);

	json_begin(text, "code", '[');
	for (size_t i = 0; i < count && i < PAGE_CODE_OBJECTS_MAX; i++) {
		const struct model_code_object *code = model_code_object(model, i);

		json_begin(text, NULL, '{');
		json_add_text(text, "kind", code->kind);
		json_add_text(text, "machine", code->machine);
		json_add_text(text, "name", code->name);
		json_add_text(text, "uri", code->uri);
		json_add_text(text, "sha256", code->sha256);
		json_add_text(text, "error", code->error);
		json_add_nonzero(text, "size", code->size);
		json_add_unsigned(text, "kernels", code->kernels);
		json_add_unsigned(text, "functions", code->functions);
		json_add_unsigned(text, "loads", code->loads);
		json_add_unsigned(text, "unloads", code->unloads);
		json_add_unsigned(text, "incomplete", code->incomplete);
		json_end(text, '}');
	}
	json_end(text, ']');
	json_add_unsigned(text, "code_total", count);
}

/* Of each kind of failed jobs, errors, resets and memory events how many, and when. */
void page_add_driver_events(struct text *text, struct page_parts *parts)
{
	const struct page_spans *spans = parts->document->spans;
	__u64 before = parts->base;

	json_begin(text, "driver_totals", '[');
	for (size_t i = 0; i < spans->driver_total_count; i++) {
		const struct page_driver_total *total = &spans->driver_totals[i];

		json_begin(text, NULL, '{');
		json_add_unsigned(text, "kind", total->kind);
		json_add_unsigned(text, "driver", total->driver);
		json_add_unsigned(text, "event", total->event);
		json_add_unsigned(text, "device", total->device);
		json_add_unsigned(text, "engine", total->engine);
		if (total->has_status)
			json_add_signed(text, "status", total->status);
		json_add_unsigned(text, "count", total->count);
		json_add_nonzero(text, "bytes", total->bytes);
		json_add_signed(text, "first", (__s64)(total->first - parts->base));
		json_add_signed(text, "last", (__s64)(total->last - parts->base));
		json_end(text, '}');
	}
	json_end(text, ']');
	json_begin(text, "driver_events", '[');
	for (size_t i = 0; i < spans->driver_event_count; i++) {
		json_add_unsigned(text, NULL, spans->driver_events[i].total);
		json_add_signed(text, NULL, (__s64)(spans->driver_events[i].time - before));
		json_add_unsigned(text, NULL, spans->driver_events[i].size);
		before = spans->driver_events[i].time;
	}
	json_end(text, ']');
}

void page_add_spans(struct text *text, struct page_parts *parts)
{
	const struct page_spans *spans = parts->document->spans;
	__u64 before = parts->base;

	json_begin(text, "windows", '{');
	json_add_signed(text, "begin", spans->count ? (__s64)(spans->origin - parts->base) : 0);
	json_add_unsigned(text, "width", PAGE_WINDOW);
	json_add_unsigned(text, "every", spans->every);
	json_end(text, '}');
	json_begin(text, "spans", '[');
	for (size_t i = 0; i < spans->count; i++) {
		const struct page_span *span = &spans->all[i];

		json_add_unsigned(text, NULL, span->kind);
		json_add_signed(text, NULL, (__s64)(span->start - before));
		json_add_unsigned(text, NULL, span->duration);
		json_add_unsigned(text, NULL, span->thread);
		json_add_unsigned(text, NULL, span->name);
		json_add_unsigned(text, NULL, span->detail);
		before = span->start;
	}
	json_end(text, ']');
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators and inferences of programs. */
#include "base/core/json.h"
#include "model/stats/statistics.h"
#include "page/parts.h"

/* ---- tokens ---- */

void page_add_tokens(struct text *text, const struct model *model)
{
	static const char *const names[PHASES] = { [PHASE_PREFILL] = "prefill", [PHASE_DECODE] = "decode" };

	json_begin(text, "tokens", '[');
	for (size_t i = 0; i < model_program_count(model); i++) {
		const struct model_program *program = model_program(model, i);

		for (int phase = PHASE_PREFILL; program->tokens && phase < PHASES; phase++) {
			const struct model_phase_total *total = &program->tokens->phase[phase];

			if (!total->batches)
				continue;
			json_begin(text, NULL, '{');
			json_add_text(text, "name", program->name);
			json_add_text(text, "runtime", program->runtime);
			json_add_unsigned(text, "pid", program->process->tgid);
			json_add_text(text, "phase", names[phase]);
			json_add_unsigned(text, "batches", total->batches);
			json_add_unsigned(text, "tokens", total->tokens);
			json_add_unsigned(text, "time", total->time);
			page_add_statistics(text, "token",
					    phase == PHASE_PREFILL ? program->tokens->first_token :
								     program->tokens->output_token);
			json_end(text, '}');
		}
	}
	json_end(text, ']');
}

/* ---- operators ---- */

void page_add_operators(struct text *text, struct page_parts *parts, const struct study_program *program)
{
	const __u64 most = PAGE_OPERATORS_MAX - parts->operators;
	const size_t count = program->operator_count < most ? program->operator_count : most;

	json_begin(text, "operators", '[');
	for (size_t i = 0; i < count; i++) {
		const struct study_operator *op = &program->operators[i];

		json_begin(text, NULL, '{');
		json_add_text(text, "label", op->label);
		json_add_text(text, "type", op->type);
		json_add_text(text, "provider", op->provider);
		json_add_unsigned(text, "count", op->count);
		json_add_real(text, "self", op->self);
		json_add_real(text, "total", op->total);
		json_add_unsigned(text, "p99", statistics_quantile(op->duration, 0.99));
		json_add_unsigned(text, "device", op->device_time);
		json_add_real(text, "typical_times", op->typical.times);
		json_add_real(text, "typical_self", op->typical.self);
		json_add_real(text, "typical_cpu", op->typical.cpu);
		json_add_real(text, "slow_self", op->slow.self);
		json_add_bool(text, "apart", op->apart);
		json_end(text, '}');
	}
	json_end(text, ']');
	parts->operators += count;
}

/* ---- inferences in full ---- */

/* A time within the inference, from its begin; -1: it was not seen. */
static void add_time(struct text *text, const struct study_detail *detail, __u64 time)
{
	json_add_signed(text, NULL, time ? (__s64)(time - detail->sample.start) : -1);
}

static void add_nodes(struct text *text, struct page_parts *parts, const struct study_detail *detail)
{
	json_begin(text, "nodes", '[');
	for (size_t i = 0; i < detail->node_count; i++) {
		const struct study_node *node = &detail->nodes[i];

		json_add_signed(text, NULL, node->operator== ~0u ? -1 : (__s64)node->operator);
		json_add_unsigned(text, NULL, page_thread(parts->document->names, detail->sample.tgid, node->tid));
		json_add_unsigned(text, NULL, node->depth);
		add_time(text, detail, node->start);
		add_time(text, detail, node->end);
		json_add_unsigned(text, NULL, node->self);
	}
	json_end(text, ']');
}

static void add_slices(struct text *text, struct page_parts *parts, const struct study_detail *detail)
{
	json_begin(text, "slices", '[');
	for (size_t i = 0; i < detail->slice_count; i++) {
		const struct study_slice *slice = &detail->slices[i];

		json_add_unsigned(text, NULL, slice->reason);
		add_time(text, detail, slice->start);
		add_time(text, detail, slice->woken);
		add_time(text, detail, slice->end);
		json_add_unsigned(text, NULL, page_name(parts->document->names, slice->next));
		json_add_unsigned(text, NULL,
				  page_name(parts->document->names, slice->interrupt ? "interrupt" : slice->waker));
		json_add_signed(text, NULL, slice->operator== ~0u ? -1 : (__s64)slice->operator);
	}
	json_end(text, ']');
}

static void add_jobs(struct text *text, struct page_parts *parts, const struct study_detail *detail)
{
	json_begin(text, "jobs", '[');
	for (size_t i = 0; i < detail->job_count; i++) {
		const struct study_job *job = &detail->jobs[i];

		json_add_unsigned(text, NULL, page_name(parts->document->names, job->name));
		json_add_unsigned(text, NULL, job->queue->id);
		add_time(text, detail, job->queued);
		add_time(text, detail, job->runs);
		add_time(text, detail, job->done);
		json_add_unsigned(text, NULL, job->failed);
	}
	json_end(text, ']');
}

static void add_calls(struct text *text, struct page_parts *parts, const struct study_detail *detail)
{
	json_begin(text, "calls", '[');
	for (size_t i = 0; i < detail->call_count; i++) {
		const struct study_call *call = &detail->calls[i];

		json_add_unsigned(text, NULL, page_name(parts->document->names, call->name));
		json_add_unsigned(text, NULL, page_thread(parts->document->names, detail->sample.tgid, call->tid));
		add_time(text, detail, call->start);
		add_time(text, detail, call->end);
	}
	json_end(text, ']');
}

static void add_sample_members(struct text *text, struct page_parts *parts, const struct study_sample *sample)
{
	json_add_signed(text, "start", (__s64)(sample->start - parts->base));
	json_add_unsigned(text, "duration", sample->duration);
	json_add_unsigned(text, "thread", page_thread(parts->document->names, sample->tgid, sample->tid));
	json_add_unsigned(text, "flags", sample->flags);
	if (study_has(sample, STUDY_NUMBERED))
		json_add_unsigned(text, "number", sample->number);
	json_begin(text, "components", '[');
	for (int i = 0; i < STUDY_COMPONENTS; i++)
		json_add_unsigned(text, NULL, sample->component[i]);
	json_end(text, ']');
	json_add_unsigned(text, "queue", sample->queue);
	json_add_unsigned(text, "device", sample->device);
	json_add_unsigned(text, "tracing", sample->tracing);
}

void page_add_details(struct text *text, struct page_parts *parts, const char *key, const struct study_program *program,
		      const struct study_detail *details, size_t count)
{
	(void)program;
	json_begin(text, key, '[');
	for (size_t i = 0; i < count; i++) {
		const struct study_detail *detail = &details[i];
		const __u64 items = detail->node_count + detail->slice_count + detail->job_count + detail->call_count;

		if (parts->items + items > PAGE_DETAIL_ITEMS_MAX) {
			parts->left_out_details++;
			continue;
		}
		parts->items += items;
		parts->details++;
		parts->cut_details += detail->cut;
		json_begin(text, NULL, '{');
		add_sample_members(text, parts, &detail->sample);
		json_add_bool(text, "cut", detail->cut);
		add_nodes(text, parts, detail);
		add_slices(text, parts, detail);
		add_jobs(text, parts, detail);
		add_calls(text, parts, detail);
		json_end(text, '}');
	}
	json_end(text, ']');
}

/* ---- all of them ---- */

static __u64 divide_up(__u64 value, __u64 by)
{
	return (value + by - 1) / by;
}

void page_share_samples(struct page_parts *parts)
{
	const struct study *study = parts->document->study;
	__u64 slow = 0, drawn = 0;

	for (size_t i = 0; i < study->program_count && i < PAGE_PROGRAMS_MAX; i++) {
		for (size_t j = 0; j < study->programs[i].sample_count; j++) {
			if (study_has(&study->programs[i].samples[j], STUDY_SLOW))
				slow++;
			else
				drawn++;
		}
	}
	parts->slow_every = divide_up(slow, PAGE_SAMPLES_MAX / 2) ?: 1;
	parts->drawn_every = divide_up(drawn, PAGE_SAMPLES_MAX - divide_up(slow, parts->slow_every)) ?: 1;
}

/* Of slow ones and of others, each `every`th. */
static bool is_kept(const struct page_parts *parts, const struct study_sample *sample, __u64 *slow, __u64 *drawn)
{
	if (study_has(sample, STUDY_SLOW))
		return (*slow)++ % parts->slow_every == 0;
	return (*drawn)++ % parts->drawn_every == 0;
}

void page_add_samples(struct text *text, struct page_parts *parts, const struct study_program *program)
{
	__u64 slow = 0, drawn = 0, before = parts->base;

	json_begin(text, "samples", '[');
	for (size_t i = 0; i < program->sample_count; i++) {
		const struct study_sample *sample = &program->samples[i];

		if (!is_kept(parts, sample, &slow, &drawn))
			continue;
		json_add_signed(text, NULL, (__s64)(sample->start - before));
		json_add_unsigned(text, NULL, sample->duration);
		json_add_unsigned(text, NULL, page_thread(parts->document->names, sample->tgid, sample->tid));
		json_add_unsigned(text, NULL, sample->flags & (STUDY_FAILED | STUDY_ASYNC));
		before = sample->start;
		parts->samples++;
		parts->slow_samples += study_has(sample, STUDY_SLOW);
	}
	json_end(text, ']');
}

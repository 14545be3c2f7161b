/* SPDX-License-Identifier: BSD-2-Clause */
/* An explanation as JSON: user/report/SCHEMA.md. */
#include <errno.h>

#include "analysis/explain_private.h"
#include "base/core/json.h"

static void add_parts(struct text *text, const struct xpt_explain_program *program, bool slow)
{
	json_begin(text, "states_ns", '{');
	for (size_t i = 0; i < program->state_count; i++)
		json_add_real(text, program->states[i].name,
			      slow ? program->states[i].slow : program->states[i].typical);
	json_end(text, '}');
	if (!program->operator_count)
		return;
	json_begin(text, "operators", '[');
	for (size_t i = 0; i + 1 < program->operator_count; i++) {
		const struct xpt_explain_part *part = &program->operators[i];

		json_begin(text, NULL, '{');
		json_add_text(text, "name", part->name);
		json_add_text(text, "type", part->title);
		json_add_real(text, "self_ns", slow ? part->slow : part->typical);
		json_add_real(text, "times", slow ? part->times_slow : part->times_typical);
		json_end(text, '}');
	}
	json_end(text, ']');
	json_add_real(text, "outside_ns",
		      slow ? program->operators[program->operator_count - 1].slow :
			     program->operators[program->operator_count - 1].typical);
}

static void add_cohort(struct text *text, const char *key, const struct xpt_explain_program *program, bool slow)
{
	const struct xpt_explain_cohort *cohort = &program->cohorts[slow ? XPT_COHORT_SLOW : XPT_COHORT_TYPICAL];

	json_begin(text, key, '{');
	json_add_unsigned(text, "inferences", cohort->count);
	json_add_unsigned(text, "failed", cohort->failed);
	json_add_unsigned(text, "min_ns", cohort->least);
	json_add_unsigned(text, "max_ns", cohort->most);
	json_add_real(text, "mean_ns", cohort->mean);
	add_parts(text, program, slow);
	json_begin(text, "beside", '{');
	json_add_real(text, "queue_ns", cohort->queue);
	json_add_real(text, "device_ns", cohort->device);
	json_add_real(text, "tracing_ns", cohort->tracing);
	json_add_real(text, "jobs", cohort->jobs);
	json_add_real(text, "minor_faults", cohort->minor_faults);
	json_add_real(text, "major_faults", cohort->major_faults);
	json_add_real(text, "voluntary_switches", cohort->voluntary);
	json_add_real(text, "involuntary_switches", cohort->involuntary);
	json_end(text, '}');
	json_end(text, '}');
}

static void add_causes(struct text *text, const struct xpt_explain_program *program)
{
	json_begin(text, "causes", '[');
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_explain_cause *cause = &program->causes[i];

		json_begin(text, NULL, '{');
		json_add_text(text, "kind", cause->kind);
		json_add_text(text, "name", cause->name);
		json_add_text(text, "title", cause->title);
		json_add_bool(text, "explained", cause->explained);
		json_add_real(text, "difference_ns", cause->difference);
		json_add_real(text, "share", cause->share);
		json_add_nonzero(text, "inferences", cause->inferences);
		json_add_text(text, "evidence", cause->evidence);
		json_add_text(text, "command", cause->command);
		json_end(text, '}');
	}
	json_end(text, ']');
}

static void add_program(struct text *text, const struct xpt_explain_program *program)
{
	json_begin(text, NULL, '{');
	json_add_text(text, "name", program->name);
	json_add_text(text, "runtime", program->runtime);
	json_add_text(text, "process", program->process);
	json_begin(text, "pids", '[');
	for (size_t i = 0; i < program->pid_count; i++)
		json_add_signed(text, NULL, program->pids[i]);
	json_end(text, ']');
	json_add_unsigned(text, "inferences", program->inferences);
	json_add_unsigned(text, "recorded", program->recorded);
	json_add_unsigned(text, "failed", program->failed);
	json_add_unsigned(text, "lost", program->lost);
	if (program->count) {
		json_begin(text, "latency_ns", '{');
		json_add_unsigned(text, "count", program->count);
		json_add_unsigned(text, "min", program->min);
		json_add_real(text, "mean", program->mean);
		json_add_unsigned(text, "p50", program->p50);
		json_add_unsigned(text, "p90", program->p90);
		json_add_unsigned(text, "p99", program->p99);
		json_add_unsigned(text, "max", program->max);
		json_add_real(text, "stddev", program->deviation);
		json_end(text, '}');
		add_cohort(text, "typical", program, false);
		add_cohort(text, "slow", program, true);
		json_add_real(text, "difference_ns", program->difference);
		add_causes(text, program);
		json_add_real(text, "explained", program->explained);
		json_add_text(text, "command", program->command);
	}
	json_add_text(text, "missing", program->missing);
	json_end(text, '}');
}

int xpt_explain_json(const struct xpt_explain *explain, char **json)
{
	struct text text = {};

	json_begin(&text, NULL, '{');
	json_add_text(&text, "recording", explain->input);
	json_add_bool(&text, "complete", explain->study->complete);
	json_begin(&text, "programs", '[');
	for (size_t i = 0; i < explain->program_count; i++) {
		json_newline(&text);
		add_program(&text, &explain->programs[i].view);
	}
	json_end(&text, ']');
	json_add_unsigned(&text, "more_programs", explain->study->program_count - explain->program_count);
	json_end(&text, '}');
	text_bytes(&text, "", 1);
	if (text.error) {
		text_free(&text);
		return -ENOMEM;
	}
	*json = text.data;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A comparison for machines. */
#include "base/core/json.h"
#include "report/table/diff.h"

static void add_rows(struct text *text, const char *key, const struct xpt_diff_row *rows, size_t size, size_t count)
{
	json_begin(text, key, '[');
	for (size_t i = 0; i < count; i++) {
		const struct xpt_diff_row *row = XPT_AT(rows, size, i);

		json_newline(text);
		json_begin(text, NULL, '{');
		json_add_text(text, "kind", xpt_diff_kind_name(row->kind));
		json_add_text(text, "name", row->name);
		json_add_text(text, "unit", row->unit);
		json_add_real(text, "before", row->before);
		json_add_real(text, "after", row->after);
		json_add_real(text, "change", row->change);
		json_add_real(text, "percent", row->percent);
		json_add_real(text, "low", row->low);
		json_add_real(text, "high", row->high);
		json_add_real(text, "p", row->p);
		json_add_real(text, "adjusted", row->adjusted);
		json_add_bool(text, "significant", row->significant);
		json_end(text, '}');
	}
	json_end(text, ']');
}

static void add_causes(struct text *text, const struct xpt_diff_program *program)
{
	json_begin(text, "causes", '[');
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_diff_cause *cause = XPT_AT(program->causes, program->cause_size, i);

		json_begin(text, NULL, '{');
		json_add_text(text, "row", cause->row);
		json_add_real(text, "change", cause->change);
		json_begin(text, "parts", '[');
		for (size_t k = 0; k < cause->part_count; k++) {
			const struct xpt_diff_part *part = XPT_AT(cause->parts, cause->part_size, k);

			json_begin(text, NULL, '{');
			json_add_text(text, "kind", xpt_diff_kind_name(part->kind));
			json_add_text(text, "name", part->name);
			json_add_real(text, "before", part->before);
			json_add_real(text, "after", part->after);
			json_add_real(text, "change", part->change);
			json_end(text, '}');
		}
		json_end(text, ']');
		json_add_real(text, "not_attributed", cause->rest);
		json_end(text, '}');
	}
	json_end(text, ']');
}

static void add_program(struct text *text, const struct xpt_diff_program *program)
{
	json_newline(text);
	json_begin(text, NULL, '{');
	json_add_text(text, "runtime", program->runtime);
	json_add_text(text, "name", program->name);
	json_add_text(text, "process", program->process);
	json_add_text(text, "name_before", program->name_before);
	json_add_text(text, "process_before", program->process_before);
	json_add_text(text, "matched_by", xpt_diff_match_name(program->match));
	json_add_bool(text, "model_changed", program->model_changed);
	json_add_unsigned(text, "inferences_before", program->inferences_before);
	json_add_unsigned(text, "inferences_after", program->inferences_after);
	json_add_unsigned(text, "recordings_before", program->recordings_before);
	json_add_unsigned(text, "recordings_after", program->recordings_after);
	json_add_text(text, "tested_by", program->by_recording ? "recordings" : "blocks");
	add_rows(text, "rows", program->rows, program->row_size, program->row_count);
	add_causes(text, program);
	json_end(text, '}');
}

static void add_unmatched(struct text *text, const struct xpt_diff *diff)
{
	json_begin(text, "unmatched", '[');
	for (size_t i = 0; i < diff->unmatched_count; i++) {
		const struct xpt_diff_unmatched *one = XPT_AT(diff->unmatched, diff->unmatched_size, i);

		json_begin(text, NULL, '{');
		json_add_text(text, "side", one->after ? "after" : "before");
		json_add_text(text, "runtime", one->runtime);
		json_add_text(text, "name", one->name);
		json_add_text(text, "process", one->process);
		json_add_unsigned(text, "inferences", one->inferences);
		json_add_bool(text, "ambiguous", one->ambiguous);
		json_end(text, '}');
	}
	json_end(text, ']');
}

static void add_checks(struct text *text, const struct xpt_diff *diff)
{
	json_begin(text, "checks", '[');
	for (size_t i = 0; i < diff->check_count; i++) {
		const struct xpt_diff_check *check = XPT_AT(diff->checks, diff->check_size, i);

		json_begin(text, NULL, '{');
		json_add_text(text, "condition", check->condition);
		json_add_text(text, "row", check->row);
		json_add_text(text, "program", check->program);
		json_add_real(text, "before", check->before);
		json_add_real(text, "after", check->after);
		json_add_real(text, "percent", check->percent);
		json_add_real(text, "adjusted", check->adjusted);
		json_add_bool(text, "beyond", check->beyond);
		json_add_bool(text, "failed", check->failed);
		json_end(text, '}');
	}
	json_end(text, ']');
}

void diff_json(struct text *text, const struct xpt_diff *diff)
{
	json_begin(text, NULL, '{');
	json_add_real(text, "level", diff->level);
	json_add_real(text, "run_noise", diff->run_noise);
	json_add_unsigned(text, "recordings_before", diff->recordings_before);
	json_add_unsigned(text, "recordings_after", diff->recordings_after);
	json_add_unsigned(text, "tested", diff->tested);
	json_add_unsigned(text, "significant", diff->significant);
	json_begin(text, "programs", '[');
	for (size_t i = 0; i < diff->program_count; i++)
		add_program(text, XPT_AT(diff->programs, diff->program_size, i));
	json_end(text, ']');
	add_rows(text, "counters", diff->counters, diff->counter_size, diff->counter_count);
	add_unmatched(text, diff);
	add_checks(text, diff);
	json_begin(text, "notes", '[');
	for (size_t i = 0; i < diff->note_count; i++)
		json_add_text(text, NULL, diff->notes[i]);
	json_end(text, ']');
	json_end(text, '}');
}

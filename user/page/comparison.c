/* SPDX-License-Identifier: BSD-2-Clause */
/* The data of a page that compares recordings: the comparison as `diff --json` has it, what the sides are, and durations of both. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"
#include "model/stats/statistics.h"
#include "page/parts.h"
#include "report/table/diff.h"
#include "report/table/rows.h"

static const char *const side_names[] = { "before", "after" };

/* ---- the sides ---- */

/* Of the inferences of a recording: how many, failed ones, and where tracing took the largest part. */
static void add_inferences(struct text *text, const struct model *model)
{
	struct summary_rows rows;
	const char *name = NULL;
	__u64 inferences = 0, failed = 0, worst_tracing = 0, worst_latency = 1;

	if (summary_programs(model, &rows)) {
		text_fail(text);
		return;
	}
	for (size_t i = 0; i < rows.count; i++) {
		__u64 latency, tracing = summary_tracing(&rows.row[i], &latency);

		inferences += rows.row[i].calls;
		failed += rows.row[i].errors;
		if (!tracing || !latency || (double)tracing / latency <= (double)worst_tracing / worst_latency)
			continue;
		worst_tracing = tracing;
		worst_latency = latency;
		name = rows.row[i].name;
	}
	json_add_unsigned(text, "programs", rows.count);
	json_add_unsigned(text, "inferences", inferences);
	json_add_unsigned(text, "failed", failed);
	json_add_text(text, "traced", name);
	json_add_unsigned(text, "tracing", worst_tracing);
	json_add_unsigned(text, "latency", worst_latency);
	summary_rows_free(&rows);
}

static void add_recording(struct text *text, const struct study_input *input)
{
	struct summary_closing closing;

	if (summary_closing_read(input->model, &closing)) {
		text_fail(text);
		return;
	}
	json_begin(text, NULL, '{');
	page_add_source(text, input, input->path);
	json_add_bool(text, "complete", input->complete);
	json_add_unsigned(text, "duration",
			  closing.duration > 0 ? (__u64)(closing.duration + 0.5) : input->last - input->first);
	add_inferences(text, input->model);
	json_begin(text, "lost", '{');
	for (int cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (model_lost(input->model, cause))
			json_add_unsigned(text, loss_name(cause), model_lost(input->model, cause));
	}
	json_end(text, '}');
	json_add_real(text, "collector_cpu", closing.collector_cpu);
	json_add_real(text, "collector_memory", closing.collector_memory);
	page_add_costs(text, input->model);
	json_end(text, '}');
}

static void add_side(struct text *text, const struct study *study)
{
	json_begin(text, NULL, '{');
	json_add_unsigned(text, "all_recordings", study->input_count);
	json_add_bool(text, "operators", study->has_operators);
	json_add_bool(text, "states", study->has_states);
	json_add_bool(text, "reasons", study->has_reasons);
	json_add_bool(text, "jobs", study->has_jobs);
	json_add_bool(text, "stacks", study->has_cpu_stacks || study->has_off_cpu_stacks);
	json_add_unsigned(text, "counters", study->counter_count);
	json_begin(text, "recordings", '[');
	for (size_t i = 0; i < study->input_count && i < PAGE_RECORDINGS_MAX; i++)
		add_recording(text, &study->inputs[i]);
	json_end(text, ']');
	json_end(text, '}');
}

/* ---- durations of both sides ---- */

/*
 * Bins as columns of statistics are, or several of these: equal parts of an octave, so that the counts are exact. Their limits are
 * (parts + n) * 2^octave; what is shorter than the first one is in it.
 */
static unsigned int bin_of(__u64 value, unsigned int parts)
{
	unsigned int octave = 0;

	while (value >> octave >= 2 * parts)
		octave++;
	return value < parts ? 0 : octave * parts + (unsigned int)(value >> octave) - parts;
}

static double bin_low(unsigned int bin, unsigned int parts)
{
	return ldexp(parts + bin % parts, (int)(bin / parts));
}

static void add_counts(struct text *text, const struct statistics *statistics, unsigned int first, unsigned int last,
		       unsigned int parts)
{
	__u64 before = 0;

	json_begin(text, NULL, '[');
	for (unsigned int bin = first; bin <= last; bin++) {
		const double end = bin_low(bin + 1, parts);
		const __u64 until = statistics ?
					    statistics_up_to(statistics, end < 0x1p64 ? (__u64)end - 1 : UINT64_MAX) :
					    0;

		json_add_unsigned(text, NULL, until - before);
		before = until;
	}
	json_end(text, ']');
}

static void add_histogram(struct text *text, const struct study_program *const sides[2])
{
	__u64 least = UINT64_MAX, most = 0;
	unsigned int parts = 32, first, last;

	for (int s = 0; s < 2; s++) {
		const struct statistics *durations = sides[s] ? sides[s]->duration : NULL;

		if (!durations || !statistics_count(durations))
			continue;
		if (statistics_min(durations) < least)
			least = statistics_min(durations);
		if (statistics_max(durations) > most)
			most = statistics_max(durations);
	}
	if (least > most)
		return;
	while (parts > 1 && bin_of(most, parts) - bin_of(least, parts) >= PAGE_HISTOGRAM_BINS)
		parts /= 2;
	first = bin_of(least, parts);
	last = bin_of(most, parts);
	json_begin(text, "bounds", '[');
	for (unsigned int bin = first; bin <= last + 1; bin++)
		json_add_real(text, NULL, bin_low(bin, parts));
	json_end(text, ']');
	json_begin(text, "counts", '[');
	for (int s = 0; s < 2; s++)
		add_counts(text, sides[s] ? sides[s]->duration : NULL, first, last, parts);
	json_end(text, ']');
}

/* ---- programs ---- */

/* A comparison has the names of the studies. NULL: it is not there. */
static const struct study_program *find_program(const struct study *study, const char *runtime, const char *name,
						const char *process)
{
	for (size_t i = 0; i < study->program_count; i++) {
		const struct study_program *program = &study->programs[i];

		if (!strcmp(program->name, name) && !strcmp(program->runtime, runtime) &&
		    !strcmp(program->process, process))
			return program;
	}
	return NULL;
}

static void add_causes(struct text *text, const struct xpt_diff_program *program)
{
	struct text line = {};

	json_begin(text, "words", '[');
	for (size_t i = 0; i < program->cause_count; i++) {
		diff_text_cause(&line, XPT_AT(program->causes, program->cause_size, i));
		text_bytes(&line, "", 1);
		if (line.error)
			text_fail(text);
		else
			json_add_text(text, NULL, line.data);
		text_clear(&line, 4096);
	}
	json_end(text, ']');
	text_free(&line);
}

static void add_program(struct text *text, const struct xpt_diff_program *program, const struct study *const studies[2])
{
	const struct study_program *const sides[] = {
		find_program(studies[0], program->runtime, program->name_before, program->process_before),
		find_program(studies[1], program->runtime, program->name, program->process)
	};

	json_begin(text, NULL, '{');
	for (int s = 0; s < 2; s++) {
		json_begin(text, side_names[s], '{');
		if (sides[s]) {
			json_add_unsigned(text, "recorded", sides[s]->recorded);
			json_add_unsigned(text, "failed", sides[s]->failed);
			json_add_unsigned(text, "lost", sides[s]->lost);
			json_add_text(text, "sha256", sides[s]->sha256);
			page_add_statistics(text, "latency", sides[s]->duration);
		}
		json_end(text, '}');
	}
	add_histogram(text, sides);
	add_causes(text, program);
	json_end(text, '}');
}

/* ---- all ---- */

static void add_summary(struct text *text, const struct xpt_diff *diff)
{
	struct text summary = {};

	diff_text_summary(&summary, diff);
	text_bytes(&summary, "", 1);
	if (summary.error)
		text_fail(text);
	else
		json_add_text(text, "summary", summary.data);
	text_free(&summary);
}

/* The first programs, of each as many rows as have room; to be freed. Says how much of all that is. NULL: no memory. */
static struct xpt_diff_program *copy_programs(struct text *text, const struct xpt_diff *diff, size_t count)
{
	struct xpt_diff_program *programs = calloc(count ?: 1, sizeof(*programs));
	size_t rows = 0, all_rows = 0;

	if (!programs)
		return NULL;
	for (size_t i = 0; i < count; i++) {
		programs[i] = *(const struct xpt_diff_program *)XPT_AT(diff->programs, diff->program_size, i);
		if (programs[i].row_count > PAGE_ROWS_MAX - rows)
			programs[i].row_count = PAGE_ROWS_MAX - rows;
		rows += programs[i].row_count;
	}
	for (size_t i = 0; i < diff->program_count; i++)
		all_rows += XPT_AT(diff->programs, diff->program_size, i)->row_count;
	json_begin(text, "kept", '{');
	json_add_unsigned(text, "all_programs", diff->program_count);
	json_add_unsigned(text, "all_unmatched", diff->unmatched_count);
	json_add_unsigned(text, "rows", rows);
	json_add_unsigned(text, "all_rows", all_rows);
	json_end(text, '}');
	return programs;
}

void page_comparison_add(struct text *text, const struct xpt_diff *diff, const struct study *const sides[2])
{
	const size_t count = diff->program_count < PAGE_PROGRAMS_MAX ? diff->program_count : PAGE_PROGRAMS_MAX;
	struct xpt_diff_program *programs;
	struct xpt_diff shown = *diff;

	json_begin(text, NULL, '{');
	json_add_unsigned(text, "schema", 1);
	json_add_text(text, "page_version", XPT_VERSION);
	page_add_losses(text);
	add_summary(text, diff);
	programs = copy_programs(text, diff, count);
	if (!programs) {
		text_fail(text);
		return;
	}
	json_begin(text, "sides", '[');
	for (int s = 0; s < 2; s++)
		add_side(text, sides[s]);
	json_end(text, ']');
	json_begin(text, "durations", '[');
	for (size_t i = 0; i < count; i++)
		add_program(text, &programs[i], sides);
	json_end(text, ']');
	shown.programs = programs;
	shown.program_count = count;
	if (shown.unmatched_count > PAGE_PROGRAMS_MAX)
		shown.unmatched_count = PAGE_PROGRAMS_MAX;
	json_key(text, "comparison");
	text_literal(text, "\n"); /* no comma is put behind it */
	diff_json(text, &shown);
	json_end(text, '}');
	free(programs);
}

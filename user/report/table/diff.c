/* SPDX-License-Identifier: BSD-2-Clause */
/* A comparison as tables. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/table/columns.h"
#include "report/table/diff.h"

#define UNCHANGED_SHOWN 20 /* programs and rows without significant changes that are named */
#define PARTS_SHOWN 6
#define NAME_ROOM 16 /* columns of a row's name beyond the least */

/* ---- values ---- */

static void __attribute__((format(printf, 2, 3))) text_format(struct text *text, const char *format, ...)
{
	char number[256];
	va_list list;

	va_start(list, format);
	vsnprintf(number, sizeof(number), format, list);
	va_end(list);
	text_string(text, number);
}

void diff_text_value(struct text *text, double value, const char *unit, bool sign)
{
	if (!isfinite(value)) {
		text_literal(text, "-");
		return;
	}
	if (sign || value < 0)
		text_bytes(text, value < 0 ? "-" : "+", 1);
	value = fabs(value);
	if (!strcmp(unit, "ns"))
		columns_format_time(text, value, true);
	else
		text_format(text, value >= 1e4 && value < 1e12 ? "%.0f" : "%.4g", value);
	if (*unit && strcmp(unit, "ns") != 0)
		text_string(text, !strcmp(unit, "1/s") ? "/s" : unit);
}

static void add_percent(struct text *text, double percent)
{
	if (isnan(percent))
		text_literal(text, "-");
	else
		text_format(text, fabs(percent) < 99.95 ? "%+.1f%%" : "%+.0f%%", percent);
}

/* The next cell, and an empty text again. */
static void add_cell(struct columns *columns, struct text *text)
{
	text_bytes(text, "", 1);
	columns_name(columns, text->error ? "" : text->data);
	text_clear(text, 4096);
}

/* A name of a target, safe for a terminal. */
static void add_name(struct text *text, const char *name)
{
	text_terminal(text, name, strlen(name), 0);
}

/* ---- what a change consists of ---- */

static void add_part(struct text *text, const struct xpt_diff_part *part)
{
	diff_text_value(text, part->change, "ns", true);
	if (part->kind == XPT_DIFF_OPERATOR) {
		text_literal(text, " operator `");
		add_name(text, part->name);
		text_literal(text, "`");
	} else if (!strcmp(part->name, "waited")) {
		text_literal(text, " run-queue wait");
	} else if (!strcmp(part->name, "cpu")) {
		text_literal(text, " CPU");
	} else if (part->kind == XPT_DIFF_OUTSIDE) {
		text_literal(text, " outside operators");
	} else if (!strcmp(part->name, "unknown")) {
		text_literal(text, " in states that were not recorded");
	} else if (!strcmp(part->name, "blocked")) {
		text_literal(text, " blocked");
	} else {
		text_literal(text, " blocked (");
		text_string(text, part->name);
		text_literal(text, ")");
	}
}

void diff_text_cause(struct text *text, const struct xpt_diff_cause *cause)
{
	double rest = cause->rest;

	diff_text_value(text, cause->change, "ns", true);
	text_literal(text, " ");
	text_string(text, cause->row);
	text_literal(text, ": ");
	for (size_t i = 0; i < cause->part_count; i++) {
		const struct xpt_diff_part *part = XPT_AT(cause->parts, cause->part_size, i);

		/* What is hidden by one of the opposite sign is worth showing, too. */
		if (i >= PARTS_SHOWN || fabs(part->change) < 0.02 * fabs(cause->change)) {
			rest += part->change;
			continue;
		}
		if (i)
			text_literal(text, ", ");
		add_part(text, part);
	}
	if (cause->change != 0 && fabs(rest) < 0.005 * fabs(cause->change))
		return;
	if (cause->part_count)
		text_literal(text, ", ");
	diff_text_value(text, rest, "ns", true);
	text_literal(text, " not attributed");
}

/* ---- rows ---- */

static void add_p(struct text *text, double p)
{
	if (isnan(p))
		text_literal(text, "-");
	else if (p < 0.0001)
		text_literal(text, "<0.0001");
	else
		text_format(text, p < 0.01 ? "%.4f" : "%.3f", p);
}

static void add_row(struct columns *columns, struct text *text, const struct xpt_diff_row *row)
{
	if (row->kind == XPT_DIFF_OPERATOR)
		text_literal(text, "operator ");
	else if (row->kind == XPT_DIFF_COUNTER)
		text_literal(text, "counter ");
	text_string(text, row->name);
	add_cell(columns, text);
	diff_text_value(text, row->before, row->unit, false);
	add_cell(columns, text);
	diff_text_value(text, row->after, row->unit, false);
	add_cell(columns, text);
	diff_text_value(text, row->change, row->unit, true);
	add_cell(columns, text);
	add_percent(text, row->percent);
	add_cell(columns, text);
	diff_text_value(text, row->low, row->unit, true);
	text_literal(text, "..");
	diff_text_value(text, row->high, row->unit, true);
	add_cell(columns, text);
	add_p(text, row->adjusted);
	add_cell(columns, text);
	text_string(text, row->significant ? "*" : "");
	add_cell(columns, text);
}

/* The rows that are shown, and how many are not: their names are appended to rest. */
static int print_rows(FILE *out, unsigned int width, const struct xpt_diff_row *rows, size_t size, size_t count,
		      bool all, struct text *rest, size_t *left_out)
{
	struct columns columns = { .narrow = false };
	struct text text = {};
	size_t shown = 0;
	int error = 0;

	COLUMNS_TITLES(&columns, "<ROW", "BEFORE", "AFTER", "CHANGE", "%", "INTERVAL", "P", "<");
	*left_out = 0;
	for (size_t i = 0; i < count; i++) {
		const struct xpt_diff_row *row = XPT_AT(rows, size, i);

		if (all || row->significant) {
			add_row(&columns, &text, row);
			shown++;
			continue;
		}
		if (*left_out < UNCHANGED_SHOWN) {
			text_string(rest, *left_out ? ", " : "");
			add_name(rest, row->name);
		}
		++*left_out;
	}
	/* Names are worth more than the intervals, where there is no room for both. */
	columns.column[5].hidden = width && columns_least_width(&columns) + NAME_ROOM > width;
	if (shown)
		error = columns_print(&columns, out, width);
	columns_free(&columns);
	text_free(&text);
	return error;
}

/* "p50 +99.7us: +99.5us operator `Gemm#1`", of those that are significant. */
static void add_causes(struct text *text, const struct xpt_diff_program *program, bool all)
{
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_diff_cause *cause = XPT_AT(program->causes, program->cause_size, i);
		bool significant = false;

		for (size_t r = 0; r < program->row_count; r++) {
			const struct xpt_diff_row *row = XPT_AT(program->rows, program->row_size, r);

			significant = significant || (row->significant && !strcmp(row->name, cause->row));
		}
		if ((!significant && !all) || cause->change == 0)
			continue;
		text_literal(text, "  ");
		diff_text_cause(text, cause);
		text_literal(text, "\n");
	}
}

static void add_count(struct text *text, __u64 count, const char *one, const char *several)
{
	text_unsigned(text, count);
	text_literal(text, " ");
	text_string(text, count == 1 ? one : several);
}

/* ---- programs ---- */

static void add_heading(struct text *text, const struct xpt_diff_program *program)
{
	add_name(text, program->name);
	text_literal(text, " (");
	text_string(text, program->runtime);
	text_literal(text, ", ");
	add_name(text, program->process);
	text_literal(text, "): ");
	text_unsigned(text, program->inferences_before);
	text_literal(text, " -> ");
	add_count(text, program->inferences_after, "inference", "inferences");
	if (program->match != XPT_DIFF_BY_NAME) {
		text_literal(text, ", matched by ");
		text_string(text, xpt_diff_match_name(program->match));
		text_literal(text, " with ");
		add_name(text, program->name_before);
		text_literal(text, " of ");
		add_name(text, program->process_before);
	}
	if (program->model_changed)
		text_literal(text, ", the model has changed");
	if (!program->by_recording)
		text_literal(text, ", tested by blocks");
	text_literal(text, "\n");
}

static int print_program(const struct xpt_diff_program *program, FILE *out, unsigned int width, bool all)
{
	struct text text = {}, rest = {};
	size_t left_out;
	int error;

	add_heading(&text, program);
	error = columns_print_text(&text, out);
	error = error ?:
			print_rows(out, width, program->rows, program->row_size, program->row_count, all, &rest,
				   &left_out);
	text = (struct text){};
	add_causes(&text, program, all);
	if (!error && left_out) {
		text_literal(&text, "  unchanged: ");
		text_bytes(&text, rest.data, rest.length);
		if (left_out > UNCHANGED_SHOWN) {
			text_literal(&text, " and ");
			text_unsigned(&text, left_out - UNCHANGED_SHOWN);
			text_literal(&text, " more");
		}
		text_literal(&text, "\n");
	}
	text_literal(&text, "\n");
	error = rest.error ?: error;
	text_free(&rest);
	return columns_print_text(&text, out) ?: error;
}

static const struct xpt_diff_row *find_row(const struct xpt_diff_program *program, const char *name)
{
	for (size_t i = 0; i < program->row_count; i++) {
		const struct xpt_diff_row *row = XPT_AT(program->rows, program->row_size, i);

		if (row->kind != XPT_DIFF_OPERATOR && !strcmp(row->name, name))
			return row;
	}
	return NULL;
}

static bool is_tested(const struct xpt_diff_program *program)
{
	for (size_t i = 0; i < program->row_count; i++)
		if (!isnan(XPT_AT(program->rows, program->row_size, i)->p))
			return true;
	return false;
}

/* A line for each program without a significant row. */
static int print_unchanged(const struct xpt_diff *diff, FILE *out, unsigned int width)
{
	static const char *const names[] = { "p50", "p99", "throughput" };
	struct columns columns = {};
	struct text text = {};
	size_t count = 0;
	int error = 0;

	COLUMNS_TITLES(&columns, "<UNCHANGED", "<RUNTIME", "BEFORE", "AFTER", "P50", "%", "P99", "%", "RATE", "%");
	for (size_t i = 0; i < diff->program_count; i++) {
		const struct xpt_diff_program *program = XPT_AT(diff->programs, diff->program_size, i);

		if (program->significant || count++ >= UNCHANGED_SHOWN)
			continue;
		columns_name(&columns, program->name);
		columns_name(&columns, program->runtime);
		columns_count(&columns, program->inferences_before);
		columns_count(&columns, program->inferences_after);
		for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
			const struct xpt_diff_row *row = find_row(program, names[n]);

			diff_text_value(&text, row ? row->after : NAN, row ? row->unit : "", false);
			add_cell(&columns, &text);
			add_percent(&text, row ? row->percent : NAN);
			add_cell(&columns, &text);
		}
	}
	text_clear(&text, 0);
	if (count)
		error = columns_print(&columns, out, width);
	for (size_t i = 0; i < diff->program_count; i++) {
		const struct xpt_diff_program *program = XPT_AT(diff->programs, diff->program_size, i);

		/* One that may be another program than before. */
		if (!is_tested(program)) {
			add_name(&text, program->name);
			text_literal(&text, ": too few inferences to test\n");
		}
		if (!program->significant && (program->match != XPT_DIFF_BY_NAME || program->model_changed))
			add_heading(&text, program);
	}
	error = columns_print_text(&text, out) ?: error;
	if (count > UNCHANGED_SHOWN)
		fprintf(out, "(and %zu more; --all shows them)\n", count - UNCHANGED_SHOWN);
	if (count)
		putc('\n', out);
	columns_free(&columns);
	text_free(&text);
	return error;
}

/* ---- the rest ---- */

static void add_unmatched(struct text *text, const struct xpt_diff *diff)
{
	for (size_t i = 0; i < diff->unmatched_count && i < UNCHANGED_SHOWN; i++) {
		const struct xpt_diff_unmatched *one = XPT_AT(diff->unmatched, diff->unmatched_size, i);

		text_string(text, one->ambiguous ? "ambiguous, " : "only ");
		text_string(text, one->after ? "after: " : "before: ");
		add_name(text, one->name);
		text_literal(text, " (");
		text_string(text, one->runtime);
		text_literal(text, ", ");
		add_name(text, one->process);
		text_literal(text, "), ");
		add_count(text, one->inferences, "inference\n", "inferences\n");
	}
	if (diff->unmatched_count > UNCHANGED_SHOWN) {
		text_literal(text, "and ");
		add_count(text, diff->unmatched_count - UNCHANGED_SHOWN, "more program\n", "more programs\n");
	}
	for (size_t i = 0; i < diff->note_count; i++) {
		text_literal(text, "note: ");
		add_name(text, diff->notes[i]);
		text_literal(text, "\n");
	}
}

static void add_checks(struct text *text, const struct xpt_diff *diff)
{
	for (size_t i = 0; i < diff->check_count; i++) {
		const struct xpt_diff_check *check = XPT_AT(diff->checks, diff->check_size, i);

		text_string(text, check->failed ? "FAILED: " : check->row ? "passed: " : "not checked: ");
		add_name(text, check->condition);
		if (!check->row) {
			text_literal(text, ": there is no such row of this unit on both sides\n");
			continue;
		}
		text_literal(text, ": ");
		add_percent(text, check->percent);
		if (*check->program) {
			text_literal(text, " of ");
			add_name(text, check->program);
		}
		if (check->beyond && !check->failed)
			text_string(text, isnan(check->adjusted) ? ", too little to test" : ", not more than noise");
		text_literal(text, "\n");
	}
}

void diff_text_summary(struct text *text, const struct xpt_diff *diff)
{
	bool blocks = false;

	add_count(text, diff->recordings_before, "recording", "recordings");
	text_literal(text, " before, ");
	text_unsigned(text, diff->recordings_after);
	text_literal(text, " after: ");
	text_unsigned(text, diff->significant);
	text_literal(text, " of ");
	add_count(text, diff->tested, "row differs", "rows differ");
	text_literal(text, " by more than noise (*)");
	text_format(text, " at the level of %g%%; intervals are of %g%%\n", 100 * diff->level, 100 * (1 - diff->level));
	for (size_t i = 0; i < diff->program_count; i++)
		blocks = blocks || !XPT_AT(diff->programs, diff->program_size, i)->by_recording;
	if (blocks && diff->run_noise > 0)
		text_format(text,
			    "by blocks: recordings of the same program are taken to differ by %g%%, and in "
			    "waiting for a CPU by all of it; more recordings of each side show it\n",
			    100 * diff->run_noise);
}

int diff_text(const struct xpt_diff *diff, FILE *out, unsigned int columns, bool all)
{
	struct text text = {};
	size_t left_out;
	int error;

	diff_text_summary(&text, diff);
	text_literal(&text, "\n");
	error = columns_print_text(&text, out);
	for (size_t i = 0; i < diff->program_count && !error; i++) {
		const struct xpt_diff_program *program = XPT_AT(diff->programs, diff->program_size, i);

		if (program->significant || all)
			error = print_program(program, out, columns, all);
	}
	if (!error && !all)
		error = print_unchanged(diff, out, columns);
	text = (struct text){};
	if (!error && diff->counter_count)
		error = print_rows(out, columns, diff->counters, diff->counter_size, diff->counter_count, all, &text,
				   &left_out);
	if (text.length) {
		fputs("unchanged counters: ", out);
		text_literal(&text, "\n");
	}
	add_unmatched(&text, diff);
	add_checks(&text, diff);
	return columns_print_text(&text, out) ?: error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/totals.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"

#define LINES_MAX 40 /* shown: those that ran most */
#define FIGURES 70   /* columns of all but the name */
#define NAME_MIN 14  /* columns */
#define NAME_MAX_SIZE 40

/* The place of a program; others, when there is none left. */
static struct program_total *find(struct totals *totals, const struct xpt_program_report *program)
{
	struct program_total *total;

	for (size_t i = 0; i < totals->count; i++) {
		total = &totals->programs[i];
		if (total->pid == program->pid && !strcmp(total->name, program->name) &&
		    !strcmp(total->runtime, program->runtime))
			return total;
	}
	total = &totals->programs[totals->count];
	if (totals->count == TOTALS_MAX)
		return total;
	total->runtime = strdup(program->runtime);
	total->name = strdup(program->name);
	if (total->runtime && total->name) {
		total->pid = program->pid;
		totals->count++;
		return total;
	}
	free(total->runtime);
	free(total->name);
	*total = (struct program_total){};
	return &totals->programs[TOTALS_MAX];
}

static void add(struct program_total *total, const struct xpt_program_report *program)
{
	total->inferences += program->inferences;
	total->taken += program->taken;
	total->lost += program->lost;
	total->failed += program->failed;
}

void totals_add(struct totals *totals, const struct xpt_program_report *program)
{
	struct program_total *total = find(totals, program);

	add(total, program);
	add(&totals->sum, program);
	if (!total->latencies)
		total->latencies = xpt_latencies_create();
	if (!total->latencies || xpt_latencies_merge(total->latencies, program->latencies))
		totals->inexact = true;
}

static int by_inferences(const void *left, const void *right)
{
	const struct program_total *const *a = left, *const *b = right;

	return ((*a)->inferences < (*b)->inferences) - ((*a)->inferences > (*b)->inferences);
}

static void print_line(FILE *out, const struct program_total *total, unsigned int name_columns)
{
	struct xpt_column_summary summary;

	print_name(out, total->name ?: "(others)", name_columns);
	if (total->name)
		fprintf(out, " %7d", total->pid);
	else
		fprintf(out, " %7s", "");
	fprintf(out, " %11" PRIu64 " %11" PRIu64 " %7" PRIu64, total->inferences, total->taken, total->lost);
	if (total->latencies && !xpt_latencies_get(total->latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, &summary))
		fprintf(out, " %9.1f %9.1f %9.1f\n", summary.mean, summary.p50, summary.p99);
	else
		fprintf(out, " %9s %9s %9s\n", "N/A", "N/A", "N/A");
}

void totals_print(const struct totals *totals, FILE *out, unsigned int columns)
{
	const struct program_total *lines[TOTALS_MAX], *others = &totals->programs[TOTALS_MAX];
	unsigned int name_columns = columns < FIGURES + NAME_MIN ? NAME_MIN : columns - FIGURES;

	if (!columns || name_columns > NAME_MAX_SIZE)
		name_columns = NAME_MAX_SIZE;
	for (size_t i = 0; i < totals->count; i++)
		lines[i] = &totals->programs[i];
	qsort(lines, totals->count, sizeof(lines[0]), by_inferences);
	if (totals->count)
		fprintf(out, "%-*s %7s %11s %11s %7s %9s %9s %9s\n", (int)name_columns, "PROGRAM", "PID", "INFERENCES",
			"SAMPLES", "LOST", "MEAN us", "P50 us", "P99 us");
	for (size_t i = 0; i < totals->count && i < LINES_MAX; i++)
		print_line(out, lines[i], name_columns);
	if (totals->count > LINES_MAX)
		fprintf(out, "%zu more ran less than these\n", totals->count - LINES_MAX);
	if (others->inferences)
		print_line(out, others, name_columns);
	if (totals->inexact)
		fputs("memory was short: some samples are missing from the times above\n", out);
}

void totals_free(struct totals *totals)
{
	for (size_t i = 0; i <= TOTALS_MAX; i++) {
		free(totals->programs[i].runtime);
		free(totals->programs[i].name);
		xpt_latencies_free(totals->programs[i].latencies);
	}
	*totals = (struct totals){};
}

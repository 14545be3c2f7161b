/* SPDX-License-Identifier: BSD-2-Clause */
/* An explanation in words. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/explain_private.h"
#include "report/table/columns.h"

#define NAME_LEAST 19 /* of the longest one that is always there */
#define NAME_MOST 44
#define NUMBERS 24	   /* columns behind a name */
#define OPERATORS_SHOWN 12 /* the others are one line */
#define CAUSES_SHOWN 8
#define PIDS_SHOWN 4
#define SHARE_LEAST 0.01      /* of the difference: smaller causes are one line */
#define DIFFERENCE_LEAST 0.02 /* of a typical inference: a smaller one is not explained */

struct page {
	struct text text;
	unsigned int columns;
	size_t width; /* of names, in columns */
};

static void add_terminal(struct text *text, const char *name)
{
	text_terminal(text, name, strlen(name), 0);
}

static void add_time(struct text *text, double nanoseconds)
{
	columns_format_time(text, nanoseconds, false);
}

static void add_spaces(struct text *text, size_t count)
{
	while (count--)
		text_literal(text, " ");
}

/* Set to the right. sign: with a + or -. */
static void add_time_cell(struct page *page, double nanoseconds, bool sign)
{
	struct text cell = {};

	if (sign)
		text_string(&cell, nanoseconds < 0 ? "-" : "+");
	add_time(&cell, fabs(nanoseconds));
	add_spaces(&page->text, cell.length < 10 ? 10 - cell.length : 0);
	text_bytes(&page->text, cell.data, cell.length);
	if (cell.error)
		text_fail(&page->text);
	text_free(&cell);
}

static void add_share_cell(struct page *page, double part, double whole)
{
	const double percent = whole > 0 ? 100 * part / whole : 0, rounded = round(percent);
	struct text cell = {};

	if (percent > 0 && percent < 0.5)
		text_literal(&cell, "<1");
	else
		text_signed(&cell, fabs(rounded) < 1e9 ? (__s64)rounded : 0);
	add_spaces(&page->text, cell.length < 7 ? 7 - cell.length : 0);
	text_bytes(&page->text, cell.data, cell.length);
	text_literal(&page->text, " %");
	if (cell.error)
		text_fail(&page->text);
	text_free(&cell);
}

/* A name of one or two parts, and spaces. */
static void add_name_cell(struct page *page, size_t indent, const char *name, const char *more)
{
	const size_t width = page->width > indent ? page->width - indent : 1;
	struct text whole = {};
	size_t used;

	text_string(&whole, name);
	if (*more && strcmp(name, more)) {
		text_literal(&whole, " (");
		text_string(&whole, more);
		text_literal(&whole, ")");
	}
	add_spaces(&page->text, indent);
	used = text_terminal(&page->text, whole.data ?: "", whole.length, width);
	add_spaces(&page->text, used < width ? width - used : 0);
	if (whole.error)
		text_fail(&page->text);
	text_free(&whole);
}

static void add_part(struct page *page, const char *name, const char *more, double part, double whole)
{
	add_name_cell(page, 4, name, more);
	add_time_cell(page, part, false);
	add_share_cell(page, part, whole);
	text_literal(&page->text, "\n");
}

/* ---- one program ---- */

static void add_heading(struct page *page, const struct xpt_explain_program *program)
{
	struct text *text = &page->text;

	add_terminal(text, program->name);
	text_literal(text, ": ");
	text_unsigned(text, program->inferences);
	text_string(text, program->inferences == 1 ? " inference" : " inferences");
	if (program->recorded != program->inferences) {
		text_literal(text, ", ");
		text_unsigned(text, program->recorded);
		text_literal(text, " recorded");
	}
	if (program->failed) {
		text_literal(text, ", ");
		text_unsigned(text, program->failed);
		text_literal(text, " failed");
	}
	if (program->lost) {
		text_literal(text, ", ");
		text_unsigned(text, program->lost);
		text_literal(text, " lost");
	}
	text_literal(text, "\n  ");
	add_terminal(text, program->runtime);
	text_literal(text, " in ");
	add_terminal(text, program->process);
	for (size_t i = 0; i < program->pid_count && i < PIDS_SHOWN; i++) {
		text_string(text, i ? ", " : " (");
		text_signed(text, program->pids[i]);
	}
	text_string(text, program->pid_count > PIDS_SHOWN ? ", ...)\n" : ")\n");
	if (!program->count)
		return;
	text_literal(text, "  median ");
	add_time(text, (double)program->p50);
	text_literal(text, ", mean ");
	add_time(text, program->mean);
	text_literal(text, ", 99 % within ");
	add_time(text, (double)program->p99);
	text_literal(text, ", longest ");
	add_time(text, (double)program->max);
	text_literal(text, "; ");
	add_time(text, program->total);
	text_literal(text, " in all\n");
}

static void add_operators(struct page *page, const struct xpt_explain_program *program, double whole)
{
	const size_t count = program->operator_count - 1;
	double rest = 0;

	text_literal(&page->text, "  The same by operators, without those inside them:\n");
	for (size_t i = 0; i < count; i++) {
		const struct xpt_explain_part *part = &program->operators[i];

		if (i < OPERATORS_SHOWN)
			add_part(page, part->name, part->title, part->typical, whole);
		else
			rest += part->typical;
	}
	if (count > OPERATORS_SHOWN) {
		char name[64] = "";
		struct text text = {};

		text_unsigned(&text, count - OPERATORS_SHOWN);
		text_literal(&text, " other operators");
		if (!text.error && text.length < sizeof(name))
			memcpy(name, text.data, text.length);
		text_free(&text);
		add_part(page, name, "", rest, whole);
	}
	add_part(page, program->operators[count].title, "", program->operators[count].typical, whole);
}

static void add_beside(struct page *page, const struct xpt_explain_cohort *cohort)
{
	struct text *text = &page->text;

	if (cohort->jobs > 0) {
		text_literal(text, "  Meanwhile the jobs of an inference were ");
		add_time(text, cohort->queue);
		text_literal(text, " in queues and ");
		add_time(text, cohort->device);
		text_literal(text, " on the device.\n");
	}
	if (cohort->tracing > 0) {
		text_literal(text, "  Of the CPU time, probes took ");
		add_time(text, cohort->tracing);
		text_literal(text, ".\n");
	}
}

static void add_typical(struct page *page, const struct xpt_explain_program *program)
{
	const struct xpt_explain_cohort *cohort = &program->cohorts[XPT_COHORT_TYPICAL];
	struct text *text = &page->text;

	text_literal(text, "\n  A typical inference (");
	text_unsigned(text, cohort->count);
	text_literal(text, " between ");
	add_time(text, (double)cohort->least);
	text_literal(text, " and ");
	add_time(text, (double)cohort->most);
	text_literal(text, ") takes ");
	add_time(text, cohort->mean);
	text_literal(text, ":\n");
	for (size_t i = 0; i < program->state_count; i++) {
		if (program->states[i].typical > 0)
			add_part(page, program->states[i].title, "", program->states[i].typical, cohort->mean);
	}
	if (program->operator_count)
		add_operators(page, program, cohort->mean);
	add_beside(page, cohort);
}

/* Indented lines below a cause. */
static void add_lines(struct page *page, const char *lines, const char *before)
{
	while (*lines) {
		const size_t length = strcspn(lines, "\n");

		add_spaces(&page->text, 9);
		text_string(&page->text, before);
		text_bytes(&page->text, lines, length);
		text_literal(&page->text, "\n");
		lines += length + (lines[length] == '\n');
	}
}

static void add_command(struct page *page, const char *command, const struct xpt_explain_program *program)
{
	if (command && strcmp(command, program->command))
		add_lines(page, command, "more: xputrace ");
}

static void add_cause(struct page *page, const struct xpt_explain_program *program, size_t number)
{
	const struct xpt_explain_cause *cause = &program->causes[number];
	struct text name = {};

	text_unsigned(&name, number + 1);
	text_literal(&name, ". ");
	text_string(&name, cause->title);
	if (!strcmp(cause->kind, "operator")) {
		text_literal(&name, " ");
		text_string(&name, cause->name);
	}
	text_bytes(&name, "", 1);
	if (name.error)
		text_fail(&page->text);
	else
		add_name_cell(page, 4, name.data, "");
	text_free(&name);
	add_time_cell(page, cause->difference, true);
	add_share_cell(page, cause->difference, program->difference);
	text_literal(&page->text, "\n");
	add_lines(page, cause->evidence, "");
	if (cause->inferences && program->cohorts[XPT_COHORT_SLOW].count > 1) {
		add_spaces(&page->text, 9);
		text_literal(&page->text, "more than half of what ");
		text_unsigned(&page->text, cause->inferences);
		text_literal(&page->text, " of them are slower\n");
	}
	add_command(page, cause->command, program);
}

static void add_unexplained(struct page *page, const struct xpt_explain_program *program)
{
	const double share = 1 - program->explained;
	double sum = 0;

	for (size_t i = 0; i < program->cause_count; i++)
		sum += program->causes[i].explained ? 0 : program->causes[i].difference;
	add_name_cell(page, 4, "not explained:", "");
	add_time_cell(page, sum, true);
	add_share_cell(page, share, 1);
	text_literal(&page->text, "\n");
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_explain_cause *cause = &program->causes[i];

		if (cause->explained || cause->share < SHARE_LEAST)
			continue;
		add_name_cell(page, 7, cause->title, "");
		add_time_cell(page, cause->difference, true);
		add_share_cell(page, cause->difference, program->difference);
		text_literal(&page->text, "\n");
		add_lines(page, cause->evidence, "");
		add_command(page, cause->command, program);
	}
}

static void add_causes(struct page *page, const struct xpt_explain_program *program)
{
	double rest = 0;
	size_t shown = 0;

	for (size_t i = 0; i < program->cause_count && program->causes[i].explained; i++) {
		if (shown == i && i < CAUSES_SHOWN && program->causes[i].share >= SHARE_LEAST) {
			add_cause(page, program, i);
			shown++;
		} else {
			rest += program->causes[i].difference;
		}
	}
	if (rest != 0) {
		add_name_cell(page, 4, shown ? "smaller differences" : "small differences", "");
		add_time_cell(page, rest, true);
		add_share_cell(page, rest, program->difference);
		text_literal(&page->text, "\n");
	}
	add_unexplained(page, program);
}

static void add_slow(struct page *page, const struct xpt_explain_program *program)
{
	const struct xpt_explain_cohort *cohort = &program->cohorts[XPT_COHORT_SLOW];
	struct text *text = &page->text;

	text_string(text, cohort->count == 1 ? "\n  The slowest inference" : "\n  The slowest 1 % (");
	if (cohort->count != 1) {
		text_unsigned(text, cohort->count);
		text_literal(text, " of ");
		add_time(text, (double)cohort->least);
		text_literal(text, " or more)");
	}
	text_literal(text, " takes ");
	add_time(text, cohort->mean);
	if (program->difference <= DIFFERENCE_LEAST * program->cohorts[XPT_COHORT_TYPICAL].mean) {
		text_literal(text, ": hardly more.\n");
		return;
	}
	text_literal(text, ", ");
	add_time(text, program->difference);
	text_literal(text, " more:\n");
	add_causes(page, program);
	text_literal(text, "  These inferences in a trace: xputrace ");
	text_string(text, program->command);
	text_literal(text, "\n");
}

/* Names get what the widest one needs. */
static size_t name_width(const struct xpt_explain_program *program, unsigned int columns)
{
	size_t width = NAME_LEAST, most = NAME_MOST;

	for (size_t i = 0; i < program->state_count; i++)
		width = strlen(program->states[i].title) + 4 > width ? strlen(program->states[i].title) + 4 : width;
	for (size_t i = 0; i < program->operator_count && i < OPERATORS_SHOWN; i++) {
		const size_t length = strlen(program->operators[i].name) + strlen(program->operators[i].title) + 7;

		width = length > width ? length : width;
	}
	for (size_t i = 0; i < program->cause_count; i++) {
		const struct xpt_explain_cause *cause = &program->causes[i];
		const size_t length = strlen(cause->title) + strlen(cause->name) + 9;

		width = cause->share >= SHARE_LEAST && length > width ? length : width;
	}
	if (columns && columns < most + NUMBERS)
		most = columns > NAME_LEAST + NUMBERS ? columns - NUMBERS : NAME_LEAST;
	return width < most ? width : most;
}

static void add_program(struct page *page, const struct xpt_explain_program *program)
{
	page->width = name_width(program, page->columns);
	add_heading(page, program);
	if (program->count && program->cohorts[XPT_COHORT_TYPICAL].count) {
		add_typical(page, program);
		add_slow(page, program);
	}
	for (const char *line = program->missing; *line;) {
		const size_t length = strcspn(line, "\n");

		text_literal(&page->text, "  note: ");
		text_bytes(&page->text, line, length);
		text_literal(&page->text, "\n");
		line += length + (line[length] == '\n');
	}
}

int xpt_explain_text(const struct xpt_explain *explain, unsigned int columns, char **result)
{
	struct page page = { .columns = columns };
	const size_t left = explain->study->program_count - explain->program_count;

	if (!explain->program_count)
		text_literal(&page.text, "no program was run\n");
	for (size_t i = 0; i < explain->program_count; i++) {
		if (i)
			text_literal(&page.text, "\n");
		add_program(&page, &explain->programs[i].view);
	}
	if (left) {
		text_literal(&page.text, "\n");
		text_unsigned(&page.text, left);
		text_string(&page.text, left == 1 ? " more program\n" : " more programs with less time\n");
	}
	text_bytes(&page.text, "", 1);
	if (page.text.error) {
		text_free(&page.text);
		return -ENOMEM;
	}
	*result = page.text.data;
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The tables of operators: one a program, the most expensive operators first. */
#include "report/table/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/text.h"
#include "model/stats/statistics.h"
#include "report/table/columns.h"

#define ROWS_MAX 40

/* Columns that are shown only where they have values. */
enum { NET = 5, CPU = 9, WAITED, BLOCKED, LAUNCHES, DEVICE_TOTAL, DEVICE_MEAN };

/* Operators of all programs, those of a program next to each other; those of none by process. */
struct rows {
	const struct model_operator **op;
	size_t count;
	double whole; /* ns that their shares are of; 0: not known */
};

static unsigned int program_id(const struct model_operator *op)
{
	return op->program ? op->program->id : 0;
}

/* Those that belong to no known program come last. */
static int compare(const void *a, const void *b)
{
	const struct model_operator *first = *(const struct model_operator *const *)a;
	const struct model_operator *second = *(const struct model_operator *const *)b;
	unsigned int of = program_id(first) - 1, of_second = program_id(second) - 1;

	if (of != of_second)
		return of < of_second ? -1 : 1;
	if (first->process->sort_index != second->process->sort_index)
		return first->process->sort_index < second->process->sort_index ? -1 : 1;
	if (first->self_time != second->self_time)
		return first->self_time < second->self_time ? 1 : -1;
	return first->id < second->id ? -1 : first->id > second->id;
}

static int print_title(const struct model_operator *op, FILE *out)
{
	const struct model_program *program = op->program;
	const char *name = program ? program->name : "no known inference";
	struct text text = { 0 };

	text_literal(&text, "operators of ");
	text_terminal(&text, name, strlen(name), 0);
	text_literal(&text, ", ");
	text_terminal(&text, op->process->name, strlen(op->process->name), 0);
	text_literal(&text, " (");
	text_unsigned(&text, op->process->tgid);
	text_literal(&text, ")");
	if (program && program->stepped) {
		text_literal(&text, ": ");
		text_unsigned(&text, program->stepped);
		text_string(&text, program->stepped == 1 ? " inference" : " inferences");
		if (program->recorded > program->stepped) {
			text_literal(&text, "; no operator was seen in ");
			text_unsigned(&text, program->recorded - program->stepped);
			text_literal(&text, " more");
		}
	}
	text_literal(&text, "\n");
	return columns_print_text(&text, out);
}

/* Recorded inferences with operators; without a program, all that the operators took. */
static double whole(const struct rows *rows)
{
	const struct model_program *program = rows->op[0]->program;
	double sum = 0;

	if (program)
		return (double)program->stepped_time;
	for (size_t i = 0; i < rows->count; i++)
		sum += (double)rows->op[i]->self_time;
	return sum;
}

/* What is left of a sum of times without what probes took of it, as a mean. They are measured, so it may be less than nothing. */
static void fill_net(struct columns *columns, double time, __u64 tracing, __u64 count)
{
	const double net = time - (double)tracing;

	if (tracing)
		columns_time(columns, net > 0 ? net / (double)count : 0);
	else
		columns_unknown(columns, 1);
}

/* What its threads did, as means. */
static void fill_states(struct columns *columns, const struct model_states *states)
{
	if (!states->calls) {
		columns_unknown(columns, 3);
		return;
	}
	columns_time(columns, (double)states->cpu / (double)states->calls);
	columns_time(columns, (double)states->waited / (double)states->calls);
	columns_time(columns, (double)states->blocked / (double)states->calls);
}

/* What it made on its thread. */
static void fill_work(struct columns *columns, const struct model_operator *op)
{
	columns_count(columns, op->launches);
	if (!op->device_time) {
		columns_unknown(columns, 2);
		return;
	}
	columns_time(columns, (double)op->device_time);
	columns_time(columns, (double)op->device_time / (double)op->recorded);
}

static void fill_operator(struct columns *columns, const struct model_operator *op, double whole)
{
	columns_name(columns, op->label);
	columns_name(columns, op->type);
	columns_count(columns, op->recorded);
	columns_share(columns, (double)op->self_time, whole);
	if (op->duration) {
		columns_time(columns, statistics_mean(op->duration));
		fill_net(columns, statistics_sum(op->duration), op->tracing, op->recorded);
		columns_time(columns, statistics_quantile(op->duration, 0.50));
		columns_time(columns, statistics_quantile(op->duration, 0.99));
		columns_time(columns, statistics_deviation(op->duration));
	} else {
		columns_unknown(columns, 5);
	}
	fill_states(columns, &op->states);
	fill_work(columns, op);
}

/* What of the inferences lies in no operator. */
static void fill_rest(struct columns *columns, const struct model_program *program)
{
	const __u64 covered = program->covered_time < program->stepped_time ? program->covered_time :
									      program->stepped_time;
	const double rest = (double)(program->stepped_time - covered);

	columns_name(columns, "(in no operator)");
	columns_name(columns, "");
	columns_count(columns, program->stepped);
	columns_share(columns, rest, (double)program->stepped_time);
	columns_time(columns, rest / (double)program->stepped);
	fill_net(columns, rest, program->stepped_tracing - program->covered_tracing, program->stepped);
	columns_unknown(columns, 9);
}

static void fill(struct columns *columns, const void *context)
{
	const struct rows *rows = context;
	const struct model_program *program = rows->op[0]->program;

	for (size_t i = 0; i < rows->count && i < ROWS_MAX; i++)
		fill_operator(columns, rows->op[i], rows->whole);
	if (program && program->stepped)
		fill_rest(columns, program);
}

/* Columns in which no operator of the program has anything are not shown. */
static void define(struct columns *columns, const struct rows *rows)
{
	bool launched = false, timed = false, measured = false, off_cpu = false;

	for (size_t i = 0; i < rows->count; i++) {
		launched |= rows->op[i]->launches > 0;
		timed |= rows->op[i]->device_time > 0;
		measured |= rows->op[i]->tracing > 0;
		off_cpu |= rows->op[i]->states.waited + rows->op[i]->states.blocked > 0;
	}
	COLUMNS_TITLES(columns, "<OPERATOR", "<TYPE", "COUNT", "SHARE", "MEAN", "NET", "P50", "P99", "STDDEV", "CPU",
		       "WAITED", "BLOCKED", "LAUNCHES", "DEVICE", "DEVICE/RUN");
	columns->column[NET].hidden = !measured;
	columns->column[CPU].hidden = columns->column[WAITED].hidden = columns->column[BLOCKED].hidden = !off_cpu;
	columns->column[LAUNCHES].hidden = !launched;
	columns->column[DEVICE_TOTAL].hidden = columns->column[DEVICE_MEAN].hidden = !timed;
}

static int print_program(const struct rows *rows, FILE *out, size_t width)
{
	struct columns columns = { 0 };
	int error = print_title(rows->op[0], out);

	define(&columns, rows);
	columns_fit(&columns, width, fill, rows);
	return columns_finish(&columns, out, width, rows->count, ROWS_MAX) ?: error;
}

static bool same_table(const struct model_operator *first, const struct model_operator *second)
{
	return first->program == second->program && first->process == second->process;
}

int summary_operators(const struct model *model, FILE *out, size_t width)
{
	struct rows all = { .count = model_operator_count(model) }, part;
	int error = 0;

	if (!all.count)
		return 0;
	all.op = calloc(all.count, sizeof(*all.op));
	if (!all.op)
		return -ENOMEM;
	for (size_t i = 0; i < all.count; i++)
		all.op[i] = model_operator(model, i);
	qsort(all.op, all.count, sizeof(*all.op), compare);
	for (size_t i = 0; i < all.count && !error; i += part.count) {
		part = (struct rows){ &all.op[i], 1, 0 };
		while (i + part.count < all.count && same_table(part.op[0], part.op[part.count]))
			part.count++;
		part.whole = whole(&part);
		error = print_program(&part, out, width);
	}
	free(all.op);
	return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What was recorded, as tables; what was lost and what it cost is in closing.c. */
#include "report/table/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stats/statistics.h"
#include "report/table/columns.h"
#include "report/table/rows.h"

#define ROWS_MAX 40
#define CODE_ROWS_MAX 20
#define NEIGHBOURS_MAX 10

/* Positions of the columns that all tables share. */
enum { COLUMN_NAME, COLUMN_RUNTIME, COLUMN_PID, COLUMN_COUNT, COLUMN_RECORDED };
#define COLUMN_CALL 13 /* of programs */

typedef void (*fill_fn)(struct columns *columns, const struct summary_row *row, double seconds);

struct table {
	struct columns columns;
	const struct summary_rows *rows;
	double seconds; /* length of the recording */
	fill_fn fill;
};

static size_t shown_of(size_t rows, size_t most)
{
	return rows < most ? rows : most;
}

static void fill_common(struct columns *columns, const struct summary_row *row)
{
	columns_name(columns, row->name);
	columns_name(columns, row->runtime);
	columns_count(columns, row->process->tgid);
}

#define DISTRIBUTION "MIN", "MEAN", "P50", "P95", "P99", "MAX", "STDDEV"

static void fill_distribution(struct columns *columns, const struct statistics *statistics)
{
	if (!statistics) {
		for (int i = 0; i < 7; i++)
			columns_name(columns, "N/A");
		return;
	}
	columns_time(columns, statistics_min(statistics));
	columns_time(columns, statistics_mean(statistics));
	columns_time(columns, statistics_quantile(statistics, 0.50));
	columns_time(columns, statistics_quantile(statistics, 0.95));
	columns_time(columns, statistics_quantile(statistics, 0.99));
	columns_time(columns, statistics_max(statistics));
	columns_time(columns, statistics_deviation(statistics));
}

static void fill_program(struct columns *columns, const struct summary_row *row, double seconds)
{
	fill_common(columns, row);
	columns_count(columns, row->calls);
	columns_count(columns, row->recorded);
	columns_rate(columns, seconds > 0 ? row->calls / seconds : 0);
	fill_distribution(columns, row->statistics);
	if (row->timed_calls)
		columns_time(columns, row->call_time / row->timed_calls);
	else if (row->statistics)
		columns_time(columns, statistics_mean(row->statistics));
	else
		columns_unknown(columns, 1);
	columns_count(columns, row->errors);
}

static void fill_function(struct columns *columns, const struct summary_row *row, double seconds)
{
	(void)seconds;
	fill_common(columns, row);
	columns_count(columns, row->calls);
	columns_count(columns, row->recorded);
	if (row->statistics) {
		columns_time(columns, row->time);
		columns_time(columns, statistics_mean(row->statistics));
		columns_time(columns, statistics_max(row->statistics));
	} else {
		columns_unknown(columns, 3);
	}
	columns_bytes(columns, row->bytes);
	columns_count(columns, row->errors);
}

static void fill_region(struct columns *columns, const struct summary_row *row, double seconds)
{
	(void)seconds;
	fill_common(columns, row);
	columns_count(columns, row->calls);
	columns_time(columns, row->time);
	fill_distribution(columns, row->statistics);
}

static void fill_known_time(struct columns *columns, double nanoseconds)
{
	if (nanoseconds > 0)
		columns_time(columns, nanoseconds);
	else
		columns_unknown(columns, 1);
}

/* Of jobs without a reported start on the device, only their number is known. */
static void fill_device_work(struct columns *columns, const struct summary_row *row, double seconds)
{
	fill_common(columns, row);
	columns_count(columns, row->jobs);
	columns_count(columns, row->failed_jobs);
	fill_known_time(columns, row->all_device);
	fill_known_time(columns, (double)row->device_time / row->jobs);
	fill_known_time(columns, row->all_queue);
	columns_share(columns, row->all_busy, seconds * 1e9);
}

/* Means of an inference; of switches and faults the sums. */
static void fill_states(struct columns *columns, const struct summary_row *row, double seconds)
{
	const struct model_states *states = &row->states;
	const double calls = (double)states->calls;

	(void)seconds;
	fill_common(columns, row);
	columns_time(columns, (double)states->cpu / calls);
	columns_time(columns, (double)states->waited / calls);
	columns_time(columns, (double)states->blocked / calls);
	columns_count(columns, states->voluntary);
	columns_count(columns, states->involuntary);
	columns_count(columns, states->minor_faults);
	columns_count(columns, states->major_faults);
}

static void table_fill(struct columns *columns, const void *context)
{
	const struct table *table = context;

	for (size_t i = 0; i < shown_of(table->rows->count, ROWS_MAX); i++)
		table->fill(columns, &table->rows->row[i], table->seconds);
}

static bool same_origin(const struct summary_rows *rows)
{
	size_t i;

	for (i = 1; i < rows->count && i < ROWS_MAX; i++) {
		if (rows->row[i].process != rows->row[0].process || strcmp(rows->row[i].runtime, rows->row[0].runtime))
			return false;
	}
	return rows->count > 0;
}

static int print_origin(const struct summary_row *row, FILE *out)
{
	struct text text = { 0 };

	text_terminal(&text, row->process->name, strlen(row->process->name), 0);
	text_literal(&text, " (");
	text_unsigned(&text, row->process->tgid);
	text_literal(&text, "), ");
	text_terminal(&text, row->runtime, strlen(row->runtime), 0);
	text_literal(&text, "\n");
	return columns_print_text(&text, out);
}

/* Where the terminal is too narrow for fewer digits and spaces, what is the same in all rows gets a line of its own. */
static int table_print(struct table *table, FILE *out, size_t width)
{
	struct columns *columns = &table->columns;
	int error = 0;

	columns_fit(columns, width, table_fill, table);
	if (width && columns_least_width(columns) > width && same_origin(table->rows)) {
		columns->column[COLUMN_RUNTIME].hidden = true;
		columns->column[COLUMN_PID].hidden = true;
		error = print_origin(&table->rows->row[0], out);
	}
	return columns_finish(columns, out, width, table->rows->count, ROWS_MAX) ?: error;
}

/* The number recorded is shown beside the exact one only where they differ: sampled, lost or not known. */
static bool all_recorded(const struct summary_rows *rows)
{
	size_t i;

	for (i = 0; i < rows->count; i++) {
		if (rows->row[i].calls != rows->row[i].recorded)
			return false;
	}
	return true;
}

/* The duration of the call itself is another one than the latency only of what is enqueued or launched. */
static bool any_asynchronous(const struct summary_rows *rows)
{
	size_t i;

	for (i = 0; i < rows->count; i++) {
		if (rows->row[i].timed_calls)
			return true;
	}
	return false;
}

static int print_programs(const struct summary_rows *rows, double seconds, FILE *out, size_t width)
{
	struct table table = { .rows = rows, .seconds = seconds, .fill = fill_program };

	COLUMNS_TITLES(&table.columns, "<PROGRAM", "<RUNTIME", "PID", "COUNT", "RECORDED", "RATE/s", DISTRIBUTION,
		       "CALL", "ERRORS");
	table.columns.column[COLUMN_RECORDED].hidden = all_recorded(rows);
	table.columns.column[COLUMN_CALL].hidden = !any_asynchronous(rows);
	return table_print(&table, out, width);
}

static int print_device_work(const struct summary_rows *programs, double seconds, FILE *out, size_t width)
{
	struct summary_rows rows = { 0 };
	struct table table = { .rows = &rows, .seconds = seconds, .fill = fill_device_work };
	int error = summary_device_work(programs, &rows);

	if (!error && rows.count) {
		COLUMNS_TITLES(&table.columns, "<PROGRAM ON DEVICE", "<RUNTIME", "PID", "JOBS", "FAILED", "TIME",
			       "MEAN", "QUEUED", "BUSY");
		error = table_print(&table, out, width);
	}
	summary_rows_free(&rows);
	return error;
}

static int print_states(const struct summary_rows *programs, FILE *out, size_t width)
{
	struct summary_rows rows = { 0 };
	struct table table = { .rows = &rows, .fill = fill_states };
	int error = summary_states(programs, &rows);

	if (!error && rows.count) {
		COLUMNS_TITLES(&table.columns, "<PROGRAM ON THREADS", "<RUNTIME", "PID", "CPU", "WAITED", "BLOCKED",
			       "BLOCKS", "PREEMPTED", "FAULTS", "MAJOR");
		error = table_print(&table, out, width);
	}
	summary_rows_free(&rows);
	return error;
}

static void fill_reasons(struct columns *columns, const struct summary_row *row, double seconds)
{
	(void)seconds;
	fill_common(columns, row);
	for (int reason = XPT_OFF_CPU_FUTEX; reason <= XPT_OFF_CPU_OTHER; reason++)
		columns_time(columns, (double)row->states.blocked_by[reason] / (double)row->states.calls);
}

/* Means of an inference, where it is recorded what threads wait for. */
static int print_reasons(const struct summary_rows *programs, FILE *out, size_t width)
{
	struct summary_rows rows = { 0 };
	struct table table = { .rows = &rows, .fill = fill_reasons };
	int error = summary_reasons(programs, &rows);

	if (!error && rows.count) {
		COLUMNS_TITLES(&table.columns, "<PROGRAM BLOCKED BY", "<RUNTIME", "PID", "FUTEX", "POLL", "IO", "IOCTL",
			       "FAULT", "SLEEP", "OTHER");
		error = table_print(&table, out, width);
	}
	summary_rows_free(&rows);
	return error;
}

struct neighbour_row {
	const struct model_program *program;
	const struct model_neighbour *neighbour;
};

struct neighbour_table {
	struct neighbour_row *row;
	size_t count;
};

static int compare_neighbours(const void *a, const void *b)
{
	const struct model_neighbour *first = ((const struct neighbour_row *)a)->neighbour;
	const struct model_neighbour *second = ((const struct neighbour_row *)b)->neighbour;
	const __u64 one = first->preempted_time + first->woke_time, other = second->preempted_time + second->woke_time;

	return one < other ? 1 : -(one > other);
}

static void fill_neighbours(struct columns *columns, const void *context)
{
	const struct neighbour_table *table = context;

	for (size_t i = 0; i < shown_of(table->count, NEIGHBOURS_MAX); i++) {
		const struct neighbour_row *row = &table->row[i];

		columns_name(columns, row->neighbour->name);
		columns_count(columns, row->neighbour->tgid);
		columns_name(columns, row->program->name);
		columns_count(columns, row->neighbour->preempted);
		columns_time(columns, (double)row->neighbour->preempted_time);
		columns_count(columns, row->neighbour->woke);
		columns_time(columns, (double)row->neighbour->woke_time);
	}
}

/* Who ran in place of threads in inferences, and who woke them. */
static int print_neighbours(const struct model *model, FILE *out, size_t width)
{
	struct neighbour_table table = { 0 };
	struct columns columns = { 0 };
	size_t room = 0;
	int error;

	for (size_t i = 0; i < model_program_count(model); i++)
		room += model_program(model, i)->neighbour_count;
	if (!room)
		return 0;
	table.row = calloc(room, sizeof(*table.row));
	if (!table.row)
		return -ENOMEM;
	for (size_t i = 0; i < model_program_count(model); i++) {
		const struct model_program *program = model_program(model, i);

		for (size_t j = 0; j < program->neighbour_count; j++)
			table.row[table.count++] = (struct neighbour_row){ program, &program->neighbours[j] };
	}
	qsort(table.row, table.count, sizeof(*table.row), compare_neighbours);
	COLUMNS_TITLES(&columns, "<THREADS BESIDE", "PID", "<PROGRAM", "PREEMPTED", "TIME", "WOKE", "BLOCKED");
	columns_fit(&columns, width, fill_neighbours, &table);
	error = columns_finish(&columns, out, width, table.count, NEIGHBOURS_MAX);
	free(table.row);
	return error;
}

static int print_functions(const struct summary_rows *rows, FILE *out, size_t width)
{
	struct table table = { .rows = rows, .fill = fill_function };

	COLUMNS_TITLES(&table.columns, "<FUNCTION", "<RUNTIME", "PID", "COUNT", "RECORDED", "TIME", "MEAN", "MAX",
		       "BYTES", "ERRORS");
	table.columns.column[COLUMN_RECORDED].hidden = all_recorded(rows);
	return table_print(&table, out, width);
}

static int print_regions(const struct summary_rows *rows, FILE *out, size_t width)
{
	struct table table = { .rows = rows, .fill = fill_region };

	COLUMNS_TITLES(&table.columns, "<REGION", "<RUNTIME", "PID", "COUNT", "TIME", DISTRIBUTION);
	return table_print(&table, out, width);
}

/* ---- tables of other rows ---- */

struct queue_table {
	struct summary_queues queues;
	double seconds;
};

static void fill_queues(struct columns *columns, const void *context)
{
	const struct queue_table *table = context;

	for (size_t i = 0; i < shown_of(table->queues.count, ROWS_MAX); i++) {
		const struct model_queue *queue = table->queues.queue[i];

		columns_name(columns, *queue->engine ? queue->engine : "queue");
		columns_name(columns, *queue->device ? queue->device : "-");
		columns_name(columns, queue->driver);
		columns_count(columns, queue->jobs);
		columns_count(columns, queue->failed);
		columns_share(columns, queue->busy_time, table->seconds * 1e9);
		columns_share(columns, queue->target_time, table->seconds * 1e9);
	}
}

static int print_queues(const struct model *model, double seconds, FILE *out, size_t width)
{
	struct queue_table table = { .seconds = seconds };
	struct columns columns = { 0 };
	int error = summary_queues(model, &table.queues);

	if (!error && table.queues.count) {
		COLUMNS_TITLES(&columns, "<QUEUE", "<DEVICE", "<DRIVER", "JOBS", "FAILED", "BUSY", "TARGET");
		columns_fit(&columns, width, fill_queues, &table);
		error = columns_finish(&columns, out, width, table.queues.count, ROWS_MAX);
	}
	summary_queues_free(&table.queues);
	return error;
}

static void fill_counter(struct columns *columns, const struct model_counter *counter)
{
	bool sum = counter->kind == MODEL_COUNTER_SUM;
	char unit[64];

	columns_name(columns, counter->name);
	snprintf(unit, sizeof(unit), "%s%s", *counter->unit || !sum ? counter->unit : "count", sum ? "/s" : "");
	columns_name(columns, unit);
	if (!counter->emitted) {
		columns_unknown(columns, 4);
		return;
	}
	columns_real(columns, counter->least);
	columns_real(columns, counter->mean);
	columns_real(columns, counter->most);
	if (sum)
		columns_real(columns, counter->total);
	else
		columns_unknown(columns, 1);
}

static void fill_counters(struct columns *columns, const void *model)
{
	for (size_t i = 0; i < shown_of(model_counter_count(model), ROWS_MAX); i++)
		fill_counter(columns, model_counter(model, i));
}

static int print_counters(const struct model *model, FILE *out, size_t width)
{
	struct columns columns = { 0 };

	if (!model_counter_count(model))
		return 0;
	COLUMNS_TITLES(&columns, "<COUNTER", "<UNIT", "MIN", "MEAN", "MAX", "TOTAL");
	columns_fit(&columns, width, fill_counters, model);
	return columns_finish(&columns, out, width, model_counter_count(model), ROWS_MAX);
}

static void fill_code(struct columns *columns, const void *model)
{
	for (size_t i = 0; i < shown_of(model_code_object_count(model), CODE_ROWS_MAX); i++) {
		const struct model_code_object *object = model_code_object(model, i);

		columns_name(columns, object->name ?: object->uri ?: "-");
		columns_name(columns, object->kind);
		columns_name(columns, object->machine ?: "-");
		columns_bytes(columns, object->size);
		columns_count(columns, object->loads);
		columns_count(columns, object->kernels);
	}
}

/* Code objects that were loaded or found, in the order of that. */
static int print_code(const struct model *model, FILE *out, size_t width)
{
	struct columns columns = { 0 };

	if (!model_code_object_count(model))
		return 0;
	COLUMNS_TITLES(&columns, "<CODE OBJECT", "<KIND", "<MACHINE", "SIZE", "LOADS", "KERNELS");
	columns_fit(&columns, width, fill_code, model);
	return columns_finish(&columns, out, width, model_code_object_count(model), CODE_ROWS_MAX);
}

/* ---- language models: a row for prompts, and one for outputs ---- */

static void fill_phase(struct columns *columns, const struct model_program *program, enum model_phase phase)
{
	const struct model_phase_total *total = &program->tokens->phase[phase];
	const struct statistics *time = phase == PHASE_PREFILL ? program->tokens->first_token :
								 program->tokens->output_token;

	columns_name(columns, program->name);
	columns_name(columns, program->runtime);
	columns_count(columns, program->process->tgid);
	columns_name(columns, phase == PHASE_PREFILL ? "prefill" : "decode");
	columns_count(columns, total->batches);
	columns_count(columns, total->tokens);
	columns_rate(columns, total->time ? (double)total->tokens * 1e9 / (double)total->time : 0);
	columns_name(columns, phase == PHASE_PREFILL ? "to first token" : "per token");
	if (!time) {
		columns_unknown(columns, 4);
		return;
	}
	columns_time(columns, statistics_mean(time));
	columns_time(columns, statistics_quantile(time, 0.50));
	columns_time(columns, statistics_quantile(time, 0.99));
	columns_time(columns, statistics_max(time));
}

static bool has_phase(const struct model_program *program, enum model_phase phase)
{
	return program->tokens && program->tokens->phase[phase].batches;
}

static void fill_tokens(struct columns *columns, const void *model)
{
	size_t rows = 0;

	for (size_t i = 0; i < model_program_count(model); i++) {
		const struct model_program *program = model_program(model, i);

		for (int phase = PHASE_PREFILL; phase < PHASES; phase++)
			if (has_phase(program, phase) && rows++ < ROWS_MAX)
				fill_phase(columns, program, phase);
	}
}

static int print_tokens(const struct model *model, FILE *out, size_t width)
{
	struct columns columns = { 0 };
	size_t rows = 0;

	for (size_t i = 0; i < model_program_count(model); i++)
		for (int phase = PHASE_PREFILL; phase < PHASES; phase++)
			rows += has_phase(model_program(model, i), phase);
	if (!rows)
		return 0;
	COLUMNS_TITLES(&columns, "<LANGUAGE MODEL", "<RUNTIME", "PID", "<PHASE", "BATCHES", "TOKENS", "TOKENS/s",
		       "<TIME", "MEAN", "P50", "P99", "MAX");
	columns_fit(&columns, width, fill_tokens, model);
	return columns_finish(&columns, out, width, rows, ROWS_MAX);
}

/* ---- all of them ---- */

static double recorded_seconds(const struct model *model, const struct summary_closing *closing)
{
	if (closing->duration > 0)
		return closing->duration / 1e9;
	return (model_last_time(model) - model_first_time(model)) / 1e9;
}

static int print_tables(const struct model *model, double seconds, FILE *out, size_t width)
{
	struct summary_rows programs = { 0 }, functions = { 0 }, regions = { 0 };
	int error = summary_programs(model, &programs)		 ?:
			    summary_functions(model, &functions) ?:
								   summary_regions(model, &regions);

	if (!error && programs.count)
		error = print_programs(&programs, seconds, out, width);
	else if (!error)
		fprintf(out, "no program was run\n\n");
	error = error ?: print_states(&programs, out, width);
	error = error ?: print_reasons(&programs, out, width);
	error = error ?: print_neighbours(model, out, width);
	error = error ?: print_tokens(model, out, width);
	error = error ?: summary_operators(model, out, width);
	error = error ?: print_device_work(&programs, seconds, out, width);
	error = error ?: print_queues(model, seconds, out, width);
	error = error ?: print_counters(model, out, width);
	error = error ?: print_code(model, out, width);
	if (!error && functions.count)
		error = print_functions(&functions, out, width);
	if (!error && regions.count)
		error = print_regions(&regions, out, width);
	summary_rows_free(&programs);
	summary_rows_free(&functions);
	summary_rows_free(&regions);
	return error;
}

int summary_write(const struct model *model, FILE *out, unsigned int width, __u64 length)
{
	struct summary_closing closing;
	int error = summary_closing_read(model, &closing);

	if (!error)
		error = print_tables(model, length ? length / 1e9 : recorded_seconds(model, &closing), out, width);
	if (!error)
		error = summary_closing_print(model, &closing, out);
	if (error)
		return error;
	return fflush(out) ? -errno : ferror(out) ? -EIO : 0;
}

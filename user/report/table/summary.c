/* SPDX-License-Identifier: BSD-2-Clause */
/* What was recorded, as tables; what was lost and what it cost is in summary_closing.c. */
#include "report/table/summary.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stats/statistics.h"
#include "report/latency/columns.h"
#include "report/table/code.h"
#include "report/table/operators.h"
#include "report/table/rows.h"
#include "report/table/tokens.h"

#define ROWS_MAX 40

/* Positions of the columns that all tables share. */
enum { COLUMN_NAME, COLUMN_RUNTIME, COLUMN_PID };

typedef void (*fill_fn)(struct columns *columns, const struct summary_row *row, double seconds);

struct table {
	struct columns columns;
	const struct summary_rows *rows;
	double seconds; /* length of the recording */
	fill_fn fill;
};

static void define_common(struct columns *columns, const char *title)
{
	columns_define(columns, title, true);
	columns_define(columns, "RUNTIME", true);
	columns_define(columns, "PID", false);
}

static void fill_common(struct columns *columns, const struct summary_row *row)
{
	columns_name(columns, row->name);
	columns_name(columns, row->runtime);
	columns_count(columns, row->process->tgid);
}

static void define_distribution(struct columns *columns)
{
	static const char *const titles[] = { "MIN", "MEAN", "P50", "P95", "P99", "MAX", "STDDEV" };
	size_t i;

	for (i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		columns_define(columns, titles[i], false);
}

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

static void table_fill(struct table *table)
{
	size_t i;

	columns_clear(&table->columns);
	for (i = 0; i < table->rows->count && i < ROWS_MAX; i++)
		table->fill(&table->columns, &table->rows->row[i], table->seconds);
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

/*
 * Where the terminal is too narrow: first fewer digits and spaces, then what is the same in all rows gets a line of
 * its own.
 */
static int table_fit(struct table *table, FILE *out, size_t width)
{
	struct columns *columns = &table->columns;

	columns->precise = true;
	table_fill(table);
	if (!width || columns_least_width(columns) <= width)
		return 0;
	columns->precise = false;
	columns->narrow = true;
	table_fill(table);
	if (columns_least_width(columns) <= width || !same_origin(table->rows))
		return 0;
	columns->column[COLUMN_RUNTIME].hidden = true;
	columns->column[COLUMN_PID].hidden = true;
	return print_origin(&table->rows->row[0], out);
}

/* What ends a table. */
static void print_more(size_t rows, FILE *out)
{
	if (rows > ROWS_MAX)
		fprintf(out, "(%zu more; see the trace's metadata)\n", rows - ROWS_MAX);
	putc('\n', out);
}

static int table_print(struct table *table, FILE *out, size_t width)
{
	int error = table_fit(table, out, width);

	if (!error)
		error = columns_print(&table->columns, out, width);
	print_more(table->rows->count, out);
	columns_free(&table->columns);
	return error;
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

static void define_counts(struct table *table)
{
	columns_define(&table->columns, "COUNT", false);
	columns_define(&table->columns, "RECORDED", false);
	table->columns.column[table->columns.count - 1].hidden = all_recorded(table->rows);
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

	define_common(&table.columns, "PROGRAM");
	define_counts(&table);
	columns_define(&table.columns, "RATE/s", false);
	define_distribution(&table.columns);
	columns_define(&table.columns, "CALL", false);
	table.columns.column[table.columns.count - 1].hidden = !any_asynchronous(rows);
	columns_define(&table.columns, "ERRORS", false);
	return table_print(&table, out, width);
}

static int print_device_work(const struct summary_rows *programs, double seconds, FILE *out, size_t width)
{
	struct summary_rows rows = { 0 };
	struct table table = { .rows = &rows, .seconds = seconds, .fill = fill_device_work };
	int error = summary_device_work(programs, &rows);

	if (!error && rows.count) {
		define_common(&table.columns, "PROGRAM ON DEVICE");
		columns_define(&table.columns, "JOBS", false);
		columns_define(&table.columns, "FAILED", false);
		columns_define(&table.columns, "TIME", false);
		columns_define(&table.columns, "MEAN", false);
		columns_define(&table.columns, "QUEUED", false);
		columns_define(&table.columns, "BUSY", false);
		error = table_print(&table, out, width);
	}
	summary_rows_free(&rows);
	return error;
}

static int print_functions(const struct summary_rows *rows, FILE *out, size_t width)
{
	struct table table = { .rows = rows, .fill = fill_function };

	define_common(&table.columns, "FUNCTION");
	define_counts(&table);
	columns_define(&table.columns, "TIME", false);
	columns_define(&table.columns, "MEAN", false);
	columns_define(&table.columns, "MAX", false);
	columns_define(&table.columns, "BYTES", false);
	columns_define(&table.columns, "ERRORS", false);
	return table_print(&table, out, width);
}

static int print_regions(const struct summary_rows *rows, FILE *out, size_t width)
{
	struct table table = { .rows = rows, .fill = fill_region };

	define_common(&table.columns, "REGION");
	columns_define(&table.columns, "COUNT", false);
	columns_define(&table.columns, "TIME", false);
	define_distribution(&table.columns);
	return table_print(&table, out, width);
}

static void fill_queue(struct columns *columns, const struct model_queue *queue, double seconds)
{
	columns_name(columns, *queue->engine ? queue->engine : "queue");
	columns_name(columns, *queue->device ? queue->device : "-");
	columns_name(columns, queue->driver);
	columns_count(columns, queue->jobs);
	columns_count(columns, queue->failed);
	columns_share(columns, queue->busy_time, seconds * 1e9);
	columns_share(columns, queue->target_time, seconds * 1e9);
}

static void fill_queues(struct columns *columns, const struct summary_queues *queues, double seconds)
{
	size_t i;

	columns_clear(columns);
	for (i = 0; i < queues->count && i < ROWS_MAX; i++)
		fill_queue(columns, queues->queue[i], seconds);
}

static int print_queues(const struct model *model, double seconds, FILE *out, size_t width)
{
	struct summary_queues queues;
	struct columns columns = { 0 };
	int error = summary_queues(model, &queues);

	if (error || !queues.count)
		goto out;
	columns_define(&columns, "QUEUE", true);
	columns_define(&columns, "DEVICE", true);
	columns_define(&columns, "DRIVER", true);
	columns_define(&columns, "JOBS", false);
	columns_define(&columns, "FAILED", false);
	columns_define(&columns, "BUSY", false);
	columns_define(&columns, "TARGET", false);
	fill_queues(&columns, &queues, seconds);
	columns.narrow = width && columns_least_width(&columns) > width;
	error = columns_print(&columns, out, width);
	print_more(queues.count, out);
out:
	columns_free(&columns);
	summary_queues_free(&queues);
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

static int print_counters(const struct model *model, FILE *out, size_t width)
{
	size_t count = model_counter_count(model), i;
	struct columns columns = { 0 };
	int error;

	if (!count)
		return 0;
	columns_define(&columns, "COUNTER", true);
	columns_define(&columns, "UNIT", true);
	columns_define(&columns, "MIN", false);
	columns_define(&columns, "MEAN", false);
	columns_define(&columns, "MAX", false);
	columns_define(&columns, "TOTAL", false);
	for (i = 0; i < count && i < ROWS_MAX; i++)
		fill_counter(&columns, model_counter(model, i));
	columns.narrow = width && columns_least_width(&columns) > width;
	error = columns_print(&columns, out, width);
	print_more(count, out);
	columns_free(&columns);
	return error;
}

static double recorded_seconds(const struct model *model, const struct summary_closing *closing)
{
	if (closing->duration > 0)
		return closing->duration / 1e9;
	return (model_last_time(model) - model_first_time(model)) / 1e9;
}

static int print_tables(const struct model *model, double seconds, FILE *out, size_t width)
{
	struct summary_rows programs = { 0 }, functions = { 0 }, regions = { 0 };
	int error = summary_programs(model, &programs);

	if (!error)
		error = summary_functions(model, &functions);
	if (!error)
		error = summary_regions(model, &regions);
	if (!error && programs.count)
		error = print_programs(&programs, seconds, out, width);
	else if (!error)
		fprintf(out, "no program was run\n\n");
	if (!error)
		error = summary_tokens(model, out, width);
	if (!error)
		error = summary_operators(model, out, width);
	if (!error)
		error = print_device_work(&programs, seconds, out, width);
	if (!error)
		error = print_queues(model, seconds, out, width);
	if (!error)
		error = print_counters(model, out, width);
	if (!error)
		error = summary_code(model, out, width);
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

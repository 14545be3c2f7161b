/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/stats/statistics.h"

static int compare_time(const void *a, const void *b)
{
	const struct summary_row *first = a, *second = b;

	if (first->time != second->time)
		return first->time < second->time ? 1 : -1;
	return strcmp(first->name, second->name); /* the same table for the same recording */
}

static int compare_identity(const void *a, const void *b)
{
	const struct summary_row *first = a, *second = b;
	int order;

	if (first->process != second->process)
		return first->process->sort_index < second->process->sort_index ? -1 : 1;
	order = strcmp(first->runtime, second->runtime);
	return order ? order : strcmp(first->name, second->name);
}

static int rows_allocate(struct summary_rows *rows, size_t capacity)
{
	rows->count = 0;
	rows->row = calloc(capacity ? capacity : 1, sizeof(*rows->row));
	return rows->row ? 0 : -ENOMEM;
}

static void rows_finish(struct summary_rows *rows)
{
	size_t i;

	for (i = 0; i < rows->count; i++) {
		struct summary_row *row = &rows->row[i];

		if (row->statistics)
			row->time = statistics_mean(row->statistics) * row->calls;
		else if (row->timed_calls)
			row->time = row->call_time / row->timed_calls * row->calls;
	}
	qsort(rows->row, rows->count, sizeof(*rows->row), compare_time);
}

/* Adds from to *into, which then is *merged. */
static int statistics_join(const struct statistics **into, struct statistics **merged, const struct statistics *from)
{
	int error;

	if (!from)
		return 0;
	if (!*merged) {
		*merged = statistics_create();
		if (!*merged)
			return -ENOMEM;
		error = *into ? statistics_merge(*merged, *into) : 0;
		if (error)
			return error;
		*into = *merged;
	}
	return statistics_merge(*merged, from);
}

/* Adds what from has to into, which then has statistics of its own. */
static int row_merge(struct summary_row *into, const struct summary_row *from)
{
	int error;

	into->calls += from->calls;
	into->recorded += from->recorded;
	into->errors += from->errors;
	into->call_time += from->call_time;
	into->timed_calls += from->timed_calls;
	into->jobs += from->jobs;
	into->failed_jobs += from->failed_jobs;
	into->device_time += from->device_time;
	into->all_device += from->all_device;
	into->all_queue += from->all_queue;
	into->all_busy += from->all_busy;
	into->tracing_inside += from->tracing_inside;
	states_add(&into->states, &from->states);
	into->stepped |= from->stepped;
	error = statistics_join(&into->statistics, &into->merged, from->statistics);
	return error ?: statistics_join(&into->tracing, &into->merged_tracing, from->tracing);
}

static int merge_same(struct summary_rows *rows)
{
	size_t kept = 0, i;
	int error = 0;

	qsort(rows->row, rows->count, sizeof(*rows->row), compare_identity);
	for (i = 0; i < rows->count && !error; i++) {
		if (kept && !compare_identity(&rows->row[kept - 1], &rows->row[i]))
			error = row_merge(&rows->row[kept - 1], &rows->row[i]);
		else
			rows->row[kept++] = rows->row[i];
	}
	rows->count = kept;
	return error;
}

/* Each program with its own share of calls that were recorded: those of one name may have been sampled differently. */
static void read_device_work(const struct model_program *program, struct summary_row *row)
{
	double factor = row->recorded && row->calls > row->recorded ? (double)row->calls / row->recorded : 1;

	row->jobs = program->jobs;
	row->failed_jobs = program->failed_jobs;
	row->device_time = program->device_time;
	row->all_device = program->device_time * factor;
	row->all_queue = program->queue_time * factor;
	row->all_busy = program->busy_time * factor;
}

int summary_programs(const struct model *model, struct summary_rows *rows)
{
	size_t count = model_program_count(model), i;
	int error = rows_allocate(rows, count);

	if (error)
		return error;
	for (i = 0; i < count; i++) {
		const struct model_program *program = model_program(model, i);
		__u64 calls = program->total_known ? program->total.calls : program->recorded;

		if (!calls && !program->recorded)
			continue;
		rows->row[rows->count++] = (struct summary_row){
			.name = program->name,
			.runtime = program->runtime,
			.process = program->process,
			.calls = calls,
			.recorded = program->recorded,
			.errors = program->errors,
			.statistics = program->latency,
			.tracing = program->tracing,
			.tracing_inside = program->tracing_inside,
			.states = program->states,
			.stepped = program->stepped > 0,
			.call_time = program->call ? (double)statistics_sum(program->call) : 0,
			.timed_calls = program->call ? statistics_count(program->call) : 0,
		};
		read_device_work(program, &rows->row[rows->count - 1]);
	}
	error = merge_same(rows);
	rows_finish(rows);
	return error;
}

__u64 summary_tracing(const struct summary_row *row, __u64 *latency)
{
	__u64 tracing;

	if (!row->tracing || !row->statistics)
		return 0;
	tracing = statistics_quantile(row->tracing, 0.50);
	*latency = statistics_quantile(row->statistics, 0.50);
	return tracing < *latency ? tracing : *latency;
}

static int compare_device(const void *a, const void *b)
{
	const struct summary_row *first = a, *second = b;

	if (first->all_device != second->all_device)
		return first->all_device < second->all_device ? 1 : -1;
	if (first->jobs != second->jobs)
		return first->jobs < second->jobs ? 1 : -1;
	return strcmp(first->name, second->name);
}

/* Those of the rows that are wanted; they share what all have. */
static int rows_select(const struct summary_rows *all, bool (*wanted)(const struct summary_row *row),
		       struct summary_rows *rows)
{
	int error = rows_allocate(rows, all->count);

	for (size_t i = 0; i < all->count && !error; i++) {
		if (!wanted(&all->row[i]))
			continue;
		rows->row[rows->count] = all->row[i];
		rows->row[rows->count].merged_tracing = NULL;
		rows->row[rows->count++].merged = NULL;
	}
	return error;
}

static bool has_jobs(const struct summary_row *row)
{
	return row->jobs;
}

int summary_device_work(const struct summary_rows *programs, struct summary_rows *rows)
{
	int error = rows_select(programs, has_jobs, rows);

	if (!error)
		qsort(rows->row, rows->count, sizeof(*rows->row), compare_device);
	return error;
}

static bool has_states(const struct summary_row *row)
{
	return row->states.calls;
}

int summary_states(const struct summary_rows *programs, struct summary_rows *rows)
{
	return rows_select(programs, has_states, rows);
}

static bool has_reasons(const struct summary_row *row)
{
	__u64 sum = 0;

	for (int reason = XPT_OFF_CPU_PREEMPTED; reason <= XPT_OFF_CPU_OTHER; reason++)
		sum += row->states.blocked_by[reason];
	return sum;
}

int summary_reasons(const struct summary_rows *programs, struct summary_rows *rows)
{
	return rows_select(programs, has_reasons, rows);
}

static int compare_queues(const void *a, const void *b)
{
	const struct model_queue *first = *(const struct model_queue *const *)a;
	const struct model_queue *second = *(const struct model_queue *const *)b;

	if (first->busy_time != second->busy_time)
		return first->busy_time < second->busy_time ? 1 : -1;
	if (first->jobs != second->jobs)
		return first->jobs < second->jobs ? 1 : -1;
	return first->id < second->id ? -1 : 1;
}

int summary_queues(const struct model *model, struct summary_queues *queues)
{
	size_t count = model_queue_count(model), i;

	queues->count = 0;
	queues->queue = calloc(count ? count : 1, sizeof(*queues->queue));
	if (!queues->queue)
		return -ENOMEM;
	for (i = 0; i < count; i++) {
		const struct model_queue *queue = model_queue(model, i);

		if (queue->jobs || queue->busy_time)
			queues->queue[queues->count++] = queue;
	}
	qsort(queues->queue, queues->count, sizeof(*queues->queue), compare_queues);
	return 0;
}

void summary_queues_free(struct summary_queues *queues)
{
	free(queues->queue);
	*queues = (struct summary_queues){ 0 };
}

int summary_functions(const struct model *model, struct summary_rows *rows)
{
	size_t count = model_call_total_count(model), i;
	int error = rows_allocate(rows, count);

	if (error)
		return error;
	for (i = 0; i < count; i++) {
		const struct model_call_total *total = model_call_total(model, i);
		__u64 calls = total->total_known ? total->total.calls : total->recorded;

		if (!calls && !total->recorded)
			continue;
		rows->row[rows->count++] = (struct summary_row){
			.name = total->function->name,
			.runtime = total->function->runtime,
			.process = total->process,
			.calls = calls,
			.recorded = total->recorded,
			.errors = total->errors,
			.bytes = total->bytes,
			.statistics = total->duration,
		};
	}
	rows_finish(rows);
	return 0;
}

int summary_regions(const struct model *model, struct summary_rows *rows)
{
	size_t count = model_region_total_count(model), i;
	int error = rows_allocate(rows, count);

	if (error)
		return error;
	for (i = 0; i < count; i++) {
		const struct model_region_total *total = model_region_total(model, i);

		if (!total->duration)
			continue;
		rows->row[rows->count++] = (struct summary_row){
			.name = total->name,
			.runtime = total->runtime,
			.process = total->process,
			.calls = statistics_count(total->duration),
			.recorded = statistics_count(total->duration),
			.statistics = total->duration,
		};
	}
	rows_finish(rows);
	return 0;
}

void summary_rows_free(struct summary_rows *rows)
{
	size_t i;

	for (i = 0; i < rows->count; i++) {
		statistics_free(rows->row[i].merged);
		statistics_free(rows->row[i].merged_tracing);
	}
	free(rows->row);
	*rows = (struct summary_rows){ 0 };
}

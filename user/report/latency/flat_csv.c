/* SPDX-License-Identifier: BSD-2-Clause */
/* Inferences or programs as one flat table: see latency.h. */
#include "report/latency/latency.h"

#include <math.h>
#include <time.h>

#include "model/stats/statistics.h"
#include "report/trace/csv_text.h"

#define SECOND 1000000000ull

/* In the order of SCHEMA.md. */
enum {
	FLAT_HOST,
	FLAT_PID,
	FLAT_PROCESS,
	FLAT_RUNTIME,
	FLAT_PROGRAM,
	FLAT_START,
	FLAT_DURATION,
	FLAT_ENQUEUE,
	FLAT_PREPARE,
	FLAT_SUBMIT,
	FLAT_SUBMIT_TO_RUN,
	FLAT_DEVICE,
	FLAT_COMPLETE,
	FLAT_IN_QUEUE,
	FLAT_PREFILL_TOKENS,
	FLAT_DECODE_TOKENS,
	FLAT_TOKEN_RATE,
	FLAT_FIRST_TOKEN,
	FLAT_OUTPUT_TOKEN,
	FLAT_CPU,
	FLAT_WAITED,
	FLAT_BLOCKED,
	FLAT_VOLUNTARY,
	FLAT_INVOLUNTARY,
	FLAT_MINOR_FAULTS,
	FLAT_MAJOR_FAULTS,
	FLAT_JOBS,
	FLAT_JOBS_DEVICE,
	FLAT_JOBS_QUEUE,
	FLAT_THREAD,
	FLAT_CORE,
	FLAT_BYTES,
	FLAT_STATUS,
	FLAT_FAILED,
	FLAT_INFERENCE,
	FLAT_PROGRAM_ID,
	FLAT_HANDLE,
	FLAT_COLUMNS,
};

static const char *const names[FLAT_COLUMNS] = {
	[FLAT_HOST] = "host",
	[FLAT_PID] = "pid",
	[FLAT_PROCESS] = "process",
	[FLAT_RUNTIME] = "runtime",
	[FLAT_PROGRAM] = "program",
	[FLAT_START] = "start",
	[FLAT_DURATION] = "duration_us",
	[FLAT_ENQUEUE] = "enqueue_us",
	[FLAT_PREPARE] = "prepare_us",
	[FLAT_SUBMIT] = "submit_us",
	[FLAT_SUBMIT_TO_RUN] = "submit_to_run_us",
	[FLAT_DEVICE] = "device_us",
	[FLAT_COMPLETE] = "complete_us",
	[FLAT_IN_QUEUE] = "in_queue",
	[FLAT_PREFILL_TOKENS] = "prefill_tokens",
	[FLAT_DECODE_TOKENS] = "decode_tokens",
	[FLAT_TOKEN_RATE] = "tokens_per_s",
	[FLAT_FIRST_TOKEN] = "first_token_us",
	[FLAT_OUTPUT_TOKEN] = "output_token_us",
	[FLAT_CPU] = "cpu_us",
	[FLAT_WAITED] = "waited_us",
	[FLAT_BLOCKED] = "blocked_us",
	[FLAT_VOLUNTARY] = "voluntary_switches",
	[FLAT_INVOLUNTARY] = "involuntary_switches",
	[FLAT_MINOR_FAULTS] = "minor_faults",
	[FLAT_MAJOR_FAULTS] = "major_faults",
	[FLAT_JOBS] = "jobs",
	[FLAT_JOBS_DEVICE] = "jobs_device_us",
	[FLAT_JOBS_QUEUE] = "jobs_queue_us",
	[FLAT_THREAD] = "thread",
	[FLAT_CORE] = "core",
	[FLAT_BYTES] = "bytes",
	[FLAT_STATUS] = "status",
	[FLAT_FAILED] = "failed",
	[FLAT_INFERENCE] = "inference",
	[FLAT_PROGRAM_ID] = "program_id",
	[FLAT_HANDLE] = "handle",
};

/* Those from FLAT_DURATION to FLAT_BLOCKED, as samples have them. */
static const enum xpt_column sources[] = {
	[FLAT_DURATION] = XPT_COLUMN_TOTAL_ROUND_TRIP,
	[FLAT_ENQUEUE] = XPT_COLUMN_ENQUEUE,
	[FLAT_PREPARE] = XPT_COLUMN_PREPROCESS,
	[FLAT_SUBMIT] = XPT_COLUMN_SUBMIT,
	[FLAT_SUBMIT_TO_RUN] = XPT_COLUMN_EXECUTE_TO_CHANNEL,
	[FLAT_DEVICE] = XPT_COLUMN_DEVICE_EXECUTE,
	[FLAT_COMPLETE] = XPT_COLUMN_POSTPROCESS,
	[FLAT_IN_QUEUE] = XPT_COLUMN_IN_QUEUE,
	[FLAT_PREFILL_TOKENS] = XPT_COLUMN_PREFILL_TOKENS,
	[FLAT_DECODE_TOKENS] = XPT_COLUMN_DECODE_TOKENS,
	[FLAT_TOKEN_RATE] = XPT_COLUMN_TOKEN_RATE,
	[FLAT_FIRST_TOKEN] = XPT_COLUMN_FIRST_TOKEN,
	[FLAT_OUTPUT_TOKEN] = XPT_COLUMN_OUTPUT_TOKEN,
	[FLAT_CPU] = XPT_COLUMN_CPU_TIME,
	[FLAT_WAITED] = XPT_COLUMN_WAITED_TIME,
	[FLAT_BLOCKED] = XPT_COLUMN_BLOCKED_TIME,
};

_Static_assert(FLAT_COLUMNS + XPT_SAMPLE_COUNTERS <= 64, "a bit each");

static flat_columns bit(unsigned int column)
{
	return 1ull << column;
}

/* A bit each for count columns from the first on. */
static flat_columns bits(unsigned int first, unsigned int count)
{
	return (bit(count) - 1) << first;
}

static void add_separator(struct text *text, bool *first)
{
	if (!*first)
		text_literal(text, ",");
	*first = false;
}

/* 2026-11-23T15:08:34.123456789Z; what no calendar has is left out. */
static void add_time(struct text *text, __u64 realtime)
{
	time_t seconds = (time_t)(realtime / SECOND);
	char moment[64];
	struct tm parts;

	if (!gmtime_r(&seconds, &parts))
		return;
	text_bytes(text, moment, strftime(moment, sizeof(moment), "%Y-%m-%dT%H:%M:%S.", &parts));
	latency_decimals(text, realtime % SECOND);
	text_literal(text, "Z");
}

/* ---- inferences ---- */

static bool has_value(const struct flat_row *row, unsigned int column)
{
	const struct xpt_sample *sample = row->sample;
	uint64_t thousandths;

	switch (column) {
	case FLAT_START:
		return row->start;
	case FLAT_DURATION ... FLAT_BLOCKED:
		return !xpt_sample_column(sample, sources[column], &thousandths);
	case FLAT_VOLUNTARY ... FLAT_MAJOR_FAULTS:
		return sample->has_states;
	case FLAT_JOBS:
		return sample->jobs;
	case FLAT_JOBS_DEVICE:
		return sample->device_time;
	case FLAT_JOBS_QUEUE:
		return sample->queue_time;
	case FLAT_CORE:
		return sample->has_core;
	case FLAT_BYTES:
		return sample->bytes;
	case FLAT_STATUS:
		return sample->has_status;
	default:
		return column < FLAT_COLUMNS || isfinite(sample->counter[column - FLAT_COLUMNS]);
	}
}

static void add_field(struct text *text, const struct flat_row *row, unsigned int column)
{
	const struct xpt_sample *sample = row->sample;
	uint64_t thousandths;

	switch (column) {
	case FLAT_HOST:
		csv_line(text, row->host);
		break;
	case FLAT_PID:
		text_signed(text, row->pid);
		break;
	case FLAT_PROCESS:
		csv_line(text, row->process);
		break;
	case FLAT_RUNTIME:
		csv_line(text, row->runtime);
		break;
	case FLAT_PROGRAM:
		csv_line(text, row->program);
		break;
	case FLAT_START:
		add_time(text, row->start);
		break;
	case FLAT_DURATION ... FLAT_BLOCKED:
		if (!xpt_sample_column(sample, sources[column], &thousandths))
			latency_value(text, latencies_column_whole(sources[column]), thousandths);
		break;
	case FLAT_VOLUNTARY:
		text_unsigned(text, sample->voluntary_switches);
		break;
	case FLAT_INVOLUNTARY:
		text_unsigned(text, sample->involuntary_switches);
		break;
	case FLAT_MINOR_FAULTS:
		text_unsigned(text, sample->minor_faults);
		break;
	case FLAT_MAJOR_FAULTS:
		text_unsigned(text, sample->major_faults);
		break;
	case FLAT_JOBS:
		text_unsigned(text, sample->jobs);
		break;
	case FLAT_JOBS_DEVICE:
		text_microseconds(text, sample->device_time);
		break;
	case FLAT_JOBS_QUEUE:
		text_microseconds(text, sample->queue_time);
		break;
	case FLAT_THREAD:
		text_unsigned(text, sample->tid);
		break;
	case FLAT_CORE:
		text_signed(text, sample->core);
		break;
	case FLAT_BYTES:
		text_unsigned(text, sample->bytes);
		break;
	case FLAT_STATUS:
		if (sample->status_name)
			csv_line(text, sample->status_name);
		else
			text_signed(text, sample->status);
		break;
	case FLAT_FAILED:
		text_unsigned(text, sample->failed);
		break;
	case FLAT_INFERENCE:
		text_unsigned(text, sample->number);
		break;
	case FLAT_PROGRAM_ID:
		text_unsigned(text, row->program_id);
		break;
	case FLAT_HANDLE:
		text_hexadecimal(text, row->handle);
		break;
	default:
		text_real(text, sample->counter[column - FLAT_COLUMNS]);
	}
}

flat_columns flat_row_columns(const struct flat_row *row, size_t counter_count)
{
	flat_columns columns = 0;

	for (unsigned int i = 0; i < FLAT_COLUMNS + counter_count; i++)
		columns |= has_value(row, i) ? bit(i) : 0;
	return columns;
}

void flat_add_header(struct text *text, flat_columns columns, const struct xpt_report_counter *counters,
		     size_t counter_count)
{
	bool first = true;

	for (unsigned int i = 0; i < FLAT_COLUMNS + counter_count; i++) {
		if (!(columns & bit(i)))
			continue;
		add_separator(text, &first);
		if (i < FLAT_COLUMNS)
			text_string(text, names[i]);
		else
			latency_counter_name(text, &counters[i - FLAT_COLUMNS]);
	}
	text_literal(text, "\n");
}

void flat_add_row(struct text *text, flat_columns columns, const struct flat_row *row, size_t counter_count)
{
	bool first = true;

	for (unsigned int i = 0; i < FLAT_COLUMNS + counter_count; i++) {
		if (!(columns & bit(i)))
			continue;
		add_separator(text, &first);
		if (has_value(row, i))
			add_field(text, row, i);
	}
	text_literal(text, "\n");
}

static struct flat_row row_of(const struct xpt_profile_report *report, const struct xpt_program_report *program,
			      const struct xpt_sample *sample)
{
	__u64 begun = sample->time[XPT_TIME_CALL_BEGINS];

	return (struct flat_row){
		.host = report->host,
		.process = program->process,
		.runtime = program->runtime,
		.program = program->name,
		.pid = program->pid,
		.program_id = program->id,
		.handle = program->handle,
		/* What ended in the interval may have begun before it. */
		.start = begun ? report->start_realtime + (begun - report->start) : 0,
		.sample = sample,
	};
}

/* ---- programs ---- */

/* Further ones of a program's row, behind FLAT_PROGRAM and before the figures. */
enum {
	SUMMARY_START,
	SUMMARY_END,
	SUMMARY_INFERENCES,
	SUMMARY_SAMPLES,
	SUMMARY_REQUESTED,
	SUMMARY_LOST,
	SUMMARY_FAILED,
	SUMMARY_RATE,
	SUMMARY_PROGRAM_ID,
	SUMMARY_HANDLE,
	SUMMARY_COLUMNS,
};

static const char *const summary_names[SUMMARY_COLUMNS] = {
	"start", "end", "inferences", "samples", "requested", "lost", "failed", "rate_per_s", "program_id", "handle",
};

#define IDENTITY (FLAT_PROGRAM + 1)
#define FIGURES_FIRST (IDENTITY + SUMMARY_COLUMNS) /* one bit a column, whatever the number of its figures */
#define FIGURES (FLAT_BLOCKED - FLAT_DURATION + 1)

static flat_columns program_columns(const struct xpt_profile_report *report, const struct xpt_program_report *program)
{
	flat_columns columns = bits(0, FIGURES_FIRST);
	struct xpt_column_summary summary = { .size = sizeof(summary) };
	__u64 rate;

	if (!program->requested)
		columns &= ~bit(IDENTITY + SUMMARY_REQUESTED);
	if (!latency_rate(report, program->inferences, &rate))
		columns &= ~bit(IDENTITY + SUMMARY_RATE);
	for (unsigned int i = 0; i < FIGURES; i++) {
		if (!xpt_latencies_get(program->latencies, sources[FLAT_DURATION + i], &summary))
			columns |= bit(FIGURES_FIRST + i);
	}
	return columns;
}

static void add_summary_header(struct text *text, flat_columns columns)
{
	bool first = true;

	for (unsigned int i = 0; i < FIGURES_FIRST; i++) {
		if (!(columns & bit(i)))
			continue;
		add_separator(text, &first);
		text_string(text, i < IDENTITY ? names[i] : summary_names[i - IDENTITY]);
	}
	for (unsigned int i = 0; i < FIGURES; i++) {
		for (size_t j = 0; columns & bit(FIGURES_FIRST + i) && j < LATENCY_FIGURES; j++) {
			add_separator(text, &first);
			text_string(text, names[FLAT_DURATION + i]);
			text_literal(text, "_");
			text_string(text, latency_figure_names[j]);
		}
	}
	text_literal(text, "\n");
}

static void add_summary_field(struct text *text, const struct xpt_profile_report *report,
			      const struct xpt_program_report *program, unsigned int column)
{
	__u64 rate;

	switch (column) {
	case SUMMARY_START:
		add_time(text, report->start_realtime);
		break;
	case SUMMARY_END:
		add_time(text, report->end_realtime);
		break;
	case SUMMARY_INFERENCES:
		text_unsigned(text, program->inferences);
		break;
	case SUMMARY_SAMPLES:
		text_unsigned(text, program->taken);
		break;
	case SUMMARY_REQUESTED:
		if (program->requested)
			text_unsigned(text, program->requested);
		break;
	case SUMMARY_LOST:
		text_unsigned(text, program->lost);
		break;
	case SUMMARY_FAILED:
		text_unsigned(text, program->failed);
		break;
	case SUMMARY_RATE:
		if (latency_rate(report, program->inferences, &rate))
			latency_value(text, false, rate);
		break;
	case SUMMARY_PROGRAM_ID:
		text_unsigned(text, program->id);
		break;
	default:
		text_hexadecimal(text, program->handle);
	}
}

static void add_program(struct text *text, const struct xpt_profile_report *report,
			const struct xpt_program_report *program, flat_columns columns)
{
	const struct xpt_sample none = { .size = sizeof(none) };
	struct flat_row row = row_of(report, program, &none);
	bool first = true;

	for (unsigned int i = 0; i < FIGURES_FIRST; i++) {
		if (!(columns & bit(i)))
			continue;
		add_separator(text, &first);
		if (i < IDENTITY)
			add_field(text, &row, i);
		else
			add_summary_field(text, report, program, i - IDENTITY);
	}
	for (unsigned int i = 0; i < FIGURES; i++) {
		if (columns & bit(FIGURES_FIRST + i))
			latency_figures(text, program->latencies, sources[FLAT_DURATION + i], "");
	}
	text_literal(text, "\n");
}

/* ---- reports ---- */

flat_columns flat_report_columns(const struct xpt_profile_report *report, bool summary, bool all)
{
	flat_columns columns = 0;

	if (all)
		return summary ? bits(0, FIGURES_FIRST + FIGURES) : bits(0, FLAT_COLUMNS + report->counter_count);
	for (size_t i = 0; i < report->program_count; i++) {
		const struct xpt_program_report *program = &report->programs[i];

		if (summary)
			columns |= program_columns(report, program);
		for (size_t j = 0; !summary && j < program->sample_count; j++) {
			const struct flat_row row = row_of(report, program, &program->samples[j]);

			columns |= flat_row_columns(&row, report->counter_count);
		}
	}
	return columns ?: bits(0, IDENTITY);
}

void flat_report_header(struct text *text, const struct xpt_profile_report *report, bool summary, flat_columns columns)
{
	if (summary)
		add_summary_header(text, columns);
	else
		flat_add_header(text, columns, report->counters, report->counter_count);
}

static void add_samples(struct text *text, const struct xpt_profile_report *report,
			const struct xpt_program_report *program, flat_columns columns,
			struct latency_position *position, size_t enough)
{
	while (position->sample < program->sample_count && text->length < enough && !text->error) {
		const struct flat_row row = row_of(report, program, &program->samples[position->sample++]);

		flat_add_row(text, columns, &row, report->counter_count);
	}
}

bool flat_report(struct text *text, const struct xpt_profile_report *report, bool summary, flat_columns columns,
		 struct latency_position *position, size_t enough)
{
	const struct xpt_program_report *program;

	while (position->program < report->program_count && text->length < enough && !text->error) {
		program = &report->programs[position->program];
		if (summary)
			add_program(text, report, program, columns);
		else
			add_samples(text, report, program, columns, position, enough);
		if (summary || position->sample == program->sample_count) {
			position->program++;
			position->sample = 0;
		}
	}
	return position->program < report->program_count && !text->error;
}

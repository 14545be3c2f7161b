/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/latency.h"

#include <math.h>
#include <string.h>

#include "model/stats/latencies.h"
#include "report/trace/csv_text.h"

#define UNKNOWN "N/A"
#define SECOND 1000000000ull

/* ---- fields ---- */

/* As seconds with nine decimals. */
static void add_seconds(struct text *text, __u64 nanoseconds)
{
	unsigned int rest = nanoseconds % SECOND;
	char decimals[10];
	size_t i;

	text_unsigned(text, nanoseconds / SECOND);
	for (i = sizeof(decimals) - 1; i; i--) {
		decimals[i] = '0' + rest % 10;
		rest /= 10;
	}
	decimals[0] = '.';
	text_bytes(text, decimals, sizeof(decimals));
}

static void add_thousandths(struct text *text, bool whole, __u64 thousandths)
{
	if (whole)
		text_unsigned(text, thousandths / 1000);
	else
		/* Three decimals, whatever the unit. */
		text_microseconds(text, thousandths);
}

static void add_figure(struct text *text, bool whole, double value)
{
	double thousandths = value * 1000 + 0.5;

	/* Never from a bounded histogram, but a conversion out of range would not be defined. */
	if (!(thousandths >= 0 && thousandths < 18446744073709551615.0))
		text_literal(text, UNKNOWN);
	else
		add_thousandths(text, whole, (__u64)thousandths);
}

static void add_requested(struct text *text, const struct xpt_program_report *program)
{
	if (program->requested)
		text_unsigned(text, program->requested);
	else
		text_literal(text, UNKNOWN);
}

/* ---- rows of samples ---- */

/* time on the wall clock, as it stood at the report's start. */
static void add_start_time(struct text *text, const struct xpt_profile_report *report, __u64 time)
{
	__u64 origin = report->start_realtime, realtime;
	bool known;

	/* What ended in the interval may have begun before it. */
	if (time >= report->start)
		known = !__builtin_add_overflow(origin, time - report->start, &realtime);
	else
		known = !__builtin_sub_overflow(origin, report->start - time, &realtime);
	if (time && known)
		add_seconds(text, realtime);
	else
		text_literal(text, UNKNOWN);
}

static void add_status(struct text *text, const struct xpt_sample *sample)
{
	if (!sample->has_status)
		text_literal(text, UNKNOWN);
	else if (sample->status_name)
		csv_string(text, sample->status_name);
	else
		text_signed(text, sample->status);
}

static void add_sum(struct text *text, uint64_t nanoseconds)
{
	text_literal(text, ",");
	if (nanoseconds)
		add_thousandths(text, false, nanoseconds);
	else
		text_literal(text, UNKNOWN);
}

/* No job at all, and none that took no time: of what was not seen there is no number. */
static void add_jobs(struct text *text, const struct xpt_sample *sample)
{
	text_literal(text, ",");
	if (sample->jobs)
		text_unsigned(text, sample->jobs);
	else
		text_literal(text, UNKNOWN);
	add_sum(text, sample->device_time);
	add_sum(text, sample->queue_time);
}

static void add_counters(struct text *text, const struct xpt_profile_report *report, const struct xpt_sample *sample)
{
	for (size_t i = 0; i < report->counter_count; i++) {
		text_literal(text, ",");
		if (isfinite(sample->counter[i]))
			text_real(text, sample->counter[i]);
		else
			text_literal(text, UNKNOWN);
	}
}

static void add_sample(struct text *text, const struct xpt_profile_report *report, const struct xpt_sample *sample,
		       size_t number)
{
	uint64_t thousandths;
	size_t i;

	text_unsigned(text, number);
	for (i = 0; i < XPT_COLUMNS; i++) {
		text_literal(text, ",");
		if (xpt_sample_column(sample, i, &thousandths))
			text_literal(text, UNKNOWN);
		else
			add_thousandths(text, latencies_column_whole(i), thousandths);
	}
	text_literal(text, ",");
	add_start_time(text, report, sample->time[XPT_TIME_CALL_BEGINS]);
	text_literal(text, ",");
	text_unsigned(text, sample->tid);
	text_literal(text, ",");
	if (sample->has_core)
		text_signed(text, sample->core);
	else
		text_literal(text, UNKNOWN);
	text_literal(text, ",");
	if (sample->bytes)
		text_unsigned(text, sample->bytes);
	else
		text_literal(text, UNKNOWN);
	text_literal(text, ",");
	add_status(text, sample);
	add_jobs(text, sample);
	add_counters(text, report, sample);
	text_literal(text, "\n");
}

const char *latency_end_name(enum xpt_profile_end end)
{
	switch (end) {
	case XPT_PROFILE_INTERVAL:
		return "interval";
	case XPT_PROFILE_COMPLETE:
		return "complete";
	case XPT_PROFILE_STOPPED:
		return "stopped";
	case XPT_PROFILE_RELEASED:
		return "released";
	}
	return "unknown";
}

static void add_identity(struct text *text, const struct xpt_program_report *program)
{
	text_literal(text, "program,");
	text_unsigned(text, program->id);
	text_literal(text, ",name,");
	csv_string(text, program->name);
	text_literal(text, ",generation,");
	text_unsigned(text, program->generation);
	text_literal(text, "\nprocess,");
	text_signed(text, program->pid);
	text_literal(text, ",name,");
	csv_string(text, program->process);
	text_literal(text, ",runtime,");
	csv_string(text, program->runtime);
	text_literal(text, ",handle,");
	text_hexadecimal(text, program->handle);
	text_literal(text, "\n");
}

static void add_counts(struct text *text, const struct xpt_profile_report *report,
		       const struct xpt_program_report *program)
{
	text_literal(text, "samples,");
	text_unsigned(text, program->taken);
	text_literal(text, ",requested,");
	add_requested(text, program);
	text_literal(text, ",sampleEvery,");
	text_unsigned(text, program->sample_every);
	text_literal(text, ",skipped,");
	text_unsigned(text, program->skipped);
	text_literal(text, "\ninferences,");
	text_unsigned(text, program->inferences);
	text_literal(text, ",lost,");
	text_unsigned(text, program->lost);
	text_literal(text, ",start,");
	add_seconds(text, report->start_realtime);
	text_literal(text, ",end,");
	add_seconds(text, report->end_realtime);
	text_literal(text, ",ended,");
	text_string(text, latency_end_name(report->end_reason));
	text_literal(text, ",released,");
	text_string(text, program->released ? "yes" : "no");
	text_literal(text, "\n");
}

/* "page-faults", "task-clock(ns)", "cycles(of CPU)", "power/energy-pkg/(J of device)"; a name may have commas. */
void latency_counter_name(struct text *text, const struct xpt_report_counter *counter)
{
	bool shared = *counter->of && strcmp(counter->of, "thread");
	struct text name = { 0 };

	text_string(&name, counter->name);
	if (*counter->unit || shared) {
		text_literal(&name, "(");
		text_string(&name, counter->unit);
		text_string(&name, !shared ? "" : *counter->unit ? " of " : "of ");
		text_string(&name, shared ? counter->of : "");
		text_literal(&name, ")");
	}
	text_bytes(&name, "", 1);
	csv_string(text, name.error ? counter->name : name.data);
	text_free(&name);
}

static void add_heading(struct text *text, const struct xpt_profile_report *report)
{
	size_t i;

	text_literal(text, "Sample");
	for (i = 0; i < XPT_COLUMNS; i++) {
		text_literal(text, ",");
		text_string(text, xpt_column_name(i));
	}
	text_literal(text, ",startTime(S),thread,core,bytes,status,jobs,deviceTime(Us),queueTime(Us)");
	for (i = 0; i < report->counter_count; i++) {
		text_literal(text, ",");
		latency_counter_name(text, &report->counters[i]);
	}
	text_literal(text, "\n");
}

bool latency_samples(struct text *text, const struct xpt_profile_report *report, struct latency_position *position,
		     size_t enough)
{
	const struct xpt_program_report *program;

	while (position->program < report->program_count && !text->error) {
		program = &report->programs[position->program];
		if (!position->sample) {
			add_identity(text, program);
			add_counts(text, report, program);
			add_heading(text, report);
		}
		/* At least one row: after that, the position shows that the header is there. */
		while (position->sample < program->sample_count && !text->error) {
			add_sample(text, report, &program->samples[position->sample], position->sample + 1);
			position->sample++;
			if (text->length >= enough)
				break;
		}
		if (position->sample == program->sample_count) {
			position->program++;
			position->sample = 0;
		}
		if (text->length >= enough)
			break;
	}
	return position->program < report->program_count && !text->error;
}

/* ---- rows of programs ---- */

void latency_summary_heading(struct text *text)
{
	static const char *const figures[] = { "count", "min", "mean", "p50", "p90", "p95", "p99", "max", "stddev" };
	size_t i, j;

	text_literal(text, "reportStart,reportEnd,program,name,process,pid,runtime,handle,samples,requested,"
			   "inferences,lost,failed,rate");
	for (i = 0; i < XPT_COLUMNS; i++) {
		for (j = 0; j < sizeof(figures) / sizeof(figures[0]); j++) {
			text_literal(text, ",");
			text_string(text, xpt_column_name(i));
			text_literal(text, "_");
			text_string(text, figures[j]);
		}
	}
	text_literal(text, "\n");
}

/* In a second of the interval: three decimals, rounded. */
static void add_rate(struct text *text, const struct xpt_profile_report *report, __u64 inferences)
{
	__u64 length = report->end - report->start;
	unsigned __int128 thousandths;

	if (report->end <= report->start) {
		text_literal(text, UNKNOWN);
		return;
	}
	thousandths = ((unsigned __int128)inferences * (1000 * SECOND) + length / 2) / length;
	if (thousandths >> 64)
		text_literal(text, UNKNOWN);
	else
		add_thousandths(text, false, (__u64)thousandths);
}

/* A deviation needs two samples. */
static void add_deviation(struct text *text, const struct xpt_column_summary *summary)
{
	text_literal(text, ",");
	if (summary->count > 1)
		add_figure(text, false, summary->deviation);
	else
		text_literal(text, UNKNOWN);
}

static void add_column(struct text *text, const struct xpt_latencies *latencies, enum xpt_column column)
{
	bool whole = latencies_column_whole(column);
	struct xpt_column_summary summary = { .size = sizeof(summary) };

	if (xpt_latencies_get(latencies, column, &summary)) {
		text_literal(text, ",0,N/A,N/A,N/A,N/A,N/A,N/A,N/A,N/A");
		return;
	}
	text_literal(text, ",");
	text_unsigned(text, summary.count);
	text_literal(text, ",");
	add_figure(text, whole, summary.min);
	text_literal(text, ",");
	add_figure(text, false, summary.mean);
	text_literal(text, ",");
	add_figure(text, whole, summary.p50);
	text_literal(text, ",");
	add_figure(text, whole, summary.p90);
	text_literal(text, ",");
	add_figure(text, whole, summary.p95);
	text_literal(text, ",");
	add_figure(text, whole, summary.p99);
	text_literal(text, ",");
	add_figure(text, whole, summary.max);
	add_deviation(text, &summary);
}

static void add_program(struct text *text, const struct xpt_profile_report *report,
			const struct xpt_program_report *program)
{
	size_t i;

	add_seconds(text, report->start_realtime);
	text_literal(text, ",");
	add_seconds(text, report->end_realtime);
	text_literal(text, ",");
	text_unsigned(text, program->id);
	text_literal(text, ",");
	csv_string(text, program->name);
	text_literal(text, ",");
	csv_string(text, program->process);
	text_literal(text, ",");
	text_signed(text, program->pid);
	text_literal(text, ",");
	csv_string(text, program->runtime);
	text_literal(text, ",");
	text_hexadecimal(text, program->handle);
	text_literal(text, ",");
	text_unsigned(text, program->taken);
	text_literal(text, ",");
	add_requested(text, program);
	text_literal(text, ",");
	text_unsigned(text, program->inferences);
	text_literal(text, ",");
	text_unsigned(text, program->lost);
	text_literal(text, ",");
	text_unsigned(text, program->failed);
	text_literal(text, ",");
	add_rate(text, report, program->inferences);
	for (i = 0; i < XPT_COLUMNS; i++)
		add_column(text, program->latencies, i);
	text_literal(text, "\n");
}

bool latency_summary(struct text *text, const struct xpt_profile_report *report, struct latency_position *position,
		     size_t enough)
{
	while (position->program < report->program_count && text->length < enough && !text->error)
		add_program(text, report, &report->programs[position->program++]);
	return position->program < report->program_count && !text->error;
}

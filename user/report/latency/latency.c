/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/latency.h"

#include <math.h>
#include <string.h>

#include "model/stats/statistics.h"
#include "report/trace/csv_text.h"

#define UNKNOWN "N/A"
#define SECOND 1000000000ull

/* ---- fields ---- */

void latency_decimals(struct text *text, unsigned int nanoseconds)
{
	char decimals[9];

	for (size_t i = sizeof(decimals); i; i--, nanoseconds /= 10)
		decimals[i - 1] = '0' + nanoseconds % 10;
	text_bytes(text, decimals, sizeof(decimals));
}

/* As seconds with nine decimals. */
static void add_seconds(struct text *text, __u64 nanoseconds)
{
	text_unsigned(text, nanoseconds / SECOND);
	text_literal(text, ".");
	latency_decimals(text, nanoseconds % SECOND);
}

void latency_value(struct text *text, bool whole, __u64 thousandths)
{
	if (whole)
		text_unsigned(text, thousandths / 1000);
	else
		text_microseconds(text, thousandths);
}

const char *const latency_figure_names[LATENCY_FIGURES] = {
	"count", "min", "mean", "p50", "p90", "p95", "p99", "max", "stddev",
};

void latency_figures(struct text *text, const struct xpt_latencies *latencies, enum xpt_column column,
		     const char *unknown)
{
	struct xpt_column_summary summary = { .size = sizeof(summary) };
	bool known = !xpt_latencies_get(latencies, column, &summary), whole = latencies_column_whole(column);
	const double values[] = { summary.min, summary.mean, summary.p50, summary.p90,
				  summary.p95, summary.p99,  summary.max, summary.deviation };
	/* A deviation needs two samples. */
	const size_t last = summary.count < 2 ? 7 : 8;

	text_literal(text, ",");
	text_unsigned(text, known ? summary.count : 0);
	for (size_t i = 0; i < LATENCY_FIGURES - 1; i++) {
		double thousandths = values[i] * 1000 + 0.5;

		text_literal(text, ",");
		/* Always in range from a bounded histogram, but a conversion out of range would not be defined. */
		if (!known || i >= last || !(thousandths >= 0 && thousandths < 18446744073709551615.0))
			text_string(text, unknown);
		else
			latency_value(text, whole && i != 1 && i != 7, (__u64)thousandths);
	}
}

bool latency_rate(const struct xpt_profile_report *report, __u64 inferences, __u64 *thousandths)
{
	__u64 length = report->end - report->start;
	unsigned __int128 rounded;

	if (report->end <= report->start)
		return false;
	rounded = ((unsigned __int128)inferences * (1000 * SECOND) + length / 2) / length;
	*thousandths = (__u64)rounded;
	return !(rounded >> 64);
}

/* What precedes a number. */
static void add_unsigned(struct text *text, const char *before, __u64 value)
{
	text_string(text, before);
	text_unsigned(text, value);
}

static void add_string(struct text *text, const char *before, const char *value)
{
	text_string(text, before);
	csv_string(text, value);
}

/* Another field, unknown where it is 0. */
static void add_nonzero(struct text *text, __u64 value)
{
	text_literal(text, ",");
	if (value)
		text_unsigned(text, value);
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

static void add_time(struct text *text, __u64 nanoseconds)
{
	text_literal(text, ",");
	if (nanoseconds)
		text_microseconds(text, nanoseconds);
	else
		text_literal(text, UNKNOWN);
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

	text_unsigned(text, number);
	for (size_t i = 0; i < XPT_COLUMNS; i++) {
		text_literal(text, ",");
		if (xpt_sample_column(sample, i, &thousandths))
			text_literal(text, UNKNOWN);
		else
			latency_value(text, latencies_column_whole(i), thousandths);
	}
	text_literal(text, ",");
	add_start_time(text, report, sample->time[XPT_TIME_CALL_BEGINS]);
	add_unsigned(text, ",", sample->tid);
	text_literal(text, ",");
	if (sample->has_core)
		text_signed(text, sample->core);
	else
		text_literal(text, UNKNOWN);
	add_nonzero(text, sample->bytes);
	text_literal(text, ",");
	add_status(text, sample);
	/* No job at all, and none that took no time: of what was not seen there is no number. */
	add_nonzero(text, sample->jobs);
	add_time(text, sample->device_time);
	add_time(text, sample->queue_time);
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
	add_unsigned(text, "program,", program->id);
	add_string(text, ",name,", program->name);
	add_unsigned(text, ",generation,", program->generation);
	text_literal(text, "\nprocess,");
	text_signed(text, program->pid);
	add_string(text, ",name,", program->process);
	add_string(text, ",runtime,", program->runtime);
	text_literal(text, ",handle,");
	text_hexadecimal(text, program->handle);
	text_literal(text, "\n");
}

static void add_counts(struct text *text, const struct xpt_profile_report *report,
		       const struct xpt_program_report *program)
{
	add_unsigned(text, "samples,", program->taken);
	text_literal(text, ",requested");
	add_nonzero(text, program->requested);
	add_unsigned(text, ",sampleEvery,", program->sample_every);
	add_unsigned(text, ",skipped,", program->skipped);
	add_unsigned(text, "\ninferences,", program->inferences);
	add_unsigned(text, ",lost,", program->lost);
	text_literal(text, ",start,");
	add_seconds(text, report->start_realtime);
	text_literal(text, ",end,");
	add_seconds(text, report->end_realtime);
	text_literal(text, ",ended,");
	text_string(text, latency_end_name(report->end_reason));
	text_literal(text, ",released,");
	text_string(text, program->released ? "yes\n" : "no\n");
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
	text_literal(text, "Sample");
	for (size_t i = 0; i < XPT_COLUMNS; i++) {
		text_literal(text, ",");
		text_string(text, xpt_column_name(i));
	}
	text_literal(text, ",startTime(S),thread,core,bytes,status,jobs,deviceTime(Us),queueTime(Us)");
	for (size_t i = 0; i < report->counter_count; i++) {
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
	text_literal(text, "reportStart,reportEnd,program,name,process,pid,runtime,handle,samples,requested,"
			   "inferences,lost,failed,rate");
	for (size_t i = 0; i < XPT_COLUMNS; i++) {
		for (size_t j = 0; j < LATENCY_FIGURES; j++) {
			text_literal(text, ",");
			text_string(text, xpt_column_name(i));
			text_literal(text, "_");
			text_string(text, latency_figure_names[j]);
		}
	}
	text_literal(text, "\n");
}

static void add_program(struct text *text, const struct xpt_profile_report *report,
			const struct xpt_program_report *program)
{
	__u64 rate;

	add_seconds(text, report->start_realtime);
	text_literal(text, ",");
	add_seconds(text, report->end_realtime);
	add_unsigned(text, ",", program->id);
	add_string(text, ",", program->name);
	add_string(text, ",", program->process);
	text_literal(text, ",");
	text_signed(text, program->pid);
	add_string(text, ",", program->runtime);
	text_literal(text, ",");
	text_hexadecimal(text, program->handle);
	add_unsigned(text, ",", program->taken);
	add_nonzero(text, program->requested);
	add_unsigned(text, ",", program->inferences);
	add_unsigned(text, ",", program->lost);
	add_unsigned(text, ",", program->failed);
	text_literal(text, ",");
	if (latency_rate(report, program->inferences, &rate))
		latency_value(text, false, rate);
	else
		text_literal(text, UNKNOWN);
	for (size_t i = 0; i < XPT_COLUMNS; i++)
		latency_figures(text, program->latencies, i, UNKNOWN);
	text_literal(text, "\n");
}

bool latency_summary(struct text *text, const struct xpt_profile_report *report, struct latency_position *position,
		     size_t enough)
{
	while (position->program < report->program_count && text->length < enough && !text->error)
		add_program(text, report, &report->programs[position->program++]);
	return position->program < report->program_count && !text->error;
}

/* SPDX-License-Identifier: BSD-2-Clause */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/file/gzip.h"
#include "base/core/json.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"
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
	XPT_OPTS(xpt_column_summary, summary);

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
		fputs("out of memory: some samples are missing from the times above\n", out);
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

/* ---- --summary-json ---- */

#define SUMMARY_SCHEMA 1

const struct option_entry summary_json_option[] = {
	{ 0, "summary-json", "FILE", "also write the summary as JSON; -: on standard output", .type = OPTION_STRING },
	{}
};

void summary_json_begin(struct summary_json *summary, const char *path, const char *command)
{
	struct utsname name;
	time_t now = time(NULL);
	char moment[32];
	struct tm parts;

	*summary = (struct summary_json){ .path = path };
	if (!path)
		return;
	uname(&name);
	gmtime_r(&now, &parts);
	strftime(moment, sizeof(moment), "%Y-%m-%dT%H:%M:%SZ", &parts);
	json_begin(&summary->text, NULL, '{');
	json_add_unsigned(&summary->text, "schema", SUMMARY_SCHEMA);
	json_add_text(&summary->text, "version", XPT_VERSION);
	json_add_text(&summary->text, "command", command);
	json_add_text(&summary->text, "host", name.nodename);
	json_add_text(&summary->text, "time", moment);
}

void summary_json_members(struct summary_json *summary, char *json)
{
	if (json && summary->path) {
		text_literal(&summary->text, ",");
		text_bytes(&summary->text, json + 1, strlen(json) - 2);
	}
	free(json);
}

void summary_json_output(struct summary_json *summary, const char *path, const char *format)
{
	struct text *text = &summary->text;
	struct stat status;
	long long size;

	if (!summary->path)
		return;
	json_begin(text, "outputs", '[');
	if (path && *path) {
		json_begin(text, NULL, '{');
		json_add_text(text, "file", path);
		json_add_text(text, "format", format);
		size = confined_output_size(path);
		if (size < 0 && strcmp(path, "-") && !stat(path, &status) && S_ISREG(status.st_mode))
			size = status.st_size;
		if (size >= 0)
			json_add_unsigned(text, "bytes", size);
		json_end(text, '}');
	}
	json_end(text, ']');
}

static void add_microseconds(struct text *text, const char *key, double microseconds)
{
	json_add_unsigned(text, key, microseconds > 0 && microseconds < 1e15 ? (__u64)(microseconds * 1000 + 0.5) : 0);
}

static void add_program(struct text *text, const struct program_total *program)
{
	XPT_OPTS(xpt_column_summary, times);

	json_begin(text, NULL, '{');
	json_add_text(text, "name", program->name ?: "(others)");
	json_add_text(text, "runtime", program->runtime ?: "");
	json_add_unsigned(text, "pid", program->pid);
	json_add_unsigned(text, "inferences", program->inferences);
	json_add_unsigned(text, "recorded", program->taken);
	json_add_unsigned(text, "failed", program->failed);
	json_add_unsigned(text, "lost", program->lost);
	if (program->latencies && !xpt_latencies_get(program->latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, &times)) {
		json_begin(text, "latency_ns", '{');
		json_add_unsigned(text, "count", times.count);
		add_microseconds(text, "min", times.min);
		add_microseconds(text, "mean", times.mean);
		add_microseconds(text, "p50", times.p50);
		add_microseconds(text, "p95", times.p95);
		add_microseconds(text, "p99", times.p99);
		add_microseconds(text, "max", times.max);
		add_microseconds(text, "stddev", times.deviation);
		json_end(text, '}');
	}
	json_end(text, '}');
}

void summary_json_totals(struct summary_json *summary, const struct totals *totals)
{
	const struct program_total *others = &totals->programs[TOTALS_MAX];

	json_begin(&summary->text, "programs", '[');
	for (size_t i = 0; i < totals->count; i++)
		add_program(&summary->text, &totals->programs[i]);
	if (others->inferences)
		add_program(&summary->text, others);
	json_end(&summary->text, ']');
}

/* A pipe that nobody reads is given up after a second, as other outputs are. */
static int write_file(const char *path, struct text *text)
{
	/* Without waiting for a reader. */
	int descriptor = strcmp(path, "-") ? output_open(path, O_TRUNC | O_NONBLOCK) : file_standard_output(), error,
	    closed;
	uint64_t stopped = clock_monotonic();
	struct tailed_file file;

	if (descriptor < 0)
		return descriptor;
	if (strcmp(path, "-"))
		fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
	else
		fflush(stdout);
	error = tailed_file_open(&file, NULL, descriptor);
	if (error)
		return error;
	if (gzip_is_name(path))
		error = tailed_file_compress(&file);
	if (!error && !file.seekable)
		error = tailed_file_detach(&file, &stopped);
	if (error == -EPERM) /* no process can be made any more: this one writes */
		error = 0;
	file.patient = true;
	error = error ?: tailed_file_append(&file, text, "", 0, true);
	closed = tailed_file_close(&file);
	return error ?: closed;
}

int output_text(const char *path, struct text *text, int status)
{
	int error = text->error ?: write_file(path, text);
	char reason[300];

	text_free(text);
	if (!error)
		return status;
	snprintf(reason, sizeof(reason), "%.200s: cannot be written: %s", path, output_reason(error));
	print_message(NULL, XPT_LOG_ERROR, reason);
	return status ?: EXIT_FAILED;
}

int summary_json_end(struct summary_json *summary, int status)
{
	if (!summary->path)
		return status;
	json_add_unsigned(&summary->text, "status", status);
	json_end(&summary->text, '}');
	text_literal(&summary->text, "\n");
	return output_text(summary->path, &summary->text, status);
}

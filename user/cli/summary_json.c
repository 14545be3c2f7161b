/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/summary_json.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/gzip.h"
#include "base/json.h"
#include "base/output.h"
#include "base/tailed_file.h"
#include "cli/commands.h"
#include "cli/confined.h"

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
	struct xpt_column_summary times;

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
	file.patient = true;
	error = error ?: tailed_file_append(&file, text, "", 0, true);
	closed = tailed_file_close(&file);
	return error ?: closed;
}

int summary_json_end(struct summary_json *summary, int status)
{
	struct text *text = &summary->text;
	char reason[300];
	int error;

	if (!summary->path)
		return status;
	json_add_unsigned(text, "status", status);
	json_end(text, '}');
	text_literal(text, "\n");
	error = text->error ?: write_file(summary->path, text);
	text_free(text);
	if (!error)
		return status;
	snprintf(reason, sizeof(reason), "%.200s: cannot be written: %s", summary->path, output_reason(error));
	print_message(NULL, XPT_LOG_ERROR, reason);
	return status ?: EXIT_FAILED;
}

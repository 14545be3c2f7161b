/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/counters_output.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file/file.h"
#include "cli/commands.h"

#define NAME_COLUMNS 44

double counters_shown(const struct counters_reading *reading, size_t index)
{
	const struct xpt_counter_info *info = xpt_counters_info(reading->session, index);
	double value = reading->values[index].value;

	return info->kind == XPT_COUNTER_SUM && reading->before ? value - reading->before[index].value : value;
}

/* Counts are whole numbers, unless they were estimated or have a unit. */
static void print_value(FILE *out, const struct counters_reading *reading, size_t index, int columns)
{
	const struct xpt_counter_info *info = xpt_counters_info(reading->session, index);
	double value = counters_shown(reading, index);

	if (reading->values[index].flags & XPT_COUNTER_NEVER)
		fprintf(out, "%*s", columns, "<not counted>");
	else if (info->scale == 1 && value == floor(value) && fabs(value) < 1e15)
		fprintf(out, "%*.0f", columns, value);
	else
		fprintf(out, "%*.*f", columns, fabs(value) < 10 ? 6 : fabs(value) < 1000 ? 3 : 1, value);
}

static const char *mark_of(const struct xpt_counter_value *value, char text[64])
{
	text[0] = '\0';
	if (value->flags & XPT_COUNTER_GONE)
		return "  (gone)";
	if (value->flags & XPT_COUNTER_SCALED)
		snprintf(text, 64, "  (counted %.1f %% of the time)",
			 value->enabled ? 100.0 * (double)value->running / (double)value->enabled : 0.0);
	return text;
}

unsigned int counters_table(FILE *out, const struct counters_reading *reading, bool total)
{
	uint64_t since = total || !reading->before ? reading->start : reading->time_before;
	double seconds = (double)(reading->time - since) / 1e9;
	size_t count = xpt_counters_count(reading->session);
	char mark[64];

	fprintf(out, "%-*s %16s %-8s %14s\n", NAME_COLUMNS, "COUNTER", "VALUE", "UNIT", "PER SECOND");
	for (size_t i = 0; i < count; i++) {
		const struct xpt_counter_info *info = xpt_counters_info(reading->session, i);

		print_name(out, info->name, NAME_COLUMNS);
		fprintf(out, " ");
		print_value(out, reading, i, 16);
		fprintf(out, " %-8s ", info->unit);
		if (info->kind == XPT_COUNTER_SUM && seconds > 0)
			fprintf(out, "%14.3f", counters_shown(reading, i) / seconds);
		else
			fprintf(out, "%14s", info->kind == XPT_COUNTER_MEAN ? "mean" : "now");
		fprintf(out, "%s\n", mark_of(&reading->values[i], mark));
	}
	fprintf(out, "%.6f s", (double)(reading->time - reading->start) / 1e9);
	if (reading->spread)
		fprintf(out, ", read within %.1f us", (double)reading->spread / 1e3);
	fprintf(out, "\n");
	return (unsigned int)count + 2;
}

void counters_rows(FILE *out, const struct counters_reading *reading)
{
	char mark[64];

	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		const struct xpt_counter_info *info = xpt_counters_info(reading->session, i);

		fprintf(out, "%14.6f ", (double)(reading->time - reading->start) / 1e9);
		print_value(out, reading, i, 18);
		fprintf(out, " %-8s ", info->unit);
		print_name(out, info->name, 0);
		fprintf(out, "%s\n", mark_of(&reading->values[i], mark));
	}
	fflush(out);
}

/* ---- files ---- */

/* As RFC 4180 has it: names have commas where terms are given. */
static void csv_name(FILE *out, const char *name, const char *unit)
{
	fputs(",\"", out);
	for (; *name; name++)
		fprintf(out, *name == '"' ? "\"\"" : "%c", *name);
	fprintf(out, "%s%s%s\"", *unit ? " (" : "", unit, *unit ? ")" : "");
}

static void json_string(FILE *out, const char *value)
{
	struct text text = {};

	text_json_string(&text, value);
	fprintf(out, "%.*s", (int)text.length, text.data ?: "\"\"");
	text_free(&text);
}

static double least_share(const struct counters_reading *reading)
{
	double least = 1, share;

	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		const struct xpt_counter_value *value = &reading->values[i];

		share = value->enabled ? (double)value->running / (double)value->enabled : 1;
		least = share < least ? share : least;
	}
	return least;
}

static void add_row(FILE *out, const struct counters_reading *reading)
{
	struct timespec realtime, monotonic;
	double time;

	clock_gettime(CLOCK_REALTIME, &realtime);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	time = (double)realtime.tv_sec - (double)monotonic.tv_sec +
	       (double)(realtime.tv_nsec - monotonic.tv_nsec) / 1e9;
	fprintf(out, "%.6f", time + (double)reading->time / 1e9);
	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		if (reading->values[i].flags & (XPT_COUNTER_NEVER | XPT_COUNTER_GONE))
			fprintf(out, ",N/A");
		else
			fprintf(out, ",%.12g", counters_shown(reading, i));
	}
	fprintf(out, ",%.4f\n", least_share(reading));
}

/* The value of an interval is placed at its begin: a viewer draws it from there on. A sum is shown as its rate. */
static void add_points(FILE *out, const struct counters_reading *reading)
{
	double seconds = (double)(reading->time - (reading->before ? reading->time_before : reading->start)) / 1e9;

	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		const struct xpt_counter_info *info = xpt_counters_info(reading->session, i);
		bool rate = info->kind == XPT_COUNTER_SUM;
		uint64_t since = reading->before ? reading->time_before : reading->start;
		uint64_t time = info->kind == XPT_COUNTER_LEVEL ? reading->time : since;
		double value = counters_shown(reading, i);
		char unit[64];

		if (reading->values[i].flags & (XPT_COUNTER_NEVER | XPT_COUNTER_GONE) || (rate && seconds <= 0))
			continue;
		fprintf(out, ",\n{\"ph\":\"C\",\"pid\":0,\"ts\":%" PRIu64 ".%03u,\"name\":", time / 1000,
			(unsigned int)(time % 1000));
		json_string(out, info->name);
		fprintf(out, ",\"args\":{");
		snprintf(unit, sizeof(unit), "%s%s", *info->unit ? info->unit : "count", rate ? "/s" : "");
		json_string(out, unit);
		fprintf(out, ":%.12g}}", rate ? value / seconds : value);
	}
}

static void add_tail(FILE *out, const struct xpt_counters *session)
{
	fprintf(out, "\n],\"displayTimeUnit\":\"ns\",\"metadata\":{\"counters\":[");
	for (size_t i = 0; i < xpt_counters_count(session); i++) {
		const struct xpt_counter_info *info = xpt_counters_info(session, i);

		fprintf(out, "%s{\"name\":", i ? "," : "");
		json_string(out, info->name);
		fprintf(out, ",\"unit\":");
		json_string(out, info->unit);
		fprintf(out, ",\"source\":");
		json_string(out, info->source);
		fprintf(out, ",\"shown\":\"%s\"}",
			info->kind == XPT_COUNTER_SUM  ? "per second" :
			info->kind == XPT_COUNTER_MEAN ? "mean" :
							 "now");
	}
	fprintf(out, "]}}\n");
}

static void add_head(FILE *out, enum counters_format format, const struct xpt_counters *session)
{
	if (format == COUNTERS_TRACE) {
		fprintf(out, "{\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":"
			     "{\"name\":\"counters\"}}");
		return;
	}
	fprintf(out, "time(S)");
	for (size_t i = 0; i < xpt_counters_count(session); i++)
		csv_name(out, xpt_counters_info(session, i)->name, xpt_counters_info(session, i)->unit);
	fprintf(out, ",\"counted share\"\n");
}

enum part { HEAD, READING, END };

#define PENDING_MAX (128u << 10) /* bytes of readings that wait while others are being written */

/* Where there is no room, they wait, up to twice as many; then they are lost. */
static int append(struct counters_file *file, bool last)
{
	int error = tailed_file_append(&file->file, &file->text, file->tail, file->tail_length, last);

	if (error == -ENOBUFS && file->text.length < 2 * PENDING_MAX)
		return 0;
	if (error == -ENOBUFS) {
		tailed_file_drop(&file->file);
		error = 0;
	}
	text_clear(&file->text, 2 * PENDING_MAX);
	return error;
}

static int write_part(struct counters_file *file, enum part part, const struct xpt_counters *session,
		      const struct counters_reading *reading)
{
	char *bytes = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&bytes, &length);

	if (!out)
		return -ENOMEM;
	if (part == HEAD)
		add_head(out, file->format, session);
	else if (part == READING && file->format == COUNTERS_TRACE)
		add_points(out, reading);
	else if (part == READING)
		add_row(out, reading);
	if (fclose(out))
		file->text.error = -ENOMEM;
	text_bytes(&file->text, bytes, length);
	free(bytes);
	file->file.items += part == READING;
	if (part == READING && tailed_file_busy(&file->file) && file->text.length < PENDING_MAX)
		return tailed_file_check(&file->file);
	return append(file, part == END);
}

static int make_tail(struct counters_file *file, const struct xpt_counters *session)
{
	FILE *out = open_memstream(&file->tail, &file->tail_length);

	if (!out)
		return -ENOMEM;
	if (file->format == COUNTERS_TRACE)
		add_tail(out, session);
	return fclose(out) ? -ENOMEM : 0;
}

int counters_file_open(struct counters_file *file, const struct xpt_counters *session)
{
	bool to_file = strcmp(file->path, "-");
	int error = tailed_file_open(&file->file, to_file ? file->path : NULL, to_file ? -1 : file_standard_output());

	if (error)
		return error;
	file->opened = true;
	/* Others may write to standard output, too. */
	file->file.seekable = to_file && file->file.seekable;
	error = make_tail(file, session);
	if (!error)
		error = write_part(file, HEAD, session, NULL);
	return error ?: tailed_file_detach(&file->file, stop_time());
}

int counters_file_add(struct counters_file *file, const struct counters_reading *reading)
{
	return write_part(file, READING, reading->session, reading);
}

int counters_file_close(struct counters_file *file, const struct xpt_counters *session)
{
	int error = tailed_file_settle(&file->file), closed;

	if (!error)
		error = write_part(file, END, session, NULL);
	closed = tailed_file_close(&file->file);
	text_free(&file->text);
	free(file->tail);
	return error ?: closed;
}

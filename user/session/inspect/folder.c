/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a process: what was captured, what is made of it, and an index of it all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xputrace/report.h>

#include "base/file/file.h"
#include "base/core/json.h"
#include "base/core/text.h"
#include "report/trace/csv_text.h"
#include "session/inspect/cores.h"
#include "session/inspect/private.h"

#define INDEX_VERSION 1

/* What has become of a process's files. */
struct writing {
	struct xpt_inspect *inspect;
	struct inspect_process *process;
	struct text files; /* of the index: elements of an array */
	struct inspect_cores *cores;
	__u64 left_out; /* inferences */
	int error;	/* the first one */
};

static const struct log *log_of(const struct xpt_inspect *inspect)
{
	return &inspect->continuous->collector->log;
}

int inspect_folder_open(struct xpt_inspect *inspect, struct inspect_process *process)
{
	char name[FOLDER_NAME_MAX];

	if (process->folder)
		return 0;
	snprintf(name, sizeof(name), "%.150s_pid_%u", inspect->host, process->tgid);
	return folder_sub(inspect->continuous->folder, name, &process->folder);
}

static void note(struct writing *writing, int error)
{
	if (error && !writing->error)
		writing->error = error;
}

/* Gives the file its name, and the name to the index; unless it could not be written (error). */
static void keep(struct writing *writing, struct folder_file *file, int error, const char *name, const char *extension)
{
	char result[FOLDER_RESULT_SIZE];

	if (error)
		folder_file_abandon(file);
	else
		error = folder_file_commit(file, name, extension, result, sizeof(result));
	if (error)
		log_error(log_of(writing->inspect), "%s/%s.%s: cannot be written: %s",
			  folder_path(writing->process->folder), name, extension, strerror(-error));
	else
		json_add_text(&writing->files, NULL, result);
	note(writing, error);
}

/* ---- what was captured ---- */

static int count_record(void *context, const struct xpt_record_header *record)
{
	inspect_cores_count(context, record);
	return 0;
}

static bool wants_record(void *context, const struct xpt_record_header *record)
{
	return inspect_cores_wants(context, record);
}

static int choose(struct writing *writing)
{
	struct xpt_continuous *continuous = writing->inspect->continuous;
	const struct snapshot_part part = { .tgid = writing->process->tgid, .roles = continuous->roles };
	struct snapshot *snapshot;
	int error = inspect_cores_create(continuous->recent, writing->process->tgid, continuous->roles,
					 &writing->inspect->settings, &writing->cores);

	if (!error)
		error = window_snapshot(continuous->window, &snapshot);
	if (error)
		return error;
	error = snapshot_each(snapshot, &part, count_record, writing->cores);
	snapshot_free(snapshot);
	writing->left_out = inspect_cores_choose(writing->cores);
	return error;
}

/* path gets that of the file, of 4096 bytes. */
static int write_recording(struct writing *writing, char *path)
{
	const struct xpt_save_options options = { .size = sizeof(options), .pid = (pid_t)writing->process->tgid };
	char reason[REASON_MAX];
	struct save *save;
	int error = choose(writing);

	if (!error)
		error = save_create(&options, &save, reason);
	if (error)
		return error;
	snprintf(save->reason, sizeof(save->reason), "inspection %d", writing->inspect->settings.session_id);
	save->folder = writing->process->folder;
	save->name = "recording";
	save->wants = wants_record;
	save->wants_context = writing->cores;
	error = saves_write(writing->inspect->continuous, save);
	if (!error) {
		snprintf(path, sizeof(save->saved.path), "%s", save->saved.path);
		json_add_text(&writing->files, NULL, strrchr(path, '/') + 1);
	}
	save_free(save);
	return error;
}

/* ---- what is made of it ---- */

/* The trace is written through a name of the descriptor: files are opened by their paths. */
static int write_trace(const struct writing *writing, const char *recording, int descriptor, int summary)
{
	const struct log *log = log_of(writing->inspect);
	char path[64];
	struct xpt_report_options options = {
		.size = sizeof(options),
		.input = recording,
		.output = descriptor < 0 ? NULL : path,
		.summary_descriptor = summary,
		.log = log->write,
		.log_context = log->context,
		.log_level = log->level,
	};

	snprintf(path, sizeof(path), "/proc/self/fd/%d", descriptor);
	return xpt_report_create(&options);
}

static void write_reports(struct writing *writing, const char *recording)
{
	struct folder_file *trace = NULL, *report = NULL;
	struct folder *folder = writing->process->folder;
	int error = folder_file_begin(folder, &trace);

	if (!error)
		error = folder_file_begin(folder, &report);
	if (!error)
		error = write_trace(writing, recording, folder_file_descriptor(trace), folder_file_descriptor(report));
	keep(writing, trace, error, "trace", "json");
	keep(writing, report, error, "report", "txt");
}

/* ---- what it has used ---- */

static void write_usage(struct writing *writing)
{
	const struct inspect_process *process = writing->process;
	struct folder_file *file = NULL;
	struct text text = {};
	int error = folder_file_begin(process->folder, &file);

	usage_csv_heading(&text);
	for (size_t i = 0; i < process->count; i++)
		usage_csv_row(&text, &process->rows[i], i ? &process->rows[i - 1] : NULL);
	if (!error)
		error = text.error ?: file_write(folder_file_descriptor(file), text.data, text.length);
	keep(writing, file, error, "usage", "csv");
	text_free(&text);
}

/* ---- the index ---- */

static void write_index(struct writing *writing)
{
	const struct inspect_process *process = writing->process;
	const struct inspect_settings *settings = &writing->inspect->settings;
	struct text index = {};
	int error;

	json_begin(&index, NULL, '{');
	json_add_unsigned(&index, "version", INDEX_VERSION);
	json_add_signed(&index, "session", settings->session_id);
	json_add_text(&index, "host", writing->inspect->host);
	json_add_unsigned(&index, "pid", process->tgid);
	json_add_text(&index, "name", process->name);
	json_add_text(&index, "command", process->command);
	json_add_unsigned(&index, "inferences", process->inferences);
	json_add_unsigned(&index, "failed", process->failed);
	json_add_unsigned(&index, "left_out", writing->left_out);
	json_add_unsigned(&index, "lost", writing->inspect->continuous->collector->lost);
	for (unsigned int i = 0; i < process->failed_count; i++)
		json_add_text(&writing->files, NULL, process->failed_files[i]);
	json_begin(&index, "files", '[');
	text_bytes(&index, writing->files.data, writing->files.length);
	json_end(&index, ']');
	json_end(&index, '}');
	text_literal(&index, "\n");
	error = writing->files.error ?: index.error;
	if (!error)
		error = folder_replace(process->folder, "index.json", index.data, index.length);
	text_bytes(&index, "", 1);
	if (!error && !index.error && writing->inspect->written)
		writing->inspect->written(writing->inspect->written_context, folder_path(process->folder), index.data);
	if (error)
		log_error(log_of(writing->inspect), "%s/index.json: cannot be written: %s",
			  folder_path(process->folder), strerror(-error));
	note(writing, error);
	text_free(&index);
}

int inspect_folder_write(struct xpt_inspect *inspect, struct inspect_process *process)
{
	struct writing writing = { .inspect = inspect, .process = process };
	char recording[4096];
	int error = inspect_folder_open(inspect, process);

	if (error)
		return error;
	if (inspect->settings.inspect && process->inferences) {
		error = write_recording(&writing, recording);
		if (error)
			log_error(log_of(inspect), "%s: what was captured cannot be written: %s",
				  folder_path(process->folder), strerror(-error));
		else
			write_reports(&writing, recording);
		note(&writing, error);
	}
	if (process->count)
		write_usage(&writing);
	write_index(&writing);
	if (!writing.error)
		log_info(log_of(inspect), "wrote %s (%s: %llu inferences, %llu failed)", folder_path(process->folder),
			 process->name, process->inferences, process->failed);
	inspect_cores_free(writing.cores);
	text_free(&writing.files);
	return writing.error;
}

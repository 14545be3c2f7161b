/* SPDX-License-Identifier: BSD-2-Clause */
/* The folder of a process: what was captured, what is made of it, and an index of it all. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xputrace/report.h>

#include "base/file/file.h"
#include "base/core/hashmap.h"
#include "base/core/json.h"
#include "base/core/link.h"
#include "base/core/text.h"
#include "base/core/vec.h"
#include "report/trace/csv_text.h"
#include "session/inspect/inspect.h"

#define INDEX_VERSION 1

/* ---- which inferences are written ---- */

struct inference {
	struct indexed_inference view;
	struct map_node begin; /* by process and begin */
	struct map_node wait;  /* by thread and end */
	__u64 events;
	bool out;
};

/* A core, and how many events of it are written. */
struct core {
	struct map_node node; /* by number, and 0; without number 0 and 1 */
	struct core *next;
	__u64 events;
};

struct inspect_cores {
	const __u8 *roles;
	const struct inspect_settings *settings;
	struct inference *all;	      /* the latest first */
	struct inference **by_thread; /* in order of thread and begin */
	size_t count;
	struct map begins, waits, cores;
	struct core *all_cores;
};

static int add(void *context, const struct indexed_inference *view)
{
	struct inspect_cores *cores = context;

	return vec_push(cores->all, cores->count, (struct inference){ .view = *view });
}

static int by_thread(const void *a, const void *b)
{
	const struct snapshot_stretch *one = &(*(struct inference *const *)a)->view.stretch;
	const struct snapshot_stretch *other = &(*(struct inference *const *)b)->view.stretch;

	if (one->tid != other->tid)
		return one->tid < other->tid ? -1 : 1;
	return one->begin < other->begin ? -1 : one->begin > other->begin;
}

static int sort(struct inspect_cores *cores)
{
	struct inference *inference;
	int error = 0;

	cores->by_thread = calloc(cores->count ?: 1, sizeof(struct inference *));
	if (!cores->by_thread)
		return -ENOMEM;
	for (size_t i = 0; i < cores->count && !error; i++) {
		inference = &cores->all[i];
		cores->by_thread[i] = inference;
		error = map_add(&cores->begins, &inference->begin, inference->view.stretch.tgid,
				inference->view.stretch.begin);
		if (!error && inference->view.wait_tid)
			error = map_add(&cores->waits, &inference->wait, inference->view.wait_tid, inference->view.end);
	}
	if (!error && cores->count)
		qsort(cores->by_thread, cores->count, sizeof(struct inference *), by_thread);
	return error;
}

int inspect_cores_create(const struct inference_index *recent, __u32 tgid, const __u8 *roles,
			 const struct inspect_settings *settings, struct inspect_cores **result)
{
	struct inspect_cores *cores = calloc(1, sizeof(*cores));
	int error;

	if (!cores)
		return -ENOMEM;
	cores->roles = roles;
	cores->settings = settings;
	error = inference_index_each(recent, tgid, add, cores) ?: sort(cores);
	if (error) {
		inspect_cores_free(cores);
		return error;
	}
	*result = cores;
	return 0;
}

void inspect_cores_free(struct inspect_cores *cores)
{
	struct core *core;

	if (!cores)
		return;
	while ((core = cores->all_cores)) {
		cores->all_cores = core->next;
		free(core);
	}
	map_free(&cores->cores);
	map_free(&cores->begins);
	map_free(&cores->waits);
	free(cores->by_thread);
	free(cores->all);
	free(cores);
}

/* ---- which inference a record is of ---- */

/* The inference that the thread was in. Those of a thread follow each other. */
static struct inference *inference_around(const struct inspect_cores *cores, __u32 tid, __u64 begin, __u64 end)
{
	size_t low = 0, high = cores->count, middle;
	const struct snapshot_stretch *stretch;

	while (low < high) {
		middle = low + (high - low) / 2;
		stretch = &cores->by_thread[middle]->view.stretch;
		if (stretch->tid < tid || (stretch->tid == tid && stretch->begin <= begin))
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	stretch = &cores->by_thread[low - 1]->view.stretch;
	return stretch->tid == tid && end <= stretch->end ? cores->by_thread[low - 1] : NULL;
}

static struct inference *of_call(const struct inspect_cores *cores, const struct xpt_record_call *call)
{
	struct map_node *node = NULL;

	/* Object, class, program and the inference's begin are what is fetched for a step. */
	if (cores->roles[call->spec] == XPT_ROLE_OPERATOR && call->valid >> 3 & 1 && call->values > 3)
		node = map_find(&cores->begins, call->header.tgid, call->value[3]);
	if (node)
		return container_of(node, struct inference, begin);
	if (cores->roles[call->spec] == XPT_ROLE_WAIT)
		node = map_find(&cores->waits, call->tid, call->header.time);
	if (node)
		return container_of(node, struct inference, wait);
	return inference_around(cores, call->tid, call->start, call->header.time);
}

static struct inference *of_record(const struct inspect_cores *cores, const struct xpt_record_header *record)
{
	const struct xpt_record_string *string = (const void *)record;
	const struct xpt_record_region *region = (const void *)record;
	const struct xpt_record_ioctl *ioctl = (const void *)record;
	const struct xpt_record_call *call = (const void *)record;

	switch (record->kind) {
	case XPT_RECORD_CALL:
		return call->spec < XPT_SPEC_MAX ? of_call(cores, call) : NULL;
	case XPT_RECORD_STRING:
		return inference_around(cores, string->tid, string->call_start, string->call_start);
	case XPT_RECORD_REGION:
		return inference_around(cores, region->tid, region->start, record->time);
	case XPT_RECORD_IOCTL:
		return inference_around(cores, ioctl->tid, ioctl->start, record->time);
	default:
		return NULL;
	}
}

void inspect_cores_count(struct inspect_cores *cores, const struct xpt_record_header *record)
{
	struct inference *inference = record->kind == XPT_RECORD_STRING ? NULL : of_record(cores, record);

	if (inference)
		inference->events++;
}

bool inspect_cores_wants(const struct inspect_cores *cores, const struct xpt_record_header *record)
{
	const struct inference *inference = of_record(cores, record);

	return !inference || !inference->out;
}

/* ---- which are written ---- */

static struct core *core_get(struct inspect_cores *cores, const struct indexed_inference *inference)
{
	__u64 number = inference->has_core ? (__u64)inference->core : 0;
	struct map_node *node = map_find(&cores->cores, number, !inference->has_core);
	struct core *core;

	if (node)
		return container_of(node, struct core, node);
	core = calloc(1, sizeof(*core));
	if (!core || map_add(&cores->cores, &core->node, number, !inference->has_core)) {
		free(core);
		return NULL;
	}
	core->next = cores->all_cores;
	cores->all_cores = core;
	return core;
}

__u64 inspect_cores_choose(struct inspect_cores *cores)
{
	struct inference *inference;
	struct core *core;
	__u64 left_out = 0;

	for (size_t i = 0; i < cores->count; i++) {
		inference = &cores->all[i];
		core = core_get(cores, &inference->view);
		if (core)
			core->events += inference->events;
		inference->out = (inference->view.has_core &&
				  !inspect_settings_wants_core(cores->settings, inference->view.core)) ||
				 (core && core->events > cores->settings->max_events_per_core);
		left_out += inference->out;
	}
	return left_out;
}

/* ---- files ---- */

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
		.format = writing->inspect->settings.packets ? XPT_OUTPUT_PERFETTO : XPT_OUTPUT_CHROME,
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
	keep(writing, trace, error, "trace", writing->inspect->settings.packets ? "pftrace" : "json");
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

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/log.h"
#include "session/code/codeobj_source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "target/process/loaded_code.h"

#define OBJECT_LIMIT (1ull << 30)
#define PROCESS_LIMIT (4ull << 30)
#define TOTAL_LIMIT (16ull << 30)

/* A process that was scanned. */
struct code_process {
	pid_t tgid;
	struct loaded_files files;
};

struct codeobj_source {
	struct collector *collector;
	struct code_store *store;
	struct code_capture *capture;
	struct code_process *processes;
	size_t process_count;
	bool started;
};

static bool answer(void *context, pid_t tgid, __u64 ticket)
{
	struct codeobj_source *source = context;

	return collector_code_answer(source->collector, tgid, ticket);
}

int codeobj_source_create(const struct codeobj_source_options *options, struct codeobj_source **result)
{
	struct codeobj_source *source = calloc(1, sizeof(*source));
	struct code_capture_options capture_options = {
		.registry = options->collector->registry,
		.worker = {
			.log = &options->collector->log,
			.mode = options->mode,
			.object_limit = options->object_limit ?: OBJECT_LIMIT,
			.process_limit = options->process_limit ?: PROCESS_LIMIT,
			.total_limit = options->total_limit ?: TOTAL_LIMIT,
			.ready = !options->collector->options.no_wait,
		},
		.wait_limit = collector_code_limit(options->collector),
		.keep = options->keep,
		.loaded = options->loaded,
		.unloaded = options->unloaded,
		.answer = answer,
		.context = options->context,
	};
	int error = 0;

	if (!source)
		return -ENOMEM;
	source->collector = options->collector;
	if (options->output)
		error = code_store_open(&options->collector->log, options->output, options->user, options->group,
					&source->store);
	capture_options.worker.store = source->store;
	capture_options.answer_context = source;
	if (!error)
		error = code_capture_create(&capture_options, &source->capture);
	if (error) {
		codeobj_source_free(source);
		return error;
	}
	*result = source;
	return 0;
}

/* ---- what is found ---- */

static struct code_process *find_process(struct codeobj_source *source, pid_t tgid)
{
	for (size_t i = 0; i < source->process_count; i++) {
		if (source->processes[i].tgid == tgid)
			return &source->processes[i];
	}
	return NULL;
}

static void drop_process(struct codeobj_source *source, pid_t tgid)
{
	struct code_process *process = find_process(source, tgid);

	if (!process)
		return;
	loaded_files_free(&process->files);
	*process = source->processes[--source->process_count];
}

static struct code_process *add_process(struct codeobj_source *source, pid_t tgid)
{
	return vec_push(source->processes, source->process_count, (struct code_process){ .tgid = tgid }) ?
		       NULL :
		       &source->processes[source->process_count - 1];
}

static void add_load(struct codeobj_source *source, pid_t tgid, const struct loaded_code *code)
{
	struct code_load *load = calloc(1, sizeof(*load));

	if (!load) {
		code_capture_found(source->capture, NULL);
		return;
	}
	load->tgid = tgid;
	load->hint = code->library ? CODE_ELF : CODE_UNKNOWN;
	load->path = strdup(code->path ?: "");
	load->offset = code->offset;
	load->size = code->offset ? code->size : 0;
	load->address = code->address;
	load->length = code->length;
	load->loaded = source->started ? clock_monotonic() : 0;
	load->device = -1;
	load->place = open(code->open_path, O_PATH | O_CLOEXEC);
	load->in_file = load->place >= 0;
	if (load->place < 0)
		code_load_set_file_error(load, -errno);
	if (!load->path) {
		code_load_free(load);
		load = NULL;
	}
	code_capture_found(source->capture, load);
}

/* What a process without rights has read in the file, once. */
static int list_codes(void *context, const struct mapped_file *mapped, const struct file_codes **codes)
{
	struct codeobj_source *source = context;
	const struct elf_entry *file;
	int error = elf_cache_find(attacher_elf_cache(source->collector->attacher), mapped, &file);

	*codes = error || !file ? NULL : &file->contents.codes;
	return error;
}

void codeobj_source_scanned(struct codeobj_source *source, pid_t tgid)
{
	const struct log *log = &source->collector->log;
	struct code_process *process = find_process(source, tgid);
	struct loaded_codes codes = {};
	int error;

	if (process) {
		error = loaded_code_new(tgid, log, list_codes, source, &process->files, &codes);
	} else {
		process = add_process(source, tgid);
		error = process ? loaded_code_all(tgid, log, list_codes, source, &process->files, &codes) : -ENOMEM;
	}
	if (error && error != -ESRCH)
		log_write(log, error_is_shortage(error) ? XPT_LOG_WARN : XPT_LOG_DEBUG,
			  "what PID %d has loaded cannot be listed: %s", tgid, strerror(-error));
	if (codes.left_out)
		log_warn(log,
			 "PID %d has loaded more code objects than are listed: %llu files or sections are left out",
			 tgid, (unsigned long long)codes.left_out);
	for (size_t i = 0; i < codes.count; i++)
		add_load(source, tgid, &codes.objects[i]);
	loaded_codes_free(&codes);
}

/* ---- while it runs ---- */

void codeobj_source_record(struct codeobj_source *source, const struct xpt_record_header *record)
{
	const struct xpt_record_task *task = (const void *)record;

	if (record->kind == XPT_RECORD_TASK && (task->event == XPT_TASK_EXIT || task->event == XPT_TASK_EXEC))
		drop_process(source, record->tgid);
	code_capture_record(source->capture, record);
}

void codeobj_source_started(struct codeobj_source *source)
{
	source->started = true;
}

void codeobj_source_work(struct codeobj_source *source)
{
	code_capture_work(source->capture);
}

void codeobj_source_finish(struct codeobj_source *source)
{
	code_capture_finish(source->capture);
}

struct code_counts codeobj_source_counts(const struct codeobj_source *source)
{
	return code_capture_counts(source->capture);
}

struct code_store *codeobj_source_store(struct codeobj_source *source)
{
	return source->store;
}

int codeobj_source_error(struct codeobj_source *source)
{
	return code_capture_error(source->capture);
}

void codeobj_source_free(struct codeobj_source *source)
{
	if (!source)
		return;
	code_capture_free(source->capture);
	code_store_close(source->store);
	for (size_t i = 0; i < source->process_count; i++)
		loaded_files_free(&source->processes[i].files);
	free(source->processes);
	free(source);
}

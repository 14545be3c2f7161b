/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/log.h"
#include "session/code/side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "target/process/loaded_code.h"

#define OBJECT_LIMIT (1ull << 30)
#define PROCESS_LIMIT (4ull << 30)
#define TOTAL_LIMIT (16ull << 30)

/* A process that was scanned. */
struct code_process {
	pid_t tgid;
	struct loaded_files files;
};

struct code_side {
	struct collector *collector;
	struct code_store *store;
	struct code_capture *capture;
	struct code_process *processes;
	size_t process_count;
	bool started;
};

static bool answer(void *context, pid_t tgid, __u64 ticket)
{
	struct code_side *side = context;

	return collector_code_answer(side->collector, tgid, ticket);
}

int code_side_create(const struct code_side_options *options, struct code_side **result)
{
	struct code_side *side = calloc(1, sizeof(*side));
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

	if (!side)
		return -ENOMEM;
	side->collector = options->collector;
	if (options->output)
		error = code_store_open(&options->collector->log, options->output, options->user, options->group,
					&side->store);
	capture_options.worker.store = side->store;
	capture_options.answer_context = side;
	if (!error)
		error = code_capture_create(&capture_options, &side->capture);
	if (error) {
		code_side_free(side);
		return error;
	}
	*result = side;
	return 0;
}

/* ---- what is found ---- */

static struct code_process *find(struct code_side *side, pid_t tgid)
{
	for (size_t i = 0; i < side->process_count; i++) {
		if (side->processes[i].tgid == tgid)
			return &side->processes[i];
	}
	return NULL;
}

static void drop(struct code_side *side, pid_t tgid)
{
	struct code_process *process = find(side, tgid);

	if (!process)
		return;
	loaded_files_free(&process->files);
	*process = side->processes[--side->process_count];
}

static struct code_process *add(struct code_side *side, pid_t tgid)
{
	struct code_process *more = reallocarray(side->processes, side->process_count + 1, sizeof(*more));

	if (!more)
		return NULL;
	side->processes = more;
	more[side->process_count] = (struct code_process){ .tgid = tgid };
	return &more[side->process_count++];
}

static void take(struct code_side *side, pid_t tgid, const struct loaded_code *code)
{
	struct code_load *load = calloc(1, sizeof(*load));

	if (!load) {
		code_capture_found(side->capture, NULL);
		return;
	}
	load->tgid = tgid;
	load->hint = code->library ? CODE_ELF : CODE_UNKNOWN;
	load->path = strdup(code->path ?: "");
	load->offset = code->offset;
	load->size = code->offset ? code->size : 0;
	load->address = code->address;
	load->length = code->length;
	load->loaded = side->started ? clock_monotonic() : 0;
	load->device = -1;
	load->file = open(code->open_path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (load->file < 0) {
		load->incomplete = true;
		code_load_set_error(load, "the file cannot be opened: %s", strerror(errno));
	}
	if (!load->path) {
		code_load_free(load);
		load = NULL;
	}
	code_capture_found(side->capture, load);
}

void code_side_scanned(struct code_side *side, pid_t tgid)
{
	const struct log *log = &side->collector->log;
	struct code_process *process = find(side, tgid);
	struct loaded_codes codes = {};
	int error;

	if (process) {
		error = loaded_code_new(tgid, log, &process->files, &codes);
	} else {
		process = add(side, tgid);
		error = process ? loaded_code_all(tgid, log, &process->files, &codes) : -ENOMEM;
	}
	if (error && error != -ESRCH)
		log_write(log, error_is_shortage(error) ? XPT_LOG_WARN : XPT_LOG_DEBUG,
			  "what PID %d has loaded cannot be listed: %s", tgid, strerror(-error));
	if (codes.left_out)
		log_warn(log,
			 "PID %d has loaded more code objects than are listed: %llu files or sections are left out",
			 tgid, (unsigned long long)codes.left_out);
	for (size_t i = 0; i < codes.count; i++)
		take(side, tgid, &codes.objects[i]);
	loaded_codes_free(&codes);
}

/* ---- while it runs ---- */

void code_side_record(struct code_side *side, const struct xpt_record_header *record)
{
	const struct xpt_record_task *task = (const void *)record;

	if (record->kind == XPT_RECORD_TASK && (task->event == XPT_TASK_EXIT || task->event == XPT_TASK_EXEC))
		drop(side, record->tgid);
	code_capture_record(side->capture, record);
}

void code_side_started(struct code_side *side)
{
	side->started = true;
}

void code_side_work(struct code_side *side)
{
	code_capture_work(side->capture);
}

void code_side_finish(struct code_side *side)
{
	code_capture_finish(side->capture);
}

struct code_counts code_side_counts(const struct code_side *side)
{
	return code_capture_counts(side->capture);
}

struct code_store *code_side_store(struct code_side *side)
{
	return side->store;
}

int code_side_error(struct code_side *side)
{
	return code_capture_error(side->capture);
}

void code_side_free(struct code_side *side)
{
	if (!side)
		return;
	code_capture_free(side->capture);
	code_store_close(side->store);
	for (size_t i = 0; i < side->process_count; i++)
		loaded_files_free(&side->processes[i].files);
	free(side->processes);
	free(side);
}

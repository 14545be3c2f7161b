/* SPDX-License-Identifier: BSD-2-Clause */
/* What is asked for is taken out of the window by the collecting thread, and written by the saving thread. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/json.h"
#include "base/core/options.h"
#include "session/continuous/private.h"
#include "session/reader/describe_records.h"
#include "session/core/output.h"

#define ASKED_MAX 16
#define TAKEN_MAX 2 /* each keeps what has left the window since */

/* ---- lists ---- */

void save_list_init(struct save_list *list)
{
	list->first = NULL;
	list->last = &list->first;
	list->count = 0;
}

void save_list_add(struct save_list *list, struct save *save)
{
	save->next = NULL;
	*list->last = save;
	list->last = &save->next;
	list->count++;
}

struct save *save_list_pop(struct save_list *list)
{
	struct save *save = list->first;

	if (!save)
		return NULL;
	list->first = save->next;
	if (!list->first)
		list->last = &list->first;
	list->count--;
	return save;
}

int save_create(const struct xpt_save_options *given, struct save **result, char *reason)
{
	static const struct xpt_save_options all = { .size = sizeof(all) };
	struct save *save = calloc(1, sizeof(*save));
	int error = save ? options_copy(&save->options, sizeof(save->options), given ?: &all) : -ENOMEM;

	*reason = '\0';
	if (error) {
		free(save);
		return error;
	}
	if (save->options.program) {
		if (!*save->options.program) {
			snprintf(reason, REASON_MAX, "the name of the program is empty");
			error = -EINVAL;
		}
		save->options.program = strdup(save->options.program);
		if (!save->options.program)
			error = -ENOMEM;
	}
	if (error) {
		save_free(save);
		return error;
	}
	*result = save;
	return 0;
}

void save_free(struct save *save)
{
	if (!save)
		return;
	snapshot_free(save->snapshot);
	free(save->stretches.stretches);
	free(save->costs);
	free((char *)save->options.program);
	free(save);
}

int saves_ask(struct xpt_continuous *continuous, struct save *save)
{
	if (continuous->asked.count >= ASKED_MAX)
		return -EBUSY;
	save->asked = clock_monotonic();
	save_list_add(&continuous->asked, save);
	return 0;
}

/* ---- the collecting thread ---- */

static bool is_of_inferences(const struct xpt_save_options *options)
{
	return options->program || options->handle || options->has_core || options->inferences;
}

static int find_inferences(struct xpt_continuous *continuous, struct save *save)
{
	const struct xpt_save_options *options = &save->options;
	const struct inference_filter filter = {
		.tgid = options->pid,
		.program = options->program,
		.handle = options->handle,
		.has_core = options->has_core,
		.core = options->core,
		.since = save->part.from,
	};
	__u64 most = options->inferences ?: options->time ? ~0ull : 1;
	int error = inference_index_find(continuous->recent, &filter, most, &save->stretches);

	if (error == -ENOENT)
		snprintf(save->why, sizeof(save->why), "there is no such inference in the window%s",
			 continuous->model && !model_program_count(continuous->model) ? ": nothing has run yet" : "");
	save->saved.inferences = save->stretches.inferences;
	save->part.stretches = save->stretches.stretches;
	save->part.count = save->stretches.count;
	return error;
}

/* What a call costs may change as probes are placed. */
static int note_costs(struct xpt_continuous *continuous, struct save *save)
{
	save->spec_count = continuous->collector->registry->spec_count;
	save->costs = calloc(save->spec_count ?: 1, sizeof(*save->costs));
	if (!save->costs)
		return -ENOMEM;
	for (size_t i = 0; i < save->spec_count; i++)
		save->costs[i] = records_call_cost(continuous->collector, i);
	return 0;
}

static int snapshot_window(struct xpt_continuous *continuous, struct save *save, __u64 now)
{
	const struct xpt_save_options *options = &save->options;
	__u64 time = options->time < save->asked ? options->time : save->asked;
	int error = 0;

	save->part.tgid = options->pid;
	save->part.roles = continuous->roles;
	save->part.from = time ? save->asked - time : 0;
	save->started = continuous->consumer.begun;
	save->complete = model_delivered(continuous->model);
	save->end = now;
	save->lost = continuous->collector->lost - continuous->consumer.before.lost;
	if (is_of_inferences(options))
		error = find_inferences(continuous, save);
	if (!error)
		error = note_costs(continuous, save);
	return error ?: window_snapshot(continuous->window, &save->snapshot);
}

void saves_take(struct xpt_continuous *continuous, __u64 now)
{
	struct save *save;

	while ((save = continuous->asked.first) && continuous->taken.count < TAKEN_MAX) {
		/* The index of inferences is of what the model has delivered, a little later. */
		if (model_delivered(continuous->model) < save->asked && !continuous->session->error)
			return;
		save_list_pop(&continuous->asked);
		save->error = snapshot_window(continuous, save, now);
		save_list_add(save->error ? &continuous->written : &continuous->taken, save);
		pthread_cond_signal(&continuous->queued);
	}
}

static void count(struct xpt_continuous *continuous, const struct save *save)
{
	struct xpt_continuous_status *status = &continuous->status;

	if (!save->error) {
		status->saves++;
		status->saved_bytes += save->saved.bytes;
	} else if (save->error != -ENOENT || save->costs) { /* not: there was no such inference */
		status->failed_saves++;
	}
	if (save->by_trigger)
		save_limits_done(&continuous->limits, save->saved.bytes);
}

void saves_report(struct xpt_continuous *continuous)
{
	const struct log *log = &continuous->collector->log;
	struct save *save;

	while ((save = save_list_pop(&continuous->written))) {
		pthread_cond_broadcast(&continuous->session->changed);
		count(continuous, save);
		if (!save->error) {
			log_info(log, "saved %s (%s)", save->saved.path, save->reason);
			save->saved.size = sizeof(save->saved);
			if (continuous->saved)
				continuous->saved(continuous->saved_context, &save->saved, save->reason);
		} else if (save->by_trigger) {
			log_error(log, "%s: cannot be saved: %s", save->reason,
				  *save->why ? save->why : strerror(-save->error));
		}
		save->done = true;
		if (save->owner && continuous->hooks.saved)
			continuous->hooks.saved(continuous->hooks.context, save);
		if (save->request)
			continuous_answer_save(save);
		if (!save->awaited)
			save_free(save);
	}
}

/* ---- the saving thread ---- */

struct writing {
	struct save *save;
	struct recording_writer *writer;
	__u64 calls, cost; /* through probes, and what they have cost, ns */
};

static int write_record(void *context, const struct xpt_record_header *record)
{
	const struct xpt_record_call *call = (const void *)record;
	struct writing *writing = context;

	if (writing->save->wants && !writing->save->wants(writing->save->wants_context, record))
		return 0;
	if (record->kind == XPT_RECORD_CALL && call->spec < writing->save->spec_count) {
		writing->calls++;
		writing->cost += writing->save->costs[call->spec];
	}
	writing->save->saved.records++;
	return recording_writer_add(writing->writer, record);
}

/* When what is in the file begins. */
static __u64 begin_of(const struct save *save)
{
	__u64 begin = snapshot_begin(save->snapshot);

	if (save->stretches.count)
		return save->stretches.begin;
	if (begin < save->started) /* the window was there before the first probe */
		begin = save->started;
	return begin > save->part.from ? begin : save->part.from;
}

static int write_end(struct writing *writing)
{
	const struct save *save = writing->save;
	struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, save->end };
	struct text json = {};
	char stopped_by[REASON_MAX + 16];
	struct xpt_record_text *record;
	int error = -ENOMEM;

	snprintf(stopped_by, sizeof(stopped_by), "saved, %s", save->reason);
	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "duration_ns", save->end - begin_of(save));
	json_add_string(&json, "stopped_by", stopped_by);
	json_begin(&json, "target", '{');
	json_add_unsigned(&json, "calls", writing->calls);
	json_add_unsigned(&json, "cost_ns", writing->cost);
	json_end(&json, '}');
	record = record_end(save->end, &json);
	if (record)
		error = recording_writer_add(writing->writer, &record->header);
	/* Nothing comes after: the second of two passes releases everything. */
	for (int i = 0; i < 2 && !error; i++)
		error = recording_writer_add(writing->writer, &pass);
	free(record);
	return error;
}

static int write_recording(const struct log *log, struct save *save, int descriptor)
{
	struct writing writing = { .save = save };
	struct recording_info info;
	int error, closed;

	output_info(&info);
	error = recording_writer_create(log, NULL, descriptor, &info, &writing.writer);
	if (error)
		return error;
	error = snapshot_each(save->snapshot, &save->part, write_record, &writing);
	if (!error)
		error = write_end(&writing);
	closed = recording_writer_close(writing.writer);
	return error ?: closed;
}

/* PREFIX-20261122T101530.123Z: sorted by name they are sorted by time. */
static void name_file(const char *prefix, __u64 realtime, char *name, size_t size)
{
	time_t seconds = realtime / 1000000000;
	struct tm parts;
	char date[32];

	gmtime_r(&seconds, &parts);
	strftime(date, sizeof(date), "%Y%m%dT%H%M%S", &parts);
	snprintf(name, size, "%s-%s.%03lluZ", prefix, date, realtime / 1000000 % 1000);
}

static int write_file(struct xpt_continuous *continuous, struct save *save)
{
	char name[FOLDER_NAME_MAX], result[FOLDER_RESULT_SIZE];
	struct folder *folder = save->folder ?: continuous->folder;
	struct xpt_saved *saved = &save->saved;
	struct folder_file *file;
	struct stat status;
	int error = folder_file_begin(folder, &file), copy;

	if (error)
		return error;
	copy = dup(folder_file_descriptor(file));
	error = copy < 0 ? -errno : write_recording(&continuous->collector->log, save, copy);
	if (!error && fstat(folder_file_descriptor(file), &status))
		error = -errno;
	if (error) {
		folder_file_abandon(file);
		return error;
	}
	saved->bytes = status.st_size;
	name_file(continuous->prefix, clock_read(CLOCK_REALTIME), name, sizeof(name));
	error = folder_file_commit(file, save->name ?: name, "xpt", result, sizeof(result));
	if (!error)
		snprintf(saved->path, sizeof(saved->path), "%s/%s", folder_path(folder), result);
	return error;
}

static void write_save(struct xpt_continuous *continuous, struct save *save)
{
	__s64 offset = session_clock_offset(CLOCK_REALTIME);
	__u64 start = clock_monotonic(), begin;

	save->error = write_file(continuous, save);
	save->saved.duration = clock_monotonic() - start;
	if (save->error) {
		save->saved.bytes = 0;
		return;
	}
	begin = begin_of(save);
	save->saved.begin = begin + offset;
	save->saved.end = (save->complete > begin ? save->complete : begin) + offset;
	save->saved.lost = save->lost;
}

int saves_write(struct xpt_continuous *continuous, struct save *save)
{
	save->asked = clock_monotonic();
	save->error = snapshot_window(continuous, save, save->asked);
	if (!save->error)
		write_save(continuous, save);
	return save->error;
}

/* What is being written stays the first of those taken. */
void *saves_run(void *context)
{
	struct xpt_continuous *continuous = context;
	struct save *save;

	pthread_mutex_lock(&continuous->session->lock);
	for (;;) {
		save = continuous->taken.first;
		if (!save && continuous->closing)
			break;
		if (!save) {
			pthread_cond_wait(&continuous->queued, &continuous->session->lock);
			continue;
		}
		pthread_mutex_unlock(&continuous->session->lock);
		write_save(continuous, save);
		snapshot_free(save->snapshot);
		pthread_mutex_lock(&continuous->session->lock);
		save->snapshot = NULL;
		save_list_pop(&continuous->taken);
		save_list_add(&continuous->written, save);
		collector_wake(continuous->collector);
	}
	pthread_mutex_unlock(&continuous->session->lock);
	return NULL;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes of a recording: found, started, followed to their children, let go. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "session/private.h"
#include "target/process.h"

static struct followed *followed_find(struct xpt_recording *recording, pid_t tgid)
{
	for (size_t i = 0; i < recording->followed_count; i++) {
		if (recording->followed[i].tgid == tgid)
			return &recording->followed[i];
	}
	return NULL;
}

static struct followed *followed_add(struct xpt_recording *recording, pid_t tgid)
{
	struct followed *followed = followed_find(recording, tgid), *more;

	if (followed)
		return followed;
	if (recording->followed_count == recording->followed_room) {
		size_t room = recording->followed_room ? recording->followed_room * 2 : 16;

		more = realloc(recording->followed, room * sizeof(*more));
		if (!more)
			return NULL;
		recording->followed = more;
		recording->followed_room = room;
	}
	followed = &recording->followed[recording->followed_count++];
	*followed = (struct followed){ .tgid = tgid };
	return followed;
}

static bool holding(const struct xpt_recording *recording)
{
	return recording->options.command != NULL;
}

/* From now on the process may be stopped in the kernel: it must not stay so if the collector dies. */
static void watch(struct xpt_recording *recording, struct followed *followed)
{
	struct process_info info;

	if (!holding(recording) || followed->watched || process_info_read(followed->tgid, &info))
		return;
	followed->watched = !guard_watch(recording->guard, followed->tgid, info.start_time);
	process_info_free(&info);
}

/* Gives out the PROCESS record: at first sight, and again when the process has become another program. */
static void announce(struct xpt_recording *recording, struct followed *followed, __u64 time)
{
	struct process_info info;
	struct xpt_record_text *record;

	if (process_info_read(followed->tgid, &info))
		return;
	record = record_process(&info, time);
	if (record)
		output_record(recording->output, &record->header);
	followed->announced = record != NULL;
	free(record);
	process_info_free(&info);
	watch(recording, followed);
}

static void forget(struct xpt_recording *recording, pid_t tgid)
{
	struct followed *followed = followed_find(recording, tgid);

	if (!followed)
		return;
	if (followed->watched)
		guard_unwatch(recording->guard, tgid);
	*followed = recording->followed[--recording->followed_count];
	records_totals(recording, tgid);
	attacher_forget(recording->attacher, tgid);
}

/* ---- starting ---- */

static int refuse(struct xpt_recording *recording, pid_t pid, const struct process_info *info, size_t files)
{
	if (info->is_kernel_thread) {
		log_error(&recording->log, "process %d (%s) is a kernel thread: it has no runtime to trace", pid,
			  info->name);
		return -ENOEXEC;
	}
	if (info->is_zombie) {
		log_error(&recording->log, "process %d (%s) has ended already", pid, info->name);
		return -ESRCH;
	}
	if (info->is_32bit) {
		log_error(&recording->log, "process %d (%s) is a 32-bit program: only 64-bit ones can be traced", pid,
			  info->name);
		return -ENOTSUP;
	}
	if (info->is_static && !files) {
		log_error(&recording->log,
			  "process %d (%s) is statically linked and holds no described runtime: nothing to trace, now or later "
			  "(see `xputrace list runtimes`; describe it with --runtime FILE.json)",
			  pid, info->name);
		return -ENOEXEC;
	}
	return 0;
}

static int look_at(struct xpt_recording *recording, pid_t pid, struct process_info *info)
{
	int error = process_info_read(pid, info);

	if (error) {
		log_error(&recording->log, error == -ESRCH ? "there is no process %d" : "cannot look at process %d",
			  pid);
		return error;
	}
	error = refuse(recording, pid, info, 1);
	if (error)
		process_info_free(info);
	return error;
}

int targets_look(struct xpt_recording *recording)
{
	struct process_info info;
	int error = 0;

	for (size_t i = 0; i < recording->options.pid_count && !error; i++) {
		error = look_at(recording, recording->pids[i], &info);
		if (!error)
			process_info_free(&info);
	}
	return error;
}

static int attach_process(struct xpt_recording *recording, pid_t pid)
{
	struct process_info info;
	struct followed *followed;
	int placed = 0, error;

	error = look_at(recording, pid, &info);
	if (error)
		return error;
	followed = followed_add(recording, info.tgid);
	if (!followed)
		error = -ENOMEM;
	if (!error)
		error = kern_follow(recording->kern, info.tgid, XPT_PROCESS_TARGET);
	if (!error) {
		announce(recording, followed, clock_monotonic());
		placed = attacher_scan(recording->attacher, info.tgid);
		if (placed < 0) {
			error = placed;
			log_error(&recording->log,
				  error == -ESRCH ? "process %d has ended while probes were placed" :
						    "cannot place probes in process %d",
				  pid);
		}
	}
	if (!error)
		error = refuse(recording, pid, &info, attacher_files(recording->attacher, info.tgid));
	if (!error) {
		const struct attacher_figures *figures = attacher_figures(recording->attacher);

		log_info(&recording->log,
			 "attached to PID %d (%s): %d probes in %zu files (%zu single-stepped), %s links", info.tgid,
			 info.name, placed, attacher_files(recording->attacher, info.tgid),
			 figures->sites[SITE_STEPPED], link_kind_name(kern_link_kind(recording->kern)));
		if (figures->sites[SITE_STEPPED])
			log_warn(&recording->log,
				 "%zu probes are single-stepped: each of their calls takes about %u us longer (see `xputrace "
				 "list sites -p %d`; leave runtimes out with --only)",
				 figures->sites[SITE_STEPPED], site_class_cost(SITE_STEPPED) / 1000, info.tgid);
		if (!placed)
			log_warn(&recording->log, "PID %d uses no described runtime yet: waiting for it to load one",
				 pid);
	}
	process_info_free(&info);
	return error;
}

static int attach_any(void *context, pid_t tgid)
{
	struct xpt_recording *recording = context;
	int placed = attacher_scan(recording->attacher, tgid);

	/* One process more or less that cannot be looked at is no reason to stop. */
	return placed == -ENOMEM ? placed : 0;
}

static int start_command(struct xpt_recording *recording)
{
	struct followed *followed;
	int error = command_start(recording->options.command, &recording->command);

	if (error) {
		log_error(&recording->log, "cannot start a process: %s", strerror(-error));
		return error;
	}
	followed = followed_add(recording, recording->command.pid);
	if (!followed)
		return -ENOMEM;
	error = kern_follow(recording->kern, recording->command.pid, XPT_PROCESS_TARGET | XPT_PROCESS_HOLD);
	if (error)
		return error;
	watch(recording, followed);
	if (!kern_can_hold_children())
		log_warn(&recording->log,
			 "this kernel cannot hold forked children: the first calls of a child may be missed");
	return command_release(&recording->command);
}

int targets_start(struct xpt_recording *recording)
{
	int error = 0;

	recording->spec_calls = calloc(recording->registry->spec_count ?: 1, sizeof(*recording->spec_calls));
	if (!recording->spec_calls)
		return -ENOMEM;
	if (recording->options.command)
		return start_command(recording);
	if (recording->options.all_processes) {
		error = process_each(attach_any, recording);
		if (!error)
			log_info(&recording->log, "attached to all processes: %zu files with runtimes so far",
				 attacher_files(recording->attacher, 0));
		return error;
	}
	for (size_t i = 0; i < recording->options.pid_count && !error; i++)
		error = attach_process(recording, recording->pids[i]);
	return error;
}

/* ---- while it runs ---- */

static void on_mapping(void *context, pid_t tgid, bool lost)
{
	struct xpt_recording *recording = context;

	if (lost) {
		recording->scan_all = true;
		return;
	}
	if (!recording->options.all_processes && !followed_find(recording, tgid))
		return;
	for (size_t i = 0; i < recording->pending_count; i++) {
		if (recording->pending[i] == tgid)
			return;
	}
	if (recording->pending_count == recording->pending_room) {
		size_t room = recording->pending_room ? recording->pending_room * 2 : 64;
		pid_t *more = realloc(recording->pending, room * sizeof(*more));

		if (!more) {
			recording->scan_all = true;
			return;
		}
		recording->pending = more;
		recording->pending_room = room;
	}
	recording->pending[recording->pending_count++] = tgid;
}

void targets_read_mappings(struct xpt_recording *recording)
{
	mappings_read(recording->mappings, on_mapping, recording);
}

void targets_scan_pending(struct xpt_recording *recording)
{
	for (size_t i = 0; i < recording->pending_count; i++)
		attacher_scan(recording->attacher, recording->pending[i]);
	recording->pending_count = 0;
	if (!recording->scan_all)
		return;
	recording->scan_all = false;
	if (recording->options.all_processes) {
		process_each(attach_any, recording);
		return;
	}
	for (size_t i = 0; i < recording->followed_count; i++)
		attacher_scan(recording->attacher, recording->followed[i].tgid);
}

void targets_continue(struct xpt_recording *recording, pid_t tgid, __u64 since, unsigned int event, unsigned int sites)
{
	struct xpt_record_held record = {
		.header = { XPT_RECORD_HELD, sizeof(record), tgid, 0 },
		.start = since,
		.event = event,
		.sites = sites,
	};

	kill(tgid, SIGCONT);
	record.header.time = clock_monotonic();
	output_record(recording->output, &record.header);
}

/* A new process, or the same one with a new program: what it has mapped now is looked through. */
static void on_begin(struct xpt_recording *recording, const struct xpt_record_task *task)
{
	struct followed *followed = followed_add(recording, task->header.tgid);
	int placed = 0;

	output_record(recording->output, &task->header);
	if (followed) {
		announce(recording, followed, task->header.time);
		if (!recording->options.all_processes)
			placed = attacher_scan(recording->attacher, task->header.tgid);
		if (placed > 0)
			log_info(&recording->log, "PID %u (%.15s): %d probes", task->header.tgid, task->name, placed);
	}
	if (task->held)
		targets_continue(recording, task->header.tgid, task->header.time, task->event, placed > 0 ? placed : 0);
}

static void on_thread(struct xpt_recording *recording, const struct xpt_record_task *task)
{
	struct followed *followed = followed_find(recording, task->header.tgid);
	struct xpt_record_text *record;
	char name[XPT_TASK_NAME_LEN + 1] = "";

	if (!followed) {
		followed = followed_add(recording, task->header.tgid);
		kern_follow(recording->kern, task->header.tgid, XPT_PROCESS_TARGET);
	}
	if (followed && !followed->announced)
		announce(recording, followed, task->header.time);
	memcpy(name, task->name, XPT_TASK_NAME_LEN);
	record = record_text(XPT_RECORD_THREAD, task->header.tgid, task->header.time, task->tid, name);
	if (record)
		output_record(recording->output, &record->header);
	free(record);
}

void targets_task(struct xpt_recording *recording, const struct xpt_record_task *task)
{
	switch (task->event) {
	case XPT_TASK_FORK:
	case XPT_TASK_EXEC:
		on_begin(recording, task);
		break;
	case XPT_TASK_EXIT:
		output_record(recording->output, &task->header);
		forget(recording, task->header.tgid);
		break;
	case XPT_TASK_THREAD:
		on_thread(recording, task);
		break;
	}
}

static bool is_stopped(pid_t tgid)
{
	char path[32], text[256], *state;
	size_t length;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", tgid);
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'T';
}

/* What the records should have told, in case some were lost: ended processes, and held ones that nobody let go. */
void targets_check(struct xpt_recording *recording)
{
	int error = command_exec_error(&recording->command);

	if (error) {
		log_error(&recording->log, "cannot run %s: %s", recording->options.command[0], strerror(-error));
		recording->error = error;
	}
	command_reap(&recording->command);
	for (size_t i = 0; i < recording->followed_count; i++) {
		pid_t tgid = recording->followed[i].tgid;

		if (kill(tgid, 0) && errno == ESRCH) {
			forget(recording, tgid);
			i--;
		} else if (holding(recording) && recording->losses[XPT_LOSS_RING_FULL] && is_stopped(tgid)) {
			attacher_scan(recording->attacher, tgid);
			kill(tgid, SIGCONT);
		}
	}
}

bool targets_ended(struct xpt_recording *recording)
{
	if (recording->options.all_processes || recording->followed_count)
		return false;
	/* Its last words came before it could be waited for. */
	return !recording->command.pid || command_reap(&recording->command);
}

/* Nothing is held from here on; what is being held now is let go. The command runs on. */
void targets_release(struct xpt_recording *recording)
{
	if (!recording->kern || !holding(recording))
		return;
	kern_follow_flags(recording->kern, XPT_PROCESS_TARGET);
	for (size_t i = 0; i < recording->followed_count; i++) {
		if (is_stopped(recording->followed[i].tgid))
			kill(recording->followed[i].tgid, SIGCONT);
	}
}

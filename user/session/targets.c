/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that are watched: found, started, followed to their children, let go. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process_state.h"
#include "session/collector.h"
#include "target/process.h"

static struct followed *followed_find(struct collector *collector, pid_t tgid)
{
	for (size_t i = 0; i < collector->followed_count; i++) {
		if (collector->followed[i].tgid == tgid)
			return &collector->followed[i];
	}
	return NULL;
}

__u64 targets_began(struct collector *collector, pid_t tgid)
{
	const struct followed *followed = followed_find(collector, tgid);

	return followed ? followed->began : 0;
}

static struct followed *followed_add(struct collector *collector, pid_t tgid)
{
	struct followed *followed = followed_find(collector, tgid), *more;

	if (followed)
		return followed;
	if (collector->followed_count == collector->followed_room) {
		size_t room = collector->followed_room ? collector->followed_room * 2 : 16;

		more = realloc(collector->followed, room * sizeof(*more));
		if (!more)
			return NULL;
		collector->followed = more;
		collector->followed_room = room;
	}
	followed = &collector->followed[collector->followed_count++];
	*followed = (struct followed){ .tgid = tgid };
	return followed;
}

static bool holding(const struct collector *collector)
{
	return collector->options.command != NULL;
}

bool targets_stopped_for_codes(const struct collector *collector)
{
	return collector->options.codes && !collector->options.no_stop && !collector->options.all_processes;
}

/* From now on the process may be stopped in the kernel: it must not stay so if the collector dies. */
static void watch(struct collector *collector, struct followed *followed)
{
	struct process_info info;

	if ((!holding(collector) && !targets_stopped_for_codes(collector)) || followed->watched ||
	    process_info_read(followed->tgid, &info))
		return;
	followed->watched = !guard_watch(collector->guard, followed->tgid, info.start_time);
	process_info_free(&info);
}

/* Gives out the PROCESS record: at first sight, and again when the process has become another program. */
static void announce(struct collector *collector, struct followed *followed, __u64 time)
{
	struct process_info info;
	int error = process_info_read(followed->tgid, &info);

	if (error_is_shortage(error) && !collector->error)
		collector->error = error;
	if (error)
		return;
	collector_pass_text(collector, record_process(&info, time));
	followed->announced = true;
	process_info_free(&info);
	watch(collector, followed);
}

static int admit(struct collector *collector, pid_t tgid)
{
	const struct collector_options *options = &collector->options;

	return options->admit && !options->all_processes ? options->admit(options->context, tgid) : 0;
}

static void forget(struct collector *collector, pid_t tgid)
{
	const struct collector_options *options = &collector->options;
	struct followed *followed = followed_find(collector, tgid);

	if (!followed)
		return;
	if (options->leave && !options->all_processes)
		options->leave(options->context, tgid);
	if (followed->watched)
		guard_unwatch(collector->guard, tgid);
	*followed = collector->followed[--collector->followed_count];
	records_totals(collector, tgid);
	attacher_forget(collector->attacher, tgid);
	kern_forget_callers(collector->kern, tgid);
	records_forget_told(collector, tgid);
}

/* ---- starting ---- */

static int refuse(struct collector *collector, pid_t pid, const struct process_info *info, size_t files)
{
	if (info->is_kernel_thread) {
		log_error(&collector->log, "process %d (%s) is a kernel thread: it has no runtime to trace", pid,
			  info->name);
		return -ENOEXEC;
	}
	if (info->is_zombie) {
		log_error(&collector->log, "process %d (%s) has ended already", pid, info->name);
		return -ESRCH;
	}
	if (info->is_32bit) {
		log_error(&collector->log, "process %d (%s) is a 32-bit program: only 64-bit ones can be traced", pid,
			  info->name);
		return -ENOTSUP;
	}
	if (info->is_static && !files) {
		log_error(&collector->log,
			  "process %d (%s) is statically linked and holds no described runtime: nothing to trace, now or later "
			  "(see `xputrace list runtimes`; describe it with --runtime FILE.json)",
			  pid, info->name);
		return -ENOEXEC;
	}
	return 0;
}

static int look_at(struct collector *collector, pid_t pid, struct process_info *info)
{
	int error = process_info_read(pid, info);

	if (error) {
		log_error(&collector->log, error == -ESRCH ? "there is no process %d" : "cannot look at process %d: %s",
			  pid, strerror(-error));
		return error;
	}
	error = refuse(collector, pid, info, 1);
	if (error)
		process_info_free(info);
	return error;
}

int targets_look(struct collector *collector)
{
	struct process_info info;
	int error = 0;

	for (size_t i = 0; i < collector->options.pid_count && !error; i++) {
		error = look_at(collector, collector->pids[i], &info);
		if (!error)
			process_info_free(&info);
	}
	return error;
}

static int attach_process(struct collector *collector, pid_t pid)
{
	struct process_info info;
	struct followed *followed;
	int placed = 0, error;

	error = look_at(collector, pid, &info);
	if (error)
		return error;
	followed = followed_add(collector, info.tgid);
	if (!followed)
		error = -ENOMEM;
	if (!error)
		error = kern_follow(collector->kern, info.tgid, XPT_PROCESS_TARGET);
	if (!error) {
		announce(collector, followed, clock_monotonic());
		placed = attacher_scan(collector->attacher, info.tgid);
		if (placed < 0) {
			error = placed;
			log_error(&collector->log,
				  error == -ESRCH ? "process %d has ended while probes were placed" :
						    "cannot place probes in process %d: %s",
				  pid, strerror(-error));
		}
	}
	if (!error)
		error = refuse(collector, pid, &info, attacher_files(collector->attacher, info.tgid));
	if (!error) {
		const struct attacher_figures *figures = attacher_figures(collector->attacher);

		log_info(&collector->log,
			 "attached to PID %d (%s): %d probes in %zu files (%zu single-stepped), %s links", info.tgid,
			 info.name, placed, attacher_files(collector->attacher, info.tgid),
			 figures->sites[SITE_STEPPED], link_kind_name(kern_link_kind(collector->kern)));
		if (figures->sites[SITE_STEPPED])
			log_warn(&collector->log,
				 "%zu probes are single-stepped: each of their calls takes about %u us longer (see `xputrace "
				 "list sites -p %d`; leave runtimes out with --only)",
				 figures->sites[SITE_STEPPED], site_class_cost(SITE_STEPPED) / 1000, info.tgid);
		if (!placed)
			log_warn(&collector->log, "PID %d uses no described runtime yet: waiting for it to load one",
				 pid);
	}
	process_info_free(&info);
	return error;
}

/* The name that it has, or that of the file that it runs. */
static bool is_named(const struct collector *collector, pid_t tgid)
{
	char name[XPT_TASK_NAME_LEN] = "", path[32], file[PATH_MAX];
	const char *base;
	ssize_t length;

	if (!collector->options.process_name_count)
		return false;
	process_thread_name(tgid, tgid, name);
	snprintf(path, sizeof(path), "/proc/%d/exe", tgid);
	length = readlink(path, file, sizeof(file) - 1);
	file[length < 0 ? 0 : length] = '\0';
	base = strrchr(file, '/');
	for (size_t i = 0; i < collector->options.process_name_count; i++) {
		const char *wanted = collector->process_names[i];

		if (!strncmp(wanted, name, XPT_TASK_NAME_LEN - 1) || (base && !strcmp(wanted, base + 1)))
			return true;
	}
	return false;
}

/* Best effort: it may be gone again. But whether it may be followed at all is told. */
static int attach_named(void *context, pid_t tgid)
{
	struct collector *collector = context;
	struct followed *followed;
	struct process_info info;
	int placed = 0, error = 0;

	if (tgid == getpid() || followed_find(collector, tgid) || !is_named(collector, tgid) ||
	    process_info_read(tgid, &info))
		return 0;
	if (!info.is_kernel_thread && !info.is_zombie && !info.is_32bit)
		error = admit(collector, tgid);
	if (!error && !info.is_kernel_thread && !info.is_zombie && !info.is_32bit) {
		followed = followed_add(collector, tgid);
		if (followed && !kern_follow(collector->kern, tgid, XPT_PROCESS_TARGET)) {
			announce(collector, followed, clock_monotonic());
			placed = attacher_scan(collector->attacher, tgid);
			log_info(&collector->log, "attached to PID %d (%s): %d probes", tgid, info.name,
				 placed < 0 ? 0 : placed);
		}
	}
	process_info_free(&info);
	return placed == -ENOMEM ? placed : error;
}

/* One that comes later and may not be followed is no reason to stop. */
static int attach_named_later(void *context, pid_t tgid)
{
	int error = attach_named(context, tgid);

	return error == -ENOMEM ? error : 0;
}

static int attach_any(void *context, pid_t tgid)
{
	struct collector *collector = context;
	int placed = attacher_scan(collector->attacher, tgid);

	/* One process more or less that cannot be looked at is no reason to stop. */
	return placed == -ENOMEM ? placed : 0;
}

static int start_command(struct collector *collector)
{
	struct followed *followed;
	int error = command_start(collector->options.command, &collector->command);

	if (error) {
		log_error(&collector->log, "cannot start a process: %s", strerror(-error));
		return error;
	}
	error = admit(collector, collector->command.pid);
	if (error)
		return error;
	followed = followed_add(collector, collector->command.pid);
	if (!followed)
		return -ENOMEM;
	error = kern_follow(collector->kern, collector->command.pid, XPT_PROCESS_TARGET | XPT_PROCESS_HOLD);
	if (error)
		return error;
	watch(collector, followed);
	if (!kern_can_hold_children())
		log_warn(&collector->log,
			 "this kernel cannot hold forked children: the first calls of a child may be missed");
	return command_release(&collector->command);
}

int targets_start(struct collector *collector)
{
	int error = 0;

	if (collector->options.command)
		return start_command(collector);
	if (collector->options.all_processes) {
		error = process_each(attach_any, collector);
		if (!error)
			log_info(&collector->log, "attached to all processes: %zu files with runtimes so far",
				 attacher_files(collector->attacher, 0));
		return error;
	}
	for (size_t i = 0; i < collector->options.pid_count && !error; i++)
		error = attach_process(collector, collector->pids[i]);
	if (!error && collector->options.process_name_count)
		error = process_each(attach_named, collector);
	return error;
}

/* ---- while it runs ---- */

static void on_mapping(void *context, pid_t tgid, bool lost)
{
	struct collector *collector = context;

	if (lost) {
		collector->scan_all = true;
		return;
	}
	if (!collector->options.all_processes && !followed_find(collector, tgid) && !is_named(collector, tgid))
		return;
	for (size_t i = 0; i < collector->pending_count; i++) {
		if (collector->pending[i] == tgid)
			return;
	}
	if (collector->pending_count == collector->pending_room) {
		size_t room = collector->pending_room ? collector->pending_room * 2 : 64;
		pid_t *more = realloc(collector->pending, room * sizeof(*more));

		if (!more) {
			collector->scan_all = true;
			return;
		}
		collector->pending = more;
		collector->pending_room = room;
	}
	collector->pending[collector->pending_count++] = tgid;
}

void targets_read_mappings(struct collector *collector)
{
	mappings_read(collector->mappings, on_mapping, collector);
}

void targets_scan_pending(struct collector *collector)
{
	for (size_t i = 0; i < collector->pending_count; i++) {
		if (collector->options.all_processes || followed_find(collector, collector->pending[i]))
			attacher_scan(collector->attacher, collector->pending[i]);
		else
			attach_named_later(collector, collector->pending[i]);
	}
	collector->pending_count = 0;
	if (!collector->scan_all)
		return;
	collector->scan_all = false;
	if (collector->options.all_processes) {
		process_each(attach_any, collector);
		return;
	}
	for (size_t i = 0; i < collector->followed_count; i++)
		attacher_scan(collector->attacher, collector->followed[i].tgid);
	if (collector->options.process_name_count)
		process_each(attach_named_later, collector);
}

void targets_continue(struct collector *collector, pid_t tgid, __u64 since, unsigned int event, unsigned int sites)
{
	struct xpt_record_held record = {
		.header = { XPT_RECORD_HELD, sizeof(record), tgid, 0 },
		.start = since,
		.event = event,
		.sites = sites,
	};

	kill(tgid, SIGCONT);
	record.header.time = clock_monotonic();
	collector_pass(collector, &record.header);
}

void collector_limit_holds(struct collector *collector, __u64 limit)
{
	collector->hold_limit = limit;
}

void collector_let_go(struct collector *collector, pid_t tgid)
{
	kern_forget_hold(collector->kern, tgid);
	/* Ours was for a thread. Who has stopped the process meanwhile shall find it so. */
	if (!process_stop_pending(tgid))
		kill(tgid, SIGCONT);
}

void targets_release_codes(struct collector *collector)
{
	pid_t tgid;

	while ((tgid = kern_take_hold(collector->kern)))
		collector_let_go(collector, tgid);
}

/* A new process, or the same one with a new program: what it has mapped now is looked through. */
static void on_begin(struct collector *collector, const struct xpt_record_task *task)
{
	struct followed *followed = followed_add(collector, task->header.tgid);
	int placed = 0;

	admit(collector, task->header.tgid);
	collector_pass(collector, &task->header);
	if (followed) {
		announce(collector, followed, task->header.time);
		attacher_renew(collector->attacher, task->header.tgid);
		kern_forget_callers(collector->kern, task->header.tgid);
		records_forget_told(collector, task->header.tgid);
		followed->began = task->header.time;
		placed = attacher_scan(collector->attacher, task->header.tgid);
		if (placed > 0)
			log_info(&collector->log, "PID %u (%.15s): %d probes", task->header.tgid, task->name, placed);
	}
	if (task->held)
		targets_continue(collector, task->header.tgid, task->header.time, task->event, placed > 0 ? placed : 0);
}

static void on_thread(struct collector *collector, const struct xpt_record_task *task)
{
	struct followed *followed = followed_find(collector, task->header.tgid);
	char name[XPT_TASK_NAME_LEN + 1] = "";

	if (!followed) {
		followed = followed_add(collector, task->header.tgid);
		kern_follow(collector->kern, task->header.tgid, XPT_PROCESS_TARGET);
	}
	if (followed && !followed->announced)
		announce(collector, followed, task->header.time);
	memcpy(name, task->name, XPT_TASK_NAME_LEN);
	collector_pass_text(collector,
			    record_text(XPT_RECORD_THREAD, task->header.tgid, task->header.time, task->tid, name));
}

void targets_task(struct collector *collector, const struct xpt_record_task *task)
{
	switch (task->event) {
	case XPT_TASK_FORK:
	case XPT_TASK_EXEC:
		on_begin(collector, task);
		break;
	case XPT_TASK_EXIT:
		collector_pass(collector, &task->header);
		forget(collector, task->header.tgid);
		break;
	case XPT_TASK_THREAD:
		on_thread(collector, task);
		break;
	}
}

static bool is_stopped(pid_t tgid)
{
	struct process_state now;

	return process_state_read(tgid, &now) && process_is_stopped(tgid, now.state);
}

/* What the records should have told, in case some were lost: ended processes, and held ones that nobody let go. */
void targets_check(struct collector *collector)
{
	int error = command_exec_error(&collector->command);

	if (error) {
		log_error(&collector->log, "cannot run %s: %s", collector->options.command[0], strerror(-error));
		collector->error = error;
	}
	command_reap(&collector->command);
	for (size_t i = 0; i < collector->followed_count; i++) {
		pid_t tgid = collector->followed[i].tgid;

		if (kill(tgid, 0) && errno == ESRCH) {
			forget(collector, tgid);
			i--;
		} else if (holding(collector) && collector->losses[XPT_LOSS_RING_FULL] && is_stopped(tgid)) {
			attacher_scan(collector->attacher, tgid);
			kill(tgid, SIGCONT);
		}
	}
}

bool targets_ended(struct collector *collector)
{
	if (collector->options.all_processes || collector->options.process_name_count || collector->followed_count)
		return false;
	/* Its last words came before it could be waited for. */
	return !collector->command.pid || command_reap(&collector->command);
}

/* Nothing is held from here on; what is being held now is let go. The command runs on. */
void targets_release(struct collector *collector)
{
	if (!collector->kern || !holding(collector))
		return;
	kern_follow_flags(collector->kern, XPT_PROCESS_TARGET);
	for (size_t i = 0; i < collector->followed_count; i++) {
		if (is_stopped(collector->followed[i].tgid))
			kill(collector->followed[i].tgid, SIGCONT);
	}
}

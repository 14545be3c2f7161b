/* SPDX-License-Identifier: BSD-2-Clause */
/* The processes that are traced: found, started, followed to their children. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/log.h"
#include "base/core/vec.h"
#include "kern/features.h"
#include "session/collect/collector.h"
#include "target/process/process.h"

/*
 * Processes with probes of their own; more are a family. Not two: a session link with another process's filter arms the return of
 * a call that this one declines (stack switching).
 */
#define SINGLE_MAX 1
#define REPORTED_MAX 32		 /* processes that are named one by one when all are attached to */
#define PLACED_LATE 100000000ull /* ns after a library was loaded: its probes come later than is usual */

static struct followed *followed_find(struct collector *collector, pid_t tgid)
{
	struct map_node *node = map_find(&collector->followed_map, tgid, 0);

	return node ? container_of(node, struct followed, node) : NULL;
}

__u64 targets_began(struct collector *collector, pid_t tgid)
{
	const struct followed *followed = followed_find(collector, tgid);

	return followed ? followed->began : 0;
}

int targets_each(struct collector *collector, int (*visit)(void *context, pid_t tgid), void *context)
{
	const struct followed *followed, *next;
	int result = 0;

	if (collector->options.all_processes)
		return process_each(visit, context);
	link_for_each_safe(followed, next, &collector->followed, link)
		result = result ?: visit(context, followed->tgid);
	return result;
}

static struct followed *followed_add(struct collector *collector, pid_t tgid)
{
	struct followed *followed = followed_find(collector, tgid);

	if (followed)
		return followed;
	followed = calloc(1, sizeof(*followed));
	if (!followed)
		return NULL;
	followed->tgid = tgid;
	if (map_add(&collector->followed_map, &followed->node, tgid, 0)) {
		free(followed);
		return NULL;
	}
	link_append(&collector->followed, &followed->link);
	return followed;
}

static void followed_remove(struct collector *collector, struct followed *followed)
{
	map_remove(&collector->followed_map, &followed->node);
	link_remove(&followed->link);
	free(followed);
}

void targets_free(struct collector *collector)
{
	struct followed *followed, *next;

	link_for_each_safe(followed, next, &collector->followed, link)
		followed_remove(collector, followed);
	map_free(&collector->followed_map);
}

/* ---- single processes and the family ---- */

/*
 * From now on all that come are of the family, which gets the probes that a single process has; that one keeps its own. Number of probes
 * placed, or a negative errno.
 */
static int begin_family(struct collector *collector)
{
	int placed, error;

	if (collector->has_family)
		return 0;
	placed = attacher_begin_family(collector->attacher);
	error = kern_family_complete(collector->kern);
	if (error)
		return error;
	collector->has_family = true;
	if (placed && collector->ready)
		collector->family_since = clock_monotonic();
	return placed < 0 ? 0 : placed;
}

static void join_family(struct collector *collector, pid_t tgid)
{
	kern_family_add(collector->kern, tgid);
	/* Its end may have come before: then nobody removes it. */
	if (kill(tgid, 0) && errno == ESRCH)
		kern_family_remove(collector->kern, tgid);
}

static size_t count_single(const struct collector *collector)
{
	const struct followed *followed;
	size_t count = 0;

	link_for_each(followed, &collector->followed, link)
		count += !kern_family_has(collector->kern, followed->tgid);
	return count;
}

/*
 * The kernel side follows the process: as a single one, with probes that cost others nothing, or as a member of the
 * family, with probes shared by all. It is in the list already.
 */
static int follow(struct collector *collector, pid_t tgid)
{
	int placed;

	if (!collector->has_family && count_single(collector) <= SINGLE_MAX)
		return kern_follow(collector->kern, tgid);
	placed = begin_family(collector);
	if (placed < 0)
		return placed;
	join_family(collector, tgid);
	return 0;
}

/* Emits the PROCESS record: at first sight, and again when the process has become another program. */
static void announce(struct collector *collector, struct followed *followed, __u64 time)
{
	struct process_info info;
	int error = process_info_read(followed->tgid, &info);

	if (error_is_shortage(error) && !collector->error)
		collector->error = error;
	if (error)
		return;
	collector_pass_text(collector, record_process(&info, time));
	followed->announced = time;
	process_info_free(&info);
}

static int admit(struct collector *collector, pid_t tgid)
{
	const struct collector_options *options = &collector->options;

	return options->all_processes ? 0 : options->admit(options->context, tgid);
}

/* It has called what had no probe, or may have. */
static void report_late(struct collector *collector, struct followed *followed)
{
	if (followed->late)
		records_lost(collector, XPT_LOSS_LATE_PROBES, 1);
	followed->late = false;
}

void targets_finish(struct collector *collector)
{
	struct followed *followed, *next;

	link_for_each_safe(followed, next, &collector->followed, link)
		report_late(collector, followed);
}

/* The kernel side does not follow the process any more. */
static void forget(struct collector *collector, pid_t tgid)
{
	const struct collector_options *options = &collector->options;
	struct followed *followed = followed_find(collector, tgid);

	if (!followed)
		return;
	if (!options->all_processes)
		options->leave(options->context, tgid);
	report_late(collector, followed);
	budget_forget(collector->budget, followed);
	attacher_forget(collector->attacher, tgid);
	/* One that has called nothing has left nothing. */
	if (followed->announced || followed->called) {
		records_totals(collector, tgid);
		kern_forget_callers(collector->kern, tgid);
		records_forget_objects(collector, tgid);
	}
	followed_remove(collector, followed);
}

static bool has_ended(pid_t tgid)
{
	struct process_info info;
	int error = process_info_read(tgid, &info);
	bool ended = error == -ESRCH || (!error && info.is_zombie);

	if (!error)
		process_info_free(&info);
	return ended;
}

/* Of a process that has ended, which the kernel side may not have seen. */
static void unfollow(struct collector *collector, pid_t tgid)
{
	kern_family_remove(collector->kern, tgid);
	kern_unfollow(collector->kern, tgid);
	forget(collector, tgid);
}

/* The same of one whose end nobody has reported: what is known of it would be kept for ever. */
static void end_unreported(struct collector *collector, struct followed *followed)
{
	const struct xpt_record_task record = {
		.header = { .kind = XPT_RECORD_TASK,
			    .size = sizeof(record),
			    .tgid = (__u32)followed->tgid,
			    .time = clock_monotonic() },
		.tid = (__u32)followed->tgid,
		.event = XPT_TASK_EXIT,
	};

	if (followed->announced || followed->called)
		collector_pass(collector, &record.header);
	unfollow(collector, followed->tgid);
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
	if (!files && attacher_is_static(collector->attacher, info)) {
		log_error(&collector->log,
			  "process %d (%s) is statically linked and holds no described runtime: nothing to trace, now or later "
			  "(see `xputrace list runtimes`; describe it with --runtime FILE.json)",
			  pid, info->name);
		return -ENOEXEC;
	}
	return 0;
}

void targets_explain(const struct log *log, pid_t pid, int error)
{
	char text[256];

	if (error == -ESRCH && kill(pid, 0) && errno == ESRCH)
		log_error(log, "there is no process %d", pid);
	else if (error == -ESRCH)
		log_error(log,
			  "process %d is not in /proc: it is not mounted, or with hidepid and CAP_SYS_PTRACE is missing",
			  pid);
	else if (error == -EACCES || error == -EPERM) {
		capabilities_explain(1ull << CAP_SYS_PTRACE, text, sizeof(text));
		log_error(log, "cannot inspect process %d: %s", pid, text);
	} else {
		log_error(log, "cannot inspect process %d: %s", pid, strerror(-error));
	}
}

static int look_at(struct collector *collector, pid_t pid, struct process_info *info)
{
	int error = process_info_read(pid, info);

	if (error) {
		targets_explain(&collector->log, pid, error);
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

/* NULL: it cannot be followed. *placed: new probes, or why there are none. */
static struct followed *attach(struct collector *collector, pid_t tgid, int *placed)
{
	struct followed *followed = followed_add(collector, tgid);

	*placed = followed ? follow(collector, tgid) : -ENOMEM;
	if (*placed)
		return NULL;
	announce(collector, followed, clock_monotonic());
	*placed = attacher_scan(collector->attacher, tgid);
	followed->attached = attacher_scanned(collector->attacher);
	return followed;
}

static int attach_process(struct collector *collector, pid_t pid)
{
	struct process_info info;
	struct followed *followed;
	int placed, error;

	error = look_at(collector, pid, &info);
	if (error)
		return error;
	if (followed_find(collector, info.tgid)) { /* another thread of it was named, too */
		process_info_free(&info);
		return 0;
	}
	followed = attach(collector, info.tgid, &placed);
	error = placed < 0 ? placed : 0;
	if (error && followed && error == -EACCES)
		targets_explain(&collector->log, pid, error);
	else if (error && followed && error != -EINTR)
		log_error(&collector->log,
			  error == -ESRCH ? "process %d has ended while probes were placed" :
					    "cannot place probes in process %d: %s",
			  pid, strerror(-error));
	if (!error)
		error = refuse(collector, pid, &info, followed->attached.files);
	process_info_free(&info);
	return error;
}

static void report_process(struct collector *collector, struct followed *followed)
{
	char name[XPT_TASK_NAME_LEN] = "";

	if (has_ended(followed->tgid))
		return;
	process_thread_name(followed->tgid, followed->tgid, name);
	log_info(&collector->log, "attached to PID %d (%s): %zu probes in %zu files, %s links", followed->tgid, name,
		 followed->attached.probes, followed->attached.files, link_kind_name(kern_link_kind(collector->kern)));
	followed->awaited = !followed->attached.files;
	if (followed->awaited)
		log_warn(&collector->log, "PID %d uses no described runtime yet: waiting for it to load one",
			 followed->tgid);
}

void targets_report(struct collector *collector)
{
	size_t stepped = attacher_figures(collector->attacher)->sites[SITE_STEPPED];
	bool others = collector->options.all_processes || collector->options.process_name_count;
	struct followed *followed;
	char text[256];

	if (others && capabilities_missing(1ull << CAP_SYS_PTRACE)) {
		capabilities_explain(1ull << CAP_SYS_PTRACE, text, sizeof(text));
		log_warn(&collector->log, "processes of others are not seen: %s", text);
	}
	for (size_t i = 0; i < collector->options.process_name_count; i++)
		if (!collector->process_names_met[i])
			log_warn(&collector->log, "no process is called %s yet: waiting for one",
				 collector->process_names[i]);
	if (collector->options.all_processes)
		log_info(&collector->log, "attached to all processes: %zu files with runtimes so far",
			 attacher_files(collector->attacher));
	if (collector->options.command || collector->options.all_processes)
		return;
	if (collector->followed_map.count > REPORTED_MAX)
		log_info(&collector->log, "attached to %zu processes: %zu files with probes, %s links",
			 collector->followed_map.count, attacher_files(collector->attacher),
			 link_kind_name(kern_link_kind(collector->kern)));
	else
		link_for_each(followed, &collector->followed, link)
			report_process(collector, followed);
	if (stepped)
		log_warn(&collector->log,
			 "%zu probes are single-stepped: each of their calls takes about %u us longer (see `xputrace list "
			 "sites -p PID`; leave runtimes out with --only)",
			 stepped, site_class_cost(SITE_STEPPED) / 1000);
}

/* The name that it has, or that of the file that it runs. */
static bool is_named(struct collector *collector, pid_t tgid)
{
	bool named = false;
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

		if (strncmp(wanted, name, XPT_TASK_NAME_LEN - 1) && (!base || strcmp(wanted, base + 1)))
			continue;
		collector->process_names_met[i] = true;
		named = true;
	}
	return named;
}

/* Best effort: it may have ended again. But whether it may be followed at all is reported. */
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
		followed = attach(collector, tgid, &placed);
		if (followed && collector->ready)
			report_process(collector, followed);
	}
	process_info_free(&info);
	return placed == -ENOMEM || placed == -EINTR ? placed : error;
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

	/* One process more or less that cannot be read is no reason to stop. */
	return placed == -ENOMEM || placed == -EINTR ? placed : 0;
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
	/* Its dynamic loader, where it waits until what it has mapped has its probes. */
	error = attacher_prepare(collector->attacher, collector->options.command[0]) ?: begin_family(collector);
	if (error < 0)
		return error;
	kern_family_add(collector->kern, collector->command.pid);
	return 0;
}

int targets_start(struct collector *collector)
{
	int error = 0;

	if (collector->options.command)
		return start_command(collector);
	if (collector->options.all_processes)
		return process_each(attach_any, collector);
	if (collector->options.pid_count > SINGLE_MAX)
		error = begin_family(collector); /* of no single process: nothing is placed */
	for (size_t i = 0; i < collector->options.pid_count && !error; i++)
		error = attach_process(collector, collector->pids[i]);
	if (!error && collector->options.process_name_count)
		error = process_each(attach_named, collector);
	return error;
}

/* ---- while it runs ---- */

static void on_mapping(void *context, pid_t tgid, unsigned long long time)
{
	struct collector *collector = context;
	struct mapped mapped = { tgid, time };

	if (!time) {
		collector->scan_all = true;
		return;
	}
	if (!collector->options.all_processes && !followed_find(collector, tgid) &&
	    !kern_family_has(collector->kern, tgid) && !is_named(collector, tgid))
		return;
	for (size_t i = 0; i < collector->pending_count; i++) {
		if (collector->pending[i].tgid == tgid)
			return;
	}
	if (vec_push(collector->pending, collector->pending_count, mapped))
		collector->scan_all = true;
}

void targets_read_mappings(struct collector *collector)
{
	mappings_read(collector->mappings, on_mapping, collector);
}

/*
 * A process has mapped something. Reported are the first probes of one that came without a described runtime; and probes for which
 * nothing has waited, where they come so late that calls before are likely. mapped: when, in ns; 0: it is not known.
 */
static void scan(struct collector *collector, pid_t tgid, __u64 mapped)
{
	struct followed *followed;
	int placed = attacher_scan(collector->attacher, tgid);
	__u64 since = mapped > collector->started ? mapped : collector->started, now = clock_monotonic();
	bool had;

	if (placed > 0 && !collector->options.command && collector->ready && now - since > PLACED_LATE) {
		log_info(&collector->log, "PID %d: probes were placed %llu ms after a library was loaded", tgid,
			 (now - since) / 1000000);
		records_lost(collector, XPT_LOSS_LATE_PROBES, 1);
	}
	followed = followed_find(collector, tgid);
	if (placed == -ESRCH && !followed)
		attacher_forget(collector->attacher, tgid);
	if (placed < 0 || !followed)
		return;
	had = followed->attached.files;
	followed->attached = attacher_scanned(collector->attacher);
	if (!had && followed->attached.files && collector->ready && !collector->options.command)
		report_process(collector, followed);
}

void targets_scan_pending(struct collector *collector)
{
	const struct followed *followed, *next;

	for (size_t i = 0; i < collector->pending_count; i++) {
		struct mapped mapped = collector->pending[i];

		if (collector->options.all_processes || followed_find(collector, mapped.tgid) ||
		    kern_family_has(collector->kern, mapped.tgid))
			scan(collector, mapped.tgid, mapped.time);
		else
			attach_named_later(collector, mapped.tgid);
	}
	collector->pending_count = 0;
	if (!collector->scan_all)
		return;
	collector->scan_all = false;
	if (collector->options.all_processes) {
		process_each(attach_any, collector);
		return;
	}
	link_for_each_safe(followed, next, &collector->followed, link)
		scan(collector, followed->tgid, 0);
	if (collector->options.process_name_count)
		process_each(attach_named_later, collector);
}

bool collector_answer(struct collector *collector, pid_t tgid, __u64 ticket)
{
	struct followed *followed = followed_find(collector, tgid);

	if (kern_answer(collector->kern, ticket)) {
		if (followed)
			followed->missed = 0;
		return true;
	}
	if (!followed)
		return false;
	if (!followed->missed++)
		log_warn(&collector->log, "PID %d did not wait any longer: calls or code objects may be missing", tgid);
	if (followed->missed == XPT_WAIT_PATIENCE)
		log_warn(&collector->log, "PID %d does not wait any more: it has missed %d deadlines in a row", tgid,
			 XPT_WAIT_PATIENCE);
	return false;
}

/*
 * The child is a member of the family. Nothing is read of it unless its parent has probes by its memory: it may be one of thousands
 * that do nothing traced.
 */
static void on_fork(struct collector *collector, const struct xpt_record_task *task)
{
	pid_t tgid = task->header.tgid;
	struct followed *followed = followed_add(collector, tgid), *parent = followed_find(collector, task->other);
	int placed, inherited;
	bool lacked;

	collector_pass(collector, &task->header);
	if (!followed)
		return;
	followed->began = task->header.time;
	if (parent)
		followed->attached = parent->attached;
	placed = begin_family(collector);
	inherited = attacher_fork(collector->attacher, task->other, tgid, &lacked);
	placed += inherited > 0 ? inherited : 0;
	followed->late = (lacked || task->header.time < collector->family_since) &&
			 (!collector->ended || task->header.time < collector->ended);
	if (!task->shares_memory)
		report_late(collector, followed);
	if (placed > 0)
		log_info(&collector->log, "PID %d (%.15s): %d probes", tgid, task->name, placed);
}

/* The same process with a new program: what it has mapped now is scanned. */
static void on_exec(struct collector *collector, const struct xpt_record_task *task)
{
	pid_t tgid = task->header.tgid;
	size_t late = attacher_figures(collector->attacher)->late;
	struct followed *followed = followed_add(collector, tgid);
	int placed;

	admit(collector, tgid);
	collector_pass(collector, &task->header);
	if (!followed)
		return;
	announce(collector, followed, task->header.time);
	attacher_renew(collector->attacher, tgid);
	kern_forget_callers(collector->kern, tgid);
	records_forget_objects(collector, tgid);
	followed->began = task->header.time;
	followed->missed = 0;
	followed->late = false;
	placed = attacher_scan(collector->attacher, tgid);
	followed->attached = attacher_scanned(collector->attacher);
	if (followed->awaited && followed->attached.files)
		report_process(collector, followed);
	else if (placed > 0)
		log_info(&collector->log, "PID %d (%.15s): %d probes", tgid, task->name, placed);
	if (collector->options.command && attacher_figures(collector->attacher)->late > late) {
		log_warn(&collector->log, "PID %d (%.15s) has no known dynamic loader: its first calls may be missing",
			 tgid, task->name);
		records_lost(collector, XPT_LOSS_LATE_PROBES, 1);
	}
}

static void on_thread(struct collector *collector, const struct xpt_record_task *task)
{
	struct followed *followed = followed_find(collector, task->header.tgid);
	char name[XPT_TASK_NAME_LEN + 1] = "";

	if (!followed) {
		followed = followed_add(collector, task->header.tgid);
		/* Of a member of the family that is followed no more the record is late: it has ended. */
		if (collector->options.all_processes)
			kern_follow(collector->kern, task->header.tgid);
	}
	if (followed)
		followed->called = true;
	if (followed && !followed->announced) {
		admit(collector, task->header.tgid);
		announce(collector, followed, task->header.time);
	}
	memcpy(name, task->name, XPT_TASK_NAME_LEN);
	collector_pass_text(collector,
			    record_text(XPT_RECORD_THREAD, task->header.tgid, task->header.time, task->tid, name));
}

/* A process that lives may have the number by now, and be followed since it was forked: the kernel side keeps that one. */
static void on_end(struct collector *collector, const struct xpt_record_task *task)
{
	const struct followed *followed = followed_find(collector, task->header.tgid);
	const bool late = followed && followed->announced > task->header.time,
		   follows = kern_follows(collector->kern, task->header.tgid);
	const bool ended = (late || follows) && has_ended(task->header.tgid);
	struct xpt_record_task record = *task;

	/* It ended while it was attached to: what was emitted of it then ends with it. */
	if (late && ended)
		record.header.time = followed->announced;
	collector_pass(collector, &record.header);
	if (follows && ended)
		unfollow(collector, task->header.tgid);
	else
		forget(collector, task->header.tgid);
	/* Or it is still ending, and was followed again after the kernel side had seen that: the next check finds out. */
	collector->tasks_settling |= follows && !ended;
}

void targets_task(struct collector *collector, const struct xpt_record_task *task)
{
	switch (task->event) {
	case XPT_TASK_FORK:
		on_fork(collector, task);
		break;
	case XPT_TASK_EXEC:
		on_exec(collector, task);
		break;
	case XPT_TASK_EXIT:
		on_end(collector, task);
		break;
	case XPT_TASK_THREAD:
		on_thread(collector, task);
		break;
	}
}

/* A child of a traced process, with an unreported fork. */
static int adopt_missed(void *context, pid_t tgid)
{
	struct collector *collector = context;
	struct xpt_record_task record = { .event = XPT_TASK_FORK, .tid = tgid };
	struct process_info info;

	if (tgid == getpid() || followed_find(collector, tgid) || kern_family_has(collector->kern, tgid) ||
	    process_info_read(tgid, &info))
		return 0;
	if (info.start_time > collector->ticks &&
	    (followed_find(collector, info.parent) || kern_family_has(collector->kern, info.parent))) {
		join_family(collector, tgid);
		record.header.kind = XPT_RECORD_TASK;
		record.header.size = sizeof(record);
		record.header.tgid = tgid;
		record.header.time = clock_monotonic();
		record.other = info.parent;
		memcpy(record.name, info.name, sizeof(record.name));
		on_fork(collector, &record);
	}
	process_info_free(&info);
	return 0;
}

/* The kernel does not run a program that is running on that CPU already: ends and forks of processes may be missing. */
static bool may_have_missed(struct collector *collector)
{
	__u64 missed = kern_tasks_missed(collector->kern);
	bool more = missed != collector->tasks_missed, settling = collector->tasks_settling;

	collector->tasks_missed = missed;
	collector->tasks_settling = more; /* what was missed just now is complete at the next check */
	return more || settling;
}

static void check_command(struct collector *collector)
{
	int error = command_exec_error(&collector->command);

	if (!error)
		return;
	log_error(&collector->log, "cannot run %s: %s", collector->options.command[0], strerror(-error));
	collector->error = error;
}

/* What the records should have reported, in case some were lost. An end may be in a ring yet: it counts at the next check. */
void targets_check(struct collector *collector)
{
	const bool missed = may_have_missed(collector);
	struct followed *followed, *next;
	const __u64 now = clock_monotonic();
	pid_t tgid = 0;
	__u64 since;

	check_command(collector);
	command_reap(&collector->command);
	while (missed && (tgid = kern_family_next(collector->kern, tgid))) {
		if (!followed_find(collector, tgid) && has_ended(tgid))
			unfollow(collector, tgid);
	}
	link_for_each_safe(followed, next, &collector->followed, link) {
		if (missed ? !has_ended(followed->tgid) : !kill(followed->tgid, 0) || errno != ESRCH)
			followed->gone = false;
		else if (followed->gone)
			end_unreported(collector, followed);
		else
			followed->gone = true;
	}
	if (missed && !collector->options.all_processes)
		process_each(adopt_missed, collector);
	while ((tgid = attacher_due(collector->attacher, now, &since)))
		on_mapping(collector, tgid, since);
}

bool targets_ended(struct collector *collector)
{
	if (collector->options.all_processes || collector->options.process_name_count ||
	    collector->followed_map.count || kern_family_members(collector->kern))
		return false;
	check_command(collector);
	/* Its last words came before it could be waited for. */
	return !collector->command.pid || command_reap(&collector->command);
}

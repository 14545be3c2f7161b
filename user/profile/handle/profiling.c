/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "profile/handle/state.h"

int profiling_create(const struct profiling_options *options, struct profiling **result)
{
	struct profiling *profiling = calloc(1, sizeof(*profiling));

	if (!profiling)
		return -ENOMEM;
	profiling->names = trace_names_create();
	if (!profiling->names) {
		free(profiling);
		return -ENOMEM;
	}
	profiling->options = *options;
	profiling->budget.limit = options->report_bytes;
	catalogue_init(&profiling->catalogue);
	link_init(&profiling->handles);
	link_init(&profiling->runs);
	rates_refresh(profiling);
	*result = profiling;
	return 0;
}

void profiling_free(struct profiling *profiling)
{
	if (!profiling)
		return;
	catalogue_free(&profiling->catalogue);
	budget_settle(&profiling->budget);
	trace_names_free(profiling->names);
	free(profiling);
}

void log_out_of_memory(struct profiling *profiling)
{
	if (!profiling->memory_logged)
		log_warn(profiling->options.log, "no memory: profiles lack something from here on");
	profiling->memory_logged = true;
}

static void entry_forget(struct profiling *profiling, struct entry *entry)
{
	struct member *member, *following;

	link_for_each_safe(member, following, &entry->members, of_entry)
		member_free(member);
	catalogue_remove(&profiling->catalogue, entry);
}

static void entries_forget(struct profiling *profiling, __u64 time)
{
	struct entry *entry;

	for (entry = catalogue_forgettable(&profiling->catalogue, time); entry;
	     entry = catalogue_forgettable(&profiling->catalogue, time))
		entry_forget(profiling, entry);
}

static struct entry *entry_new(struct profiling *profiling, const struct model_program *program)
{
	/* Its release was not reported, but its handle is another's by now. */
	struct entry *older = catalogue_older(&profiling->catalogue, program), *entry;

	if (older)
		take_release(profiling, older, program->loaded ?: profiling->now);
	entry = catalogue_add(&profiling->catalogue, program);
	if (!entry) {
		log_out_of_memory(profiling);
		return NULL;
	}
	/* One that was forgotten and has late counts: its release was reported. */
	if (program->released)
		catalogue_release(&profiling->catalogue, entry, program->released, profiling->now);
	selection_enter(profiling, entry, true);
	rates_update(profiling, entry);
	return entry;
}

/* The copy of the event's program; NULL: nothing that could be chosen. */
static struct entry *entry_see(struct profiling *profiling, const struct model_program *program)
{
	struct entry *entry;

	if (!program || program_is_others(program))
		return NULL;
	entry = catalogue_find(&profiling->catalogue, program->id);
	if (!entry)
		entry = entry_new(profiling, program);
	if (!entry)
		return NULL;
	if (program->loaded && !entry->loaded) {
		entry->loaded = program->loaded;
		selection_born(entry);
	}
	if (program->released && !entry->released)
		take_release(profiling, entry, program->released);
	return entry;
}

static void entry_rename(struct profiling *profiling, struct entry *entry, const char *name, const char *process)
{
	struct member *member;
	int renamed = catalogue_rename(entry, name, process);

	if (renamed < 0)
		log_out_of_memory(profiling);
	if (renamed <= 0)
		return;
	link_for_each(member, &entry->members, of_entry) {
		member_rename(member);
	}
	if (entry->released)
		return;
	selection_enter(profiling, entry, !entry->active);
	rates_update(profiling, entry);
}

static void on_process(struct profiling *profiling, const struct model_process *process)
{
	struct entry *entry;

	for (entry = catalogue_of_process(&profiling->catalogue, process->tgid, NULL); entry;
	     entry = catalogue_of_process(&profiling->catalogue, process->tgid, entry))
		entry_rename(profiling, entry, entry->identity->name, process->name ?: "");
}

static void on_program(struct profiling *profiling, const struct event_program *event)
{
	struct entry *entry = entry_see(profiling, event->program);

	if (!entry)
		return;
	entry_rename(profiling, entry, event->program->name, event->program->process->name ?: "");
	if (event->released && !entry->released)
		take_release(profiling, entry, event->time);
}

/* The memory of the process is freed. */
static void on_task(struct profiling *profiling, const struct event_task *task)
{
	struct entry *entry;

	if (task->what != XPT_TASK_EXIT && task->what != XPT_TASK_EXEC)
		return;
	while ((entry = catalogue_of_process(&profiling->catalogue, task->tgid, NULL)))
		take_release(profiling, entry, task->time);
}

static void on_count(struct profiling *profiling, const struct event_count *count)
{
	struct entry *entry = entry_see(profiling, count->program);

	if (entry)
		take_count(entry, count);
}

static void on_call(struct profiling *profiling, struct entry *entry, enum xpt_role role)
{
	/* The kernel gives the handle the default rate again: it may have become that of another program. */
	if (role != XPT_ROLE_PROGRAM_LOAD && role != XPT_ROLE_PROGRAM_NAME) {
		rates_retry(profiling, entry);
	} else if (entry->sample_every) {
		rates_forget(profiling, entry);
		rates_update(profiling, entry);
	}
}

static void on_inference(struct profiling *profiling, const struct event *event)
{
	bool call = event->kind == EVENT_CALL;
	struct entry *entry = entry_see(profiling, call ? event->call.program : event->inference.program);
	struct inference inference;

	if (!entry)
		return;
	if (call && !event->call.layer)
		on_call(profiling, entry, event->call.function->role);
	if (inference_read(event, &inference))
		take_inference(profiling, entry, &inference);
}

static void on_region(struct profiling *profiling, const struct event *event)
{
	struct entry *entry = entry_see(profiling, event->region.program);
	struct inference inference;

	if (entry && inference_read(event, &inference))
		take_inference(profiling, entry, &inference);
}

static void event_take(struct profiling *profiling, const struct event *event)
{
	switch (event->kind) {
	case EVENT_PROCESS:
		on_process(profiling, event->process);
		break;
	case EVENT_CALL:
	case EVENT_INFERENCE:
	case EVENT_UNPAIRED:
		on_inference(profiling, event);
		break;
	case EVENT_REGION:
		on_region(profiling, event);
		break;
	case EVENT_PROGRAM:
		on_program(profiling, &event->program);
		break;
	case EVENT_TASK:
		on_task(profiling, &event->task);
		break;
	case EVENT_COUNT:
		on_count(profiling, &event->count);
		break;
	default:
		break;
	}
}

static int profiling_event(void *context, const struct event *event)
{
	struct profiling *profiling = context;
	__u64 time = event_time(event);

	if (time > profiling->now && time <= TIME_MAX)
		profiling->now = time;
	trace_names_event(profiling->names, event);
	event_take(profiling, event);
	take_traces(profiling, event, time);
	if (profiling->rates_stale)
		rates_refresh(profiling);
	return 0;
}

struct event_sink profiling_sink(struct profiling *profiling)
{
	return (struct event_sink){ .write = profiling_event, .context = profiling };
}

__u64 profiling_due(const struct profiling *profiling)
{
	const struct run *run;
	__u64 due = NEVER, next;

	link_for_each(run, &profiling->runs, link) {
		next = run_due(run);
		due = next < due ? next : due;
	}
	return due;
}

int profiling_begin(struct profiling *profiling, __u64 time, __s64 offset)
{
	struct run *run;
	int error = 0;

	link_for_each(run, &profiling->runs, link)
		error = error ?: run_begin(run, time, offset);
	return error;
}

void profiling_read(struct profiling *profiling, __u64 time, __s64 offset)
{
	struct run *run;

	link_for_each(run, &profiling->runs, link)
		run_read(run, time, offset);
	if (profiling->rates_stale)
		rates_refresh(profiling);
}

void profiling_delivered(struct profiling *profiling, __u64 time)
{
	struct run *run, *following;

	link_for_each_safe(run, following, &profiling->runs, link) {
		if (!run_delivered(run, time))
			continue;
		run->handle->runs--;
		run_free(run);
	}
	entries_forget(profiling, time);
	if (link_alone(&profiling->runs))
		budget_settle(&profiling->budget);
}

int profiling_programs(const struct profiling *profiling,
		       int (*visit)(void *context, const struct xpt_program_info *program), void *context)
{
	struct xpt_program_info info;
	const struct entry *entry;
	int result;

	link_for_each(entry, &profiling->catalogue.alive, link) {
		info = (struct xpt_program_info){
			.size = sizeof(info),
			.pid = (pid_t)entry->identity->tgid,
			.runtime = entry->identity->runtime,
			.name = entry->identity->name,
			.handle = entry->identity->handle,
			.calls = entry->recorded,
			.errors = entry->errors,
			.mean = entry->timed ? entry->duration / (double)entry->timed : 0,
		};
		result = visit(context, &info);
		if (result)
			return result;
	}
	return 0;
}

size_t profiling_program_count(const struct profiling *profiling)
{
	return profiling->catalogue.alive_count;
}

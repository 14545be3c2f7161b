/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/profile.h>

#include "profile/handle/state.h"

#define UNHURRIED_EVERY 1000000000ull /* ns: beside it, a tenth of a second does not matter */

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
	program_index_init(&profiling->programs);
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
	program_index_free(&profiling->programs);
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
	program_index_remove(&profiling->programs, entry);
}

static void entries_forget(struct profiling *profiling, __u64 time)
{
	struct entry *entry;

	for (entry = program_index_forgettable(&profiling->programs, time); entry;
	     entry = program_index_forgettable(&profiling->programs, time))
		entry_forget(profiling, entry);
}

static struct entry *entry_new(struct profiling *profiling, const struct model_program *program)
{
	/* Its release was not reported, but its handle is another's by now. */
	struct entry *older = program_index_older(&profiling->programs, program), *entry;

	if (older)
		accumulate_release(profiling, older, program->loaded ?: profiling->now);
	entry = program_index_add(&profiling->programs, program);
	if (!entry) {
		log_out_of_memory(profiling);
		return NULL;
	}
	/* One that was forgotten and has late counts: its release was reported. */
	if (program->released)
		program_index_release(&profiling->programs, entry, program->released, profiling->now);
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
	entry = program_index_find(&profiling->programs, program->id);
	if (!entry)
		entry = entry_new(profiling, program);
	if (!entry)
		return NULL;
	if (program->loaded && !entry->loaded) {
		entry->loaded = program->loaded;
		selection_born(entry);
	}
	if (program->released && !entry->released)
		accumulate_release(profiling, entry, program->released);
	return entry;
}

static void entry_rename(struct profiling *profiling, struct entry *entry, const char *name, const char *process)
{
	struct member *member;
	int renamed = program_index_rename(entry, name, process);

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

	for (entry = program_index_of_process(&profiling->programs, process->tgid, NULL); entry;
	     entry = program_index_of_process(&profiling->programs, process->tgid, entry))
		entry_rename(profiling, entry, entry->identity->name, process->name ?: "");
}

static void on_program(struct profiling *profiling, const struct event_program *event)
{
	struct entry *entry = entry_see(profiling, event->program);

	if (!entry)
		return;
	entry_rename(profiling, entry, event->program->name, event->program->process->name ?: "");
	if (event->released && !entry->released)
		accumulate_release(profiling, entry, event->time);
}

/* The memory of the process is freed. */
static void on_task(struct profiling *profiling, const struct event_task *task)
{
	struct entry *entry;

	if (task->what != XPT_TASK_EXIT && task->what != XPT_TASK_EXEC)
		return;
	while ((entry = program_index_of_process(&profiling->programs, task->tgid, NULL)))
		accumulate_release(profiling, entry, task->time);
}

static void on_count(struct profiling *profiling, const struct event_count *count)
{
	struct entry *entry = entry_see(profiling, count->program);

	if (entry)
		accumulate_count(entry, count);
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
		accumulate_inference(profiling, entry, &inference);
}

static void on_region(struct profiling *profiling, const struct event *event)
{
	struct entry *entry = entry_see(profiling, event->region.program);
	struct inference inference;

	if (entry && inference_read(event, &inference))
		accumulate_inference(profiling, entry, &inference);
}

static void on_stack(struct profiling *profiling, const struct event_stack *stack)
{
	struct entry *entry = entry_see(profiling, stack->program);

	if (entry)
		accumulate_stack(entry, stack);
}

static void dispatch(struct profiling *profiling, const struct event *event)
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
	case EVENT_STACK:
		on_stack(profiling, &event->stack);
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
	dispatch(profiling, event);
	accumulate_traces(profiling, event, time);
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

bool profiling_unhurried(const struct profiling *profiling)
{
	const struct run *run;

	link_for_each(run, &profiling->runs, link) {
		const struct handle_options *options = &run->handle->options;

		if (!options->stream || options->report_every < UNHURRIED_EVERY)
			return false;
	}
	return true;
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

	link_for_each(entry, &profiling->programs.alive, link) {
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
	return profiling->programs.alive_count;
}

/* ---- handles ---- */

/* 585 years take some more bits. */
#define DELAY_MAX (NEVER / 8)

static int refuse(const struct profiling *profiling, const char *reason)
{
	log_error(profiling->options.log, "%s", reason);
	return -EINVAL;
}

static int check(const struct profiling *profiling, const struct handle_options *options)
{
	if (options->type < XPT_PROFILE_LATENCY || options->type > XPT_PROFILE_PERFETTO)
		return refuse(profiling, "a profile is of type latency or trace");
	if (options->summary && options->type != XPT_PROFILE_LATENCY)
		return refuse(profiling, "a summary is made of latencies: it cannot be had as a trace");
	if (options->stream) {
		if (options->report_every < XPT_REPORT_EVERY_MIN || options->report_every > XPT_REPORT_EVERY_MAX)
			return refuse(profiling, "the reporting rate must be 10 ms to 24 h");
		if (options->sample_every < 1 || options->sample_every > XPT_SAMPLE_EVERY_MAX)
			return refuse(profiling, "the sampling rate must be 1 to 1000000");
		return 0;
	}
	if (!options->program.name && !options->program.handle)
		return refuse(profiling, "a profile needs the name or the handle of a program");
	if (options->samples < 1 || options->samples > XPT_SAMPLES_MAX)
		return refuse(profiling, "the number of samples must be 1 to 1000000000");
	if (options->delay > DELAY_MAX)
		return refuse(profiling, "the delay is too long");
	return 0;
}

static void handle_drop(struct handle *handle)
{
	free((char *)handle->options.name);
	free((char *)handle->options.program.name);
	expression_free(handle->expression);
	choices_free(&handle->choices);
	free(handle);
}

int handle_create(struct profiling *profiling, const struct handle_options *options, struct handle **result)
{
	const char *program = options->stream ? NULL : options->program.name;
	struct handle *handle;
	int error;

	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return -ENOMEM;
	handle->profiling = profiling;
	handle->options = *options;
	if (options->stream && !options->report_every)
		handle->options.report_every = XPT_REPORT_EVERY_500MS;
	if (options->stream && !options->sample_every)
		handle->options.sample_every = XPT_SAMPLE_FULL;
	handle->options.match = NULL;
	handle->options.name = strdup(options->name ?: "");
	handle->options.program.name = program ? strdup(program) : NULL;
	error = -ENOMEM;
	if (!handle->options.name || (program && !handle->options.program.name))
		goto out;
	error = check(profiling, &handle->options);
	if (error)
		goto out;
	if (options->stream && options->match) {
		handle->everything = !*options->match;
		error = expression_compile(profiling->options.log, options->match, &handle->expression);
		if (error)
			goto out;
	}
	link_append(&profiling->handles, &handle->link);
	*result = handle;
	return 0;
out:
	handle_drop(handle);
	return error;
}

void handle_free(struct handle *handle)
{
	struct profiling *profiling = handle->profiling;
	struct run *run, *following;

	link_for_each_safe(run, following, &profiling->runs, link) {
		if (run->handle == handle)
			run_free(run);
	}
	link_remove(&handle->link);
	handle_drop(handle);
	rates_refresh(profiling);
}

int handle_start(struct handle *handle, __u64 now, __s64 offset)
{
	struct run *run;
	int error;

	if (handle->current)
		return -EALREADY;
	error = run_create(handle, now, offset, &run);
	if (error)
		return error;
	handle->current = run;
	handle->runs++;
	selection_refresh(handle->profiling, run);
	rates_refresh(handle->profiling);
	return 0;
}

int handle_stop(struct handle *handle, __u64 now)
{
	if (!handle->current)
		return -EALREADY;
	run_end(handle->current, XPT_PROFILE_STOPPED, now);
	return 0;
}

static void choices_changed(struct handle *handle)
{
	if (!handle->current)
		return;
	selection_refresh(handle->profiling, handle->current);
	rates_refresh(handle->profiling);
}

int handle_add(struct handle *handle, const struct xpt_program_choice *choice)
{
	int error;

	if (!handle->options.stream)
		return -EINVAL;
	if (choices_standing(&handle->choices, choice) == CHOICE_ADDED)
		return -EEXIST;
	error = choices_set(&handle->choices, choice, true);
	if (!error)
		choices_changed(handle);
	return error;
}

/* Does the choice fit a program that is there and chosen? */
static bool handle_has(struct handle *handle, const struct xpt_program_choice *choice)
{
	const struct program_index *index = &handle->profiling->programs;
	const struct entry *entry;

	link_for_each(entry, &index->alive, link) {
		if (choice_fits(choice, entry->identity) && selection_wants(handle, entry))
			return true;
	}
	return false;
}

int handle_remove(struct handle *handle, const struct xpt_program_choice *choice)
{
	enum choice_answer standing = choices_standing(&handle->choices, choice);
	int error;

	if (!handle->options.stream || (!choice->name && !choice->handle))
		return -EINVAL;
	if (standing == CHOICE_REMOVED)
		return -ENOENT;
	if (standing == CHOICE_NONE && !handle->expression && !choices_has(&handle->choices, choice) &&
	    !handle_has(handle, choice))
		return -ENOENT;
	/* Where nothing else could choose the program there is nothing to be remembered. */
	if (!handle->expression && handle->choices.added <= 1 && choices_has(&handle->choices, choice)) {
		choices_forget(&handle->choices, choice);
	} else {
		error = choices_set(&handle->choices, choice, false);
		if (error)
			return error;
	}
	choices_changed(handle);
	return 0;
}

bool handle_runs(const struct handle *handle)
{
	return handle->current;
}

bool handle_settled(const struct handle *handle)
{
	return handle->runs == (handle->current ? 1 : 0);
}

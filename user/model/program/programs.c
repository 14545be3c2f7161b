/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/programs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "model/stream/objects.h"

void programs_init(struct programs *programs, struct event_dispatch *events, struct processes *processes)
{
	*programs = (struct programs){
		.events = events, .processes = processes, .next_id = 1, .keep = MODEL_PROGRAMS_MAX
	};
	link_init(&programs->gone);
}

static void program_free(struct program *program)
{
	if (!program)
		return;
	statistics_free(program->latency);
	statistics_free(program->call);
	statistics_free(program->tracing);
	tokens_free(program->tokens);
	free(program->neighbours);
	free(program->name);
	free(program);
}

void programs_free(struct programs *programs)
{
	size_t i;

	for (i = 0; i < programs->count; i++)
		program_free(programs->all[i]);
	free(programs->all);
	map_free(&programs->by_handle);
	map_free(&programs->others);
}

static __u64 runtime_key(unsigned int process_index, unsigned int runtime)
{
	return (__u64)process_index << 8 | runtime;
}

static struct program *newest(const struct programs *programs, unsigned int process_index, unsigned int runtime,
			      __u64 handle)
{
	struct map_node *node = map_find(&programs->by_handle, runtime_key(process_index, runtime), handle);

	return node ? container_of(node, struct program, node) : NULL;
}

static struct program *older(const struct program *program)
{
	struct map_node *node = map_next(&program->node);

	return node ? container_of(node, struct program, node) : NULL;
}

/* Handles end when a call begins, so the call meant the oldest generation that had not ended then. */
static struct program *generation_at(struct program *program, __u64 time)
{
	struct program *before;

	if (!program || program->until <= time)
		return NULL;
	for (before = older(program); before && before->until > time; before = older(before))
		program = before;
	return program;
}

struct program *programs_find(const struct programs *programs, const struct process *process, unsigned int runtime,
			      __u64 handle, __u64 time)
{
	return generation_at(newest(programs, process->view.sort_index, runtime, handle), time);
}

static int programs_append(struct programs *programs, struct program *program)
{
	int error = vec_push(programs->all, programs->count, program);

	program->unmeasured = programs->unmeasured;
	if (!error)
		program->view.id = programs->next_id++;
	return error;
}

static struct program *program_create(struct process *process, const struct runtime *runtime, __u64 handle, __u64 time)
{
	struct program *program = calloc(1, sizeof(*program));

	if (!program)
		return NULL;
	link_init(&program->of_process);
	program->process = process;
	program->runtime = runtime;
	program->born = time;
	program->until = PROGRAM_ALIVE;
	snprintf(program->description, sizeof(program->description), "0x%llx", handle);
	program->view.process = &process->view;
	program->view.runtime = runtime->name;
	program->view.runtime_index = runtime->index;
	program->view.kernel = !runtime->models;
	program->view.handle = handle;
	program->view.name = program->description;
	return program;
}

struct program *programs_others(struct programs *programs, struct process *process, const struct runtime *runtime)
{
	struct process *owner = process;
	struct program *program;
	struct map_node *node;

	if (process->exited || programs->others_count >= PROGRAM_OTHERS_MAX)
		owner = processes_others(programs->processes);
	if (!owner)
		return NULL;
	node = map_find(&programs->others, runtime_key(owner->view.sort_index, runtime->index), 0);
	if (node)
		return container_of(node, struct program, node);
	program = program_create(owner, runtime, 0, 0);
	if (!program)
		return NULL;
	program->others = true;
	if (program_set_name(program, "(others)", NAME_FROM_USER) < 0 ||
	    map_add(&programs->others, &program->node, runtime_key(owner->view.sort_index, runtime->index), 0)) {
		program_free(program);
		return NULL;
	}
	if (programs_append(programs, program)) {
		map_remove(&programs->others, &program->node);
		program_free(program);
		return NULL;
	}
	programs->others_count++;
	return program;
}

/* A child starts with the memory of its parent, and so with what that or an ancestor of it had loaded then. */
static int name_inherit(const struct programs *programs, struct program *program)
{
	const struct process *process = program->process;
	const struct ancestor *ancestor;
	const struct program *source;
	struct program *last;

	for (unsigned int i = 0; i < process->ancestor_count; i++) {
		ancestor = &process->ancestors[i];
		last = newest(programs, ancestor->index, program->view.runtime_index, program->view.handle);
		source = generation_at(last, ancestor->time);
		if (source && source->view.loaded <= ancestor->time)
			return source->view.named ? program_name_after(program, source, NAME_FROM_FORK) : 0;
		/* The handle was another one's before: unloaded, or older than what was loaded after the fork. */
		if (source ? older(source) != NULL : last != NULL)
			return 0;
	}
	return 0;
}

/* Counts by handle continue with the newest generation. */
static void counting_move(struct program *from, struct program *to)
{
	to->counting = from->counting;
	from->counting = (struct counting){};
}

/* The number of the program with the handle at the time in the description there; 0: it has none. */
static unsigned int order_in(const struct programs *programs, __u32 tgid, unsigned int runtime, __u64 handle,
			     __u64 time)
{
	const struct process *process = processes_find(programs->processes, tgid), *found = NULL;
	const struct program *program;
	struct map_node *node;

	while (process && (!process->exited || time <= process->exited)) {
		found = process;
		node = map_next(&process->node);
		process = node ? container_of(node, struct process, node) : NULL;
	}
	program = found ? programs_find(programs, found, runtime, handle, time) : NULL;
	return program ? program->order : 0;
}

static struct program *programs_new(struct programs *programs, struct process *process, const struct runtime *runtime,
				    __u64 handle, __u64 time)
{
	struct program *before = newest(programs, process->view.sort_index, runtime->index, handle);
	struct program *program;

	if (programs->count - programs->others_count >= MODEL_PROGRAMS_MAX || process == programs->processes->others) {
		event_dispatch_lose(programs->events, XPT_LOSS_NAMES, 1, time);
		return programs_others(programs, process, runtime);
	}
	program = program_create(process, runtime, handle, time);
	if (!program)
		return NULL;
	if (programs->like)
		program->wanted = order_in(programs->like, process->view.tgid, runtime->index, handle, time);
	program->view.generation = before ? before->view.generation + 1 : 0;
	if (map_add(&programs->by_handle, &program->node, runtime_key(process->view.sort_index, runtime->index),
		    handle)) {
		program_free(program);
		return NULL;
	}
	if (programs_append(programs, program)) {
		map_remove(&programs->by_handle, &program->node);
		program_free(program);
		return NULL;
	}
	if (before)
		counting_move(before, program);
	link_append(&process->programs, &program->of_process);
	return program;
}

struct program *programs_use(struct programs *programs, struct process *process, const struct runtime *runtime,
			     __u64 handle, __u64 time)
{
	struct program *program = programs_find(programs, process, runtime->index, handle, time);

	if (program)
		return program;
	program = programs_new(programs, process, runtime, handle, time);
	if (program && !program->others && !program->view.generation)
		name_inherit(programs, program);
	return program;
}

static void program_end(struct programs *programs, struct program *program, __u64 released, __u64 until)
{
	if (program->until == PROGRAM_ALIVE)
		programs->released++;
	if (program->orphan) {
		program->orphan = false;
		program->process->orphans--;
	}
	program->view.released = released;
	program->until = until;
	link_remove(&program->of_process);
	link_append(&programs->gone, &program->of_process);
}

struct program *programs_load(struct programs *programs, struct process *process, const struct runtime *runtime,
			      __u64 handle, __u64 start, __u64 end)
{
	struct program *program = programs_find(programs, process, runtime->index, handle, end);

	/* Used before the load had returned, but not before it began: by the load itself, or by a call it woke. */
	if (program && !program->view.loaded && program->born >= start) {
		program->view.loaded = end;
		return program;
	}
	if (program)
		program_end(programs, program, end, end);
	program = programs_new(programs, process, runtime, handle, end);
	if (program && !program->others)
		program->view.loaded = end;
	return program;
}

struct program *programs_counted(struct programs *programs, struct process *process, const struct runtime *runtime,
				 __u64 handle, __u64 since, __u64 time)
{
	struct program *program = newest(programs, process->view.sort_index, runtime->index, handle);
	struct program *before;

	for (; program && program->born > time; program = before) {
		before = older(program);
		if (!before)
			break;
	}
	return program ? program : programs_new(programs, process, runtime, handle, since);
}

struct counting *programs_counting(const struct programs *programs, const struct process *process, unsigned int runtime,
				   __u64 handle)
{
	struct program *program = newest(programs, process->view.sort_index, runtime, handle);

	return program ? &program->counting : NULL;
}

bool programs_release(struct programs *programs, struct program *program, __u64 time)
{
	bool alive = program->until == PROGRAM_ALIVE;

	if (program->others)
		return false;
	/* Loaded again by another thread before the unload had returned: it ended when the unload began. */
	if (alive || program->until > time)
		program_end(programs, program, time, time + 1);
	return alive;
}

void programs_release_all(struct programs *programs, struct process *process, __u64 time)
{
	struct program *program, *following;

	link_for_each_safe(program, following, &process->programs, of_process)
		program_end(programs, program, time, time + 1);
}

void programs_emit(const struct programs *programs, const struct program *program, __u64 time, bool released)
{
	const struct event event = { .kind = EVENT_PROGRAM,
				     .program = { .program = &program->view, .time = time, .released = released } };

	event_dispatch_emit(programs->events, &event);
}

int program_record(struct program *program, const struct event_call *call)
{
	struct model_program *view = &program->view;

	if (!view->recorded || call->start < view->first_start)
		view->first_start = call->start;
	if (call->end > view->last_end)
		view->last_end = call->end;
	if (!view->role)
		view->role = call->function->role;
	view->recorded++;
	if (call->outcome == OUTCOME_FAILED)
		view->errors++;
	else if (call->outcome == OUTCOME_PENDING)
		view->pending++;
	if (call->function->role == XPT_ROLE_LAUNCH && !call->flow_out && call->outcome != OUTCOME_FAILED &&
	    call->outcome != OUTCOME_PENDING)
		view->unended++;
	if (call->no_end)
		return 0;
	view->tracing_inside += call->tracing_inside;
	if (call->function->role != XPT_ROLE_ENQUEUE) /* else with its wait */
		states_add(&view->states, &call->states);
	if (program->unmeasured)
		return 0;
	if (call->tracing && statistics_record(&program->tracing, &view->tracing, call->tracing))
		return -ENOMEM;
	if (call->function->role == XPT_ROLE_EXECUTE)
		return statistics_record(&program->latency, &view->latency, call->end - call->start);
	return statistics_record(&program->call, &view->call, call->end - call->start);
}

int program_ended(struct program *program, __u64 start, __u64 end, bool failed)
{
	if (end > program->view.last_end)
		program->view.last_end = end;
	if (failed)
		program->view.errors++;
	return program->unmeasured ? 0 : statistics_record(&program->latency, &program->view.latency, end - start);
}

/* Adds to that of the same process and name; without memory nothing is. */
static void neighbour_add(struct program *program, const struct model_neighbour *neighbour)
{
	static const struct model_neighbour others = { .name = "(others)" };
	struct model_program *view = &program->view;
	struct model_neighbour *all = program->neighbours, *found = NULL;

	for (size_t i = 0; i < view->neighbour_count && !found; i++)
		if (all[i].tgid == neighbour->tgid && !strcmp(all[i].name, neighbour->name))
			found = &all[i];
	if (!found && view->neighbour_count == MODEL_NEIGHBOURS_MAX)
		found = &all[MODEL_NEIGHBOURS_MAX - 1];
	if (!found) {
		if (vec_reserve(program->neighbours, view->neighbour_count))
			return;
		view->neighbours = program->neighbours;
		found = &program->neighbours[view->neighbour_count++];
		*found = view->neighbour_count == MODEL_NEIGHBOURS_MAX ? others : *neighbour;
		found->preempted = found->preempted_time = found->woke = found->woke_time = 0;
	}
	found->preempted += neighbour->preempted;
	found->preempted_time += neighbour->preempted_time;
	found->woke += neighbour->woke;
	found->woke_time += neighbour->woke_time;
}

void program_meet(struct program *program, const struct event_off_cpu *off)
{
	const bool preempted = off->reason == XPT_OFF_CPU_PREEMPTED;
	struct model_neighbour neighbour = { .tgid = preempted ? off->next_tgid : off->waker_tgid };

	if (!(preempted ? off->next_tid : off->waker_tid))
		return;
	snprintf(neighbour.name, sizeof(neighbour.name), "%s", preempted ? off->next : off->waker);
	if (preempted) {
		neighbour.preempted = 1;
		neighbour.preempted_time = off->end - off->start;
	} else {
		neighbour.woke = 1;
		neighbour.woke_time = off->woken - off->start;
	}
	neighbour_add(program, &neighbour);
}

/* ---- evicted programs are added up in catch-all programs ---- */

/* Moves what is known of a program into another one. Without memory only the quantiles lack it. */
static void program_fold(struct program *program, struct program *into)
{
	struct model_program *to = &into->view;
	const struct model_program *from = &program->view;

	if (from->recorded && (!to->recorded || from->first_start < to->first_start))
		to->first_start = from->first_start;
	if (from->last_end > to->last_end)
		to->last_end = from->last_end;
	if (!to->role)
		to->role = from->role;
	to->recorded += from->recorded;
	to->errors += from->errors;
	to->pending += from->pending;
	to->unended += from->unended;
	to->jobs += from->jobs;
	to->failed_jobs += from->failed_jobs;
	to->device_time += from->device_time;
	to->queue_time += from->queue_time;
	to->busy_time += from->busy_time;
	count_add(&to->total, &from->total);
	to->total_known |= from->total_known;
	statistics_fold(&into->latency, &to->latency, &program->latency);
	statistics_fold(&into->call, &to->call, &program->call);
	statistics_fold(&into->tracing, &to->tracing, &program->tracing);
	to->tracing_inside += from->tracing_inside;
	states_add(&to->states, &from->states);
	for (size_t i = 0; i < from->neighbour_count; i++)
		neighbour_add(into, &from->neighbours[i]);
	tokens_fold(&program->tokens, &into->tokens);
	to->tokens = tokens_view(into->tokens);
}

/*
 * The handle's counts are carried on by the generation before. When there is none, a reading from before its last total
 * would be taken for another program's; but that comes right behind the total if it comes, while the program is kept.
 */
static void counting_leave(struct programs *programs, struct program *program)
{
	struct map_node *before;

	if (map_find(&programs->by_handle, program->node.a, program->node.b) != &program->node)
		return;
	before = map_next(&program->node);
	if (before)
		container_of(before, struct program, node)->counting = program->counting;
}

/* The caller closes the gaps. Returns whether it was dropped; the catch-all of its runtime cannot be. */
static bool program_forget(struct programs *programs, struct program *program)
{
	struct program *into = programs_others(programs, program->process, program->runtime);

	if (into == program)
		return false;
	if (into)
		program_fold(program, into);
	if (program->orphan)
		program->process->orphans--;
	link_remove(&program->of_process);
	if (program->others) {
		map_remove(&programs->others, &program->node);
		programs->others_count--;
	} else {
		counting_leave(programs, program);
		map_remove(&programs->by_handle, &program->node);
		programs->released -= program->until != PROGRAM_ALIVE;
	}
	program->forgotten = true;
	return true;
}

/* Takes out what has been forgotten, and keeps the order. */
static void programs_close_gaps(struct programs *programs)
{
	struct program *program;
	size_t i, kept = 0;

	for (i = 0; i < programs->count; i++) {
		program = programs->all[i];
		if (!program->forgotten) {
			programs->all[kept++] = program;
			continue;
		}
		program_free(program);
	}
	programs->count = kept;
}

/* What may be forgotten, each with what stands before it. */
enum readiness {
	READY_SETTLED, /* its exact total has come, or is not to be expected any more */
	READY_WAITING, /* it has just been released */
	READY_NEVER,
};

/* A total will follow its counts so far: without the program it would be counted twice. */
static enum readiness readiness(const struct program *program, __u64 time)
{
	if (program->open || counting_open(&program->counting))
		return READY_NEVER;
	return program->view.total_known || eviction_settled(program->view.released, time) ? READY_SETTLED :
											     READY_WAITING;
}

static size_t released_forget(struct programs *programs, enum readiness which, size_t most, __u64 time)
{
	struct program *program, *following;
	size_t forgotten = 0;

	link_for_each_safe(program, following, &programs->gone, of_process) {
		if (forgotten == most)
			break;
		if (readiness(program, time) <= which)
			forgotten += program_forget(programs, program);
	}
	return forgotten;
}

void programs_make_room(struct programs *programs, __u64 time)
{
	const bool full = programs->count - programs->others_count >= MODEL_PROGRAMS_MAX;
	size_t batch, most, forgotten;

	if ((!full && programs->released <= programs->keep) || !programs->released)
		return;
	batch = eviction_batch(programs->keep, MODEL_PROGRAMS_MAX);
	if (!eviction_due(&programs->eviction, programs->released, batch, time))
		return;
	most = batch + (programs->released > programs->keep ? programs->released - programs->keep : 0);
	forgotten = released_forget(programs, READY_SETTLED, most, time);
	if (full && forgotten < batch)
		forgotten += released_forget(programs, READY_WAITING, batch - forgotten, time);
	eviction_set(&programs->eviction, forgotten >= batch, programs->released, time);
	if (forgotten)
		programs_close_gaps(programs);
}

void programs_forget_processes(struct programs *programs)
{
	size_t i, count = programs->count;

	for (i = 0; i < count; i++)
		if (programs->all[i]->process->forgotten)
			program_forget(programs, programs->all[i]);
	programs_close_gaps(programs);
}

/* ---- programs that were chosen ---- */

void program_filter_free(struct program_filter *filter)
{
	size_t i;

	for (i = 0; i < filter->count; i++)
		free((char *)filter->all[i].text);
	free(filter->all);
	*filter = (struct program_filter){};
}

int program_filter_add(struct program_filter *filter, const struct xpt_record_text *record)
{
	char *text;

	if (vec_reserve(filter->all, filter->count))
		return -ENOMEM;
	text = strndup(record->text, record->length);
	if (!text)
		return -ENOMEM;
	filter->all[filter->count++] = (struct model_choice){ .text = text,
							      .match = record->header.kind == XPT_RECORD_MATCH,
							      .tgid = record->header.tgid,
							      .handle = record->id };
	return 0;
}

/* Operators have no counts in the kernel. */
static void count_left_out(struct program *program, const struct event_call *call)
{
	if (!call->layer && role_runs(call->function->role))
		program->view.total.left_out++;
}

bool program_filter_leaves_out(const struct program_filter *filter, struct program *program,
			       const struct event_call *call, bool inside)
{
	const enum xpt_role role = call->function->role;

	if (!filter->count || !filter->chooser.wants)
		return false;
	/* A call in an unknown inference may belong to any program. */
	if (!program)
		return role == XPT_ROLE_OPERATOR;
	if (inside || (role != XPT_ROLE_OPERATOR && !role_runs(role)))
		return false;
	if (filter->chooser.wants(filter->chooser.context, &program->view, call))
		return false;
	count_left_out(program, call);
	return true;
}

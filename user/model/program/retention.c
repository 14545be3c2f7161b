/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the number of programs bounded: those that are gone are added up in one that stands for others. */
#include <stdlib.h>

#include "model/program/programs.h"

/* Adds from to into, which view shows; moves it where there is nothing to add it to. */
static void statistics_fold(struct statistics **into, const struct statistics **view, struct statistics **from)
{
	if (!*into) {
		*view = *into = *from;
		*from = NULL;
	} else if (*from) {
		statistics_merge(*into, *from);
	}
}

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

/* The caller closes the gaps. Returns whether it is gone; what stands for all others of its runtime cannot go. */
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
		statistics_free(program->latency);
		statistics_free(program->call);
		statistics_free(program->tracing);
		tokens_free(program->tokens);
		free(program->name);
		free(program);
	}
	programs->count = kept;
}

/* What may be forgotten, each with what stands before it. */
enum readiness {
	READY_SETTLED, /* its exact total has come, or is not to be expected any more */
	READY_WAITING, /* it has just been released */
	READY_NEVER,
};

/* Of what its counts so far have told of, a total will come: without the program it would be counted twice. */
static enum readiness readiness(const struct program *program, __u64 time)
{
	if (program->open || counting_open(&program->counting))
		return READY_NEVER;
	return program->view.total_known || pace_settled(program->view.released, time) ? READY_SETTLED : READY_WAITING;
}

static size_t released_forget(struct programs *programs, enum readiness which, size_t most, __u64 time)
{
	struct link *link, *following;
	struct program *program;
	size_t forgotten = 0;

	link_each(link, following, &programs->gone)
	{
		if (forgotten == most)
			break;
		program = container_of(link, struct program, of_process);
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
	batch = pace_batch(programs->keep, MODEL_PROGRAMS_MAX);
	if (!pace_due(&programs->pace, programs->released, batch, time))
		return;
	most = batch + (programs->released > programs->keep ? programs->released - programs->keep : 0);
	forgotten = released_forget(programs, READY_SETTLED, most, time);
	if (full && forgotten < batch)
		forgotten += released_forget(programs, READY_WAITING, batch - forgotten, time);
	pace_set(&programs->pace, forgotten >= batch, programs->released, time);
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

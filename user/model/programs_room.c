/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the number of programs bounded: those that are gone are added up in one that stands for others. */
#include <stdlib.h>

#include "model/programs.h"

#define FORGET_AT_ONCE (MODEL_PROGRAMS_MAX / 8)

static void total_add(struct xpt_program_count *into, const struct xpt_program_count *from)
{
	into->calls += from->calls;
	into->left_out += from->left_out;
	into->lost += from->lost;
	into->layers += from->layers;
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
	total_add(&to->total, &from->total);
	to->total_known |= from->total_known;
	if (!into->latency) {
		to->latency = into->latency = program->latency;
		program->latency = NULL;
	} else if (program->latency) {
		statistics_merge(into->latency, program->latency);
	}
}

/* Returns whether the program is gone; what stands for all others of its runtime cannot go. */
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
		map_remove(&programs->by_handle, &program->node);
		programs->released -= program->until != ~(__u64)0;
	}
	statistics_free(program->latency);
	free(program->name);
	free(program);
	return true;
}

/* Takes out what has been set to NULL, and keeps the order. */
static void programs_close_gaps(struct programs *programs)
{
	size_t i, kept = 0;

	for (i = 0; i < programs->count; i++)
		if (programs->all[i])
			programs->all[kept++] = programs->all[i];
	programs->count = kept;
}

/* Those without a total may get one yet, just after their release. */
static size_t released_forget(struct programs *programs, bool with_total, size_t most)
{
	size_t i, count = programs->count, forgotten = 0;
	struct program *program;

	for (i = 0; i < count && forgotten < most; i++) {
		program = programs->all[i];
		if (!program || program->others || program->open || program->until == ~(__u64)0 ||
		    (with_total && !program->view.total_known))
			continue;
		if (!program_forget(programs, program))
			continue;
		programs->all[i] = NULL;
		forgotten++;
	}
	return forgotten;
}

void programs_make_room(struct programs *programs)
{
	size_t forgotten;

	if (programs->count - programs->others_count < MODEL_PROGRAMS_MAX || !programs->released)
		return;
	forgotten = released_forget(programs, true, FORGET_AT_ONCE);
	if (forgotten < FORGET_AT_ONCE)
		released_forget(programs, false, FORGET_AT_ONCE - forgotten);
	programs_close_gaps(programs);
}

void programs_forget_processes(struct programs *programs)
{
	size_t i, count = programs->count;

	for (i = 0; i < count; i++)
		if (programs->all[i]->process->forgotten && program_forget(programs, programs->all[i]))
			programs->all[i] = NULL;
	programs_close_gaps(programs);
}

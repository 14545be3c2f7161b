/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/call_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "model/program/functions.h"

#define ENDED_MAX 8192 /* calls of one thread kept apart that are in none that has ended */
#define SHIFT_MAX 16   /* a late job is put in its place if it is not further away */

struct ended_call {
	__u64 end;
	struct call_sums sums;
};

struct launch {
	struct link link; /* of all */
	struct link of_thread;
	struct program *program; /* of view.program; held; NULL: none */
	struct event_launch view;
};

/* ---- launches ---- */

static void launch_write(struct call_tree *tree, const struct event_launch *launch, struct op *op)
{
	struct event event = { .kind = EVENT_LAUNCH, .launch = *launch };

	if (op) {
		op->view.launches++;
		event.launch.op = &op->view;
	}
	event_dispatch_emit(tree->events, &event);
}

static void launch_emit(struct call_tree *tree, struct launch *launch, struct op *op)
{
	launch_write(tree, &launch->view, op);
	if (launch->program)
		launch->program->open--;
	link_remove(&launch->link);
	link_remove(&launch->of_thread);
	tree->launch_count--;
	pool_give(&tree->launch_pool, launch);
}

static int launch_hold(struct call_tree *tree, struct call_thread *thread, struct program *program,
		       const struct event_launch *made)
{
	struct launch *launch;

	if (tree->launch_count >= LAUNCHES_MAX)
		launch_emit(tree, container_of(tree->launches.next, struct launch, link), NULL);
	launch = thread ? pool_take(&tree->launch_pool) : NULL;
	if (!launch) {
		launch_write(tree, made, NULL);
		return -ENOMEM;
	}
	launch->view = *made;
	launch->program = program;
	if (program)
		program->open++;
	link_append(&tree->launches, &launch->link);
	link_append(&thread->launches, &launch->of_thread);
	tree->launch_count++;
	return 0;
}

/* In the order of the calls, from the first that began at since on. */
static void launches_emit_from(struct call_tree *tree, struct call_thread *thread, __u64 since, struct op *op)
{
	struct link *before = thread->launches.previous;

	while (before != &thread->launches && container_of(before, struct launch, of_thread)->view.start >= since)
		before = before->previous;
	while (before->next != &thread->launches)
		launch_emit(tree, container_of(before->next, struct launch, of_thread), op);
}

int call_tree_launch(struct call_tree *tree, struct call_thread *thread, struct program *program, struct op *op,
		     const struct event_call *call)
{
	const struct event_launch made = { .function = call->function,
					   .program = call->program,
					   .start = call->start,
					   .end = call->end,
					   .tgid = call->tgid,
					   .tid = call->tid };

	if (call->no_end || call->layer)
		return 0;
	if (call->function->role == XPT_ROLE_LAUNCH)
		return launch_hold(tree, thread, program, &made);
	if (thread && call->function->role == XPT_ROLE_OPERATOR)
		launches_emit_from(tree, thread, call->start, op);
	return 0;
}

/* ---- submitting ioctls ---- */

static void submit_remove(struct call_tree *tree, struct submit *submit)
{
	link_remove(&submit->link);
	link_remove(&submit->of_thread);
	tree->submit_count--;
	pool_give(&tree->submit_pool, submit);
}

static void thread_miss(struct call_thread *thread, __u64 time)
{
	thread->missing++;
	if (time > thread->missing_until)
		thread->missing_until = time;
}

int call_tree_submit(struct call_tree *tree, const struct process *process, __u32 tid, __u64 start, __u64 end)
{
	struct call_thread *thread = call_tree_get(tree, process, tid);
	struct submit *submit;

	if (!thread)
		return -ENOMEM;
	if (tree->submit_count >= SUBMITS_MAX) {
		submit = container_of(tree->submits.next, struct submit, link);
		thread_miss(submit->thread, submit->end);
		submit_remove(tree, submit);
	}
	submit = pool_take(&tree->submit_pool);
	if (!submit)
		return -ENOMEM;
	submit->thread = thread;
	submit->start = start;
	submit->end = end;
	link_append(&tree->submits, &submit->link);
	link_append(&thread->submits, &submit->of_thread);
	tree->submit_count++;
	return 0;
}

/* The submits within a call become one, as every later call has all or none of them. NULL: there is none. */
static const struct submit *submits_merge(struct call_tree *tree, struct call_thread *thread, __u64 start, __u64 end)
{
	struct link *link, *previous;
	struct submit *submit, *merged = NULL;

	for (link = thread->submits.previous; link != &thread->submits; link = previous) {
		previous = link->previous;
		submit = container_of(link, struct submit, of_thread);
		if (submit->end > end)
			continue;
		if (submit->start < start)
			break;
		if (!merged) {
			merged = submit;
			continue;
		}
		if (submit->start < merged->start)
			merged->start = submit->start;
		if (submit->end > merged->end)
			merged->end = submit->end;
		submit_remove(tree, submit);
	}
	return merged;
}

/* ---- jobs ---- */

void call_thread_add_job(struct call_thread *thread, struct job *job)
{
	struct link *place = &thread->jobs;
	unsigned int i;

	for (i = 0; i < SHIFT_MAX && place->previous != &thread->jobs; i++) {
		if (container_of(place->previous, struct job, of_thread)->submitted <= job->submitted)
			break;
		place = place->previous;
	}
	job->thread = thread;
	link_append(place, &job->of_thread); /* before that at the place */
}

void call_thread_miss_job(struct job *job)
{
	thread_miss(job->thread, job->submitted);
}

static void call_count_missing(struct call_tree *tree, struct call_thread *thread, const struct event_call *call)
{
	if (!thread->missing || call->start > thread->missing_until)
		return;
	event_dispatch_lose(tree->events, XPT_LOSS_JOBS, thread->missing, call->end);
	thread->missing = 0;
}

/* The last job of the call; the list's head: none. */
static struct link *last_until(struct call_thread *thread, __u64 time)
{
	struct link *link = thread->jobs.previous;

	while (link != &thread->jobs && container_of(link, struct job, of_thread)->submitted > time)
		link = link->previous;
	return link;
}

/* What the job is of, as it is now; the activity follows it if it is not over. */
static int job_attribute(struct call_tree *tree, struct job *job, struct program *program, struct op *op,
			 const struct event_call *call, struct activity **activity)
{
	struct job_observers *observers = &tree->jobs->observers;
	int error = 0;

	if (activity && job->key && !*activity) {
		*activity = activity_create(observers);
		error = *activity ? 0 : -ENOMEM;
	}
	if (call->function->role == XPT_ROLE_OPERATOR && !call->layer)
		job_join_operator(job, op);
	return job_join_call(tree->jobs, job, program, call, activity ? *activity : NULL) ?: error;
}

int call_tree_take_jobs(struct call_tree *tree, struct call_thread *thread, struct program *program, struct op *op,
			struct event_call *call, struct activity **activity)
{
	struct model_device_times times = {};
	const struct submit *submit;
	struct link *link;
	struct job *job;
	int error = 0, attributed;

	if (!thread || call->no_end)
		return 0;
	if (call->layer || !role_runs(call->function->role))
		program = NULL;
	call_count_missing(tree, thread, call);
	submit = submits_merge(tree, thread, call->start, call->end);
	if (submit) {
		times.submit_begins = submit->start;
		times.submit_ends = submit->end;
	}
	for (link = last_until(thread, call->end); link != &thread->jobs; link = link->previous) {
		job = container_of(link, struct job, of_thread);
		if (job->submitted < call->start)
			break;
		device_times_add(&times, job);
		attributed = job_attribute(tree, job, program, op, call, activity);
		error = attributed ?: error;
	}
	call->device = device_times_shown(&times);
	if (activity && *activity)
		(*activity)->times = times;
	return error;
}

/* ---- what lies inside of calls ---- */

static void sums_add(struct call_sums *to, const struct call_sums *sums)
{
	to->tracing += sums->tracing;
	to->covered += sums->covered;
	to->operators += sums->operators;
}

/* The older half becomes one: a call with that many inside began before them. */
static void ended_fold(struct call_thread *thread)
{
	const size_t half = thread->ended_count / 2;

	for (size_t i = 1; i < half; i++) {
		sums_add(&thread->ended[0].sums, &thread->ended[i].sums);
		thread->ended[0].end = thread->ended[i].end;
	}
	for (size_t i = half; i < thread->ended_count; i++)
		thread->ended[i - half + 1] = thread->ended[i];
	thread->ended_count -= half - 1;
}

int call_tree_measure(struct call_thread *thread, const struct function *function, struct event_call *call,
		      __u64 *operators)
{
	const enum xpt_role role = function->view.role;
	struct call_sums inside = {}, all;

	*operators = 0;
	if (!thread)
		return 0;
	/* What ended before and is still there may be inside of a call around this one, or was inside of one that has no end. */
	while (thread->ended_count && thread->ended[thread->ended_count - 1].end > call->start)
		sums_add(&inside, &thread->ended[--thread->ended_count].sums);
	all = inside;
	*operators = inside.operators;
	if (function->cost) {
		/*
		 * What a probe costs was measured before, and is not the same each time: more than the whole it was not. Of operators, which are
		 * summed up, that would add a bias.
		 */
		const __u64 most = call->no_end || role == XPT_ROLE_OPERATOR ? ~0ull : call->end - call->start;
		const __u64 tracing = function->cost_inside + inside.tracing;

		call->tracing = tracing < most ? tracing : most;
		call->tracing_inside = inside.tracing < most ? inside.tracing : most;
		call->tracing_covered = inside.covered;
		all.tracing += function->cost;
		all.covered = role == XPT_ROLE_OPERATOR ? call->tracing : inside.covered;
	}
	if (role == XPT_ROLE_OPERATOR && !call->layer)
		all.operators = call->end - call->start;
	else if ((role == XPT_ROLE_EXECUTE || role == XPT_ROLE_ENQUEUE) && !call->layer)
		all.operators = 0; /* they are in this inference, and not in an operator around it */
	if (!call->depth)
		thread->ended_count = 0;
	if (!call->depth || !(all.tracing | all.operators))
		return 0;
	if (thread->ended_count >= ENDED_MAX)
		ended_fold(thread);
	return vec_push(thread->ended, thread->ended_count, (struct ended_call){ call->end, all });
}

/* ---- times off the CPU ---- */

int call_tree_off_cpu(struct call_tree *tree, const struct process *process, const struct xpt_record_off_cpu *record)
{
	struct call_thread *thread = call_tree_get(tree, process, record->tid);
	const size_t half = OFF_CPU_MAX / 2;
	struct off_cpu off = {};

	tree->off_cpu_known = true;
	if (!thread)
		return -ENOMEM;
	if (thread->off_cpu_count == OFF_CPU_MAX) {
		memmove(thread->off_cpu, thread->off_cpu + half, half * sizeof(*thread->off_cpu));
		thread->off_cpu_count = half;
	}
	off.record = *record;
	if (record->reason == XPT_OFF_CPU_PREEMPTED)
		off.record.woken = record->start;
	else if (record->woken < record->start || record->woken > record->header.time)
		off.record.woken = record->header.time; /* not seen */
	return vec_push(thread->off_cpu, thread->off_cpu_count, off);
}

static void off_cpu_emit(struct call_tree *tree, struct program *program, struct op *op, struct off_cpu *off,
			 const struct event_call *call)
{
	struct xpt_record_off_cpu *record = &off->record;
	const struct event event = {
		.kind = EVENT_OFF_CPU,
		.off_cpu = { .reason = record->reason,
			     .tgid = call->tgid,
			     .tid = call->tid,
			     .start = record->start,
			     .woken = record->woken,
			     .end = record->header.time,
			     .syscall = record->syscall,
			     .interrupt = record->interrupt,
			     .next_tgid = record->next_tgid,
			     .next_tid = record->next_tid,
			     .waker_tgid = record->waker_tgid,
			     .waker_tid = record->waker_tid,
			     .next = record->next_tid ? record->next : "",
			     .waker = record->waker_tid ? record->waker : "",
			     .program = program ? &program->view : NULL,
			     .op = op ? &op->view : NULL },
	};

	record->next[sizeof(record->next) - 1] = record->waker[sizeof(record->waker) - 1] = '\0';
	off->emitted = true;
	event_dispatch_emit(tree->events, &event);
	if (program)
		program_meet(program, &event.off_cpu);
}

int call_tree_take_off_cpu(struct call_tree *tree, struct call_thread *thread, struct program *program, struct op *op,
			   struct event_call *call)
{
	struct model_states *states = &call->states;
	__u64 known = 0, waited = 0, late;
	size_t first;

	if (!tree->off_cpu_known)
		return 0;
	first = thread ? thread->off_cpu_count : 0;
	while (first && thread->off_cpu[first - 1].record.start >= call->start)
		first--;
	for (size_t i = first; thread && i < thread->off_cpu_count; i++) {
		const struct xpt_record_off_cpu *record = &thread->off_cpu[i].record;

		if (record->header.time > call->end)
			break;
		states->blocked_by[record->reason] += record->woken - record->start;
		known += record->woken - record->start;
		waited += record->header.time - record->woken;
		if (!thread->off_cpu[i].emitted)
			off_cpu_emit(tree, program, op, &thread->off_cpu[i], call);
	}
	/* The kernel does not count how long a CPU that was idle takes to resume it; the rest are losses and what clocks differ. */
	if (states->calls && states->blocked > known) {
		late = waited > states->waited ? waited - states->waited : 0;
		late = late < states->blocked - known ? late : states->blocked - known;
		states->waited += late;
		states->blocked -= late;
		states->blocked_by[XPT_OFF_CPU_OTHER] += states->blocked - known;
	}
	return 0;
}

/* ---- threads ---- */

/* Nothing will return any more that is around what came up to this time. */
static void thread_settle(struct call_tree *tree, struct call_thread *thread, __u64 time)
{
	struct submit *submit, *next_submit;
	struct job *job, *next_job;

	launches_emit_from(tree, thread, 0, NULL);
	link_for_each_safe(job, next_job, &thread->jobs, of_thread) {
		if (job->submitted > time)
			break;
		jobs_close(tree->jobs, job);
	}
	link_for_each_safe(submit, next_submit, &thread->submits, of_thread) {
		if (submit->end <= time)
			submit_remove(tree, submit);
	}
	if (thread->missing_until <= time)
		thread->missing = 0;
	thread->off_cpu_count = 0;
}

void call_tree_close(struct call_tree *tree, struct call_thread *thread, const struct event_call *call)
{
	if (thread && !call->depth)
		thread_settle(tree, thread, call->end);
}

static void thread_release(void *context, struct keyed *entry)
{
	struct call_thread *thread = container_of(entry, struct call_thread, keyed);

	thread_settle(context, thread, ~(__u64)0);
	free(thread->ended);
	free(thread->off_cpu);
	free(thread);
}

void call_tree_init(struct call_tree *tree, struct event_dispatch *events, struct jobs *jobs)
{
	*tree = (struct call_tree){ .events = events, .jobs = jobs };
	keyed_init(&tree->threads, CALL_THREADS_MAX, thread_release, tree);
	link_init(&tree->launches);
	link_init(&tree->submits);
	pool_init(&tree->launch_pool, sizeof(struct launch));
	pool_init(&tree->submit_pool, sizeof(struct submit));
}

void call_tree_free(struct call_tree *tree)
{
	struct event_dispatch silent = {};

	tree->events = tree->jobs->events = &silent;
	keyed_free(&tree->threads);
	pool_free(&tree->launch_pool);
	pool_free(&tree->submit_pool);
}

struct call_thread *call_tree_find(struct call_tree *tree, const struct process *process, __u32 tid)
{
	struct keyed *entry = keyed_find(&tree->threads, process->view.sort_index, tid);

	if (!entry)
		return NULL;
	keyed_renew(&tree->threads, entry);
	return container_of(entry, struct call_thread, keyed);
}

struct call_thread *call_tree_get(struct call_tree *tree, const struct process *process, __u32 tid)
{
	const unsigned int index = process->view.sort_index;
	struct call_thread *thread = call_tree_find(tree, process, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	link_init(&thread->launches);
	link_init(&thread->jobs);
	link_init(&thread->submits);
	if (keyed_add(&tree->threads, &thread->keyed, index, index, tid)) {
		free(thread);
		return NULL;
	}
	return thread;
}

void call_tree_drop_process(struct call_tree *tree, const struct process *process)
{
	keyed_drop_owner(&tree->threads, process->view.sort_index);
}

void call_tree_drop_all(struct call_tree *tree)
{
	while (!link_alone(&tree->threads.all))
		keyed_drop(&tree->threads, keyed_oldest(&tree->threads));
}

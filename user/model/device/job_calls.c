/* SPDX-License-Identifier: BSD-2-Clause */
/* Which calls, programs and inferences a job belongs to. */
#include <errno.h>

#include "model/device/jobs.h"
#include "model/program/functions.h"

/* Adds the job to those of the program, unless a call within this one has done that. Returns whether it did. */
static bool job_join_program(struct job *job, const struct program *program)
{
	unsigned int i;

	for (i = 0; i < job->program_count; i++)
		if (job->programs[i] == program->view.id)
			return false;
	if (job->program_count == JOB_PROGRAMS_MAX)
		return false;
	job->programs[job->program_count++] = program->view.id;
	return true;
}

static void job_show_call(struct job *job, struct program *program, const struct event_call *call)
{
	if (!job->view.call_start)
		job->view.call_start = call->start;
	if (!program || job->program || job->emitted)
		return;
	job->program = program;
	program->open++;
}

/* The job was submitted in the call, which runs the program (NULL: none) and is followed by the activity (NULL: not). */
static int job_attribute(struct jobs *jobs, struct job *job, struct program *program, const struct event_call *call,
			 struct activity *activity)
{
	struct program *joined = program && job_join_program(job, program) ? program : NULL;

	job_show_call(job, program, call);
	if (joined && job->ended)
		program_job_ended(joined, job);
	if (!job->key || (!joined && !activity))
		return 0;
	return job_observers_add(&jobs->observers, job, joined, activity);
}

/* The first job of the call, seen from the last one of its thread; the list's head: none. */
static struct link *last_until(struct submitter *submitter, __u64 time)
{
	struct link *link = submitter->jobs.previous;

	while (link != &submitter->jobs && container_of(link, struct job, of_thread)->submitted > time)
		link = link->previous;
	return link;
}

static bool any_open(struct submitter *submitter, const struct event_call *call)
{
	const struct job *job;
	struct link *link;

	for (link = last_until(submitter, call->end); link != &submitter->jobs; link = link->previous) {
		job = container_of(link, struct job, of_thread);
		if (job->submitted < call->start)
			return false;
		if (job->key)
			return true;
	}
	return false;
}

static int call_take_jobs(struct jobs *jobs, struct submitter *submitter, struct program *program,
			  const struct event_call *call, struct activity *activity, struct model_device_times *times)
{
	int error = 0, attributed;
	struct link *link;
	struct job *job;

	for (link = last_until(submitter, call->end); link != &submitter->jobs; link = link->previous) {
		job = container_of(link, struct job, of_thread);
		if (job->submitted < call->start)
			break;
		device_times_add(times, job);
		attributed = job_attribute(jobs, job, program, call, activity);
		if (attributed)
			error = attributed;
	}
	return error;
}

static void call_take_submits(struct jobs *jobs, struct submitter *submitter, const struct event_call *call,
			      struct model_device_times *times)
{
	const struct submit *submit = submitter_merge_submits(&jobs->submitters, submitter, call->start, call->end);

	if (!submit)
		return;
	times->submit_begins = submit->start;
	times->submit_ends = submit->end;
}

static void call_count_missing(struct jobs *jobs, struct submitter *submitter, const struct event_call *call)
{
	if (!submitter->missing || call->start > submitter->missing_until)
		return;
	event_dispatch_lose(jobs->events, XPT_LOSS_JOBS, submitter->missing, call->end);
	submitter->missing = 0;
}

int jobs_call(struct jobs *jobs, const struct process *process, struct program *program, struct event_call *call,
	      struct activity **activity)
{
	struct submitter *submitter = submitters_find(&jobs->submitters, process, call->tid);
	struct model_device_times times = {};
	struct activity *follows = NULL;
	int error = 0;

	if (!submitter || call->no_end)
		return 0;
	if (call->layer || !role_runs(call->function->role))
		program = NULL;
	call_count_missing(jobs, submitter, call);
	call_take_submits(jobs, submitter, call, &times);
	if (activity && any_open(submitter, call)) {
		follows = activity_create(&jobs->observers);
		error = follows ? 0 : -ENOMEM;
	}
	if (call_take_jobs(jobs, submitter, program, call, follows, &times))
		error = -ENOMEM;
	call->device = device_times_shown(&times);
	if (follows) {
		follows->times = times;
		*activity = follows;
	}
	return error;
}

/* One that is emitted already keeps no operator: its sums only grow. */
static void job_to_operator(struct job *job, struct op *op)
{
	job->in_operator = true;
	if (!op)
		return;
	if (!job->emitted)
		job->op = op;
	if (job->ended)
		operator_job_ended(op, job);
}

void jobs_operator(struct jobs *jobs, const struct process *process, struct op *op, const struct event_call *call)
{
	struct submitter *submitter = submitters_find(&jobs->submitters, process, call->tid);
	struct link *link;
	struct job *job;

	if (!submitter || call->no_end)
		return;
	for (link = last_until(submitter, call->end); link != &submitter->jobs; link = link->previous) {
		job = container_of(link, struct job, of_thread);
		if (job->submitted < call->start)
			break;
		if (!job->in_operator)
			job_to_operator(job, op);
	}
}

void jobs_call_close(struct jobs *jobs, const struct process *process, const struct event_call *call)
{
	struct submitter *submitter = call->depth ? NULL : submitters_find(&jobs->submitters, process, call->tid);
	struct link *link, *following;
	struct job *job;

	if (!submitter)
		return;
	link_each(link, following, &submitter->jobs)
	{
		job = container_of(link, struct job, of_thread);
		if (job->submitted > call->end)
			break;
		jobs_close(jobs, job);
	}
	submitter_drop_submits(&jobs->submitters, submitter, call->end);
	if (submitter->missing_until <= call->end)
		submitter->missing = 0;
	submitter_settle(&jobs->submitters, submitter);
}

int jobs_submit(struct jobs *jobs, const struct process *process, __u32 tid, __u64 start, __u64 end)
{
	struct submitter *submitter = jobs_submitter(jobs, process, tid);
	int error;

	if (!submitter)
		return -ENOMEM;
	error = submitter_add_submit(&jobs->submitters, submitter, start, end);
	submitter_settle(&jobs->submitters, submitter);
	return error;
}

static void job_forget(struct jobs *jobs, struct job *job)
{
	if (job->process && job->process->forgotten)
		job->process = processes_others(jobs->processes);
	if (job->program && job->program->process->forgotten) {
		job->program->open--;
		job->program = NULL;
	}
	if (job->op && job->op->process->forgotten)
		job->op = NULL;
	job_observers_forget_processes(job);
}

void jobs_forget_processes(struct jobs *jobs)
{
	struct link *const lists[] = { &jobs->open, &jobs->unreported };
	struct link *link, *following;
	size_t i;

	for (i = 0; i < 2; i++)
		link_each(link, following, lists[i]) job_forget(jobs, container_of(link, struct job, link));
}

/* ---- what threads have submitted ---- */

#define SHIFT_MAX 16 /* a late job is put in its place if it is not further away */

void submitters_init(struct submitters *submitters)
{
	*submitters = (struct submitters){};
	link_init(&submitters->all);
	link_init(&submitters->submits);
	pool_init(&submitters->pool, sizeof(struct submitter));
	pool_init(&submitters->submit_pool, sizeof(struct submit));
}

static void submit_remove(struct submitters *submitters, struct submit *submit)
{
	link_remove(&submit->link);
	link_remove(&submit->of_thread);
	submitters->submit_count--;
	pool_give(&submitters->submit_pool, submit);
}

void submitter_clear(struct submitters *submitters, struct submitter *submitter)
{
	submitter_drop_submits(submitters, submitter, ~(__u64)0);
	submitter->missing = 0;
}

void submitters_free(struct submitters *submitters)
{
	struct link *link, *following;

	link_each(link, following, &submitters->all)
	{
		submitter_clear(submitters, container_of(link, struct submitter, link));
		submitter_settle(submitters, container_of(link, struct submitter, link));
	}
	map_free(&submitters->by_thread);
	pool_free(&submitters->pool);
	pool_free(&submitters->submit_pool);
}

struct submitter *submitters_find(struct submitters *submitters, const struct process *process, __u32 tid)
{
	struct map_node *node = map_find(&submitters->by_thread, process->view.sort_index, tid);
	struct submitter *submitter;

	if (!node)
		return NULL;
	submitter = container_of(node, struct submitter, node);
	link_remove(&submitter->link);
	link_append(&submitters->all, &submitter->link);
	return submitter;
}

struct submitter *submitters_get(struct submitters *submitters, const struct process *process, __u32 tid)
{
	struct submitter *submitter = submitters_find(submitters, process, tid);

	if (submitter)
		return submitter;
	submitter = pool_take(&submitters->pool);
	if (!submitter)
		return NULL;
	if (map_add(&submitters->by_thread, &submitter->node, process->view.sort_index, tid)) {
		pool_give(&submitters->pool, submitter);
		return NULL;
	}
	link_init(&submitter->jobs);
	link_init(&submitter->submits);
	link_append(&submitters->all, &submitter->link);
	return submitter;
}

void submitter_settle(struct submitters *submitters, struct submitter *submitter)
{
	if (!link_alone(&submitter->jobs) || !link_alone(&submitter->submits) || submitter->missing)
		return;
	map_remove(&submitters->by_thread, &submitter->node);
	link_remove(&submitter->link);
	pool_give(&submitters->pool, submitter);
}

void submitter_add_job(struct submitter *submitter, struct job *job)
{
	struct link *place = &submitter->jobs;
	unsigned int i;

	for (i = 0; i < SHIFT_MAX && place->previous != &submitter->jobs; i++) {
		if (container_of(place->previous, struct job, of_thread)->submitted <= job->submitted)
			break;
		place = place->previous;
	}
	job->submitter = submitter;
	link_append(place, &job->of_thread); /* before that at the place */
}

void submitter_remove_job(struct job *job)
{
	link_remove(&job->of_thread);
	job->submitter = NULL;
}

void submitter_miss(struct submitter *submitter, __u64 time)
{
	submitter->missing++;
	if (time > submitter->missing_until)
		submitter->missing_until = time;
}

static void submits_make_room(struct submitters *submitters, const struct submitter *except)
{
	struct submit *submit = container_of(submitters->submits.next, struct submit, link);
	struct submitter *submitter = submit->submitter;

	submitter_miss(submitter, submit->end);
	submit_remove(submitters, submit);
	if (submitter != except)
		submitter_settle(submitters, submitter);
}

int submitter_add_submit(struct submitters *submitters, struct submitter *submitter, __u64 start, __u64 end)
{
	struct submit *submit;

	if (submitters->submit_count >= SUBMITS_MAX)
		submits_make_room(submitters, submitter);
	submit = pool_take(&submitters->submit_pool);
	if (!submit)
		return -ENOMEM;
	submit->submitter = submitter;
	submit->start = start;
	submit->end = end;
	link_append(&submitters->submits, &submit->link);
	link_append(&submitter->submits, &submit->of_thread);
	submitters->submit_count++;
	return 0;
}

const struct submit *submitter_merge_submits(struct submitters *submitters, struct submitter *submitter, __u64 start,
					     __u64 end)
{
	struct link *link, *previous;
	struct submit *submit, *merged = NULL;

	for (link = submitter->submits.previous; link != &submitter->submits; link = previous) {
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
		submit_remove(submitters, submit);
	}
	return merged;
}

void submitter_drop_submits(struct submitters *submitters, struct submitter *submitter, __u64 time)
{
	struct link *link, *following;
	struct submit *submit;

	link_each(link, following, &submitter->submits)
	{
		submit = container_of(link, struct submit, of_thread);
		if (submit->end <= time)
			submit_remove(submitters, submit);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <errno.h>

struct claim {
	struct claim *next;
	struct program *program;   /* held; NULL: none */
	struct activity *activity; /* held; NULL: none */
};

void claims_init(struct claims *claims)
{
	pool_init(&claims->pool, sizeof(struct claim));
	pool_init(&claims->activities, sizeof(struct activity));
}

void claims_free(struct claims *claims)
{
	pool_free(&claims->pool);
	pool_free(&claims->activities);
}

struct activity *activity_create(struct claims *claims)
{
	return activity_hold(pool_take(&claims->activities));
}

void activity_release(struct claims *claims, struct activity *activity)
{
	if (activity && !--activity->references)
		pool_give(&claims->activities, activity);
}

int claims_add(struct claims *claims, struct job *job, struct program *program, struct activity *activity)
{
	struct claim *claim = pool_take(&claims->pool);

	if (!claim)
		return -ENOMEM;
	claim->program = program;
	claim->activity = activity_hold(activity);
	if (program)
		program->open++;
	claim->next = job->claims;
	job->claims = claim;
	return 0;
}

static bool has_device_time(const struct job *job)
{
	return job->view.runs && job->view.done;
}

static void times_add_run(struct model_device_times *times, const struct job *job)
{
	const struct event_job *view = &job->view;

	if (view->runs && (!times->runs || view->runs < times->runs))
		times->runs = view->runs;
	if (view->runs && view->queued)
		times->queue_time += view->runs - view->queued;
}

static void times_add_end(struct model_device_times *times, const struct job *job)
{
	const struct event_job *view = &job->view;

	if (view->done > times->done)
		times->done = view->done;
	times->failed += view->failed;
	if (has_device_time(job))
		times->device_time += view->done - view->runs;
	times->busy_time += job->busy_time;
}

void device_times_add(struct model_device_times *times, const struct job *job)
{
	times->jobs++;
	times_add_run(times, job);
	if (job->ended)
		times_add_end(times, job);
	else
		times->unfinished++;
}

/* A job whose end was told with an earlier time than another one's run may leave times in the wrong order. */
struct model_device_times device_times_shown(const struct model_device_times *times)
{
	struct model_device_times shown = *times;

	if (shown.unfinished)
		shown.done = 0;
	if (shown.done && shown.runs > shown.done)
		shown.runs = 0;
	return shown;
}

void program_job_ended(struct program *program, const struct job *job)
{
	const struct event_job *view = &job->view;
	struct model_program *sums = &program->view;

	sums->jobs++;
	sums->failed_jobs += view->failed;
	if (has_device_time(job))
		sums->device_time += view->done - view->runs;
	if (view->runs && view->queued)
		sums->queue_time += view->runs - view->queued;
	sums->busy_time += job->busy_time;
}

void step_job_ended(struct step *step, const struct job *job)
{
	step->view.jobs++;
	step->view.failed_jobs += job->view.failed;
	if (has_device_time(job))
		step->view.device_time += job->view.done - job->view.runs;
}

void claims_run(const struct job *job)
{
	const struct claim *claim;

	for (claim = job->claims; claim; claim = claim->next)
		if (claim->activity)
			times_add_run(&claim->activity->times, job);
}

static void claim_remove(struct claims *claims, struct job *job)
{
	struct claim *claim = job->claims;

	job->claims = claim->next;
	if (claim->program)
		claim->program->open--;
	activity_release(claims, claim->activity);
	pool_give(&claims->pool, claim);
}

void claims_end(struct claims *claims, struct job *job)
{
	struct activity *activity;

	while (job->claims) {
		activity = job->claims->activity;
		if (activity) {
			activity->times.unfinished--;
			times_add_end(&activity->times, job);
		}
		if (job->claims->program)
			program_job_ended(job->claims->program, job);
		claim_remove(claims, job);
	}
}

void claims_drop(struct claims *claims, struct job *job)
{
	while (job->claims)
		claim_remove(claims, job);
}

void claims_forget_processes(struct job *job)
{
	struct claim *claim;

	for (claim = job->claims; claim; claim = claim->next) {
		if (!claim->program || !claim->program->process->forgotten)
			continue;
		claim->program->open--;
		claim->program = NULL;
	}
}

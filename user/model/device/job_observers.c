/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <errno.h>

struct job_observer {
	struct job_observer *next;
	struct program *program;   /* held; NULL: none */
	struct activity *activity; /* held; NULL: none */
};

void job_observers_init(struct job_observers *observers)
{
	pool_init(&observers->pool, sizeof(struct job_observer));
	pool_init(&observers->activities, sizeof(struct activity));
}

void job_observers_free(struct job_observers *observers)
{
	pool_free(&observers->pool);
	pool_free(&observers->activities);
}

struct activity *activity_create(struct job_observers *observers)
{
	return activity_hold(pool_take(&observers->activities));
}

void activity_release(struct job_observers *observers, struct activity *activity)
{
	if (activity && !--activity->references)
		pool_give(&observers->activities, activity);
}

int job_observers_add(struct job_observers *observers, struct job *job, struct program *program,
		      struct activity *activity)
{
	struct job_observer *observer = pool_take(&observers->pool);

	if (!observer)
		return -ENOMEM;
	observer->program = program;
	observer->activity = activity_hold(activity);
	if (program)
		program->open++;
	observer->next = job->observers;
	job->observers = observer;
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

/* A job that ends with an earlier time than another one runs may leave times in the wrong order. */
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

void operator_job_ended(struct op *op, const struct job *job)
{
	op->view.jobs++;
	op->view.failed_jobs += job->view.failed;
	if (has_device_time(job))
		op->view.device_time += job->view.done - job->view.runs;
}

void job_observers_run(const struct job *job)
{
	const struct job_observer *observer;

	for (observer = job->observers; observer; observer = observer->next)
		if (observer->activity)
			times_add_run(&observer->activity->times, job);
}

static void job_observer_remove(struct job_observers *observers, struct job *job)
{
	struct job_observer *observer = job->observers;

	job->observers = observer->next;
	if (observer->program)
		observer->program->open--;
	activity_release(observers, observer->activity);
	pool_give(&observers->pool, observer);
}

void job_observers_end(struct job_observers *observers, struct job *job)
{
	struct activity *activity;

	while (job->observers) {
		activity = job->observers->activity;
		if (activity) {
			activity->times.unfinished--;
			times_add_end(&activity->times, job);
		}
		if (job->observers->program)
			program_job_ended(job->observers->program, job);
		job_observer_remove(observers, job);
	}
}

void job_observers_drop(struct job_observers *observers, struct job *job)
{
	while (job->observers)
		job_observer_remove(observers, job);
}

void job_observers_forget_processes(struct job *job)
{
	struct job_observer *observer;

	for (observer = job->observers; observer; observer = observer->next) {
		if (!observer->program || !observer->program->process->forgotten)
			continue;
		observer->program->open--;
		observer->program = NULL;
	}
}

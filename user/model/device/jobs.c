/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <errno.h>
#include <string.h>

#include "model/device/call_tree.h"

#define GROUP_OF_CLIENT XPT_DRIVER_MAX /* timelines have the index of their driver */

#define JOB_VALUE(meaning, member)                                                                                    \
	{                                                                                                             \
		XPT_FIELD_##meaning, offsetof(struct driver_event_values, member), offsetof(struct event_job, member) \
	}

/* What a job takes from the first event that has it. */
static const struct {
	unsigned int meaning;
	size_t from, to;
} job_values[] = {
	JOB_VALUE(CONTEXT, context), JOB_VALUE(CLIENT, client), JOB_VALUE(SIZE, size),
	JOB_VALUE(COUNT, count),     JOB_VALUE(VALUE, value),	JOB_VALUE(ADDRESS, address),
};

struct job_observer {
	struct job_observer *next;
	struct program *program;   /* held; NULL: none */
	struct activity *activity; /* held; NULL: none */
};

void jobs_init(struct jobs *jobs, struct event_dispatch *events, struct processes *processes,
	       const struct traced_drivers *drivers, struct call_tree *tree)
{
	*jobs = (struct jobs){ .events = events, .processes = processes, .tree = tree, .next_id = 1 };
	device_queues_init(&jobs->queues, events);
	job_keys_init(&jobs->keys, drivers);
	pool_init(&jobs->observers.pool, sizeof(struct job_observer));
	pool_init(&jobs->observers.activities, sizeof(struct activity));
	pool_init(&jobs->pool, sizeof(struct job));
	job_groups_init(&jobs->groups);
	link_init(&jobs->open);
	link_init(&jobs->expiring);
	link_init(&jobs->unreported);
	link_init(&jobs->emitted);
}

/* ---- who observes a job, and what jobs add up to ---- */

struct activity *activity_create(struct job_observers *observers)
{
	return activity_hold(pool_take(&observers->activities));
}

void activity_release(struct job_observers *observers, struct activity *activity)
{
	if (activity && !--activity->references)
		pool_give(&observers->activities, activity);
}

static int job_observe(struct jobs *jobs, struct job *job, struct program *program, struct activity *activity)
{
	struct job_observer *observer = pool_take(&jobs->observers.pool);

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

static void program_job_ended(struct program *program, const struct job *job)
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

static void operator_job_ended(struct op *op, const struct job *job)
{
	op->view.jobs++;
	op->view.failed_jobs += job->view.failed;
	if (has_device_time(job))
		op->view.device_time += job->view.done - job->view.runs;
}

static void job_observers_run(const struct job *job)
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

static void job_observers_end(struct job_observers *observers, struct job *job)
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

static void job_observers_drop(struct job_observers *observers, struct job *job)
{
	while (job->observers)
		job_observer_remove(observers, job);
}

/* ---- timelines ---- */

static int timeline_enter(struct jobs *jobs, struct job *job, const struct driver_event_values *values)
{
	if (job->timeline || job->stay.passed || !(values->have & 1u << XPT_FIELD_TIMELINE))
		return 0;
	return job_groups_enter(&jobs->groups, values->event->driver->index, values->timeline, &job->timeline,
				&job->of_timeline);
}

static void timeline_leave(struct jobs *jobs, struct job *job)
{
	job_groups_leave(&jobs->groups, &job->timeline, &job->of_timeline);
}

/* Its end is lost unless it is seen within the grace. */
static void job_expire(struct jobs *jobs, struct job *job, __u64 time)
{
	job->view.time = time;
	link_remove(&job->link);
	link_append(&jobs->expiring, &job->link);
}

/* Whether a job of the timeline, which was seen first, was also queued first: of two that ran the one that did so first. */
static bool is_before(const struct job *first, const struct job *job)
{
	return job->view.queued || first->view.runs;
}

/*
 * The job has ended: those before it on its timeline have, too. They leave their queues now, as their own ends may be
 * lost; when these are seen after all, the queue's jobs are not passed any more: it does not keep the order.
 */
static void timeline_pass(struct jobs *jobs, const struct job *job, __u64 time)
{
	struct job *before, *following;

	if (!job->timeline)
		return;
	link_for_each_safe(before, following, &job->timeline->jobs, of_timeline) {
		if (before == job)
			return;
		if (!before->stay.queue || before->stay.queue->unordered || !is_before(before, job))
			continue;
		queue_stay_pass(&jobs->queues, &before->stay, time);
		timeline_leave(jobs, before);
		job_expire(jobs, before, time);
	}
}

/* ---- jobs ---- */

static void job_emit(struct jobs *jobs, struct job *job)
{
	struct event event = { .kind = EVENT_JOB };

	job->emitted = true;
	event.job = job->view;
	event.job.name = job->name;
	event.job.process = job->process ? &job->process->view : NULL;
	event.job.program = job->program ? &job->program->view : NULL;
	event.job.op = job->op ? &job->op->view : NULL;
	if (event.job.queue) /* there was no memory for it */
		event_dispatch_emit(jobs->events, &event);
	if (job->program)
		job->program->open--;
	job->program = NULL;
	job->op = NULL;
}

static void job_free(struct jobs *jobs, struct job *job)
{
	link_remove(&job->link);
	jobs->count--;
	pool_give(&jobs->pool, job);
}

void jobs_close(struct jobs *jobs, struct job *job)
{
	link_remove(&job->of_thread);
	job->thread = NULL;
	if (job->key)
		return;
	if (!job->emitted)
		job_emit(jobs, job);
	job_free(jobs, job);
}

static void queue_count(struct device_queue *queue, const struct job *job)
{
	queue->view.jobs++;
	queue->view.failed += job->view.failed;
	queue->view.target_jobs += job->view.target;
}

/* The job has ended, or is given up: it is open no more. */
static void job_over(struct jobs *jobs, struct job *job, __u64 time)
{
	struct device_queue *queue = job->stay.queue ?: job->stay.passed;

	job->view.time = time;
	job_keys_remove(&jobs->keys, job);
	timeline_leave(jobs, job);
	job_groups_leave(&jobs->groups, &job->client, &job->of_client);
	if (job->ended)
		queue_stay_end(&jobs->queues, &job->stay, time);
	else
		queue_stay_move(&jobs->queues, &job->stay, NULL, false, time);
	if (job->ended && queue) {
		job->busy_time = queue_stay_share(&job->stay, queue);
		queue_count(queue, job);
	}
	if (job->ended && job->op)
		operator_job_ended(job->op, job);
	if (job->ended)
		job_observers_end(&jobs->observers, job);
	else
		job_observers_drop(&jobs->observers, job);
	link_remove(&job->link);
	if (job->thread) {
		link_append(&jobs->unreported, &job->link);
		return;
	}
	job_emit(jobs, job);
	job_free(jobs, job);
}

/* It has ended, and that was not seen. Of one that was not seen to run and whose process lives, nobody knows. */
static void job_lose_end(struct jobs *jobs, struct job *job, __u64 time)
{
	if (job->running || job->orphan || job->stay.passed)
		event_dispatch_lose(jobs->events, XPT_LOSS_JOB_ENDS, 1, time);
	job_over(jobs, job, time);
}

/* Those that are only kept for calls are dropped first. */
static void jobs_make_room(struct jobs *jobs, __u64 time)
{
	struct link *over = link_alone(&jobs->emitted) ? &jobs->unreported : &jobs->emitted;
	struct job *job;

	if (jobs->count < MODEL_JOBS_MAX)
		return;
	if (!link_alone(over)) {
		job = container_of(over->next, struct job, link);
		call_thread_miss_job(job);
		jobs_close(jobs, job);
		return;
	}
	event_dispatch_lose(jobs->events, XPT_LOSS_JOBS, 1, time);
	over = link_alone(&jobs->expiring) ? &jobs->open : &jobs->expiring;
	job = container_of(over->next, struct job, link);
	if (job->thread) { /* it is emitted at once, though calls around it may return */
		link_remove(&job->of_thread);
		job->thread = NULL;
	}
	job_over(jobs, job, time);
}

static struct job *job_create(struct jobs *jobs, const struct driver_event_values *values)
{
	struct job *job;

	jobs_make_room(jobs, values->time);
	job = pool_take(&jobs->pool);
	if (!job)
		return NULL;
	link_init(&job->of_key);
	link_init(&job->of_thread);
	link_init(&job->of_timeline);
	link_init(&job->of_client);
	if (job_keys_add(&jobs->keys, values, job)) {
		pool_give(&jobs->pool, job);
		return NULL;
	}
	job->view.id = jobs->next_id++;
	link_append(&jobs->open, &job->link);
	jobs->count++;
	return job;
}

static int job_submit(struct jobs *jobs, struct job *job, const struct driver_event_values *values)
{
	struct call_thread *thread;
	int error;

	if (!values->tid || job->view.tid)
		return 0;
	job->view.tgid = values->tgid;
	job->view.tid = values->tid;
	queue_stay_submit(&jobs->queues, &job->stay, values->tgid, values->time);
	error = job_groups_enter(&jobs->groups, GROUP_OF_CLIENT, values->tgid, &job->client, &job->of_client);
	if (!values->target)
		return error;
	job->view.target = true;
	job->submitted = values->time;
	queue_stay_claim(&job->stay, values->time);
	job->process = processes_get(jobs->processes, values->tgid, values->time);
	if (!values->in_call)
		return job->process ? error : -ENOMEM;
	thread = job->process ? call_tree_get(jobs->tree, job->process, values->tid) : NULL;
	if (!thread)
		return -ENOMEM;
	call_thread_add_job(thread, job);
	return error;
}

/* What the job lacks and this event has. */
static void job_fill(struct job *job, const struct driver_event_values *values)
{
	const __u32 new = values->have & ~job->view.have;
	struct event_job *view = &job->view;

	if (!*job->name)
		memcpy(job->name, values->name, sizeof(job->name));
	for (size_t i = 0; new &&i < sizeof(job_values) / sizeof(job_values[0]); i++) {
		if (!(new & 1u << job_values[i].meaning))
			continue;
		view->have |= 1u << job_values[i].meaning;
		memcpy((char *)view + job_values[i].to, (const char *)values + job_values[i].from, sizeof(__u64));
	}
}

static void job_status(struct job *job, const struct driver_event_values *values)
{
	if (!(values->have & 1u << XPT_FIELD_STATUS))
		return;
	job->view.have |= 1u << XPT_FIELD_STATUS;
	job->view.status = values->status;
}

static enum engine_source values_source(const struct driver_event_values *values)
{
	if (!*values->engine)
		return ENGINE_UNKNOWN;
	return values->event->role == XPT_EVENT_RUN ? ENGINE_FROM_RUN : ENGINE_FROM_QUEUE;
}

/* The job's queue as it is known with this event. NULL: no memory for it. */
static struct device_queue *job_queue(struct jobs *jobs, struct job *job, const struct driver_event_values *values)
{
	const enum engine_source source = values_source(values);
	const bool better = source > job->engine_source || !job->stay.queue;
	struct device_queue *queue = job->stay.queue;
	const struct model_queue *known;
	const char *device;

	if (queue && !better && (queue->others || *queue->view.device || !*values->device))
		return queue;
	known = queue && !queue->others ? &queue->view : NULL;
	device = *values->device && (better || !known) ? values->device : known ? known->device : "";
	if (!*device)
		device = values->device;
	if (better)
		job->engine_source = source;
	if (!better)
		return device_queues_get(&jobs->queues, known->driver, device, known->engine);
	if (known && known->driver == values->event->driver->name && !strcmp(known->device, device) &&
	    !strcmp(known->engine, values->engine))
		return queue;
	return device_queues_get(&jobs->queues, values->event->driver->name, device, values->engine);
}

static int job_place(struct jobs *jobs, struct job *job, const struct driver_event_values *values)
{
	struct device_queue *queue;

	if (job->stay.passed)
		return 0;
	queue = job_queue(jobs, job, values);
	if (!queue)
		return -ENOMEM;
	if (queue->others && job->stay.queue != queue)
		event_dispatch_lose(jobs->events, XPT_LOSS_NAMES, 1, values->time);
	job->view.queue = &queue->view;
	queue_stay_move(&jobs->queues, &job->stay, queue, job->running, values->time);
	return 0;
}

static int job_learn(struct jobs *jobs, struct job *job, const struct driver_event_values *values)
{
	int error = timeline_enter(jobs, job, values);

	job_fill(job, values);
	return job_place(jobs, job, values) ?: error;
}

/* *result is NULL when the event repeats what it has reported before. -ENOMEM. */
static int job_to_queue(struct jobs *jobs, const struct driver_event_values *values, struct job **result)
{
	struct job_key *key = job_keys_find(&jobs->keys, values);
	const enum xpt_pairing pairing = values->event->driver->pairing;

	*result = key ? job_key_next(key, values->event) : NULL;
	if (*result) {
		job_key_advance(key, values->event, *result);
		return 0;
	}
	if (key && pairing == XPT_PAIRING_UNIQUE)
		return 0;
	if (key && pairing == XPT_PAIRING_LATEST)
		job_lose_end(jobs, job_key_last(key), values->time);
	*result = job_create(jobs, values);
	return *result ? 0 : -ENOMEM;
}

int jobs_queue(struct jobs *jobs, const struct driver_event_values *values)
{
	struct job *job;
	int error = job_to_queue(jobs, values, &job), learnt;

	if (!job)
		return error;
	if (!job->queue_seen) {
		job->queue_seen = true;
		if (!job->view.runs || values->time <= job->view.runs)
			job->view.queued = values->time;
	}
	error = job_submit(jobs, job, values);
	learnt = job_learn(jobs, job, values);
	return error ? error : learnt;
}

static struct job *job_to_run(struct jobs *jobs, const struct driver_event_values *values)
{
	struct job_key *key = job_keys_find(&jobs->keys, values);
	struct job *job;

	if (!key)
		return job_create(jobs, values);
	if (values->event->driver->pairing != XPT_PAIRING_ORDER)
		return job_key_last(key);
	job = job_key_next(key, values->event);
	if (!job)
		return job_create(jobs, values);
	job_key_advance(key, values->event, job);
	return job;
}

/* An orphan is seen to run: it was not dropped, and will end. */
static void job_revive(struct jobs *jobs, struct job *job, __u64 time)
{
	if (job->stay.passed)
		queue_stay_return(&jobs->queues, &job->stay, time);
	job_expire(jobs, job, time);
}

int jobs_run(struct jobs *jobs, const struct driver_event_values *values)
{
	struct job *job = job_to_run(jobs, values);

	if (!job)
		return -ENOMEM;
	if (!job->running) {
		job->running = true;
		job->view.runs = values->time;
		if (job->orphan)
			job_revive(jobs, job, values->time);
		if (job->view.queued > values->time)
			job->view.queued = 0;
		job_observers_run(job);
	}
	return job_learn(jobs, job, values);
}

/* The job that an event at or behind its end is of. NULL: unknown. */
static struct job *job_to_end(struct jobs *jobs, const struct driver_event_values *values)
{
	const struct job_key *key = job_keys_find(&jobs->keys, values);

	if (!key)
		return NULL;
	return values->event->driver->pairing == XPT_PAIRING_ORDER ? job_key_first(key) : job_key_last(key);
}

static int job_end(struct jobs *jobs, struct job *job, const struct driver_event_values *values)
{
	int error = job_learn(jobs, job, values);

	if (!job->view.failed) /* the cause of the failure is more specific */
		job_status(job, values);
	job->ended = true;
	if (job->stay.passed && !job->orphan)
		job->stay.passed->unordered = true;
	timeline_pass(jobs, job, values->time);
	job->view.done = values->time;
	if (job->view.runs > values->time)
		job->view.runs = 0;
	if (job->view.queued > values->time)
		job->view.queued = 0;
	job_over(jobs, job, values->time);
	return error;
}

static bool has_items(const struct job *job)
{
	return job->view.have & 1u << XPT_FIELD_COUNT;
}

/* Jobs in order, with items that end one by one, or those of several jobs at once. */
static int items_end(struct jobs *jobs, struct job_key *key, const struct driver_event_values *values)
{
	struct job *job;
	bool last = false;
	int error = 0;

	key->items += values->count;
	while (!last && has_items(job_key_first(key)) && job_key_first(key)->view.count <= key->items) {
		job = job_key_first(key);
		last = job == job_key_last(key); /* its end frees the key */
		key->items -= job->view.count;
		error = job_end(jobs, job, values) ?: error;
	}
	return error;
}

int jobs_done(struct jobs *jobs, const struct driver_event_values *values)
{
	struct job *job = job_to_end(jobs, values);

	if (!job)
		return 0;
	if (values->event->driver->pairing == XPT_PAIRING_ORDER && values->have & 1u << XPT_FIELD_COUNT &&
	    has_items(job))
		return items_end(jobs, job->key, values);
	return job_end(jobs, job, values);
}

struct job *jobs_error(struct jobs *jobs, const struct driver_event_values *values)
{
	struct job *job = job_to_end(jobs, values);

	if (!job)
		return NULL;
	job_fill(job, values);
	job->view.failed = true;
	job_status(job, values);
	return job;
}

void jobs_settle(struct jobs *jobs, __u64 time)
{
	struct job *job;

	while (!link_alone(&jobs->expiring)) {
		job = container_of(jobs->expiring.next, struct job, link);
		if (time < job->view.time || time - job->view.time < JOB_GRACE)
			break;
		/* One that is still in its queue has kept that busy until now. */
		job_lose_end(jobs, job, job->stay.queue ? job->view.time + JOB_GRACE : job->view.time);
	}
	while (!link_alone(&jobs->unreported)) {
		job = container_of(jobs->unreported.next, struct job, link);
		if (time < job->view.time || time - job->view.time < JOB_GRACE)
			return;
		job_emit(jobs, job);
		link_remove(&job->link);
		link_append(&jobs->emitted, &job->link);
	}
}

void jobs_drop_all(struct jobs *jobs, __u64 time)
{
	struct job *job, *following;

	link_for_each_safe(job, following, &jobs->expiring, link) {
		if (job->stay.queue) /* it may still run */
			job_over(jobs, job, time);
		else
			job_lose_end(jobs, job, job->view.time);
	}
	link_for_each_safe(job, following, &jobs->open, link)
		job_over(jobs, job, time);
}

void jobs_orphan(struct jobs *jobs, __u32 tgid, __u64 time)
{
	struct job_group *client = job_groups_find(&jobs->groups, GROUP_OF_CLIENT, tgid);
	bool last = !client;
	struct job *job;

	while (!last) {
		job = container_of(client->jobs.next, struct job, of_client);
		last = job->of_client.next == &client->jobs; /* it frees the group */
		job_groups_leave(&jobs->groups, &job->client, &job->of_client);
		if (job->stay.passed)
			continue;
		job->orphan = true;
		if (job->stay.queue && !job->running)
			queue_stay_pass(&jobs->queues, &job->stay, time);
		job_expire(jobs, job, time);
	}
}

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

int job_join_call(struct jobs *jobs, struct job *job, struct program *program, const struct event_call *call,
		  struct activity *activity)
{
	struct program *joined = program && job_join_program(job, program) ? program : NULL;

	job_show_call(job, program, call);
	if (joined && job->ended)
		program_job_ended(joined, job);
	if (!job->key || (!joined && !activity))
		return 0;
	return job_observe(jobs, job, joined, activity);
}

/* One that is emitted already keeps no operator: its sums only grow. */
void job_join_operator(struct job *job, struct op *op)
{
	if (job->in_operator)
		return;
	job->in_operator = true;
	if (!op)
		return;
	if (!job->emitted)
		job->op = op;
	if (job->ended)
		operator_job_ended(op, job);
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
	for (struct job_observer *observer = job->observers; observer; observer = observer->next) {
		if (!observer->program || !observer->program->process->forgotten)
			continue;
		observer->program->open--;
		observer->program = NULL;
	}
}

void jobs_forget_processes(struct jobs *jobs)
{
	struct job *job, *following;

	link_for_each_safe(job, following, &jobs->open, link)
		job_forget(jobs, job);
	link_for_each_safe(job, following, &jobs->expiring, link)
		job_forget(jobs, job);
	link_for_each_safe(job, following, &jobs->unreported, link)
		job_forget(jobs, job);
}

void jobs_free(struct jobs *jobs)
{
	struct event_dispatch silent = {};

	jobs->events = jobs->queues.events = &silent;
	jobs_drop_all(jobs, 0);
	job_keys_free(&jobs->keys);
	device_queues_free(&jobs->queues);
	pool_free(&jobs->observers.pool);
	pool_free(&jobs->observers.activities);
	pool_free(&jobs->pool);
	job_groups_free(&jobs->groups);
}

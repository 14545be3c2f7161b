/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <errno.h>
#include <string.h>

#define JOB_VALUES                                                                                         \
	(1u << XPT_FIELD_CONTEXT | 1u << XPT_FIELD_CLIENT | 1u << XPT_FIELD_SIZE | 1u << XPT_FIELD_COUNT | \
	 1u << XPT_FIELD_VALUE | 1u << XPT_FIELD_ADDRESS)

void jobs_init(struct jobs *jobs, struct event_dispatch *events, struct processes *processes,
	       const struct traced_drivers *drivers)
{
	*jobs = (struct jobs){ .events = events, .processes = processes, .next_id = 1 };
	device_queues_init(&jobs->queues, events);
	job_keys_init(&jobs->keys, drivers);
	job_observers_init(&jobs->observers);
	submitters_init(&jobs->submitters);
	pool_init(&jobs->pool, sizeof(struct job));
	link_init(&jobs->open);
	link_init(&jobs->unreported);
	link_init(&jobs->emitted);
}

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
	submitter_remove_job(job);
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
	struct device_queue *queue = job->stay.queue;

	job->view.time = time;
	job_keys_remove(&jobs->keys, job);
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
	if (job->submitter) {
		link_append(&jobs->unreported, &job->link);
		return;
	}
	job_emit(jobs, job);
	job_free(jobs, job);
}

/* What it was submitted in will not have it, if it returns at all. */
static void job_evict(struct jobs *jobs, struct job *job)
{
	struct submitter *submitter = job->submitter;

	submitter_miss(submitter, job->submitted);
	jobs_close(jobs, job);
	submitter_settle(&jobs->submitters, submitter);
}

/* Those that are only kept for calls are dropped first. */
static void jobs_make_room(struct jobs *jobs, __u64 time)
{
	struct submitter *submitter;
	struct job *job;

	if (jobs->count < MODEL_JOBS_MAX)
		return;
	if (!link_alone(&jobs->emitted)) {
		job_evict(jobs, container_of(jobs->emitted.next, struct job, link));
		return;
	}
	if (!link_alone(&jobs->unreported)) {
		job_evict(jobs, container_of(jobs->unreported.next, struct job, link));
		return;
	}
	event_dispatch_lose(jobs->events, XPT_LOSS_JOBS, 1, time);
	job = container_of(jobs->open.next, struct job, link);
	submitter = job->submitter;
	job_over(jobs, job, time);
	if (!submitter)
		return;
	jobs_close(jobs, job);
	submitter_settle(&jobs->submitters, submitter);
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
	if (job_keys_add(&jobs->keys, values, job)) {
		pool_give(&jobs->pool, job);
		return NULL;
	}
	job->view.id = jobs->next_id++;
	link_append(&jobs->open, &job->link);
	jobs->count++;
	return job;
}

static void submitter_drop(struct jobs *jobs, struct submitter *submitter)
{
	struct link *link, *following;

	link_each(link, following, &submitter->jobs) jobs_close(jobs, container_of(link, struct job, of_thread));
	submitter_clear(&jobs->submitters, submitter);
	submitter_settle(&jobs->submitters, submitter);
}

struct submitter *jobs_submitter(struct jobs *jobs, const struct process *process, __u32 tid)
{
	struct submitters *submitters = &jobs->submitters;
	struct submitter *submitter = submitters_find(submitters, process, tid);

	if (submitter)
		return submitter;
	if (submitters->by_thread.count >= SUBMITTERS_MAX)
		submitter_drop(jobs, container_of(submitters->all.next, struct submitter, link));
	return submitters_get(submitters, process, tid);
}

static int job_submit(struct jobs *jobs, struct job *job, const struct driver_event_values *values)
{
	struct submitter *submitter;

	if (!values->tid || job->view.tid)
		return 0;
	job->view.tgid = values->tgid;
	job->view.tid = values->tid;
	if (!values->target)
		return 0;
	job->view.target = true;
	job->submitted = values->time;
	queue_stay_claim(&job->stay, values->time);
	job->process = processes_get(jobs->processes, values->tgid, values->time);
	if (!values->in_call)
		return job->process ? 0 : -ENOMEM;
	submitter = job->process ? jobs_submitter(jobs, job->process, values->tid) : NULL;
	if (!submitter)
		return -ENOMEM;
	submitter_add_job(submitter, job);
	return 0;
}

/* What the job lacks and this event has. */
static void job_fill(struct job *job, const struct driver_event_values *values)
{
	const __u32 new = values->have &JOB_VALUES & ~job->view.have;
	struct event_job *view = &job->view;

	if (!*job->name)
		memcpy(job->name, values->name, sizeof(job->name));
	if (!new)
		return;
	view->have |= new;
	if (new & 1u << XPT_FIELD_CONTEXT)
		view->context = values->context;
	if (new & 1u << XPT_FIELD_CLIENT)
		view->client = values->client;
	if (new & 1u << XPT_FIELD_SIZE)
		view->size = values->size;
	if (new & 1u << XPT_FIELD_COUNT)
		view->count = values->count;
	if (new & 1u << XPT_FIELD_VALUE)
		view->value = values->value;
	if (new & 1u << XPT_FIELD_ADDRESS)
		view->address = values->address;
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
	struct device_queue *queue = job_queue(jobs, job, values);

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
	job_fill(job, values);
	return job_place(jobs, job, values);
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
		job_over(jobs, job_key_last(key), values->time);
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

int jobs_run(struct jobs *jobs, const struct driver_event_values *values)
{
	struct job *job = job_to_run(jobs, values);

	if (!job)
		return -ENOMEM;
	if (!job->running) {
		job->running = true;
		job->view.runs = values->time;
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
	struct link *link, *following;

	link_each(link, following, &jobs->open) job_over(jobs, container_of(link, struct job, link), time);
	link_each(link, following, &jobs->submitters.all)
		submitter_drop(jobs, container_of(link, struct submitter, link));
}

void jobs_drop_process(struct jobs *jobs, const struct process *process)
{
	struct link *link, *following;
	struct submitter *submitter;

	link_each(link, following, &jobs->submitters.all)
	{
		submitter = container_of(link, struct submitter, link);
		if (submitter->node.a == process->view.sort_index)
			submitter_drop(jobs, submitter);
	}
}

void jobs_free(struct jobs *jobs)
{
	struct event_dispatch silent = {};

	jobs->events = jobs->queues.events = &silent;
	jobs_drop_all(jobs, 0);
	submitters_free(&jobs->submitters);
	job_observers_free(&jobs->observers);
	job_keys_free(&jobs->keys);
	device_queues_free(&jobs->queues);
	pool_free(&jobs->pool);
}

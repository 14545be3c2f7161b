/* SPDX-License-Identifier: BSD-2-Clause */
/* The device side of a Chrome trace: a process for each device, a track for each of its queues. */
#include "report/chrome/events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/link.h"
#include "describe/driver/driver.h"
#include "report/chrome/parts.h"

#define FLOW_NAME "job"
#define FLOW_ID (1ull << 40) /* viewers identify arrows by their number only, and inferences have some, too */

/* ---- numbers of devices ---- */

struct chrome_devices {
	char *name[CHROME_DEVICES_MAX]; /* driver and device, each with its terminator; owned */
	unsigned int count;
};

struct chrome_devices *chrome_devices_create(void)
{
	return calloc(1, sizeof(struct chrome_devices));
}

void chrome_devices_free(struct chrome_devices *devices)
{
	if (!devices)
		return;
	for (unsigned int i = 0; i < devices->count; i++)
		free(devices->name[i]);
	free(devices);
}

unsigned int chrome_devices_find(const struct chrome_devices *devices, const char *driver, const char *device)
{
	for (unsigned int i = 0; i < devices->count; i++) {
		const char *name = devices->name[i];

		if (!strcmp(name, driver) && !strcmp(name + strlen(name) + 1, device))
			return i + 1;
	}
	return 0;
}

unsigned int chrome_devices_number(struct chrome_devices *devices, const char *driver, const char *device)
{
	unsigned int known = chrome_devices_find(devices, driver, device);
	size_t first = strlen(driver) + 1, second = strlen(device) + 1;
	char *name;

	if (known)
		return known;
	if (devices->count == CHROME_DEVICES_MAX)
		return CHROME_DEVICES_OTHERS;
	name = malloc(first + second);
	if (!name)
		return CHROME_DEVICES_OTHERS;
	memcpy(name, driver, first);
	memcpy(name + first, device, second);
	devices->name[devices->count++] = name;
	return devices->count;
}

/* ---- queues ---- */

struct chrome_queue {
	struct map_node node;
	struct chrome_queue *next; /* made before */
	unsigned int id;
	unsigned int device;  /* number */
	unsigned int named;   /* lanes with named tracks */
	unsigned int running; /* after the last change */
	struct queue_depth depth;
	struct queue_busy busy;
	struct lanes lanes;
	struct text driver, engine; /* escaped */
};

/* ---- processes and tracks ---- */

/* Behind all that are traced: their places begin at 0. */
static void show_device(struct chrome_events *events, unsigned int number, const char *driver, const char *device)
{
	struct text *text = events->text;
	__u32 pid = chrome_device_pid(number);

	if (events->jobs.shown[number])
		return;
	events->jobs.shown[number] = true;
	chrome_begin_metadata(events, pid, pid, "process_name");
	if (number == CHROME_DEVICES_OTHERS) {
		text_literal(text, ",\"args\":{\"name\":\"other devices\"}}");
	} else {
		text_literal(text, ",\"args\":{\"name\":\"device ");
		text_json_part(text, device, strlen(device));
		if (*device)
			text_literal(text, " ");
		text_literal(text, "(");
		text_json_part(text, driver, strlen(driver));
		text_literal(text, ")\"}}");
	}
	chrome_begin_metadata(events, pid, pid, "process_sort_index");
	chrome_unsigned(text, ",\"args\":{\"sort_index\":", pid);
	text_literal(text, "}}");
}

static void add_engine(struct text *text, const struct chrome_queue *queue)
{
	if (queue->engine.length)
		text_bytes(text, queue->engine.data, queue->engine.length);
	else
		text_literal(text, "queue");
}

static void name_lane(struct chrome_events *events, const struct chrome_queue *queue, unsigned int lane)
{
	struct text *text = events->text;
	__u32 pid = chrome_device_pid(queue->device), tid = chrome_queue_tid(queue->id, lane);

	chrome_begin_metadata(events, pid, tid, "thread_name");
	text_literal(text, ",\"args\":{\"name\":\"");
	add_engine(text, queue);
	if (lane) {
		chrome_unsigned(text, " (", lane + 1);
		text_literal(text, ")");
	}
	text_literal(text, "\"}}");
	chrome_begin_metadata(events, pid, tid, "thread_sort_index");
	chrome_unsigned(text, ",\"args\":{\"sort_index\":", tid);
	text_literal(text, "}}");
}

/* The track of the lane, with a name from here on. */
static __u32 track_of(struct chrome_events *events, struct chrome_queue *queue, unsigned int lane)
{
	while (queue->named <= lane)
		name_lane(events, queue, queue->named++);
	return chrome_queue_tid(queue->id, lane);
}

static struct chrome_queue *find_queue(const struct chrome_jobs *jobs, unsigned int id)
{
	struct map_node *node;

	if (jobs->last && jobs->last->id == id)
		return jobs->last;
	node = map_find(&jobs->queues, id, 0);
	return node ? container_of(node, struct chrome_queue, node) : NULL;
}

static void queue_free(struct chrome_jobs *jobs, struct chrome_queue *queue)
{
	lanes_free(&queue->lanes, &jobs->spans);
	text_free(&queue->driver);
	text_free(&queue->engine);
	free(queue);
}

static struct chrome_queue *make_queue(struct chrome_jobs *jobs, const struct model_queue *from)
{
	struct chrome_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->id = from->id;
	queue->device = chrome_devices_number(jobs->devices, from->driver, from->device);
	text_json_part(&queue->driver, from->driver, strlen(from->driver));
	text_json_part(&queue->engine, from->engine, strlen(from->engine));
	if (queue->driver.error || queue->engine.error || map_add(&jobs->queues, &queue->node, from->id, 0)) {
		queue_free(jobs, queue);
		return NULL;
	}
	queue->next = jobs->newest;
	jobs->newest = queue;
	jobs->bytes += sizeof(*queue) + queue->driver.capacity + queue->engine.capacity;
	return queue;
}

/* NULL: no device is shown, or there is no memory, which is then an error of the text. */
static struct chrome_queue *show_queue(struct chrome_events *events, const struct model_queue *from)
{
	struct chrome_jobs *jobs = &events->jobs;
	struct chrome_queue *queue;

	if (!jobs->devices)
		return NULL;
	queue = find_queue(jobs, from->id);
	if (!queue)
		queue = make_queue(jobs, from);
	if (!queue) {
		events->text->error = -ENOMEM;
		return NULL;
	}
	jobs->last = queue;
	show_device(events, queue->device, from->driver, from->device);
	return queue;
}

/* ---- arguments ---- */

#define HAS(have, meaning) ((have) & (1u << (meaning)))

/* Fields of an event beside its times: the same fields for jobs and for devices. */
#define ADD_FIELDS(text, from)                                                      \
	do {                                                                        \
		if (HAS((from)->have, XPT_FIELD_STATUS))                            \
			chrome_signed(text, ",\"status\":", (from)->status);        \
		if (HAS((from)->have, XPT_FIELD_CONTEXT))                           \
			chrome_hexadecimal(text, ",\"context\":", (from)->context); \
		if (HAS((from)->have, XPT_FIELD_CLIENT))                            \
			chrome_unsigned(text, ",\"client\":", (from)->client);      \
		if (HAS((from)->have, XPT_FIELD_SIZE))                              \
			chrome_unsigned(text, ",\"size\":", (from)->size);          \
		if (HAS((from)->have, XPT_FIELD_COUNT))                             \
			chrome_unsigned(text, ",\"count\":", (from)->count);        \
		if (HAS((from)->have, XPT_FIELD_ADDRESS))                           \
			chrome_hexadecimal(text, ",\"address\":", (from)->address); \
		if (HAS((from)->have, XPT_FIELD_VALUE))                             \
			chrome_unsigned(text, ",\"value\":", (from)->value);        \
	} while (0)

static void add_times(struct text *text, const struct event_job *job)
{
	if (job->queued)
		chrome_microseconds(text, ",\"queued_us\":", job->queued);
	if (job->runs)
		chrome_microseconds(text, ",\"run_us\":", job->runs);
	if (job->done)
		chrome_microseconds(text, ",\"done_us\":", job->done);
	if (job->queued && job->runs)
		chrome_microseconds(text, ",\"queue_us\":", job->runs - job->queued);
	if (job->runs && job->done)
		chrome_microseconds(text, ",\"device_us\":", job->done - job->runs);
}

static void add_arguments(struct text *text, const struct event_job *job)
{
	chrome_unsigned(text, ",\"args\":{\"job\":", job->id);
	add_times(text, job);
	if (job->tgid) {
		chrome_unsigned(text, ",\"pid\":", job->tgid);
		chrome_unsigned(text, ",\"tid\":", job->tid);
	}
	if (job->process)
		chrome_string(text, ",\"process\":", job->process->name);
	if (job->program) {
		chrome_string(text, ",\"program\":", job->program->name);
		chrome_unsigned(text, ",\"program_id\":", job->program->id);
	}
	if (job->op) {
		chrome_string(text, ",\"operator\":", job->op->label);
		chrome_string(text, ",\"op_name\":", job->op->type);
	}
	ADD_FIELDS(text, job);
	if (job->failed)
		text_literal(text, ",\"failed\":true");
	text_literal(text, "}");
}

/* ---- jobs ---- */

static const char *name_of(const struct event_job *job)
{
	if (job->name && *job->name)
		return job->name;
	return job->program ? job->program->name : "job";
}

/* Those of others have their own category and colour. */
static void add_category(struct text *text, const struct chrome_queue *queue, const struct event_job *job)
{
	if (job->target)
		text_literal(text, ",\"cat\":\"job,");
	else
		text_literal(text, ",\"cat\":\"job,other,");
	text_bytes(text, queue->driver.data, queue->driver.length);
	if (job->failed)
		text_literal(text, "\",\"cname\":\"terrible\"");
	else if (!job->target)
		text_literal(text, "\",\"cname\":\"grey\"");
	else
		text_literal(text, "\"");
}

/* Which end of it was never seen. */
static void add_instant(struct chrome_events *events, struct chrome_queue *queue, const struct event_job *job)
{
	struct text *text = events->text;
	const char *name = name_of(job);
	__u64 time = job->runs ? job->runs : job->queued;
	__u32 tid = track_of(events, queue, 0);

	chrome_begin(events, 'i', chrome_device_pid(queue->device), tid, time ? time : job->time);
	text_literal(text, ",\"s\":\"t\"");
	add_category(text, queue, job);
	if (job->done)
		text_literal(text, ",\"name\":\"job done: ");
	else if (job->runs)
		text_literal(text, ",\"name\":\"job not done: ");
	else
		text_literal(text, ",\"name\":\"job not run: ");
	text_json_part(text, name, strlen(name));
	text_literal(text, "\"");
	add_arguments(text, job);
	text_literal(text, "}");
}

/* All tracks of the queue are taken: as spans that may overlap, for which viewers find the place. */
static void add_beside(struct chrome_events *events, struct chrome_queue *queue, const struct event_job *job,
		       __u64 start)
{
	struct text *text = events->text;
	__u32 pid = chrome_device_pid(queue->device), tid = track_of(events, queue, 0);

	chrome_begin(events, 'b', pid, tid, start);
	chrome_id(text, job->id);
	add_category(text, queue, job);
	chrome_name(text, name_of(job));
	add_arguments(text, job);
	text_literal(text, "}");
	chrome_begin(events, 'e', pid, tid, job->done);
	chrome_id(text, job->id);
	add_category(text, queue, job);
	chrome_name(text, name_of(job));
	text_literal(text, "}");
}

static void add_span(struct chrome_events *events, struct chrome_queue *queue, const struct event_job *job, __u64 start)
{
	int lane = lanes_take(&queue->lanes, start, job->done, &events->jobs.spans);
	struct text *text = events->text;
	__u32 pid = chrome_device_pid(queue->device), tid;

	if (lane < 0) {
		add_beside(events, queue, job, start);
		return;
	}
	tid = track_of(events, queue, (unsigned int)lane);
	chrome_begin(events, 'X', pid, tid, start);
	chrome_span(text, start, job->done);
	chrome_name(text, name_of(job));
	add_category(text, queue, job);
	add_arguments(text, job);
	text_literal(text, "}");
	/* The arrow is as long as the job has waited; the slice that it leaves from is the innermost one there. */
	if (!job->target || !job->call_start || !job->queued)
		return;
	chrome_flow(events, 's', job->tgid, job->tid, job->queued, FLOW_ID | job->id, job->queue->driver, FLOW_NAME);
	chrome_flow(events, 'f', pid, tid, start, FLOW_ID | job->id, job->queue->driver, FLOW_NAME);
}

void chrome_job_add(struct chrome_events *events, const struct event_job *job)
{
	struct chrome_queue *queue = show_queue(events, job->queue);
	__u64 start = job->runs ? job->runs : job->queued;

	if (!queue)
		return;
	if (start && job->done)
		add_span(events, queue, job, start);
	else
		add_instant(events, queue, job);
}

/* ---- load of queues ---- */

static void begin_counter(struct chrome_events *events, const struct chrome_queue *queue, __u64 time)
{
	__u32 pid = chrome_device_pid(queue->device);

	chrome_begin(events, 'C', pid, pid, time);
	text_literal(events->text, ",\"name\":\"");
	add_engine(events->text, queue);
}

static void add_depth(struct chrome_events *events, const struct chrome_queue *queue, const struct depth_point *points,
		      size_t count)
{
	struct text *text = events->text;
	size_t i;

	for (i = 0; i < count; i++) {
		begin_counter(events, queue, points[i].time);
		chrome_unsigned(text, " jobs\",\"args\":{\"waiting\":", points[i].waiting);
		chrome_unsigned(text, ",\"running\":", points[i].running);
		text_literal(text, "}}");
	}
}

static void add_busy(struct chrome_events *events, const struct chrome_queue *queue, const struct busy_point *points,
		     size_t count)
{
	struct text *text = events->text;
	size_t i;

	for (i = 0; i < count; i++) {
		begin_counter(events, queue, points[i].time);
		chrome_unsigned(text, " busy\",\"args\":{\"percent\":", points[i].share / 100);
		chrome_unsigned(text, ".", points[i].share / 10 % 10);
		text_unsigned(text, points[i].share % 10);
		text_literal(text, "}}");
	}
}

void chrome_queue_add(struct chrome_events *events, const struct event_queue *event)
{
	struct chrome_queue *queue = show_queue(events, event->queue);
	struct depth_point depth[DEPTH_POINTS_MAX];
	struct busy_point busy[BUSY_POINTS_MAX];
	size_t count;

	if (!queue)
		return;
	queue->running = event->running;
	count = queue_depth_add(&queue->depth, (struct depth_point){ event->time, event->waiting, event->running },
				depth);
	add_depth(events, queue, depth, count);
	count = queue_busy_add(&queue->busy, event->time, event->busy_time, busy);
	add_busy(events, queue, busy, count);
}

static void end_depth(struct chrome_events *events, struct chrome_queue *queue)
{
	struct depth_point depth[DEPTH_POINTS_MAX];

	add_depth(events, queue, depth, queue_depth_end(&queue->depth, depth));
}

void chrome_jobs_settle(struct chrome_events *events)
{
	struct busy_point busy[BUSY_POINTS_MAX];
	struct chrome_queue *queue;

	for (queue = events->jobs.newest; queue; queue = queue->next) {
		end_depth(events, queue);
		if (!queue->running)
			add_busy(events, queue, busy, queue_busy_pause(&queue->busy, busy));
	}
}

void chrome_jobs_end(struct chrome_events *events)
{
	struct busy_point busy[BUSY_POINTS_MAX];
	struct chrome_queue *queue;

	for (queue = events->jobs.newest; queue; queue = queue->next) {
		end_depth(events, queue);
		add_busy(events, queue, busy, queue_busy_end(&queue->busy, !queue->running, busy));
	}
}

/* ---- what happened to a device ---- */

/* On the thread that it was done for, where that is traced: inside the call that wanted it. */
static void begin_device(struct chrome_events *events, const struct event_device *device, unsigned int number,
			 struct chrome_queue *queue)
{
	__u32 pid = chrome_device_pid(number);

	if (device->role == XPT_EVENT_MEMORY && device->target && device->tgid) {
		chrome_begin(events, 'i', device->tgid, device->tid, device->time);
		text_literal(events->text, ",\"s\":\"t\"");
		return;
	}
	chrome_begin(events, 'i', pid, queue ? track_of(events, queue, 0) : pid, device->time);
	text_literal(events->text, ",\"s\":\"p\"");
}

static void add_device_arguments(struct text *text, const struct event_device *device)
{
	chrome_string(text, ",\"args\":{\"driver\":", device->driver);
	if (*device->device)
		chrome_string(text, ",\"device\":", device->device);
	if (*device->engine)
		chrome_string(text, ",\"engine\":", device->engine);
	if (*device->name)
		chrome_string(text, ",\"name\":", device->name);
	if (device->job)
		chrome_unsigned(text, ",\"job\":", device->job);
	if (device->tgid) {
		chrome_unsigned(text, ",\"pid\":", device->tgid);
		chrome_unsigned(text, ",\"tid\":", device->tid);
	}
	ADD_FIELDS(text, device);
	text_literal(text, "}}");
}

void chrome_device_add(struct chrome_events *events, const struct event_device *device)
{
	struct chrome_queue *queue = device->queue ? show_queue(events, device->queue) : NULL;
	struct text *text = events->text;
	unsigned int number;

	if (!events->jobs.devices || (device->queue && !queue))
		return;
	number = queue ? queue->device : chrome_devices_number(events->jobs.devices, device->driver, device->device);
	show_device(events, number, device->driver, device->device);
	begin_device(events, device, number, queue);
	chrome_category(text, driver_role_name(device->role), device->driver);
	if (device->role == XPT_EVENT_ERROR)
		text_literal(text, ",\"cname\":\"terrible\"");
	else if (device->role == XPT_EVENT_RESET)
		text_literal(text, ",\"cname\":\"bad\"");
	chrome_name(text, device->event);
	add_device_arguments(text, device);
}

/* ---- the document as a whole ---- */

bool chrome_jobs_have_queue(const struct chrome_jobs *jobs, unsigned int queue)
{
	return find_queue(jobs, queue) != NULL;
}

bool chrome_jobs_have_device(const struct chrome_jobs *jobs, const char *driver, const char *device)
{
	return jobs->devices && jobs->shown[chrome_devices_find(jobs->devices, driver, device)];
}

void chrome_jobs_forget_names(struct chrome_jobs *jobs)
{
	struct chrome_queue *queue;

	memset(jobs->shown, 0, sizeof(jobs->shown));
	for (queue = jobs->newest; queue; queue = queue->next)
		queue->named = 0;
}

size_t chrome_jobs_bytes(const struct chrome_jobs *jobs)
{
	return jobs->bytes + jobs->spans * sizeof(struct lane_span);
}

void chrome_jobs_free(struct chrome_jobs *jobs)
{
	struct chrome_queue *queue, *next;

	for (queue = jobs->newest; queue; queue = next) {
		next = queue->next;
		queue_free(jobs, queue);
	}
	map_free(&jobs->queues);
}

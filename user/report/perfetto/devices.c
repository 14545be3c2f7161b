/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Devices in a Perfetto trace: jobs are GpuRenderStageEvents, from which Perfetto makes its tables and tracks of GPUs. Such an event
 * has no arrows: an instant on a track of its queue has that of the call, at the job's begin.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "describe/driver/driver.h"
#include "report/chrome/parts.h"
#include "report/perfetto/events.h"

#define SEQUENCE 1	      /* of jobs; their times are CLOCK_MONOTONIC */
#define FLOW_JOB (1ull << 39) /* inferences have numbers, too */
#define STAGE_OWN 1	      /* numbers of specifications; queues follow */
#define STAGE_OTHER 2
#define SPECIFICATION_QUEUE 16
#define KERNELS_MAX 65536u /* interned; then all begins anew */

enum {
	INTERNED_CONTEXT = 23,
	INTERNED_SPECIFICATION = 24,
	INTERNED_KERNEL = 1000,
	INTERNED_KERNEL_ARGUMENT = 1001,

	STAGE_EVENT_ID = 1,
	STAGE_DURATION = 2,
	STAGE_CONTEXT = 5,
	STAGE_EXTRA = 6,
	STAGE_GPU = 11,
	STAGE_QUEUE = 13,
	STAGE_STAGE = 14,
	STAGE_KERNEL = 19,
	STAGE_NAME = 20,
	STAGE_LAUNCH = 21,

	CATEGORY_COMPUTE = 2,
};

/* One that was interned in the sequence of jobs. */
struct interned {
	struct map_node node;
	struct interned *next;
	__u32 iid;
	char string[];
};

struct device_queue {
	struct map_node node;
	struct device_queue *next;
	const struct model_queue *model;
	unsigned int device;  /* number */
	unsigned int running; /* after the last change */
	bool interned;
	struct queue_depth depth;
	struct queue_busy busy;
};

struct perfetto_jobs {
	struct chrome_devices *devices;
	struct map queues, strings;
	struct device_queue *newest;
	struct interned *interned;
	bool begun;
};

int perfetto_devices_open(struct perfetto *p)
{
	p->jobs = calloc(1, sizeof(*p->jobs));
	if (p->jobs)
		p->jobs->devices = chrome_devices_create();
	return p->jobs && p->jobs->devices ? 0 : -ENOMEM;
}

void perfetto_devices_forget(struct perfetto *p)
{
	struct interned *next;

	for (struct interned *interned = p->jobs->interned; interned; interned = next) {
		next = interned->next;
		free(interned);
	}
	map_free(&p->jobs->strings);
	p->jobs->strings = (struct map){ 0 };
	p->jobs->interned = NULL;
	p->jobs->begun = false;
	for (struct device_queue *queue = p->jobs->newest; queue; queue = queue->next)
		queue->interned = false;
}

void perfetto_devices_close(struct perfetto *p)
{
	struct device_queue *next;

	if (!p->jobs)
		return;
	perfetto_devices_forget(p);
	for (struct device_queue *queue = p->jobs->newest; queue; queue = next) {
		next = queue->next;
		free(queue);
	}
	map_free(&p->jobs->queues);
	chrome_devices_free(p->jobs->devices);
	free(p->jobs);
}

/* ---- interned data of jobs ---- */

static size_t begin_interned(struct text *text, size_t *packet)
{
	*packet = pb_begin(text, TRACE_PACKET);
	pb_number(text, PACKET_SEQUENCE, SEQUENCE);
	pb_number(text, PACKET_FLAGS, FLAG_NEEDS_STATE);
	return pb_begin(text, PACKET_INTERNED);
}

static void write_specification(struct text *text, __u64 iid, const char *name, const char *description)
{
	size_t specification = pb_begin(text, INTERNED_SPECIFICATION);

	pb_number(text, 1, iid);
	pb_string(text, 2, name);
	if (*description)
		pb_string(text, 3, description);
	pb_number(text, 4, CATEGORY_COMPUTE);
	pb_end(text, specification);
}

static void begin_jobs(struct perfetto *p)
{
	struct text *text = p->text;
	size_t packet, message;

	if (p->jobs->begun)
		return;
	p->jobs->begun = true;
	packet = pb_begin(text, TRACE_PACKET);
	pb_number(text, PACKET_SEQUENCE, SEQUENCE);
	pb_number(text, PACKET_FLAGS, FLAG_CLEARED);
	message = pb_begin(text, PACKET_DEFAULTS);
	pb_number(text, PACKET_CLOCK, CLOCK_ID_MONOTONIC);
	pb_end(text, message);
	pb_end(text, packet);
	message = begin_interned(text, &packet);
	write_specification(text, STAGE_OWN, "job", "of a traced process");
	write_specification(text, STAGE_OTHER, "job of others", "of a process that is not traced");
	pb_end(text, message);
	pb_end(text, packet);
}

/* A message of a number and the string; the same one is found again. */
static __u32 intern_job_string(struct perfetto *p, unsigned int field, const char *string)
{
	struct text *text = p->text;
	struct interned *interned;
	struct map_node *node;
	size_t size = strlen(string) + 1, packet, data, message;
	const __u64 key = text_hash(string);

	for (node = map_find(&p->jobs->strings, field, key); node; node = map_next(node)) {
		interned = container_of(node, struct interned, node);
		if (!strcmp(interned->string, string))
			return interned->iid;
	}
	interned = malloc(sizeof(*interned) + size);
	if (!interned || map_add(&p->jobs->strings, &interned->node, field, key)) {
		free(interned);
		text_fail(text);
		return 0;
	}
	memcpy(interned->string, string, size);
	interned->iid = (__u32)p->jobs->strings.count;
	interned->next = p->jobs->interned;
	p->jobs->interned = interned;
	data = begin_interned(text, &packet);
	message = pb_begin(text, field);
	pb_number(text, 1, interned->iid);
	pb_string(text, 2, string);
	pb_end(text, message);
	pb_end(text, data);
	pb_end(text, packet);
	return interned->iid;
}

/* Of the runtimes that Perfetto has a number for. */
static unsigned int api_of(const struct model_program *program)
{
	static const struct {
		const char *runtime;
		unsigned int api;
	} apis[] = { { "opencl", 3 }, { "cuda", 4 }, { "cudart", 4 }, { "hip", 5 } };

	for (size_t i = 0; program && i < sizeof(apis) / sizeof(apis[0]); i++) {
		if (!strcmp(program->runtime, apis[i].runtime))
			return apis[i].api;
	}
	return 0;
}

/* A process that submits jobs, with the runtime that it does it with. */
static __u64 context_of(struct perfetto *p, const struct event_job *job)
{
	const unsigned int api = api_of(job->program);
	__u64 iid = (__u64)job->tgid << 3 | api;
	struct interned *interned;
	size_t packet, data, message;

	if (map_find(&p->jobs->strings, INTERNED_CONTEXT, iid))
		return iid;
	interned = calloc(1, sizeof(*interned));
	if (!interned || map_add(&p->jobs->strings, &interned->node, INTERNED_CONTEXT, iid)) {
		free(interned);
		text_fail(p->text);
		return iid;
	}
	interned->next = p->jobs->interned;
	p->jobs->interned = interned;
	data = begin_interned(p->text, &packet);
	message = pb_begin(p->text, INTERNED_CONTEXT);
	pb_number(p->text, 1, iid);
	pb_number(p->text, 2, job->tgid);
	pb_number(p->text, 3, api);
	pb_end(p->text, message);
	pb_end(p->text, data);
	pb_end(p->text, packet);
	return iid;
}

/* ---- devices and queues ---- */

static void device_label(char *label, size_t size, const char *driver, const char *device)
{
	snprintf(label, size, *device ? "device %s (%s)" : "device%s (%s)", device, driver);
}

static struct perfetto_track *device_track(struct perfetto *p, unsigned int number, const char *driver,
					   const char *device)
{
	char label[256];

	device_label(label, sizeof(label), driver, device);
	return perfetto_named(p, NULL, TRACK_DEVICE, number, 0,
			      number == CHROME_DEVICES_OTHERS ? "other devices" : label, NULL);
}

static const char *engine_of(const struct model_queue *queue)
{
	return *queue->engine ? queue->engine : "queue";
}

static struct perfetto_track *queue_track(struct perfetto *p, const struct device_queue *queue)
{
	const struct model_queue *model = queue->model;

	return perfetto_named(p, device_track(p, queue->device, model->driver, model->device), TRACK_QUEUE, model->id,
			      0, engine_of(model), NULL);
}

static struct device_queue *find_queue(struct perfetto *p, const struct model_queue *model)
{
	struct map_node *node = map_find(&p->jobs->queues, model->id, 0);
	struct device_queue *queue;

	if (node)
		return container_of(node, struct device_queue, node);
	queue = calloc(1, sizeof(*queue));
	if (!queue || map_add(&p->jobs->queues, &queue->node, model->id, 0)) {
		free(queue);
		text_fail(p->text);
		return NULL;
	}
	queue->model = model;
	queue->device = chrome_devices_number(p->jobs->devices, model->driver, model->device);
	queue->next = p->jobs->newest;
	p->jobs->newest = queue;
	return queue;
}

static __u64 specification_of(struct perfetto *p, struct device_queue *queue)
{
	__u64 iid = SPECIFICATION_QUEUE + queue->model->id;
	char label[256];
	size_t packet, data;

	if (queue->interned)
		return iid;
	queue->interned = true;
	device_label(label, sizeof(label), queue->model->driver, queue->model->device);
	data = begin_interned(p->text, &packet);
	write_specification(p->text, iid, engine_of(queue->model), label);
	pb_end(p->text, data);
	pb_end(p->text, packet);
	return iid;
}

/* ---- arguments of jobs ---- */

struct job_argument {
	const char *key;
	__u64 value;
	const char *string; /* in place of the value */
	bool known;
};

#define ARGUMENTS_MAX 24
#define HAS(have, meaning) (((have) & (1u << (meaning))) != 0)

static size_t job_arguments(const struct event_job *job, struct job_argument all[ARGUMENTS_MAX])
{
	const struct job_argument known[] = {
		{ "job", job->id, NULL, true },
		{ "queued_ns", job->queued, NULL, job->queued != 0 },
		{ "queue_ns", job->runs - job->queued, NULL, job->queued && job->runs },
		{ "pid", job->tgid, NULL, job->tgid != 0 },
		{ "tid", job->tid, NULL, job->tgid != 0 },
		{ "process", 0, job->process ? job->process->name : NULL, job->process != NULL },
		{ "program", 0, job->program ? job->program->name : NULL, job->program != NULL },
		{ "program_id", job->program ? job->program->id : 0, NULL, job->program != NULL },
		{ "operator", 0, job->op ? job->op->label : NULL, job->op != NULL },
		{ "op_name", 0, job->op ? job->op->type : NULL, job->op != NULL },
		{ "status", (__u64)job->status, NULL, HAS(job->have, XPT_FIELD_STATUS) },
		{ "context", job->context, NULL, HAS(job->have, XPT_FIELD_CONTEXT) },
		{ "client", job->client, NULL, HAS(job->have, XPT_FIELD_CLIENT) },
		{ "size", job->size, NULL, HAS(job->have, XPT_FIELD_SIZE) },
		{ "count", job->count, NULL, HAS(job->have, XPT_FIELD_COUNT) },
		{ "address", job->address, NULL, HAS(job->have, XPT_FIELD_ADDRESS) },
		{ "value", job->value, NULL, HAS(job->have, XPT_FIELD_VALUE) },
		{ "failed", 1, NULL, job->failed },
		{ "not_handed_over", 1, NULL, !job->runs },
	};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i].known)
			all[count++] = known[i];
	}
	return count;
}

static const char *name_of(const struct event_job *job)
{
	if (job->name && *job->name)
		return job->name;
	return job->program ? job->program->name : "job";
}

/* What runs: the kernel, where it was launched as a program, else the model. */
static const char *kernel_of(const struct event_job *job)
{
	return job->program && job->program->role == XPT_ROLE_LAUNCH ? job->program->name : name_of(job);
}

static void add_launch(struct perfetto *p, const struct job_argument *arguments, const __u32 *iids, size_t count)
{
	size_t launch = pb_begin(p->text, STAGE_LAUNCH), argument;

	for (size_t i = 0; i < count; i++) {
		argument = pb_begin(p->text, 3);
		pb_number(p->text, 1, iids[i]);
		if (arguments[i].string)
			pb_string(p->text, 6, arguments[i].string);
		else
			pb_number(p->text, !strcmp(arguments[i].key, "status") ? 3 : 4, arguments[i].value);
		pb_end(p->text, argument);
	}
	pb_end(p->text, launch);
}

static void add_stage(struct perfetto *p, struct device_queue *queue, const struct event_job *job, __u64 start)
{
	struct job_argument arguments[ARGUMENTS_MAX];
	size_t count = job_arguments(job, arguments), packet, stage;
	__u32 iids[ARGUMENTS_MAX], name, kernel;
	__u64 specification, context;

	if (p->jobs->strings.count >= KERNELS_MAX)
		perfetto_devices_forget(p);
	begin_jobs(p);
	specification = specification_of(p, queue);
	context = context_of(p, job);
	name = intern_job_string(p, INTERNED_NAME, name_of(job));
	kernel = intern_job_string(p, INTERNED_KERNEL, kernel_of(job));
	for (size_t i = 0; i < count; i++)
		iids[i] = intern_job_string(p, INTERNED_KERNEL_ARGUMENT, arguments[i].key);
	packet = pb_begin(p->text, TRACE_PACKET);
	pb_number(p->text, PACKET_TIMESTAMP, start);
	pb_number(p->text, PACKET_SEQUENCE, SEQUENCE);
	pb_number(p->text, PACKET_FLAGS, FLAG_NEEDS_STATE);
	stage = pb_begin(p->text, PACKET_GPU_STAGE);
	pb_number(p->text, STAGE_EVENT_ID, job->id);
	pb_number(p->text, STAGE_DURATION, job->done > start ? job->done - start : 0);
	pb_number(p->text, STAGE_GPU, queue->device);
	pb_number(p->text, STAGE_QUEUE, specification);
	pb_number(p->text, STAGE_STAGE, job->target ? STAGE_OWN : STAGE_OTHER);
	pb_number(p->text, STAGE_CONTEXT, context);
	pb_number(p->text, STAGE_NAME, name);
	pb_number(p->text, STAGE_KERNEL, kernel);
	add_launch(p, arguments, iids, count);
	pb_end(p->text, stage);
	pb_end(p->text, packet);
}

/* From where the job was queued, on its thread, to its begin, on its queue. */
static void add_arrow(struct perfetto *p, const struct device_queue *queue, const struct event_job *job, __u64 start)
{
	struct perfetto_track *thread, *track;
	const __u64 flow = p->flow_base | FLOW_JOB | job->id;

	if (!job->target || !job->call_start || !job->queued)
		return;
	thread = perfetto_thread(p, job->tgid, job->tid);
	if (!thread)
		return;
	perfetto_event(p, TYPE_INSTANT);
	perfetto_name(p, thread, "job queued");
	perfetto_category(p, thread, "flow", job->queue->driver);
	perfetto_argument(p, thread, "job", job->id);
	pb_fixed(&p->body, EVENT_FLOW, flow);
	perfetto_point(p, thread, TYPE_INSTANT, job->queued);
	track = queue_track(p, queue);
	if (!track)
		return;
	perfetto_event(p, TYPE_INSTANT);
	perfetto_name(p, track, name_of(job));
	perfetto_category(p, track, "flow", job->queue->driver);
	perfetto_argument(p, track, "job", job->id);
	pb_fixed(&p->body, EVENT_FLOW_END, flow);
	perfetto_point(p, track, TYPE_INSTANT, start);
}

/* Which end of it was never seen. */
static void add_instant(struct perfetto *p, const struct device_queue *queue, const struct event_job *job)
{
	struct perfetto_track *track = queue_track(p, queue);
	struct job_argument arguments[ARGUMENTS_MAX];
	__u64 time = job->runs ?: job->queued ?: job->time;
	char name[256];

	if (!track)
		return;
	snprintf(name, sizeof(name), "job %s: %s",
		 job->done ? "done" :
		 job->runs ? "not done" :
			     "not run",
		 name_of(job));
	perfetto_event(p, TYPE_INSTANT);
	perfetto_name(p, track, name);
	perfetto_category(p, track, job->target ? "job" : "job,other", job->queue->driver);
	for (size_t i = 0, count = job_arguments(job, arguments); i < count; i++) {
		if (arguments[i].string)
			perfetto_argument_string(p, track, arguments[i].key, arguments[i].string);
		else
			perfetto_argument(p, track, arguments[i].key, arguments[i].value);
	}
	perfetto_point(p, track, TYPE_INSTANT, time);
}

void perfetto_job_add(struct perfetto *p, const struct event_job *job)
{
	struct device_queue *queue = find_queue(p, job->queue);
	__u64 start = job->runs ? job->runs : job->queued;

	if (!queue)
		return;
	if (start && job->done) {
		add_stage(p, queue, job, start);
		add_arrow(p, queue, job, start);
	} else {
		add_instant(p, queue, job);
	}
}

/* ---- load of queues ---- */

enum load { LOAD_WAITING, LOAD_RUNNING, LOAD_BUSY };

static void add_load(struct perfetto *p, const struct device_queue *queue, enum load load, __u64 time, double value)
{
	static const char *const names[] = { "waiting", "running", "busy" }, *const units[] = { "jobs", "jobs", "%" };
	const struct model_queue *model = queue->model;
	struct perfetto_track *track;
	char name[256];

	snprintf(name, sizeof(name), "%s %s", engine_of(model), names[load]);
	track = perfetto_named(p, device_track(p, queue->device, model->driver, model->device), TRACK_QUEUE_LOAD,
			       model->id, load, name, units[load]);
	if (!track)
		return;
	perfetto_event(p, TYPE_COUNTER);
	if (load == LOAD_BUSY)
		pb_double(&p->body, EVENT_COUNTER_DOUBLE, value);
	else
		pb_number(&p->body, EVENT_COUNTER_VALUE, (__u64)value);
	perfetto_point(p, track, TYPE_COUNTER, time);
}

static void add_depth(struct perfetto *p, const struct device_queue *queue, const struct depth_point *points,
		      size_t count)
{
	for (size_t i = 0; i < count; i++) {
		add_load(p, queue, LOAD_WAITING, points[i].time, points[i].waiting);
		add_load(p, queue, LOAD_RUNNING, points[i].time, points[i].running);
	}
}

static void add_busy(struct perfetto *p, const struct device_queue *queue, const struct busy_point *points,
		     size_t count)
{
	for (size_t i = 0; i < count; i++)
		add_load(p, queue, LOAD_BUSY, points[i].time, points[i].share / 100.0);
}

void perfetto_queue_add(struct perfetto *p, const struct event_queue *change)
{
	struct device_queue *queue = find_queue(p, change->queue);
	struct depth_point depth[DEPTH_POINTS_MAX];
	struct busy_point busy[BUSY_POINTS_MAX];
	size_t count;

	if (!queue)
		return;
	queue->running = change->running;
	count = queue_depth_add(&queue->depth, (struct depth_point){ change->time, change->waiting, change->running },
				depth);
	add_depth(p, queue, depth, count);
	count = queue_busy_add(&queue->busy, change->time, change->busy_time, busy);
	add_busy(p, queue, busy, count);
}

void perfetto_devices_settle(struct perfetto *p, bool last)
{
	struct depth_point depth[DEPTH_POINTS_MAX];
	struct busy_point busy[BUSY_POINTS_MAX];

	for (struct device_queue *queue = p->jobs->newest; queue; queue = queue->next) {
		add_depth(p, queue, depth, queue_depth_end(&queue->depth, depth));
		if (last)
			add_busy(p, queue, busy, queue_busy_end(&queue->busy, !queue->running, busy));
		else if (!queue->running)
			add_busy(p, queue, busy, queue_busy_pause(&queue->busy, busy));
	}
}

/* ---- what happened to a device ---- */

/* On the thread that it was done for, where that is traced. */
static struct perfetto_track *place_of(struct perfetto *p, const struct event_device *device)
{
	struct device_queue *queue = device->queue ? find_queue(p, device->queue) : NULL;
	unsigned int number;

	if (device->role == XPT_EVENT_MEMORY && device->target && device->tgid)
		return perfetto_thread(p, device->tgid, device->tid);
	if (queue)
		return queue_track(p, queue);
	number = chrome_devices_number(p->jobs->devices, device->driver, device->device);
	return device_track(p, number, device->driver, device->device);
}

void perfetto_device_add(struct perfetto *p, const struct event_device *device)
{
	struct perfetto_track *track = place_of(p, device);

	if (!track)
		return;
	perfetto_event(p, TYPE_INSTANT);
	perfetto_name(p, track, device->event);
	perfetto_category(p, track, driver_role_name(device->role), device->driver);
	perfetto_argument_string(p, track, "driver", device->driver);
	perfetto_argument_any(p, track, "device", device->device);
	perfetto_argument_any(p, track, "engine", device->engine);
	perfetto_argument_any(p, track, "name", device->name);
	perfetto_argument_some(p, track, "job", device->job);
	if (device->tgid) {
		perfetto_argument(p, track, "pid", device->tgid);
		perfetto_argument(p, track, "tid", device->tid);
	}
	if (HAS(device->have, XPT_FIELD_STATUS))
		perfetto_argument_signed(p, track, "status", device->status);
	if (HAS(device->have, XPT_FIELD_CONTEXT))
		perfetto_argument_pointer(p, track, "context", device->context);
	if (HAS(device->have, XPT_FIELD_CLIENT))
		perfetto_argument(p, track, "client", device->client);
	if (HAS(device->have, XPT_FIELD_SIZE))
		perfetto_argument(p, track, "size", device->size);
	if (HAS(device->have, XPT_FIELD_COUNT))
		perfetto_argument(p, track, "count", device->count);
	if (HAS(device->have, XPT_FIELD_ADDRESS))
		perfetto_argument_pointer(p, track, "address", device->address);
	if (HAS(device->have, XPT_FIELD_VALUE))
		perfetto_argument(p, track, "value", device->value);
	perfetto_point(p, track, TYPE_INSTANT, device->time);
}

bool perfetto_has_queue(const struct perfetto *p, unsigned int queue)
{
	return map_find(&p->jobs->queues, queue, 0) != NULL;
}

bool perfetto_has_device(const struct perfetto *p, const char *driver, const char *device)
{
	return chrome_devices_find(p->jobs->devices, driver, device) != 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What an event of a driver, or an ioctl on its device node, means to all parts of the model. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "model/core/state.h"

static void number_write(char *text, __u64 value, bool negative)
{
	char digits[24];
	unsigned int count = 0;

	if (negative) {
		*text++ = '-';
		value = -value;
	}
	do {
		digits[count++] = (char)('0' + value % 10);
		value /= 10;
	} while (value);
	while (count)
		*text++ = digits[--count];
	*text = '\0';
}

static void text_decode(const struct traced_field *field, const void *value, char *text)
{
	__u64 number;

	if (field->text) {
		memcpy(text, value, XPT_EVENT_TEXT - 1);
		text[XPT_EVENT_TEXT - 1] = '\0';
		return;
	}
	memcpy(&number, value, sizeof(number));
	number_write(text, number, field->is_signed && (__s64)number < 0);
}

static void number_decode(const struct traced_field *field, const void *value, struct driver_telling *telling)
{
	__u64 number;

	if (field->text)
		return; /* no one could compare or add it */
	memcpy(&number, value, sizeof(number));
	switch (field->meaning) {
	case XPT_FIELD_CONTEXT:
		telling->context = number;
		break;
	case XPT_FIELD_CLIENT:
		telling->client = number;
		break;
	case XPT_FIELD_SIZE:
		telling->size = number;
		break;
	case XPT_FIELD_ADDRESS:
		telling->address = number;
		break;
	case XPT_FIELD_COUNT:
		telling->count = number;
		break;
	case XPT_FIELD_STATUS:
		telling->status = (__s64)number;
		break;
	case XPT_FIELD_VALUE:
		telling->value = number;
		break;
	default:
		return;
	}
	telling->have |= 1u << field->meaning;
}

static void field_decode(const struct traced_field *field, const void *value, struct driver_telling *telling)
{
	switch (field->meaning) {
	case XPT_FIELD_DEVICE:
		text_decode(field, value, telling->device);
		break;
	case XPT_FIELD_ENGINE:
		text_decode(field, value, telling->engine);
		break;
	case XPT_FIELD_NAME:
		text_decode(field, value, telling->name);
		break;
	default:
		number_decode(field, value, telling);
		break;
	}
}

/* The size of the record is that of the event. */
static void event_decode(const struct traced_event *event, const struct xpt_record_event *record,
			 struct driver_telling *telling)
{
	const char *values = (const char *)record->value;
	const unsigned int key = (1u << event->key) - 1;
	unsigned int i;

	telling->event = event;
	telling->time = record->header.time;
	if (event->by_thread) {
		telling->tgid = record->header.tgid;
		telling->tid = record->tid;
		telling->target = record->thread & XPT_THREAD_TARGET;
		telling->in_call = record->thread & XPT_THREAD_IN_CALL;
	}
	telling->keyed = event->key && (record->valid & key) == key;
	for (i = 0; i < event->key; i++)
		memcpy(&telling->key[i], values + event->fields[i].offset, sizeof(telling->key[i]));
	for (; i < event->field_count; i++)
		if (record->valid & 1u << i)
			field_decode(&event->fields[i], values + event->fields[i].offset, telling);
}

static const struct model_queue *telling_queue(const struct model *model, const struct driver_telling *telling)
{
	const struct device_queue *queue;

	if (!*telling->device && !*telling->engine)
		return NULL;
	queue = device_queues_find(&model->jobs.queues, telling->event->driver->name, telling->device, telling->engine);
	return queue ? &queue->view : NULL;
}

/* job: the one that has failed; NULL: none, or unknown. */
static void device_tell(struct model *model, const struct driver_telling *telling, const struct job *job)
{
	const __u32 shown = 1u << XPT_FIELD_CONTEXT | 1u << XPT_FIELD_CLIENT | 1u << XPT_FIELD_SIZE |
			    1u << XPT_FIELD_COUNT | 1u << XPT_FIELD_STATUS | 1u << XPT_FIELD_VALUE |
			    1u << XPT_FIELD_ADDRESS;
	const bool by_thread = telling->event->role == XPT_EVENT_MEMORY;
	const struct event event = {
		.kind = EVENT_DEVICE,
		.device = { .driver = telling->event->driver->name,
			    .event = telling->event->name,
			    .role = telling->event->role,
			    .queue = job && job->view.queue ? job->view.queue : telling_queue(model, telling),
			    .device = telling->device,
			    .engine = telling->engine,
			    .name = telling->name,
			    .time = telling->time,
			    .tgid = by_thread ? telling->tgid : 0,
			    .tid = by_thread ? telling->tid : 0,
			    .target = by_thread && telling->target,
			    .job = job ? job->view.id : 0,
			    .have = telling->have & shown,
			    .context = telling->context,
			    .client = telling->client,
			    .size = telling->size,
			    .count = telling->count,
			    .value = telling->value,
			    .address = telling->address,
			    .status = telling->status },
	};

	sinks_write(&model->sinks, &event);
}

/* An event that hands work over is an instant: so are the begin and the end of the submission. */
static int submit_deliver(struct model *model, const struct driver_telling *telling)
{
	struct process *process;

	if (!telling->target)
		return 0;
	process = processes_get(&model->processes, telling->tgid, telling->time);
	if (!process)
		return -ENOMEM;
	return jobs_submit(&model->jobs, process, telling->tid, telling->time, telling->time);
}

int driver_event_deliver(struct model *model, const struct xpt_record_event *record)
{
	const struct traced_event *event = traced_drivers_event(&model->drivers, record->event);
	struct driver_telling telling = {};

	event_decode(event, record, &telling);
	switch (event->role) {
	case XPT_EVENT_QUEUE:
		return telling.keyed ? jobs_queue(&model->jobs, &telling) : 0;
	case XPT_EVENT_RUN:
		return telling.keyed ? jobs_run(&model->jobs, &telling) : 0;
	case XPT_EVENT_DONE:
		return telling.keyed ? jobs_done(&model->jobs, &telling) : 0;
	case XPT_EVENT_ERROR:
		device_tell(model, &telling, telling.keyed ? jobs_error(&model->jobs, &telling) : NULL);
		return 0;
	case XPT_EVENT_RESET:
	case XPT_EVENT_MEMORY:
		device_tell(model, &telling, NULL);
		return 0;
	case XPT_EVENT_SUBMIT:
		return submit_deliver(model, &telling);
	default: /* a wait is in no report */
		return 0;
	}
}

int ioctl_deliver(struct model *model, const struct xpt_record_ioctl *record)
{
	const struct traced_node *node = traced_drivers_node(&model->drivers, record->node);
	const struct traced_ioctl *known = traced_ioctl_find(node->driver, record->command);
	const enum xpt_event_role role = known ? (enum xpt_event_role)known->role : 0;
	char number[8];
	const struct event event = {
		.kind = EVENT_IOCTL,
		.ioctl = { .driver = node->driver->name,
			   .node = node->path,
			   .name = known ? known->name : number,
			   .role = role,
			   .tgid = record->header.tgid,
			   .tid = record->tid,
			   .start = record->start,
			   .end = record->header.time,
			   .command = record->command,
			   .result = record->result },
	};
	struct process *process = processes_get(&model->processes, record->header.tgid, record->header.time);

	snprintf(number, sizeof(number), "0x%04x", record->command & 0xffff);
	sinks_write(&model->sinks, &event);
	if (!process)
		return -ENOMEM;
	if (role != XPT_EVENT_SUBMIT)
		return 0;
	return jobs_submit(&model->jobs, process, record->tid, record->start, record->header.time);
}

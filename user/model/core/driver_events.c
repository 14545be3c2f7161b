/* SPDX-License-Identifier: BSD-2-Clause */
/* What an event of a driver or of the scheduler, or an ioctl on its device node, means to all parts of the model. */
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

/* Where the values of each meaning are; 0: there are none. */
static const size_t value_places[] = {
	[XPT_FIELD_CONTEXT] = offsetof(struct driver_event_values, context),
	[XPT_FIELD_CLIENT] = offsetof(struct driver_event_values, client),
	[XPT_FIELD_SIZE] = offsetof(struct driver_event_values, size),
	[XPT_FIELD_ADDRESS] = offsetof(struct driver_event_values, address),
	[XPT_FIELD_COUNT] = offsetof(struct driver_event_values, count),
	[XPT_FIELD_STATUS] = offsetof(struct driver_event_values, status),
	[XPT_FIELD_VALUE] = offsetof(struct driver_event_values, value),
	[XPT_FIELD_TIMELINE] = offsetof(struct driver_event_values, timeline),
};

/* A text that should be a number is left out: no one could compare or add it. */
static void number_decode(const struct traced_field *field, const void *value, struct driver_event_values *values)
{
	const size_t count = sizeof(value_places) / sizeof(value_places[0]);
	const size_t place = !field->text && field->meaning < count ? value_places[field->meaning] : 0;

	if (!place)
		return;
	memcpy((char *)values + place, value, sizeof(__u64));
	values->have |= 1u << field->meaning;
}

static void field_decode(const struct traced_field *field, const void *value, struct driver_event_values *values)
{
	switch (field->meaning) {
	case XPT_FIELD_DEVICE:
		text_decode(field, value, values->device);
		break;
	case XPT_FIELD_ENGINE:
		text_decode(field, value, values->engine);
		break;
	case XPT_FIELD_NAME:
		text_decode(field, value, values->name);
		break;
	default:
		number_decode(field, value, values);
		break;
	}
}

/* The size of the record is that of the event. */
static void event_decode(const struct traced_event *event, const struct xpt_record_event *record,
			 struct driver_event_values *values)
{
	const char *bytes = (const char *)record->value;
	const unsigned int key = (1u << event->key) - 1;
	unsigned int i;

	values->event = event;
	values->time = record->header.time;
	if (event->by_thread) {
		values->tgid = record->header.tgid;
		values->tid = record->tid;
		values->target = record->thread & XPT_THREAD_TARGET;
		values->in_call = record->thread & XPT_THREAD_IN_CALL;
	}
	values->keyed = event->key && (record->valid & key) == key;
	for (i = 0; i < event->key; i++)
		memcpy(&values->key[i], bytes + event->fields[i].offset, sizeof(values->key[i]));
	for (; i < event->field_count; i++)
		if (record->valid & 1u << i)
			field_decode(&event->fields[i], bytes + event->fields[i].offset, values);
}

static const struct model_queue *values_queue(const struct model *model, const struct driver_event_values *values)
{
	const struct device_queue *queue;

	if (!*values->device && !*values->engine)
		return NULL;
	queue = device_queues_find(&model->jobs.queues, values->event->driver->name, values->device, values->engine);
	return queue ? &queue->view : NULL;
}

/* job: the failed one; NULL: none, or unknown. */
static void device_emit(struct model *model, const struct driver_event_values *values, const struct job *job)
{
	const __u32 shown = 1u << XPT_FIELD_CONTEXT | 1u << XPT_FIELD_CLIENT | 1u << XPT_FIELD_SIZE |
			    1u << XPT_FIELD_COUNT | 1u << XPT_FIELD_STATUS | 1u << XPT_FIELD_VALUE |
			    1u << XPT_FIELD_ADDRESS;
	const bool by_thread = values->event->role == XPT_EVENT_MEMORY;
	const struct event event = {
		.kind = EVENT_DEVICE,
		.device = { .driver = values->event->driver->name,
			    .event = values->event->name,
			    .role = values->event->role,
			    .queue = job && job->view.queue ? job->view.queue : values_queue(model, values),
			    .device = values->device,
			    .engine = values->engine,
			    .name = values->name,
			    .time = values->time,
			    .tgid = by_thread ? values->tgid : 0,
			    .tid = by_thread ? values->tid : 0,
			    .target = by_thread && values->target,
			    .job = job ? job->view.id : 0,
			    .have = values->have & shown,
			    .context = values->context,
			    .client = values->client,
			    .size = values->size,
			    .count = values->count,
			    .value = values->value,
			    .address = values->address,
			    .status = values->status },
	};

	event_dispatch_emit(&model->events, &event);
}

/* An event that hands work over is an instant: so are the begin and the end of the submission. */
static int submit_deliver(struct model *model, const struct driver_event_values *values)
{
	struct process *process;

	if (!values->target)
		return 0;
	process = processes_get(&model->processes, values->tgid, values->time);
	if (!process)
		return -ENOMEM;
	return call_tree_submit(&model->tree, process, values->tid, values->time, values->time);
}

int driver_event_deliver(struct model *model, const struct xpt_record_event *record)
{
	const struct traced_event *event = traced_drivers_event(&model->drivers, record->event);
	struct driver_event_values values = {};

	event_decode(event, record, &values);
	switch (event->role) {
	case XPT_EVENT_QUEUE:
		return values.keyed ? jobs_queue(&model->jobs, &values) : 0;
	case XPT_EVENT_RUN:
		return values.keyed ? jobs_run(&model->jobs, &values) : 0;
	case XPT_EVENT_DONE:
		return values.keyed ? jobs_done(&model->jobs, &values) : 0;
	case XPT_EVENT_ERROR:
		device_emit(model, &values, values.keyed ? jobs_error(&model->jobs, &values) : NULL);
		return 0;
	case XPT_EVENT_RESET:
	case XPT_EVENT_MEMORY:
		device_emit(model, &values, NULL);
		return 0;
	case XPT_EVENT_SUBMIT:
		return submit_deliver(model, &values);
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
	event_dispatch_emit(&model->events, &event);
	if (!process)
		return -ENOMEM;
	if (role != XPT_EVENT_SUBMIT)
		return 0;
	return call_tree_submit(&model->tree, process, record->tid, record->start, record->header.time);
}

int off_cpu_deliver(struct model *model, const struct xpt_record_off_cpu *record)
{
	struct process *process = processes_get(&model->processes, record->header.tgid, record->header.time);

	return process ? call_tree_off_cpu(&model->tree, process, record) : -ENOMEM;
}

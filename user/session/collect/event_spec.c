/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/collect/event_spec.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* Bytes from the record's begin that have to be read for the field; 0: its text is read where it is. */
static size_t field_end(const struct tracepoint_field *field)
{
	switch (field->access) {
	case XPT_ACCESS_NUMBER:
		return field->offset + field->size;
	case XPT_ACCESS_DATA_LOC:
	case XPT_ACCESS_RELATIVE:
		return field->offset + sizeof(__u32);
	case XPT_ACCESS_KERNEL_STRING:
		return field->offset + sizeof(__u64);
	default:
		return 0;
	}
}

/* Where a number stands for the text, the number has to be read first. */
static __u16 number_size(const struct tracepoint_field *field)
{
	switch (field->access) {
	case XPT_ACCESS_DATA_LOC:
	case XPT_ACCESS_RELATIVE:
		return sizeof(__u32);
	case XPT_ACCESS_KERNEL_STRING:
		return sizeof(__u64);
	default:
		return field->size;
	}
}

static struct xpt_event_field make_field(const struct tracepoint_field *field, struct xpt_event_spec *spec)
{
	size_t end = field_end(field);

	if (end > spec->span)
		spec->span = end < UINT16_MAX ? end : UINT16_MAX;
	return (struct xpt_event_field){
		.offset = field->offset,
		.size = number_size(field),
		.access = field->access,
		.is_signed = field->access == XPT_ACCESS_NUMBER && field->is_signed,
		.meaning = field->field->meaning,
	};
}

static void make_condition(const struct tracepoint *tracepoint, struct xpt_event_spec *spec)
{
	const struct driver_condition *condition = &tracepoint->event->condition;

	if (!tracepoint->condition.field)
		return;
	spec->flags |= XPT_EVENT_CONDITION | (condition->differs ? XPT_EVENT_DIFFERS : 0);
	spec->condition = make_field(&tracepoint->condition, spec);
	spec->number = condition->number;
	if (condition->text)
		strncpy(spec->text, condition->text, sizeof(spec->text) - 1);
}

/* Texts follow the numbers of a record, as a rule: what is read at once may have them, too. */
static void add_texts(struct xpt_event_spec *spec)
{
	size_t texts = 0;

	for (size_t i = 0; i < spec->fields; i++)
		texts += spec->field[i].access == XPT_ACCESS_DATA_LOC || spec->field[i].access == XPT_ACCESS_RELATIVE;
	if (texts && spec->span < XPT_EVENT_SPAN_MAX) {
		texts = spec->span + texts * XPT_EVENT_TEXT;
		spec->span = texts < XPT_EVENT_SPAN_MAX ? texts : XPT_EVENT_SPAN_MAX;
	}
}

bool event_is_by_thread(enum xpt_event_role role)
{
	return role == XPT_EVENT_QUEUE || role == XPT_EVENT_MEMORY || role == XPT_EVENT_SUBMIT ||
	       role == XPT_EVENT_WAIT;
}

/* Only the first part of a key of several is the same for many jobs: a context, or a device. */
static __u16 filter_flags(const struct tracepoint *tracepoint, const struct event_filter *filter, bool has_device)
{
	enum xpt_event_role role = tracepoint->event->role;
	bool has_context = tracepoint->event->key_count > 1;
	__u16 flags = has_device && filter->learns ? XPT_EVENT_OF_DEVICE : 0;

	if (!has_context)
		return flags;
	if (role == XPT_EVENT_QUEUE) {
		flags |= XPT_EVENT_GIVES_CONTEXT;
		if (!has_device && (filter->foreign || filter->knows_device))
			flags |= XPT_EVENT_OF_CONTEXT;
	} else if (!has_device) {
		flags |= XPT_EVENT_OF_CONTEXT;
	}
	return flags;
}

int event_spec_make(const struct tracepoint *tracepoint, const struct event_filter *filter, struct xpt_event_spec *spec)
{
	bool has_device = false;

	*spec = (struct xpt_event_spec){
		.role = tracepoint->event->role,
		.fields = tracepoint->field_count,
		.device = XPT_EVENT_VALUES_MAX,
		.group = filter->group,
		.flags = event_is_by_thread(tracepoint->event->role) ? XPT_EVENT_BY_THREAD : 0,
	};
	for (size_t i = 0; i < tracepoint->field_count; i++) {
		spec->field[i] = make_field(&tracepoint->fields[i], spec);
		if (spec->field[i].meaning == XPT_FIELD_DEVICE && !has_device) {
			has_device = true;
			spec->device = i;
		}
	}
	make_condition(tracepoint, spec);
	add_texts(spec);
	spec->flags |= filter_flags(tracepoint, filter, has_device);
	return spec->span > XPT_EVENT_SPAN_MAX ? -ERANGE : 0;
}

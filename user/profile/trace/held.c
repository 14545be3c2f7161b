/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trace/held.h"

#include <stdlib.h>
#include <string.h>

static const char *keep_string(char **room, const char *string, size_t length)
{
	char *copy = *room;

	if (!string)
		return NULL;
	memcpy(copy, string, length);
	copy[length] = '\0';
	*room += length + 1;
	return copy;
}

static size_t length_of(const char *string)
{
	return string ? strlen(string) : 0;
}

struct held *held_call(struct held *into, const struct event *event)
{
	const struct event_call *call = &event->call;
	size_t name = call->name ? call->name_length : 0, status = length_of(call->status_name);
	size_t program = call->program ? length_of(call->program->name) : 0, room = name + status + program + 3;
	struct held *held = into;
	char *strings;

	if (!into || into->room < room) {
		held = malloc(sizeof(*held) + room);
		if (!held)
			return NULL;
		free(into);
		held->room = room;
	}
	strings = held->strings;
	held->event = *event;
	held->event.call.name = keep_string(&strings, call->name, name);
	held->event.call.status_name = keep_string(&strings, call->status_name, status);
	if (call->program) {
		held->program = (struct model_program){ .id = call->program->id };
		held->program.name = keep_string(&strings, call->program->name, program);
		held->event.call.program = &held->program;
	}
	return held;
}

struct held *held_region(const struct event *event)
{
	size_t length = length_of(event->region.name);
	struct held *held = malloc(sizeof(*held) + length + 1);
	char *strings;

	if (!held)
		return NULL;
	held->room = length + 1;
	strings = held->strings;
	held->event = *event;
	held->event.region.name = keep_string(&strings, event->region.name, length);
	return held;
}

struct held *held_ioctl(const struct event *event)
{
	const struct event_ioctl *ioctl = &event->ioctl;
	size_t driver = length_of(ioctl->driver), node = length_of(ioctl->node), name = length_of(ioctl->name);
	struct held *held = malloc(sizeof(*held) + driver + node + name + 3);
	char *strings;

	if (!held)
		return NULL;
	held->room = driver + node + name + 3;
	strings = held->strings;
	held->event = *event;
	held->event.ioctl.driver = keep_string(&strings, ioctl->driver, driver);
	held->event.ioctl.node = keep_string(&strings, ioctl->node, node);
	held->event.ioctl.name = keep_string(&strings, ioctl->name, name);
	return held;
}

__u64 held_start(const struct event *event)
{
	if (event->kind == EVENT_IOCTL)
		return event->ioctl.start;
	return event->kind == EVENT_REGION ? event->region.start : event->call.start;
}

__u64 held_end(const struct event *event)
{
	if (event->kind == EVENT_IOCTL)
		return event->ioctl.end;
	return event->kind == EVENT_REGION ? event->region.end : event->call.end;
}

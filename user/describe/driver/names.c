/* SPDX-License-Identifier: BSD-2-Clause */
/* How roles and meanings of driver events are called in descriptions and in every output. */
#include <errno.h>
#include <string.h>

#include "describe/driver/driver.h"

static const char *const role_names[] = {
	[XPT_EVENT_QUEUE] = "queue",   [XPT_EVENT_RUN] = "run",	    [XPT_EVENT_DONE] = "done",
	[XPT_EVENT_ERROR] = "error",   [XPT_EVENT_RESET] = "reset", [XPT_EVENT_MEMORY] = "memory",
	[XPT_EVENT_SUBMIT] = "submit", [XPT_EVENT_WAIT] = "wait",   [XPT_EVENT_ENTER] = "enter",
	[XPT_EVENT_LEAVE] = "leave",
};

static const char *const meaning_names[] = {
	[XPT_FIELD_KEY] = "key",
	[XPT_FIELD_DEVICE] = "device",
	[XPT_FIELD_ENGINE] = "engine",
	[XPT_FIELD_CONTEXT] = "context",
	[XPT_FIELD_CLIENT] = "client",
	[XPT_FIELD_NAME] = "name",
	[XPT_FIELD_SIZE] = "size",
	[XPT_FIELD_ADDRESS] = "address",
	[XPT_FIELD_COUNT] = "count",
	[XPT_FIELD_DEPTH] = "depth",
	[XPT_FIELD_STATUS] = "status",
	[XPT_FIELD_VALUE] = "value",
	[XPT_FIELD_DESCRIPTOR] = "descriptor",
	[XPT_FIELD_COMMAND] = "command",
	[XPT_FIELD_ARGUMENT] = "argument",
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* The first number from least to most that has this name. */
static int value_of(const char *const *names, int least, int most, const char *name)
{
	for (int i = least; i <= most; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	return -ENOENT;
}

const char *driver_role_name(enum xpt_event_role role)
{
	return role < COUNT(role_names) && role_names[role] ? role_names[role] : "unknown";
}

const char *driver_meaning_name(enum xpt_event_meaning meaning)
{
	return meaning < COUNT(meaning_names) && meaning_names[meaning] ? meaning_names[meaning] : "unknown";
}

int driver_role_from_name(const char *name)
{
	return value_of(role_names, XPT_EVENT_QUEUE, XPT_EVENT_WAIT, name);
}

int driver_meaning_from_name(const char *name)
{
	return value_of(meaning_names, XPT_FIELD_DEVICE, XPT_FIELD_VALUE, name);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* How roles and meanings of driver events are called in descriptions and in every output. */
#include <errno.h>
#include <string.h>

#include "describe/driver.h"

static const char *const role_names[] = {
	[DRIVER_QUEUE] = "queue", [DRIVER_RUN] = "run",	      [DRIVER_DONE] = "done",	  [DRIVER_ERROR] = "error",
	[DRIVER_RESET] = "reset", [DRIVER_MEMORY] = "memory", [DRIVER_SUBMIT] = "submit", [DRIVER_WAIT] = "wait",
	[DRIVER_ENTER] = "enter", [DRIVER_LEAVE] = "leave",
};

static const char *const meaning_names[] = {
	[DRIVER_KEY] = "key",
	[DRIVER_DEVICE] = "device",
	[DRIVER_ENGINE] = "engine",
	[DRIVER_CONTEXT] = "context",
	[DRIVER_CLIENT] = "client",
	[DRIVER_NAME] = "name",
	[DRIVER_SIZE] = "size",
	[DRIVER_ADDRESS] = "address",
	[DRIVER_COUNT] = "count",
	[DRIVER_DEPTH] = "depth",
	[DRIVER_STATUS] = "status",
	[DRIVER_VALUE] = "value",
	[DRIVER_DESCRIPTOR] = "descriptor",
	[DRIVER_COMMAND] = "command",
	[DRIVER_ARGUMENT] = "argument",
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

const char *driver_role_name(enum driver_role role)
{
	return role < COUNT(role_names) && role_names[role] ? role_names[role] : "unknown";
}

const char *driver_meaning_name(enum driver_meaning meaning)
{
	return meaning < COUNT(meaning_names) && meaning_names[meaning] ? meaning_names[meaning] : "unknown";
}

int driver_role_from_name(const char *name)
{
	return value_of(role_names, DRIVER_QUEUE, DRIVER_WAIT, name);
}

int driver_meaning_from_name(const char *name)
{
	return value_of(meaning_names, DRIVER_DEVICE, DRIVER_VALUE, name);
}

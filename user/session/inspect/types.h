/* SPDX-License-Identifier: BSD-2-Clause */
/* What an inspection can capture, and what it can do: the one table of event types and activities. */
#ifndef XPT_SESSION_INSPECT_TYPES_H
#define XPT_SESSION_INSPECT_TYPES_H

#include <linux/types.h>
#include <xputrace/inspect.h>

#include "bpf/wire.h"

/* In the order of xpt_inspect_event_types(), those of the group "hardware" behind the others. */
enum inspect_type {
	INSPECT_PROGRAM_LOAD,
	INSPECT_PROGRAM_NAME,
	INSPECT_PROGRAM_UNLOAD,
	INSPECT_EXECUTE,
	INSPECT_ENQUEUE,
	INSPECT_WAIT,
	INSPECT_LAUNCH,
	INSPECT_COPY,
	INSPECT_ALLOC,
	INSPECT_FREE,
	INSPECT_SELECT,
	INSPECT_CODEOBJ_LOAD,
	INSPECT_CODEOBJ_UNLOAD,
	INSPECT_OPERATOR,
	INSPECT_REGION,
	INSPECT_TASK,
	INSPECT_IOCTL,
	INSPECT_FIRST_HARDWARE,
	INSPECT_JOB = INSPECT_FIRST_HARDWARE,
	INSPECT_ERROR,
	INSPECT_RESET,
	INSPECT_MEMORY,
	INSPECT_COUNTER,
	INSPECT_TYPES /* how many there are; also: none */
};

/* In the order of xpt_inspect_activities(). */
enum inspect_activity {
	INSPECT_SYSTEM_PROFILE, /* the group "software" */
	INSPECT_DEVICE_PROFILE, /* the group "hardware" */
	INSPECT_HOST_MEMORY,
	INSPECT_CPU_UTIL,
	INSPECT_ACTIVITIES
};

#define INSPECT_ALL_TYPES ((1u << INSPECT_TYPES) - 1)
#define INSPECT_ALL_ACTIVITIES ((1u << INSPECT_ACTIVITIES) - 1)

/* Type of the calls that have the role. INSPECT_TYPES: they are no events, but how the tracing finds its way. */
enum inspect_type inspect_type_of_role(enum xpt_role role);
/* The same of a driver's events. */
enum inspect_type inspect_type_of_event(enum xpt_event_role role);
/* Without this activity, no event of the type is captured. */
enum inspect_activity inspect_activity_of_type(enum inspect_type type);

/* Bits (1 << enum inspect_type) of the type or the types of the group that is called so; 0: there is none. */
__u32 inspect_types_from_name(const char *name);
/* Bits (1 << enum inspect_activity) of the activity, of all with "all"; 0: there is none. */
__u32 inspect_activities_from_name(const char *name);

#endif

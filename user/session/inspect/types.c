/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/inspect/types.h"

#include <string.h>

#define SOFTWARE "software"
#define HARDWARE "hardware"

#define TYPE(name, group, description)                                          \
	{                                                                       \
		sizeof(struct xpt_inspect_event_type), name, group, description \
	}
#define ACTIVITY(name, description)                                    \
	{                                                              \
		sizeof(struct xpt_inspect_activity), name, description \
	}

static const struct xpt_inspect_event_type types[INSPECT_TYPES] = {
	[INSPECT_PROGRAM_LOAD] = TYPE("program.load", SOFTWARE, "a program is loaded into a runtime"),
	[INSPECT_PROGRAM_NAME] = TYPE("program.name", SOFTWARE, "a program is given its name"),
	[INSPECT_PROGRAM_UNLOAD] = TYPE("program.unload", SOFTWARE, "a program is released"),
	[INSPECT_EXECUTE] = TYPE("execute", SOFTWARE, "a whole inference"),
	[INSPECT_ENQUEUE] = TYPE("enqueue", SOFTWARE, "an asynchronous inference begins"),
	[INSPECT_WAIT] = TYPE("wait", SOFTWARE, "the end of asynchronous inferences is waited for"),
	[INSPECT_LAUNCH] = TYPE("launch", SOFTWARE, "a kernel is handed to a queue of the device"),
	[INSPECT_COPY] = TYPE("copy", SOFTWARE, "bytes are moved to, from or on the device"),
	[INSPECT_ALLOC] = TYPE("alloc", SOFTWARE, "memory of the device is taken"),
	[INSPECT_FREE] = TYPE("free", SOFTWARE, "memory of the device is given back"),
	[INSPECT_SELECT] = TYPE("select", SOFTWARE, "a thread chooses its device"),
	[INSPECT_CODEOBJ_LOAD] = TYPE("codeobj.load", SOFTWARE, "code for the device is loaded"),
	[INSPECT_CODEOBJ_UNLOAD] = TYPE("codeobj.unload", SOFTWARE, "code for the device is released"),
	[INSPECT_OPERATOR] = TYPE("operator", SOFTWARE, "one step of an inference"),
	[INSPECT_REGION] = TYPE("region", SOFTWARE, "a named stretch of user code"),
	[INSPECT_TASK] = TYPE("task", SOFTWARE, "a process forks, executes another program, exits"),
	[INSPECT_IOCTL] = TYPE("ioctl", SOFTWARE, "a thread calls the device's driver"),
	[INSPECT_JOB] = TYPE("job", HARDWARE, "a unit of work in a queue of the device"),
	[INSPECT_ERROR] = TYPE("error", HARDWARE, "the driver tells that something has failed"),
	[INSPECT_RESET] = TYPE("reset", HARDWARE, "a device, an engine or a queue is reset"),
	[INSPECT_MEMORY] = TYPE("memory", HARDWARE, "the driver takes, gives back, maps or moves memory"),
	[INSPECT_COUNTER] = TYPE("counter", HARDWARE, "a counter is read"),
};

static const struct xpt_inspect_activity activities[INSPECT_ACTIVITIES] = {
	[INSPECT_SYSTEM_PROFILE] = ACTIVITY("system_profile", "events of the group software"),
	[INSPECT_DEVICE_PROFILE] = ACTIVITY("device_profile", "events of the group hardware"),
	[INSPECT_HOST_MEMORY] = ACTIVITY("host_memory", "memory of each process over time"),
	[INSPECT_CPU_UTIL] = ACTIVITY("cpu_util", "CPU time of each process over time"),
};

const struct xpt_inspect_event_type *xpt_inspect_event_types(size_t *count)
{
	if (count)
		*count = INSPECT_TYPES;
	return types;
}

const struct xpt_inspect_activity *xpt_inspect_activities(size_t *count)
{
	if (count)
		*count = INSPECT_ACTIVITIES;
	return activities;
}

enum inspect_type inspect_type_of_role(enum xpt_role role)
{
	switch (role) {
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_READY:
		return INSPECT_PROGRAM_LOAD;
	case XPT_ROLE_PROGRAM_NAME:
		return INSPECT_PROGRAM_NAME;
	case XPT_ROLE_PROGRAM_UNLOAD:
		return INSPECT_PROGRAM_UNLOAD;
	case XPT_ROLE_EXECUTE:
		return INSPECT_EXECUTE;
	case XPT_ROLE_ENQUEUE:
		return INSPECT_ENQUEUE;
	case XPT_ROLE_WAIT:
	case XPT_ROLE_MARK: /* defines, as the next two do, what a wait is for */
	case XPT_ROLE_STREAM:
	case XPT_ROLE_CALLBACK:
		return INSPECT_WAIT;
	case XPT_ROLE_LAUNCH:
		return INSPECT_LAUNCH;
	case XPT_ROLE_COPY:
		return INSPECT_COPY;
	case XPT_ROLE_ALLOC:
		return INSPECT_ALLOC;
	case XPT_ROLE_FREE:
		return INSPECT_FREE;
	case XPT_ROLE_SELECT:
		return INSPECT_SELECT;
	case XPT_ROLE_CODEOBJ_LOAD:
		return INSPECT_CODEOBJ_LOAD;
	case XPT_ROLE_CODEOBJ_UNLOAD:
		return INSPECT_CODEOBJ_UNLOAD;
	case XPT_ROLE_OPERATOR:
	case XPT_ROLE_OPERATOR_END:
		return INSPECT_OPERATOR;
	case XPT_ROLE_REGION:
	case XPT_ROLE_REGION_BEGIN:
	case XPT_ROLE_REGION_END:
	case XPT_ROLE_REGION_NAME:
	case XPT_ROLE_REGION_RELEASE:
	case XPT_ROLE_REGION_PRINT:
		return INSPECT_REGION;
	case XPT_ROLE_RESOLVE:
	case XPT_ROLE_TABLE:
	case XPT_ROLE_LOADER:
		break;
	}
	return INSPECT_TYPES;
}

enum inspect_type inspect_type_of_event(enum xpt_event_role role)
{
	switch (role) {
	case XPT_EVENT_QUEUE:
	case XPT_EVENT_RUN:
	case XPT_EVENT_DONE:
		return INSPECT_JOB;
	case XPT_EVENT_ERROR:
		return INSPECT_ERROR;
	case XPT_EVENT_RESET:
		return INSPECT_RESET;
	case XPT_EVENT_MEMORY:
		return INSPECT_MEMORY;
	case XPT_EVENT_SUBMIT:
	case XPT_EVENT_WAIT:
	case XPT_EVENT_ENTER:
	case XPT_EVENT_LEAVE:
		return INSPECT_IOCTL;
	}
	return INSPECT_TYPES;
}

enum inspect_activity inspect_activity_of_type(enum inspect_type type)
{
	return type < INSPECT_FIRST_HARDWARE ? INSPECT_SYSTEM_PROFILE : INSPECT_DEVICE_PROFILE;
}

__u32 inspect_types_from_name(const char *name)
{
	__u32 bits = 0;

	for (size_t i = 0; i < INSPECT_TYPES; i++)
		if (!strcmp(types[i].name, name) || !strcmp(types[i].group, name))
			bits |= 1u << i;
	return bits;
}

__u32 inspect_activities_from_name(const char *name)
{
	if (!strcmp(name, "all"))
		return INSPECT_ALL_ACTIVITIES;
	for (size_t i = 0; i < INSPECT_ACTIVITIES; i++)
		if (!strcmp(activities[i].name, name))
			return 1u << i;
	return 0;
}

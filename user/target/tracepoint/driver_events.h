/* SPDX-License-Identifier: BSD-2-Clause */
/* What of a driver's description the running kernel has: the set of events that is taken, and each event's layout. */
#ifndef XPT_TARGET_TRACEPOINT_DRIVER_EVENTS_H
#define XPT_TARGET_TRACEPOINT_DRIVER_EVENTS_H

#include "target/tracepoint/device_nodes.h"
#include "target/tracepoint/tracefs.h"

enum driver_state {
	DRIVER_COMPLETE, /* all events that are not optional were found */
	DRIVER_PARTIAL,	 /* some were */
	DRIVER_ABSENT,	 /* none was: the driver is not loaded, or there is no device of it */
	DRIVER_UNKNOWN,	 /* tracefs could not be read */
};

struct driver_events {
	const struct driver *driver;
	const struct driver_set *set; /* that was taken; the first one where none was found; NULL: ioctls only */
	enum driver_state state;
	struct tracepoint *events; /* those of the set, then the two of the ioctls if these are described */
	size_t event_count;
	size_t found;
	struct device_nodes nodes; /* with followed ioctls */
};

/*
 * tracefs: an open one, or NULL where there is none to read. The reasons of what was not found are whole sentences here:
 * "amdgpu: amdgpu:amdgpu_cs_ioctl: field seqno is missing, in Linux 6.1.0". -errno as of tracefs_find(). *events is
 * zeroed after an error.
 */
int driver_events_find(const struct tracefs *tracefs, const struct driver *driver, struct driver_events *events);
void driver_events_free(struct driver_events *events);

#endif

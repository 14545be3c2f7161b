/* SPDX-License-Identifier: BSD-2-Clause */
/* What of a driver's description the running kernel has: events, their layout, device nodes. */
#ifndef XPT_TARGET_TRACEPOINT_DRIVER_EVENTS_H
#define XPT_TARGET_TRACEPOINT_DRIVER_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "describe/driver/driver.h"
#include "target/tracepoint/tracefs.h"

/* ---- device nodes of a driver with followed ioctls ---- */

struct device_node {
	char *path;
	dev_t device; /* number of the character device, as in st_rdev */
};

struct device_nodes {
	struct device_node *items; /* by number, each once */
	size_t count;
};

/* Finds the character devices that the patterns match and that are bound to the driver. None is no error. -ENOMEM. */
int device_nodes_find(const struct driver_ioctls *ioctls, struct device_nodes *nodes);
void device_nodes_free(struct device_nodes *nodes);

/* ---- the set of events that is taken, and the layout of each ---- */

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

/* ---- modules and device nodes that come later: drivers may have more events or nodes than before ---- */

/* A descriptor that is readable when something has happened; to be closed. -errno: the kernel does not report it here. */
int uevents_open(void);
/* Reads all that is there. True: a module or a device node was added, or messages were lost. */
bool uevents_read(int descriptor);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The device nodes of a driver with followed ioctls. */
#ifndef XPT_TARGET_TRACEPOINT_DEVICE_NODES_H
#define XPT_TARGET_TRACEPOINT_DEVICE_NODES_H

#include <stddef.h>
#include <sys/types.h>

#include "describe/driver/driver.h"

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

#endif

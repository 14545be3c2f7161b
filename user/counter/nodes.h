/* SPDX-License-Identifier: BSD-2-Clause */
/* Devices with a DRM render node, an accel node or one of NVIDIA's driver, in the order of their addresses: that is what gpu_index counts. */
#ifndef XPT_COUNTER_NODES_H
#define XPT_COUNTER_NODES_H

#include <stddef.h>

struct node {
	char *address; /* of the bus: "0000:03:00.0" */
	char *driver;  /* "" when none is bound */
	char *path;    /* of the node in /dev; the render node where there are several */
	char *sysfs;   /* folder of the device: "/sys/devices/pci0000:00/..." */
	char *title;   /* "8086:56a0"; "" unknown */
};

struct nodes {
	struct node *items;
	size_t count;
};

/* sysfs: where it is mounted, "/sys". None is no error. -ENOMEM. */
int nodes_find(const char *sysfs, struct nodes *nodes);
void nodes_free(struct nodes *nodes);

/* The class of a node in sysfs, such as "class/drm", and the node's name, by its path in /dev; NULL: it is of neither class. */
const char *node_class(const char *path, const char **name);

#endif

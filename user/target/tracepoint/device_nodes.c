/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/tracepoint/device_nodes.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/core/vec.h"

/* The name of the driver is the last part of what the link in sysfs points to. */
static bool is_bound(dev_t device, const char *driver)
{
	char link[64], to[PATH_MAX];
	const char *name;
	ssize_t length;

	snprintf(link, sizeof(link), "/sys/dev/char/%u:%u/device/driver", major(device), minor(device));
	length = readlink(link, to, sizeof(to) - 1);
	if (length < 0)
		return false;
	to[length] = '\0';
	name = strrchr(to, '/');
	return strcmp(name ? name + 1 : to, driver) == 0;
}

static int add(struct device_nodes *nodes, const char *path, dev_t device)
{
	char *copy;

	for (size_t i = 0; i < nodes->count; i++)
		if (nodes->items[i].device == device)
			return 0;
	if (vec_reserve(nodes->items, nodes->count))
		return -ENOMEM;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	nodes->items[nodes->count++] = (struct device_node){ copy, device };
	return 0;
}

static int add_matching(struct device_nodes *nodes, const char *pattern, const char *bound)
{
	glob_t found = { 0 };
	int result = glob(pattern, GLOB_NOSORT, NULL, &found), error = result == GLOB_NOSPACE ? -ENOMEM : 0;

	for (size_t i = 0; !error && i < found.gl_pathc; i++) {
		struct stat status;

		if (stat(found.gl_pathv[i], &status) || !S_ISCHR(status.st_mode))
			continue;
		if (!bound || is_bound(status.st_rdev, bound))
			error = add(nodes, found.gl_pathv[i], status.st_rdev);
	}
	globfree(&found);
	return error;
}

static int by_number(const void *a, const void *b)
{
	const struct device_node *one = a, *other = b;

	return (one->device > other->device) - (one->device < other->device);
}

int device_nodes_find(const struct driver_ioctls *ioctls, struct device_nodes *nodes)
{
	int error = 0;

	memset(nodes, 0, sizeof(*nodes));
	for (size_t i = 0; !error && i < ioctls->device_count; i++)
		error = add_matching(nodes, ioctls->devices[i], ioctls->bound);
	if (error)
		device_nodes_free(nodes);
	else if (nodes->count)
		qsort(nodes->items, nodes->count, sizeof(*nodes->items), by_number);
	return error;
}

void device_nodes_free(struct device_nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		free(nodes->items[i].path);
	free(nodes->items);
	memset(nodes, 0, sizeof(*nodes));
}

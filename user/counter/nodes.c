/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/nodes.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/device.h>

#include "base/core/vec.h"
#include "counter/pmu.h"

/* A class of nodes in sysfs. Render nodes come first: a device that has both is known by that one. */
static const struct node_class {
	const char *sysfs;
	const char *prefix; /* of the nodes' names, a number follows */
	const char *folder; /* of the nodes, with a slash */
} classes[] = {
	{ "class/drm", "renderD", "/dev/dri/" },
	{ "class/accel", "accel", "/dev/accel/" },
};
#define CLASS_COUNT (sizeof(classes) / sizeof(classes[0]))

const char *node_class(const char *path, const char **name)
{
	for (size_t i = 0; i < CLASS_COUNT; i++) {
		size_t length = strlen(classes[i].folder);

		*name = path + length;
		if (!strncmp(path, classes[i].folder, length) && !strchr(*name, '/'))
			return classes[i].sysfs;
	}
	return NULL;
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* "" when there is no such link. NULL: -ENOMEM. */
static char *read_driver(const char *device)
{
	char path[PATH_MAX], to[PATH_MAX];
	ssize_t length = -1;

	if (snprintf(path, sizeof(path), "%s/driver", device) < (int)sizeof(path))
		length = readlink(path, to, sizeof(to) - 1);
	to[length < 0 ? 0 : length] = '\0';
	return strdup(last_part(to));
}

/* A number such as "0x8086"; false when there is none. */
static bool read_number(const char *device, const char *file, unsigned int *number)
{
	char text[SYSFS_FILE_MAX];

	return sysfs_read(text, "%s/%s", device, file) > 0 && sscanf(text, "%x", number) == 1;
}

static void read_title(const char *device, char *title, size_t size)
{
	unsigned int vendor, product;

	title[0] = '\0';
	if (read_number(device, "vendor", &vendor) && read_number(device, "device", &product))
		snprintf(title, size, "%04x:%04x", vendor, product);
}

static void node_free(struct node *node)
{
	free(node->address);
	free(node->driver);
	free(node->path);
	free(node->sysfs);
	free(node->title);
}

static bool is_known(const struct nodes *nodes, const char *device)
{
	for (size_t i = 0; i < nodes->count; i++)
		if (strcmp(nodes->items[i].sysfs, device) == 0)
			return true;
	return false;
}

static int add_device(struct nodes *nodes, const char *device, const char *folder, const char *name)
{
	char title[32];
	struct node node;
	int error;

	read_title(device, title, sizeof(title));
	node = (struct node){ strdup(last_part(device)), read_driver(device), NULL, strdup(device), strdup(title) };
	if (asprintf(&node.path, "%s%s", folder, name) < 0)
		node.path = NULL;
	error = node.address && node.driver && node.path && node.sysfs && node.title ? 0 : -ENOMEM;
	if (!error)
		error = vec_push(nodes->items, nodes->count, node);
	if (error)
		node_free(&node);
	return error;
}

/* What has no device, or has just been unplugged, is left out. */
static int add_node(struct nodes *nodes, const char *class_path, const char *folder, const char *name)
{
	char path[PATH_MAX], *device;
	int error = 0;

	if (snprintf(path, sizeof(path), "%s/%s/device", class_path, name) >= (int)sizeof(path))
		return 0;
	errno = 0;
	device = realpath(path, NULL);
	if (!device)
		return errno == ENOMEM ? -ENOMEM : 0;
	if (!is_known(nodes, device))
		error = add_device(nodes, device, folder, name);
	free(device);
	return error;
}

static bool has_form(const char *name, const char *prefix)
{
	size_t length = strlen(prefix);

	if (strncmp(name, prefix, length) || !name[length])
		return false;
	for (name += length; *name; name++)
		if (!isdigit((unsigned char)*name))
			return false;
	return true;
}

static int add_class(struct nodes *nodes, const char *sysfs, const struct node_class *class)
{
	struct dirent **entries;
	char path[PATH_MAX];
	int count, error = 0;

	if (snprintf(path, sizeof(path), "%s/%s", sysfs, class->sysfs) >= (int)sizeof(path))
		return 0;
	/* In the order of the numbers: the first node of a device is its own, whichever way the folder lists them. */
	count = scandir(path, &entries, NULL, versionsort);
	if (count < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < count; i++) {
		if (!error && has_form(entries[i]->d_name, class->prefix))
			error = add_node(nodes, path, class->folder, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return error;
}

struct pci_address {
	unsigned int domain, bus, device, function;
};

static bool parse_address(const char *text, struct pci_address *address)
{
	int end = 0;

	return sscanf(text, "%x:%x:%x.%x%n", &address->domain, &address->bus, &address->device, &address->function,
		      &end) == 4 &&
	       !text[end];
}

/*
 * NVIDIA's driver has no class in sysfs, unless its module for DRM is loaded. Its devices are those that are bound to it, and its file in
 * proc, which is mounted beside sysfs, has the number of the node.
 */
#define NVIDIA "bus/pci/drivers/nvidia"

static int add_nvidia(struct nodes *nodes, const char *sysfs, const char *address)
{
	char path[PATH_MAX], name[16] = "", *device, line[256];
	unsigned int minor;
	FILE *file;
	int error;

	if (snprintf(path, sizeof(path), "%s/../proc/driver/nvidia/gpus/%s/information", sysfs, address) >=
	    (int)sizeof(path))
		return 0;
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (sscanf(line, "Device Minor: %u", &minor) == 1)
			snprintf(name, sizeof(name), "%u", minor);
	if (file)
		fclose(file);
	snprintf(path, sizeof(path), "%s/" NVIDIA "/%s", sysfs, address);
	device = *name ? realpath(path, NULL) : NULL;
	if (!device)
		return 0;
	error = is_known(nodes, device) ? 0 : add_device(nodes, device, "/dev/nvidia", name);
	free(device);
	return error;
}

static int add_nvidia_devices(struct nodes *nodes, const char *sysfs)
{
	char path[PATH_MAX];
	struct pci_address parsed;
	struct dirent *entry;
	int error = 0;
	DIR *folder;

	if (snprintf(path, sizeof(path), "%s/" NVIDIA, sysfs) >= (int)sizeof(path))
		return 0;
	folder = opendir(path);
	while (folder && !error && (entry = readdir(folder)))
		if (parse_address(entry->d_name, &parsed))
			error = add_nvidia(nodes, sysfs, entry->d_name);
	if (folder)
		closedir(folder);
	return error;
}

static int compare(unsigned int one, unsigned int other)
{
	return (one > other) - (one < other);
}

/* Domains have four digits or more, so that text would order them wrongly. */
static int by_address(const void *a, const void *b)
{
	const struct node *one = a, *other = b;
	struct pci_address x, y;
	bool one_is_pci = parse_address(one->address, &x), other_is_pci = parse_address(other->address, &y);

	if (one_is_pci != other_is_pci)
		return one_is_pci ? -1 : 1;
	if (!one_is_pci)
		return strcmp(one->address, other->address);
	return compare(x.domain, y.domain)	   ?:
		       compare(x.bus, y.bus)	   ?:
		       compare(x.device, y.device) ?:
						     compare(x.function, y.function);
}

int nodes_find(const char *sysfs, struct nodes *nodes)
{
	int error = 0;

	memset(nodes, 0, sizeof(*nodes));
	for (size_t i = 0; !error && i < CLASS_COUNT; i++)
		error = add_class(nodes, sysfs, &classes[i]);
	if (!error)
		error = add_nvidia_devices(nodes, sysfs);
	if (error)
		nodes_free(nodes);
	else if (nodes->count)
		qsort(nodes->items, nodes->count, sizeof(*nodes->items), by_address);
	return error;
}

void nodes_free(struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		node_free(&nodes->items[i]);
	free(nodes->items);
	memset(nodes, 0, sizeof(*nodes));
}

int xpt_device_list(int (*visit)(void *context, const struct xpt_device_info *device), void *context)
{
	struct nodes nodes;
	int result = nodes_find("/sys", &nodes);

	if (result)
		return result;
	for (size_t i = 0; !result && i < nodes.count; i++) {
		const struct node *node = &nodes.items[i];
		struct xpt_device_info device = {
			.size = sizeof(device),
			.index = (int)i,
			.address = node->address,
			.driver = node->driver,
			.node = node->path,
			.title = node->title,
		};

		result = visit(context, &device);
	}
	nodes_free(&nodes);
	return result;
}

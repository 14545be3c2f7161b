/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/tracepoint/driver_events.h"

#include <errno.h>
#include <glob.h>
#include <limits.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/core/vec.h"

/* ---- device nodes ---- */

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

static int add_node(struct device_nodes *nodes, const char *path, dev_t device)
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
			error = add_node(nodes, found.gl_pathv[i], status.st_rdev);
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

/* ---- events ---- */

#define IOCTL_EVENTS 2

/* Which of the driver's modules is not loaded; NULL: none, or none is named. Built-in ones have a folder, too, as a rule. */
static const char *missing_module(const struct driver *driver)
{
	char path[300];

	for (size_t i = 0; i < driver->module_count; i++) {
		snprintf(path, sizeof(path), "/sys/module/%s", driver->modules[i]);
		if (access(path, F_OK))
			return driver->modules[i];
	}
	return NULL;
}

/* Makes a whole sentence of the reason. */
static void complete_reason(const struct tracefs *tracefs, const struct driver *driver,
			    const struct driver_event *event, struct tracepoint *tracepoint, const char *module)
{
	char sentence[2 * TRACEPOINT_REASON_MAX];

	snprintf(sentence, sizeof(sentence), "%s: %s:%s: %s, in %s%s%s%s", driver->name, event->system, event->name,
		 tracepoint->reason, tracefs->kernel, module ? " (module " : "", module ? module : "",
		 module ? " is not loaded)" : "");
	sentence[sizeof(tracepoint->reason) - 1] = '\0';
	memcpy(tracepoint->reason, sentence, sizeof(tracepoint->reason));
}

/* Looks all events of a set up. found: how many are there; missing: how many are not, without optional ones. */
static int find_set(const struct tracefs *tracefs, const struct driver_set *set, struct tracepoint *tracepoints,
		    size_t *found, size_t *missing)
{
	*found = *missing = 0;
	for (size_t i = 0; i < set->event_count; i++) {
		int error = tracefs_find(tracefs, &set->events[i], &tracepoints[i]);

		if (error)
			return error;
		*found += tracepoints[i].found;
		*missing += !tracepoints[i].found && !set->events[i].optional;
	}
	return 0;
}

/* The first set that is whole, else the one of which most was found. */
static int take_set(const struct tracefs *tracefs, const struct driver *driver, struct driver_events *events)
{
	size_t room = 0, best_found = 0, found, missing = 1;
	struct tracepoint *tried;
	int error = 0;

	for (size_t i = 0; i < driver->set_count; i++)
		if (driver->sets[i].event_count > room)
			room = driver->sets[i].event_count;
	tried = calloc(room + 1, sizeof(*tried));
	if (!tried)
		return -ENOMEM;
	for (size_t i = 0; i < driver->set_count && missing; i++) {
		error = find_set(tracefs, &driver->sets[i], tried, &found, &missing);
		if (error)
			break;
		if (i && found <= best_found && missing)
			continue;
		best_found = found;
		events->set = &driver->sets[i];
		events->event_count = events->set->event_count;
		memcpy(events->events, tried, events->event_count * sizeof(*tried));
	}
	free(tried);
	return error;
}

/* Without a device there is nothing to follow, though every kernel has the tracepoints. */
static int add_ioctls(const struct tracefs *tracefs, const struct driver_ioctls *ioctls, struct driver_events *events)
{
	int error = device_nodes_find(ioctls, &events->nodes);

	for (size_t i = 0; !error && i < IOCTL_EVENTS; i++) {
		struct tracepoint *tracepoint = &events->events[events->event_count++];

		error = tracefs_find(tracefs, &ioctls->events[i], tracepoint);
		if (error || events->nodes.count)
			continue;
		tracepoint->found = false;
		snprintf(tracepoint->reason, sizeof(tracepoint->reason), "no device %.80s%s%.60s", ioctls->devices[0],
			 ioctls->bound ? " of driver " : "", ioctls->bound ? ioctls->bound : "");
	}
	return error;
}

/* As described: those of the set, then those of the ioctls. */
static const struct driver_event *event_at(const struct driver_events *events, size_t index)
{
	size_t in_set = events->set ? events->set->event_count : 0;

	return index < in_set ? &events->set->events[index] : &events->driver->ioctls.events[index - in_set];
}

/* Counts what is there, and reports why the rest is not. */
static void conclude(const struct tracefs *tracefs, struct driver_events *events)
{
	const char *module = missing_module(events->driver);
	size_t missing = 0;

	for (size_t i = 0; i < events->event_count; i++) {
		struct tracepoint *tracepoint = &events->events[i];

		events->found += tracepoint->found;
		missing += !tracepoint->found && !event_at(events, i)->optional;
		if (!tracepoint->found)
			complete_reason(tracefs, events->driver, event_at(events, i), tracepoint, module);
	}
	events->state = !events->found ? DRIVER_ABSENT : missing ? DRIVER_PARTIAL : DRIVER_COMPLETE;
}

/* No tracefs: what there would be to find. */
static void leave_unknown(const struct driver *driver, struct driver_events *events)
{
	events->state = DRIVER_UNKNOWN;
	events->event_count = events->set ? events->set->event_count : 0;
	if (driver->ioctls.device_count)
		events->event_count += IOCTL_EVENTS;
	for (size_t i = 0; i < events->event_count; i++) {
		const struct driver_event *event = event_at(events, i);

		events->events[i].event = event;
		snprintf(events->events[i].reason, sizeof(events->events[i].reason),
			 "%s: %s:%s: tracefs cannot be read", driver->name, event->system, event->name);
	}
}

int driver_events_find(const struct tracefs *tracefs, const struct driver *driver, struct driver_events *events)
{
	size_t room = IOCTL_EVENTS;
	int error = 0;

	memset(events, 0, sizeof(*events));
	events->driver = driver;
	events->set = driver->set_count ? &driver->sets[0] : NULL;
	for (size_t i = 0; i < driver->set_count; i++)
		if (driver->sets[i].event_count + IOCTL_EVENTS > room)
			room = driver->sets[i].event_count + IOCTL_EVENTS;
	events->events = calloc(room, sizeof(*events->events));
	if (!events->events) {
		error = -ENOMEM;
		goto out;
	}
	if (!tracefs) {
		leave_unknown(driver, events);
		goto out;
	}
	if (driver->set_count)
		error = take_set(tracefs, driver, events);
	if (!error && driver->ioctls.device_count)
		error = add_ioctls(tracefs, &driver->ioctls, events);
	if (!error)
		conclude(tracefs, events);
out:
	if (error)
		driver_events_free(events);
	return error;
}

void driver_events_free(struct driver_events *events)
{
	device_nodes_free(&events->nodes);
	free(events->events);
	memset(events, 0, sizeof(*events));
}

/* ---- what comes later ---- */

#define KERNEL_GROUP 1 /* the kernel's own messages; 2 has those of udev */

int uevents_open(void)
{
	struct sockaddr_nl address = { .nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP };
	int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	int error;

	if (descriptor < 0)
		return -errno;
	if (!bind(descriptor, (struct sockaddr *)&address, sizeof(address)))
		return descriptor;
	error = -errno;
	close(descriptor);
	return error;
}

/* A message is "add@/module/xe" and then KEY=VALUE strings, all ended by a 0 byte. */
static bool adds(const char *message, size_t length)
{
	const char *end = message + length, *field = message;

	if (strncmp(message, "add@", 4))
		return false;
	if (!strncmp(message, "add@/module/", 12))
		return true;
	for (; field < end; field += strlen(field) + 1)
		if (!strncmp(field, "DEVNAME=", 8))
			return true;
	return false;
}

bool uevents_read(int descriptor)
{
	bool added = false;
	char message[8192];

	for (;;) {
		ssize_t length = recv(descriptor, message, sizeof(message) - 1, MSG_TRUNC);

		if (length < 0 && errno == EINTR)
			continue;
		if (length < 0 && errno == ENOBUFS) {
			added = true;
			continue;
		}
		if (length <= 0)
			return added;
		if ((size_t)length > sizeof(message) - 1)
			length = sizeof(message) - 1;
		message[length] = '\0';
		added |= adds(message, length);
	}
}

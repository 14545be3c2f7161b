/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drivers, their events and their device nodes that EVENT and IOCTL records refer to, as DRIVER and DRIVER_EVENT
 * records describe them.
 */
#ifndef XPT_MODEL_DEVICE_TRACED_DRIVERS_H
#define XPT_MODEL_DEVICE_TRACED_DRIVERS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/log.h"
#include "bpf/wire.h"

struct traced_ioctl {
	__u16 number; /* low 16 bits of the command */
	__u8 role;    /* enum xpt_event_role; 0: only its name is known */
	char *name;
};

struct traced_join {
	__u8 driver; /* index */
	__u8 bits;   /* of each part of a key that are compared */
};

struct traced_driver {
	unsigned int index;
	char *name;
	enum xpt_pairing pairing;
	unsigned int bits; /* of each part of a key that are compared within the driver */
	struct traced_join joins[XPT_DRIVER_MAX];
	size_t join_count;
	struct traced_ioctl *ioctls; /* sorted by number */
	size_t ioctl_count;
	unsigned int family; /* the same of all drivers whose keys can meet, directly or by way of others */
	bool narrow;	     /* in the family some keys are compared by 32 bits of each part */
};

struct traced_field {
	__u8 meaning; /* enum xpt_event_meaning */
	bool text;
	bool is_signed;
	__u16 offset; /* of the value, in bytes behind the record's struct */
};

struct traced_event {
	unsigned int index;
	const struct traced_driver *driver;
	char *name; /* "amdgpu:amdgpu_cs_ioctl" */
	enum xpt_event_role role;
	bool by_thread;
	unsigned int key; /* that many of the fields, the first ones; 0: it belongs to no job */
	unsigned int field_count;
	struct traced_field fields[XPT_EVENT_VALUES_MAX];
	size_t size; /* bytes of a record */
};

struct traced_node {
	const struct traced_driver *driver; /* NULL: never described */
	char *path;
};

/* Zero it to begin with. */
struct traced_drivers {
	const struct log *log;
	struct traced_driver *drivers[XPT_DRIVER_MAX];
	struct traced_event *events[XPT_EVENT_MAX];
	struct traced_node nodes[XPT_NODE_MAX];
	__u8 bits[XPT_DRIVER_MAX][XPT_DRIVER_MAX]; /* of each part of their keys that are compared; 0: they never meet */
	unsigned int families;			   /* changes whenever family or narrow of a driver does */
};

void traced_drivers_free(struct traced_drivers *drivers);

/*
 * text: JSON as wire.h says. Telling the same again is fine, telling something else for an index in use is not: records
 * that are held back already rely on it. Only nodes may be told anew: those of the text come to those known, and what it
 * says of an index holds from then on. -EBADMSG, -ENOMEM.
 */
int traced_drivers_add(struct traced_drivers *drivers, __u64 index, const char *text, size_t length);
int traced_drivers_add_event(struct traced_drivers *drivers, __u64 index, const char *text, size_t length);

static inline const struct traced_event *traced_drivers_event(const struct traced_drivers *drivers, unsigned int index)
{
	return index < XPT_EVENT_MAX ? drivers->events[index] : NULL; /* NULL: never described */
}

static inline const struct traced_node *traced_drivers_node(const struct traced_drivers *drivers, unsigned int index)
{
	return index < XPT_NODE_MAX && drivers->nodes[index].driver ? &drivers->nodes[index] : NULL;
}

/* NULL: the description has no name for it. */
const struct traced_ioctl *traced_ioctl_find(const struct traced_driver *driver, __u32 command);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Driver descriptions: what the tracepoints and ioctls of an accelerator's kernel driver mean, as data (user/drivers/
 * NAME.json; the format is documented in user/drivers/FORMAT.md). The places of fields in a record are not described:
 * the running kernel has them (target/tracepoint/tracefs.h).
 */
#ifndef XPT_DESCRIBE_DRIVER_DRIVER_H
#define XPT_DESCRIBE_DRIVER_DRIVER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/log.h"
#include "bpf/wire.h"
#include "describe/reader/collection.h"

#define DRIVER_NAME_MAX 31		       /* bytes of a driver's name */
#define DRIVER_VALUES_MAX XPT_EVENT_VALUES_MAX /* fields of an event, with those of the key */
#define DRIVER_KEY_MAX XPT_EVENT_KEY_MAX
#define DRIVER_TEXT_MAX (XPT_EVENT_TEXT - 1) /* bytes of a text that a condition compares with */
#define DRIVER_EVENTS_MAX 64		     /* events of a set */
#define DRIVER_SETS_MAX 8
#define DRIVER_IOCTLS_MAX 64

/* How a field may be laid out: a mask of what the description allows. */
enum driver_type {
	DRIVER_BITS_8 = 1 << 0, /* a number; whether it has a sign is defined by the kernel */
	DRIVER_BITS_16 = 1 << 1,
	DRIVER_BITS_32 = 1 << 2,
	DRIVER_BITS_64 = 1 << 3,
	DRIVER_STRING = 1 << 4,	       /* text in the record: an array, or a part at a place given by the field */
	DRIVER_KERNEL_STRING = 1 << 5, /* pointer to text in the kernel's memory */
};
#define DRIVER_NUMBER (DRIVER_BITS_8 | DRIVER_BITS_16 | DRIVER_BITS_32 | DRIVER_BITS_64)

struct driver_field {
	char *name;
	__u8 types;    /* enum driver_type */
	__u8 meaning;  /* enum xpt_event_meaning */
	bool optional; /* the event is good without it */
};

/* The event counts only if the field's value is, or is not, this one. */
struct driver_condition {
	struct driver_field field; /* name NULL: no condition */
	bool differs;		   /* counts when the value is another one */
	char *text;		   /* to compare with; NULL: number */
	__s64 number;
};

struct driver_event {
	char *system;
	char *name;
	enum xpt_event_role role;
	struct driver_field fields[DRIVER_VALUES_MAX]; /* those of the key first, in its order */
	size_t field_count;
	size_t key_count; /* 0: the event belongs to no job */
	struct driver_condition condition;
	bool optional; /* depends on the kernel's configuration: a driver is complete without it */
};

/* Jobs of this driver are jobs of another one, too. */
struct driver_join {
	char *driver;
	unsigned int bits; /* of each part of the key that are compared: 32 or 64 */
	unsigned int line; /* in the file, for messages */
};

/* Events that belong together; other kernels have another set. */
struct driver_set {
	char *name; /* which kernels have it, for people; NULL: there is only one */
	enum xpt_pairing pairing;
	unsigned int bits; /* of each part of the key that are compared within the set: 32 or 64 */
	struct driver_join *joins;
	size_t join_count;
	struct driver_event *events;
	size_t event_count;
	size_t key_count; /* parts of the key of every event that has one */
};

struct driver_ioctl {
	char *name;
	__u16 number; /* low 16 bits of the command: type and number; direction and size are left out */
	enum xpt_event_role
		role; /* XPT_EVENT_SUBMIT, XPT_EVENT_WAIT, XPT_EVENT_MEMORY, XPT_EVENT_RESET; 0: only its name is known */
};

/* For drivers without tracepoints of submissions: the ioctls on their device nodes. */
struct driver_ioctls {
	char **devices; /* glob patterns of device nodes; none: the driver is not followed so */
	size_t device_count;
	char *bound; /* name of the kernel driver that the device must be bound to; NULL: any */
	struct driver_ioctl *numbers;
	size_t number_count;
	struct driver_event events[2]; /* syscalls:sys_enter_ioctl and sys_exit_ioctl; zeroed without devices */
};

struct driver {
	DESCRIBED;
	char **modules; /* kernel modules that bring the events; a hint, never a condition */
	size_t module_count;
	struct driver_set *sets; /* alternatives: the first one that the kernel has is taken */
	size_t set_count;	 /* 0: ioctls only */
	struct driver_ioctls ioctls;
};

/*
 * Parses one description from text (length bytes; need not be terminated). file names it in messages.
 * A bad description is reported as "FILE:LINE: FIELD: REASON" and gives -EINVAL; -ENOMEM otherwise.
 */
int driver_parse(const struct log *log, const char *file, const char *text, size_t length, struct driver **result);
void driver_free(struct driver *driver);

/* ---- the drivers of one session ---- */

#define DRIVERS_MAX 64

struct drivers {
	struct driver **items; /* the built-in ones first, in the order of their names */
	size_t count;	       /* at most DRIVERS_MAX */
};

/*
 * Reads the built-in descriptions and then each of files; one with the name of a built-in replaces it.
 * -EINVAL for a bad file, or one that joins a driver that is not described; -E2BIG for too many; -errno of a file.
 */
int drivers_create(const struct log *log, const char *const *files, size_t file_count, struct drivers **result);
void drivers_free(struct drivers *drivers);

const struct driver *drivers_find(const struct drivers *drivers, const char *name); /* NULL: unknown */

/*
 * Whether keys of set and of other can be compared, where each is the set that was taken of its driver: a set of an old
 * kernel may have another kind of key. Compared are the low join->bits of each part.
 */
bool driver_joins(const struct driver_set *set, const struct driver_join *join, const struct driver *other_driver,
		  const struct driver_set *other);

/* ---- names ---- */

const char *driver_role_name(enum xpt_event_role role);		 /* "queue"; never NULL */
const char *driver_meaning_name(enum xpt_event_meaning meaning); /* "engine"; never NULL */
int driver_role_from_name(const char *name);			 /* -ENOENT, also for internal ones */
int driver_meaning_from_name(const char *name);			 /* -ENOENT, also for internal ones and "key" */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Usage of an open file of a DRM or accel node: /proc/PID/fdinfo/N, by the kernel's drm-usage-stats document. */
#ifndef XPT_COUNTER_FDINFO_H
#define XPT_COUNTER_FDINFO_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "counter/polled.h"

#define FDINFO_EVENT_MAX 64  /* bytes with the 0 byte */
#define FDINFO_VALUES_MAX 64 /* xe has some 15 */

enum fdinfo_kind {
	FDINFO_ENGINE, /* "engine-render": ns in which the engine worked for the client */
	FDINFO_CYCLES, /* "cycles-rcs": cycles of it */
	FDINFO_MEMORY, /* "memory-vram0": bytes in that region */
};

struct fdinfo_value {
	char event[FDINFO_EVENT_MAX];
	enum fdinfo_kind kind;
	unsigned int rank; /* of the line that it is from: more is the better one for the same thing */
	__u64 raw;
	__u64 clock; /* cycles: of the engine's clock by then; 0: not reported */
};

struct fdinfo {
	char driver[64];
	char device[64]; /* "0000:03:00.0"; "" when it is not on PCI */
	__u64 client;	 /* the same for all descriptors of one open file; unique on its device */
	struct fdinfo_value values[FDINFO_VALUES_MAX];
	size_t value_count;
};

/*
 * Lines that are not understood are passed over, and values beyond the maximum. -EINVAL: not of such a node, or by a
 * driver that does not distinguish clients.
 */
int fdinfo_parse(const char *text, size_t length, struct fdinfo *fdinfo);

/* The kind of an event by its name; false when none can have it. */
bool fdinfo_event_kind(const char *event, enum fdinfo_kind *kind);

/*
 * DRM clients of one place, found by going through the open files of processes. A client is an open file of a DRM or accel
 * node; it may have descriptors in many processes and counts once.
 */

struct fdinfo_event {
	char name[FDINFO_EVENT_MAX];
	enum fdinfo_kind kind;
	__u64 seen;  /* number of the last walk in which a client had it */
	__u64 ended; /* sum of ended clients that are forgotten */
};

struct fdinfo_reading {
	__u64 raw, clock;		/* as in a value */
	__u64 raw_before, clock_before; /* when usage.c read it last */
	bool has;			/* the client has reported it */
};

struct fdinfo_client {
	char driver[64];
	char device[64];
	__u64 id;
	__u64 seen;		       /* number of the last walk that met it */
	unsigned long pid;	       /* the process in which that walk met it first */
	struct fdinfo_reading *values; /* of the first value_count events */
	size_t value_count;
};

struct fdinfo_process {
	unsigned long pid;
	__u64 inode;	/* of its folder */
	long long size; /* of its folder of descriptors, when it was last scanned */
	size_t descriptors;
	bool known; /* has been scanned */
	bool has_node;
};

struct fdinfo_scan {
	struct fdinfo_scan *next; /* the owner's */
	unsigned int users;	  /* the owner's */
	char *proc;
	char *sysfs;
	char *address; /* NULL: of every device */
	pid_t pid;     /* 0: every process */
	int folder;    /* proc, or the process's in it: it stays that process's when its number is used again */
	__u64 walk;    /* number of the last one, from 1 */
	__u64 walked;  /* when it ended, in ns of CLOCK_MONOTONIC */
	int error;     /* of the last one */
	struct fdinfo_event *events; /* may move; the index of one stays */
	size_t event_count;
	struct fdinfo_client *clients;
	size_t client_count;
	struct fdinfo_process *processes; /* by number; without pid */
	size_t process_count;
	unsigned long turn;    /* the process from which the next walk continues; 0: it begins at the first */
	unsigned long visited; /* the process that the walk is in */
};

/* -ENODEV: no such process, or no proc; -EACCES, -EIO, -ENOMEM. */
int fdinfo_scan_create(const struct counter_place *place, struct fdinfo_scan **result);
void fdinfo_scan_free(struct fdinfo_scan *scan);

/* -ENODEV: the process has ended; -EACCES: it may not be read; -EIO, -ENOMEM. */
int fdinfo_scan_walk(struct fdinfo_scan *scan);

/* The index of an event. -ENOENT when there are too many; never when a counter needs it. -ENOMEM. */
ssize_t fdinfo_scan_event(struct fdinfo_scan *scan, const char *name, enum fdinfo_kind kind, bool wanted);

/* Memory that is the device's own, not the machine's. */
bool fdinfo_is_own_memory(const struct fdinfo_event *event);

/* What grows: of all clients that there have been. Levels: of those that the last walk met. */
__u64 fdinfo_scan_sum(const struct fdinfo_scan *scan, size_t event);

#endif

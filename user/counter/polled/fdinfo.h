/* SPDX-License-Identifier: BSD-2-Clause */
/* Usage of an open file of a DRM or accel node: /proc/PID/fdinfo/N, by the kernel's drm-usage-stats document. */
#ifndef XPT_COUNTER_POLLED_FDINFO_H
#define XPT_COUNTER_POLLED_FDINFO_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

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

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the fields that a driver description names are in the records of a tracepoint of the running kernel. */
#ifndef XPT_TARGET_TRACEPOINT_TRACEPOINT_H
#define XPT_TARGET_TRACEPOINT_TRACEPOINT_H

#include "describe/driver/driver.h"

#define TRACEPOINT_REASON_MAX 256
#define TRACEPOINT_RECORD_MAX 8192 /* bytes of a record; the kernel gives a program no larger one */

struct tracepoint_field {
	const struct driver_field *field; /* as described; owned by the description */
	__u16 offset;			  /* bytes from the begin of the record, with what all records begin with */
	__u16 size;			  /* bytes: 1, 2, 4 or 8, or of a text's array */
	__u8 access;			  /* enum xpt_access */
	bool is_signed;			  /* of a number */
};

/* An event as this kernel has it. */
struct tracepoint {
	const struct driver_event *event;
	bool found;
	__u32 id; /* as perf_event_open() wants it */
	/* In the order of the description, so those of the key come first; optional ones that are missing are left out. */
	struct tracepoint_field fields[DRIVER_VALUES_MAX];
	size_t field_count;
	struct tracepoint_field condition;  /* field NULL: none */
	char reason[TRACEPOINT_REASON_MAX]; /* why it was not found: "field seqno is missing"; "" when it was */
};

/*
 * Reads the text of a file events/SYSTEM/EVENT/format (length bytes; need not be terminated). Where the text does not
 * have what the event needs, found is false and reason is set. 0 in both cases; -ENOMEM.
 */
int tracepoint_parse(const struct driver_event *event, const char *text, size_t length, struct tracepoint *tracepoint);

#endif

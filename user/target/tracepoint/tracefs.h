/* SPDX-License-Identifier: BSD-2-Clause */
/* Tracepoints of the running kernel, by what its tracefs has about them. */
#ifndef XPT_TARGET_TRACEPOINT_TRACEFS_H
#define XPT_TARGET_TRACEPOINT_TRACEFS_H

#include "describe/driver/driver.h"

/* ---- where the fields that a driver description names are in the records of a tracepoint ---- */

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

/* ---- tracefs, opened once: nothing is written to it ---- */

struct tracefs {
	int folder;    /* its root; of one that is zeroed: not open */
	char *mounted; /* where: "/sys/kernel/tracing"; NULL: nowhere, or the path was given */
	char *kernel;  /* "Linux 6.12.107-amd64", for messages; NULL: not open */
};

/*
 * path: its root folder. NULL: a mount of its own, which nobody else sees and which needs CAP_SYS_ADMIN; else the first
 * that is mounted. -ENOENT: none; -ENODEV: the kernel has no tracefs; -EACCES, -EPERM: it can't be read;
 * tracefs_advice() has what to do; -ENOMEM. Zeroed or opened, it may be closed.
 */
int tracefs_open(const char *path, struct tracefs *tracefs);
void tracefs_close(struct tracefs *tracefs);

/* What to do about an error of tracefs_open(); one sentence. */
const char *tracefs_advice(int error);

/* The number of a tracepoint, as perf_event_open() wants it; -ENOENT: there is none. system: of its length bytes. */
int tracefs_id(const struct tracefs *tracefs, const char *system, size_t length, const char *event);

/*
 * Looks an event up. A tracepoint that is not there has found = false and a reason, too. -EACCES, -EPERM: tracefs can't be
 * read; -ENOMEM.
 */
int tracefs_find(const struct tracefs *tracefs, const struct driver_event *event, struct tracepoint *tracepoint);

#endif

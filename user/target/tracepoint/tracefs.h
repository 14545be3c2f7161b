/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's tracefs, opened once, and its descriptions of tracepoints. Nothing is written to it. */
#ifndef XPT_TARGET_TRACEPOINT_TRACEFS_H
#define XPT_TARGET_TRACEPOINT_TRACEFS_H

#include "describe/driver/driver.h"
#include "target/tracepoint/tracepoint.h"

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

/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's tracefs: where it is, and what it says of tracepoints. Nothing is written to it. */
#ifndef XPT_TARGET_TRACEFS_H
#define XPT_TARGET_TRACEFS_H

#include "describe/driver.h"
#include "target/tracepoint.h"

struct tracefs {
	char *path;   /* "/sys/kernel/tracing" */
	char *kernel; /* "Linux 6.12.107-amd64", for messages */
};

/*
 * path: where tracefs is, NULL to find it. -ENOENT: it is not mounted; -EACCES, -EPERM: it can't be read; tracefs_advice()
 * says what to do. Zeroed or opened, it may be closed.
 */
int tracefs_open(const char *path, struct tracefs *tracefs);
void tracefs_close(struct tracefs *tracefs);

/* What to do about an error of tracefs_open(); one sentence. */
const char *tracefs_advice(int error);

/*
 * Looks an event up. A tracepoint that is not there has found = false and a reason, too. -EACCES, -EPERM: tracefs can't be
 * read; -ENOMEM.
 */
int tracefs_find(const struct tracefs *tracefs, const struct driver_event *event, struct tracepoint *tracepoint);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The device side: which drivers are followed, by which of their tracepoints and on which device nodes; also of drivers
 * that are loaded later.
 */
#ifndef XPT_SESSION_COLLECT_DEVICE_SIDE_H
#define XPT_SESSION_COLLECT_DEVICE_SIDE_H

#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire.h"
#include "kern/kern.h"

struct device_side;

struct device_side_options {
	const struct log *log;
	const char *const *driver_files; /* added descriptions */
	size_t driver_file_count;
	const char *drivers; /* "auto" (also NULL), "none", or names with commas between */
	const char *tracefs; /* its root folder; NULL: as tracefs_open() finds it */
	/* Called with DRIVER and DRIVER_EVENT records before the first record that refers to them can come. */
	int (*record)(void *context, const struct xpt_record_header *record);
	void *context;
};

/*
 * Reads the descriptions and checks the choice; *result is NULL when it is none. -EINVAL: a description or name is wrong;
 * -ENOENT, -EACCES of a file, or of tracefs when drivers were named; -ENOMEM.
 */
int device_side_create(const struct device_side_options *options, struct device_side **result);
void device_side_free(struct device_side *side); /* detaches what is left; NULL is fine */

/* Attaches to what is there. Whatever cannot be followed is logged. -ENOMEM, or an error of the record function. */
int device_side_start(struct device_side *side, struct kern *kern);
int device_side_descriptor(
	const struct device_side *side);	/* readable when something may have come; -1: no notification */
int device_side_look(struct device_side *side); /* whether something has come, and attaches to it */
void device_side_detach(struct device_side *side);

size_t device_side_tracepoints(const struct device_side *side); /* attached to, in all; NULL is fine */
size_t device_side_nodes(const struct device_side *side);	/* with followed ioctls */

#endif

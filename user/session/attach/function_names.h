/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of functions that are regions: emitted for each process, by the addresses of their probes there. */
#ifndef XPT_SESSION_ATTACH_FUNCTION_NAMES_H
#define XPT_SESSION_ATTACH_FUNCTION_NAMES_H

#include "describe/runtime/registry.h"
#include "target/probe/functions.h"

/* Does found hold any? */
bool function_names_any(const struct registry *registry, const struct found_functions *found);
/*
 * Emits a REGION_NAME record for each of those in the file, which the process has mapped, by the name that their reader
 * has given them. Returns the result of record(), or -ENOMEM.
 */
int function_names_tell(const struct registry *registry, const struct found_functions *found, pid_t tgid,
			const struct mapped_file *mapped,
			int (*record)(void *context, const struct xpt_record_header *record), void *context);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What functions are called that are regions: told for each process, by the addresses of their probes there. */
#ifndef XPT_SESSION_FUNCTION_NAMES_H
#define XPT_SESSION_FUNCTION_NAMES_H

#include "describe/registry.h"
#include "target/functions.h"

/* Does found hold any? */
bool function_names_any(const struct registry *registry, const struct found_functions *found);
/*
 * Gives out a REGION_NAME record for each of those that the file has, which the process has mapped: as C++ has the name, without
 * parameters, or the symbol. What record() answers, or -ENOMEM.
 */
int function_names_tell(const struct registry *registry, const struct found_functions *found, pid_t tgid,
			const struct mapped_file *mapped,
			int (*record)(void *context, const struct xpt_record_header *record), void *context);

#endif

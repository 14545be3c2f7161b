/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that the user gave to handles, or to fingerprints. */
#ifndef XPT_MODEL_PROGRAM_NAMES_H
#define XPT_MODEL_PROGRAM_NAMES_H

#include <stdbool.h>

#include "base/hashmap.h"

#define NAMES_MAX 4096

/* Zero it to begin with. */
struct names {
	struct map map; /* by tgid, 0 for any process, and handle */
	struct given_name *all, *newest;
};

void names_free(struct names *names);
/* text need not be terminated. A later name for the same handle replaces the first. -ENOSPC, -ENOMEM. */
int names_give(struct names *names, __u32 tgid, __u64 handle, const char *text, size_t length);
/* NULL: none. It counts as used from here on. */
const char *names_find(const struct names *names, __u32 tgid, __u64 handle);
/* Visits those that were never found, in the order in which they were given; fingerprint: what handles are here. */
void names_unused(const struct names *names, bool fingerprint,
		  void (*visit)(void *context, __u64 handle, bool fingerprint, const char *name), void *context);

#endif

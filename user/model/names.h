/* SPDX-License-Identifier: BSD-2-Clause */
/* The names that the user gave to handles. */
#ifndef XPT_MODEL_NAMES_H
#define XPT_MODEL_NAMES_H

#include "base/hashmap.h"

#define NAMES_MAX 4096

/* Zero it to begin with. */
struct names {
	struct map map; /* by tgid, 0 for any process, and handle */
	struct given_name *all;
};

void names_free(struct names *names);
/* text need not be terminated. A later name for the same handle replaces the first. -ENOSPC, -ENOMEM. */
int names_give(struct names *names, __u32 tgid, __u64 handle, const char *text, size_t length);
/* NULL: none */
const char *names_find(const struct names *names, __u32 tgid, __u64 handle);

#endif

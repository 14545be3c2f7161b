/* SPDX-License-Identifier: BSD-2-Clause */
/* What regions are called: by the number that stands for a text in their records, or by their handle. */
#ifndef XPT_MODEL_OPERATOR_REGION_NAMES_H
#define XPT_MODEL_OPERATOR_REGION_NAMES_H

#include "base/hashmap.h"
#include "base/link.h"
#include "bpf/wire.h"

#define REGION_NAMES_MAX 65536 /* known at once, of all processes; the oldest makes room */

/* Zero it and call region_names_init(). */
struct region_names {
	struct map by_number; /* by process and number */
	struct map by_handle;
	struct map by_process;
	struct link all; /* oldest first */
	size_t count;
};

void region_names_init(struct region_names *names);
void region_names_free(struct region_names *names);
/* text[length], truncated: there was more; a second one for a number or a handle replaces the first. -ENOMEM. */
int region_names_add(struct region_names *names, __u32 tgid, __u64 number, const char *text, size_t length,
		     bool truncated);
int region_names_add_handle(struct region_names *names, __u32 tgid, __u64 handle, const char *text, size_t length,
			    bool truncated);
void region_names_drop_handle(struct region_names *names, __u32 tgid, __u64 handle);
/* The process's memory is gone. */
void region_names_drop_process(struct region_names *names, __u32 tgid);
/* NULL: not known. Valid until the next call. What the handle was given counts more than the text it had later. */
const char *region_names_find(const struct region_names *names, __u32 tgid, __u64 handle, __u64 number,
			      bool *truncated);

#endif

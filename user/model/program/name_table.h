/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of what has a number in a process, such as an address or a handle: bounded, and dropped with their owner. */
#ifndef XPT_MODEL_PROGRAM_NAME_TABLE_H
#define XPT_MODEL_PROGRAM_NAME_TABLE_H

#include "base/core/hashmap.h"

struct name {
	struct keyed keyed;
	bool truncated; /* there was more of it */
	bool used;	/* it has been found */
	char text[];
};

struct name_table {
	struct keyed_table table; /* struct name */
	bool refuses;
};

/* Beyond most, a further name is refused, or the oldest makes room. */
void name_table_init(struct name_table *names, size_t most, bool refuses);
static inline void name_table_free(struct name_table *names)
{
	keyed_free(&names->table);
}

/* text[length] need not be terminated; it ends at a 0 byte. A later name for the same key replaces the first. -ENOSPC: refused, -ENOMEM. */
int name_table_add(struct name_table *names, __u64 owner, __u64 a, __u64 b, const char *text, size_t length,
		   bool truncated);
/* NULL: none. It counts as used from here on. Valid until the next name_table_add() or _drop(). */
const struct name *name_table_find(const struct name_table *names, __u64 a, __u64 b);
void name_table_drop(struct name_table *names, __u64 a, __u64 b);
static inline void name_table_drop_owner(struct name_table *names, __u64 owner)
{
	keyed_drop_owner(&names->table, owner);
}

#endif

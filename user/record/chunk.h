/* SPDX-License-Identifier: BSD-2-Clause */
/* A piece of a window's memory, shared with snapshots: what has been written stays as it is. Private to record/. */
#ifndef XPT_RECORD_CHUNK_H
#define XPT_RECORD_CHUNK_H

#include <stddef.h>

#include "bpf/wire.h"

struct past_copy;
struct snapshot;

struct chunk {
	unsigned int users; /* the window and snapshots; atomic */
	__u32 filled;	    /* bytes */
	__u32 records;
	__u64 opened; /* ns: when its first record came; */
	__u64 latest; /* latest time of a record */
	__u64 task;   /* earliest time of a TASK record; UINT64_MAX: none is there */
	char data[];
};

static inline void chunk_use(struct chunk *chunk)
{
	__atomic_fetch_add(&chunk->users, 1, __ATOMIC_RELAXED);
}

/* Frees it with the last user. */
void chunk_leave(struct chunk *chunk);

/* Of a snapshot: as much of a chunk as was there. */
struct chunk_part {
	struct chunk *chunk;
	__u32 filled;
};

/* The records of a part, from the first on: for (at = 0; (record = chunk_next(&part, &at));) */
static inline const struct xpt_record_header *chunk_next(const struct chunk_part *part, __u32 *at)
{
	const struct xpt_record_header *record = (const void *)(part->chunk->data + *at);

	if (*at >= part->filled)
		return NULL;
	*at += record->size;
	return record;
}

/* One that is empty, with room for so many chunks. NULL: no memory. */
struct snapshot *snapshot_create(__u64 begin, size_t chunks);
/* The next one, as far as it is filled now. */
void snapshot_add(struct snapshot *snapshot, struct chunk *chunk);
struct past_copy *snapshot_past(struct snapshot *snapshot); /* to be filled */

#endif

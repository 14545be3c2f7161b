/* SPDX-License-Identifier: BSD-2-Clause */
/* Records as they come: whether their sizes are right, and in which order they are delivered. */
#ifndef XPT_MODEL_STREAM_RECORDS_H
#define XPT_MODEL_STREAM_RECORDS_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/wire.h"

/*
 * The record lies within room bytes, is at least as long as its kind's struct, and its values or text fit into it. Of a
 * kind that this version doesn't know only the header is checked.
 */
bool record_validate(const struct xpt_record_header *record, size_t room);

/*
 * Holds records back until their order is known. Records of one ring come nearly sorted, the rings one after the
 * other: they are copied into one piece of memory as they come, and an index of them is sorted when some are due.
 */

#define REORDER_BYTES_MAX (16u << 20) /* of records held back */

#define REORDER_KEY_LAST (~(__u64)0)

struct reorder_entry {
	__u64 key; /* time and, among records of one time, what must be known first: strings and names before calls */
	__u64 offset; /* of the record, in bytes from the first */
};

/* Zero it to begin with. */
struct reorder_buffer {
	char *bytes;
	size_t used, room;
	struct reorder_entry *entries;
	struct reorder_entry *spare; /* for sorting, as large as entries */
	__u32 *starts;		     /* of slices of time, as many as entries */
	size_t count, entry_room;
};

void reorder_free(struct reorder_buffer *order);

/* A record of size bytes cannot be added before some are taken out. */
bool reorder_full(const struct reorder_buffer *order, size_t size);
/* Copies a record, aligned to 8, behind those held; it is not one of them until reorder_keep. NULL: no memory. */
struct xpt_record_header *reorder_stage(struct reorder_buffer *order, const void *record, size_t size);
int reorder_keep(struct reorder_buffer *order); /* the record staged last; -ENOMEM */

/* Last key of the records up to time. */
__u64 reorder_key_until(__u64 time);
/* Sorts the records that have at most this key, and returns how many: reorder_record() of 0 to that number - 1. */
size_t reorder_due(struct reorder_buffer *order, __u64 key);
/* Sorts, and returns the key in the middle. */
__u64 reorder_middle(struct reorder_buffer *order);
static inline const struct xpt_record_header *reorder_record(const struct reorder_buffer *order, size_t index)
{
	return (const struct xpt_record_header *)(order->bytes + order->entries[index].offset);
}
/* Forgets the records with at most this key. */
void reorder_drop(struct reorder_buffer *order, __u64 key);

#endif

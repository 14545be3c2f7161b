/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Holds records back until their order is known. Records of one ring come nearly sorted, the rings one after the
 * other: they are copied into one piece of memory as they come, and an index of them is sorted when some are due.
 */
#ifndef XPT_MODEL_STREAM_REORDER_BUFFER_H
#define XPT_MODEL_STREAM_REORDER_BUFFER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "bpf/wire.h"

#define ORDER_BYTES_MAX (16u << 20) /* of records held back */

#define ORDER_KEY_LAST (~(__u64)0)

struct order_entry {
	__u64 key; /* time and, among records of one time, what must be known first: strings and names before calls */
	__u64 offset; /* of the record, in bytes from the first */
};

/* Zero it to begin with. */
struct order {
	char *bytes;
	size_t used, room;
	struct order_entry *entries;
	struct order_entry *spare; /* for merging, as large as entries */
	size_t count, entry_room;
};

void order_free(struct order *order);

/* A record of size bytes cannot be added before some are taken out. */
bool order_full(const struct order *order, size_t size);
/* Copies a record, aligned to 8, behind those held; it is not one of them until order_keep. NULL: no memory. */
struct xpt_record_header *order_stage(struct order *order, const void *record, size_t size);
int order_keep(struct order *order); /* the record staged last; -ENOMEM */

/* Last key of the records up to time. */
__u64 order_key_until(__u64 time);
/* Sorts, and returns how many records have at most this key: order_record() of 0 to that number - 1. */
size_t order_due(struct order *order, __u64 key);
/* Sorts, and returns the key in the middle. */
__u64 order_middle(struct order *order);
static inline const struct xpt_record_header *order_record(const struct order *order, size_t index)
{
	return (const struct xpt_record_header *)(order->bytes + order->entries[index].offset);
}
/* Forgets the records with at most this key. */
void order_drop(struct order *order, __u64 key);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The samples of one consumer, where the kernel records more for others: what it gets is as if it were alone. */
#ifndef XPT_SESSION_CORE_SELECTION_H
#define XPT_SESSION_CORE_SELECTION_H

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "describe/runtime/registry.h"

#define SELECTION_CALL_MAX 256 /* bytes of a CALL record */

struct selection {
	const struct registry *registry;
	__u32 every;	     /* of each program one inference in so many; 0 or 1: all */
	struct map programs; /* struct left_out, by key */
	struct link all;     /* the same */
	__u64 calls;	     /* left out, in all */
	__u64 copy[SELECTION_CALL_MAX / sizeof(__u64)];
};

void selection_init(struct selection *selection, const struct registry *registry, __u32 every);
/* The record as the consumer gets it, valid until the next call; NULL: not at all. */
const struct xpt_record_header *selection_take(struct selection *selection, const struct xpt_record_header *record);
void selection_free(struct selection *selection); /* it may be zeroed */

#endif

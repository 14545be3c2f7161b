/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Waits that ended nothing: what they were for may not have returned yet on its own thread. They are kept until it has.
 */
#ifndef XPT_MODEL_INFERENCE_ORPHAN_WAITS_H
#define XPT_MODEL_INFERENCE_ORPHAN_WAITS_H

#include "base/hashmap.h"
#include "base/link.h"
#include "model/stream/event.h"

/* How something that was enqueued has ended. */
struct wait_end {
	__u64 time;
	__u32 tid;
	enum call_outcome outcome;
	bool has_status;
	__s64 status;
	const char *status_name;
	bool counted;
	struct xpt_counts counts; /* when it returned */
};

struct early {
	struct map map;	   /* by queue and key */
	struct link waits; /* oldest first */
	size_t most;
};

/* Beyond most, the oldest makes room. */
void early_init(struct early *early, size_t most);
void early_free(struct early *early);

/* A later wait for the same key replaces the first. -ENOMEM. */
int early_add(struct early *early, unsigned int queue, __u64 key, const struct wait_end *end);
/* Takes out the wait for this key. Returns whether there was one. */
bool early_take(struct early *early, unsigned int queue, __u64 key, struct wait_end *end);
void early_drop(struct early *early, unsigned int queue);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* How much device memory each process holds in each runtime. */
#ifndef XPT_MODEL_DEVICE_MEMORY_H
#define XPT_MODEL_DEVICE_MEMORY_H

#include "base/core/keyed_table.h"
#include "model/program/processes.h"

#define MEMORY_ALLOCATIONS_MAX 65536 /* followed at once; further ones are not counted */
#define MEMORY_POOLS_MAX 4096	     /* a pool is what one process holds in one runtime */

struct memory {
	struct event_dispatch *events;
	struct keyed_table pools;	/* of processes */
	struct keyed_table allocations; /* of pools */
	unsigned int next_pool;
	__u64 ended; /* when the process had whose pools are dropped */
};

void memory_init(struct memory *memory, struct event_dispatch *events);
void memory_free(struct memory *memory);

/* A call that is no layer has taken memory. An EVENT_COUNTER reports the sum, here as below. -ENOMEM. */
int memory_take(struct memory *memory, const struct process *process, const struct event_call *call);
/* A call gave memory back; it may be a layer. */
void memory_give(struct memory *memory, const struct process *process, const struct event_call *call);
/* The process has ended, and with it all that it held. */
void memory_drop_process(struct memory *memory, const struct process *process, __u64 time);

#endif

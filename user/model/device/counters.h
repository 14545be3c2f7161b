/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that are read: their values between two readings, and during an inference. And how much device memory is held. */
#ifndef XPT_MODEL_DEVICE_COUNTERS_H
#define XPT_MODEL_DEVICE_COUNTERS_H

#include "base/core/hashmap.h"
#include "model/program/processes.h"
#include "model/stream/event.h"
#include "model/stream/event_dispatch.h"

struct cJSON;

/* A counter and its latest value. */
struct sampled_counter {
	struct model_counter view; /* strings owned */
	double before;
	__u64 time;    /* of the reading before */
	bool known;    /* there is one, and it had a value */
	double sum;    /* of emitted values, weighted */
	double weight; /* ns; of a level: readings */
	double scale;  /* of a slot: unit for each count */
	bool each_cpu; /* ... they are of the CPU that they were read on */
};

struct counter_samples {
	struct event_dispatch *events;
	struct sampled_counter *all[XPT_COUNTER_MAX];
	size_t count;
	const struct model_counter *slotted[XPT_SLOT_MAX]; /* those that are read around inferences */
	unsigned int slotted_count, slots;
};

void counter_samples_init(struct counter_samples *samples, struct event_dispatch *events);
/* From the JSON of a COUNTER record. Indices come in their order, each once: -EBADMSG. -ENOMEM. */
int counter_samples_add(struct counter_samples *samples, __u64 index, const struct cJSON *object);
/* Emits the values. The record has at most as many as there are counters. */
void counter_samples_deliver(struct counter_samples *samples, const struct xpt_record_reading *record);
/* What was counted between begin and end, elapsed ns later, on the same thread or another; nothing when one of them is NULL. */
void counter_samples_between(const struct counter_samples *samples, const struct xpt_counts *begin,
			     const struct xpt_counts *end, bool same_thread, __u64 elapsed,
			     struct model_counts *result);
void counter_samples_free(struct counter_samples *samples);

/* How much device memory each process holds in each runtime. */

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

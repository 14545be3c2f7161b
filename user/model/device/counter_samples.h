/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters that are read: their values between two readings, and during an inference. */
#ifndef XPT_MODEL_DEVICE_COUNTER_SAMPLES_H
#define XPT_MODEL_DEVICE_COUNTER_SAMPLES_H

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

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* How what is gone is forgotten: in batches, and not too soon. */
#ifndef XPT_MODEL_PROGRAM_EVICTION_H
#define XPT_MODEL_PROGRAM_EVICTION_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define SETTLE_TIME 10000000000ull /* ns after the end of a program or process in which its exact totals have come */
#define PACE_TIME 100000000ull	   /* ns until it is looked again, when there was not enough that could be forgotten */

/* Zero it to begin with. */
struct pace {
	bool waiting;
	__u64 time;
	size_t gone; /* so many there were to look through */
};

static inline size_t pace_batch(size_t keep, size_t most)
{
	const size_t batch = (keep < most ? keep : most) / 8;

	return batch ? batch : 1;
}

static inline bool pace_due(const struct pace *pace, size_t gone, size_t batch, __u64 time)
{
	return !pace->waiting || gone >= pace->gone + batch || time - pace->time >= PACE_TIME;
}

static inline void pace_set(struct pace *pace, bool enough, size_t gone, __u64 time)
{
	*pace = (struct pace){ .waiting = !enough, .time = time, .gone = gone };
}

static inline bool pace_settled(__u64 end, __u64 time)
{
	return time > end && time - end >= SETTLE_TIME;
}

#endif

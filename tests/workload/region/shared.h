/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of the region workload know of each other. */
#ifndef WORKLOAD_REGION_SHARED_H
#define WORKLOAD_REGION_SHARED_H

#include <stdint.h>

#include <xputrace/region.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Starts and stops the region; of other.c, in the executable. */
void other_start(struct xpt_region *region);
void other_stop(struct xpt_region *region);

/* The same in the shared object, and a region that it has initialised. */
void shared_start(struct xpt_region *region);
void shared_stop(struct xpt_region *region);
struct xpt_region *shared_region(void);

/* Sums with many local variables around, and inside, a region; the right sum is known: leaf_expected. */
uint64_t leaf_sum(struct xpt_region *region, uint64_t seed);
uint64_t leaf_expected(uint64_t seed);

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XPT_BASE_CORE_CLOCK_H
#define XPT_BASE_CORE_CLOCK_H

#include <linux/types.h>
#include <time.h>

static inline __u64 clock_read(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

/* ns of CLOCK_MONOTONIC: the clock of every record. */
static inline __u64 clock_monotonic(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The inferences of one program that ended in the last T, in TRIGGER_SLICES slices of T / TRIGGER_SLICES each. Slices
 * begin at multiples of their width on the clock, and the newest one is still being filled: what is known is between
 * 95 and 100 % of T, back from the newest end.
 *
 * How many inferences there are, how many of them are beyond the limit and their sum are exact. So is whether a
 * percentile is beyond: it is where fewer than its rank are not. What it is comes from histograms of those beyond
 * alone, within 1 % (model/stats/statistics.h); a program that keeps to its limit has none.
 */
#ifndef XPT_PROFILE_TRIGGER_WINDOW_H
#define XPT_PROFILE_TRIGGER_WINDOW_H

#include <linux/types.h>
#include <stdbool.h>

#define TRIGGER_SLICES 20

struct statistics;

struct trigger_slice {
	unsigned __int128 sum;	   /* ns, of all */
	__u64 count, beyond;	   /* inferences; of them, those beyond the limit */
	struct statistics *values; /* ns, of those beyond; NULL: none yet */
};

/* Zero it to begin with. */
struct trigger_window {
	struct trigger_slice slices[TRIGGER_SLICES]; /* by number modulo their count */
	__u64 newest;				     /* number of the newest slice */
	unsigned __int128 sum;			     /* of all slices, as there */
	__u64 count, beyond;
};

/*
 * Counts one in slice number; ends need not be in order. -ESTALE: the window has moved past that slice; -ENOMEM. It
 * is not counted then.
 */
int trigger_window_add(struct trigger_window *window, __u64 number, __u64 latency, bool beyond);
/* The latency at this rank among those that are beyond: 1, the shortest, to window->beyond, both exact. -ENOMEM. */
int trigger_window_beyond(const struct trigger_window *window, __u64 rank, __u64 *latency);
void trigger_window_free(struct trigger_window *window); /* what it points to */

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The offset between two clocks, from spans of the same work on both: each run lies inside the call that made it, on
 * the same thread. Nothing is guessed: an offset is accepted only if no other one would do nearly as well.
 */
#ifndef XPT_REPORT_MERGE_MATCH_H
#define XPT_REPORT_MERGE_MATCH_H

#include <linux/types.h>
#include <stddef.h>

#define MERGE_MATCH_LEAST 3 /* runs and calls that there must be */

struct merge_span {
	__u32 thread;
	__s64 start, end; /* ns */
};

enum merge_verdict {
	MERGE_FITS,
	MERGE_NO_CALLS,	 /* none on the threads of the runs */
	MERGE_TOO_FEW,	 /* runs or calls: less than MERGE_MATCH_LEAST */
	MERGE_NO_FIT,	 /* with every offset some run has no call, or nearly all lie outside */
	MERGE_AMBIGUOUS, /* several offsets do */
	MERGE_TOO_MUCH,	 /* too much work: the spans are many and too regular */
};

struct merge_fit {
	__s64 offset;	   /* ns, to be added to the times of runs */
	__u64 uncertainty; /* ns: it may be so much more or less */
	size_t matched;	   /* runs that have a call */
};

/*
 * runs: whole microseconds, cut. Each that lies between the begin of the first call and the end of the last one must
 * lie in a call of its own; calls may be without a run. Sorts both.
 */
enum merge_verdict merge_match(struct merge_span *runs, size_t run_count, struct merge_span *calls, size_t call_count,
			       struct merge_fit *fit);

#endif

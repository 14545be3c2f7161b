/* SPDX-License-Identifier: BSD-2-Clause */
/* What was in a window at one moment. May be read and freed on another thread than that of the window. */
#ifndef XPT_RECORD_SNAPSHOT_H
#define XPT_RECORD_SNAPSHOT_H

#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire.h"

struct snapshot;

/* A stretch of one thread: what began and ended in it. */
struct snapshot_stretch {
	__u32 tgid, tid;
	__u64 begin, end; /* ns, both included */
};

/* Which part of it is wanted. */
struct snapshot_part {
	/*
	 * ns: what began earlier is left out, with all that lies in it on its thread but waits and calls that report
	 * programs. Earlier reports are there, as records of just before.
	 */
	__u64 from;
	__u32 tgid; /* only of this process; 0: of all */
	/*
	 * Where there are any: only calls and regions in these stretches, in order of thread and begin; steps of the
	 * inferences that begin with one, wherever they run; what happened to devices between the first begin and the last
	 * end; and calls that load, name and release programs, and name regions.
	 */
	const struct snapshot_stretch *stretches;
	size_t count;
	const __u8 *roles; /* enum xpt_role of each spec, XPT_SPEC_MAX of them */
};

/*
 * Visits records that define the others, with times of just before them, and then the wanted ones, in the order in
 * which they came. A non-zero return ends the walk and is returned. -ENOMEM.
 */
int snapshot_each(const struct snapshot *snapshot, const struct snapshot_part *part,
		  int (*visit)(void *context, const struct xpt_record_header *record), void *context);
__u64 snapshot_begin(const struct snapshot *snapshot); /* ns: what began from here on is there */
void snapshot_free(struct snapshot *snapshot);

#endif

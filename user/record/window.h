/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The latest part of a stream of records, in memory: bounded in bytes and in time, the oldest are evicted first. A
 * snapshot, as a recording that began with the window, can be taken at any time. One thread at a time; a snapshot
 * belongs to its holder.
 */
#ifndef XPT_RECORD_WINDOW_H
#define XPT_RECORD_WINDOW_H

#include <linux/types.h>
#include <stddef.h>

#include "bpf/wire.h"
#include "record/context.h"

#define WINDOW_BYTES_MIN (2u << 20)
#define WINDOW_BYTES_MAX (1ull << 40)

struct window_options {
	__u64 bytes; /* of memory for records, WINDOW_BYTES_MIN to WINDOW_BYTES_MAX */
	__u64 span;  /* ns: what is older is evicted; 0: no limit */
	__u64 begin; /* ns: before it nothing was recorded */
};

struct window;

int window_create(const struct window_options *options, struct window **result); /* -EINVAL, -ENOMEM */
void window_free(struct window *window);

/* Copies the record. -ENOMEM: it is not in the window, and counted. */
int window_add(struct window *window, const struct xpt_record_header *record);
/*
 * What a program or region is called from here on, by a LOADED record, or that it was released: NULL. May come later than the records
 * of that time. -ENOMEM: it will not be known, once it is older.
 */
int window_change(struct window *window, const struct past_change *change, const struct xpt_record_text *record);
/* From now on it may have this number of bytes, no fewer than before. */
void window_grow(struct window *window, __u64 bytes);
/* The number of bytes of its memory that are used by others, for what is evicted with the window. */
void window_reserve(struct window *window, __u64 bytes);
/* Evicts whatever is too old by now. */
void window_expire(struct window *window, __u64 now);

struct window_figures {
	__u64 begin;   /* ns: what began from here on is in the window */
	__u64 bytes;   /* of memory in use */
	__u64 records; /* in it */
	__u64 evicted; /* records that had to go */
	__u64 lost;    /* records that came when there was no memory */
	__u64 unknown; /* reports of processes and programs that were dropped: too many, or no memory */
};
void window_figures(const struct window *window, struct window_figures *figures);

/* ---- what was in a window at one moment: may be read and freed on another thread ---- */

struct snapshot;

/* What is in the window now. Costs a copy of the state of processes and programs, not of the records. -ENOMEM. */
int window_snapshot(const struct window *window, struct snapshot **result);

/* A stretch of one thread: what began and ended in it. */
struct snapshot_stretch {
	__u32 tgid, tid;
	__u64 begin, end; /* ns, both included */
};

/* Which part of it is requested. */
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

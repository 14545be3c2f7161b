/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the kernel has counted of one program or function. It counts until a TOTAL record tells the final counts, then
 * begins anew; a COUNT record tells those so far. What both give together is exact, and what was added each time never
 * negative, whatever comes late or twice.
 */
#ifndef XPT_MODEL_PROGRAM_COUNTING_H
#define XPT_MODEL_PROGRAM_COUNTING_H

#include <linux/types.h>
#include <stdbool.h>

#include "bpf/wire.h"

/* Zero it to begin with. */
struct counting {
	__u64 cut;			  /* time of the last TOTAL */
	__u64 since;			  /* when the counting began that is running */
	struct xpt_program_count running; /* what COUNTs have told of it; its TOTAL will come */
	struct xpt_program_count earlier; /* the same of the counting before, when its TOTAL is late */
};

bool count_is_zero(const struct xpt_program_count *count);
void count_add(struct xpt_program_count *into, const struct xpt_program_count *from);

/*
 * A COUNT or TOTAL has come: adds what it tells to total, takes out what was told before of the same, and sets delta to
 * the difference. counting_read returns false when the COUNT is of a counting that has ended, or older than the one before:
 * then nothing has changed.
 */
bool counting_read(struct counting *counting, const struct xpt_record_count *record, struct xpt_program_count *total,
		   struct xpt_program_count *delta);
void counting_end(struct counting *counting, const struct xpt_record_total *record, struct xpt_program_count *total,
		  struct xpt_program_count *delta);

/* A TOTAL is to come that replaces what was told. */
static inline bool counting_open(const struct counting *counting)
{
	return !count_is_zero(&counting->running);
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of devices and the kernel that are read while calls are recorded: at intervals, or around each inference. */
#ifndef XPT_SESSION_COLLECT_COUNTER_SIDE_H
#define XPT_SESSION_COLLECT_COUNTER_SIDE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <xputrace/counters.h>

#include "base/core/log.h"
#include "bpf/wire.h"
#include "kern/kern.h"

#define COUNTER_SIDE_EVERY 10000000ull /* ns; when nothing else is asked for */

struct counter_side;

struct counter_side_options {
	const struct log *log;
	const char *const *names; /* as in xpt_counters_options */
	size_t count;
	bool tracks; /* at intervals */
	__u64 every; /* ns; 0: COUNTER_SIDE_EVERY */
	bool per_inference;
	const char *tracefs; /* its root folder; NULL: as tracefs_open() finds it */
	/* Called with COUNTER records, then with READING records. */
	int (*record)(void *context, const struct xpt_record_header *record);
	void *context;
};

/*
 * Opens the counters. *result is NULL when there are none. Errors are those of xpt_counters_open() and
 * call_events_open(), -E2BIG, logged.
 */
int counter_side_create(const struct counter_side_options *options, struct counter_side **result);
void counter_side_free(struct counter_side *side); /* NULL is fine */
/* What a counter is; its strings live as long as side. NULL: there is no such index, or side is NULL. */
const struct xpt_counter_info *counter_side_info(const struct counter_side *side, size_t index);
/* Of a counter that there is: what it counts around an inference, as call_events_of(); "": it is not read there. */
const char *counter_side_of(const struct counter_side *side, size_t index);
unsigned int counter_side_slots(
	const struct counter_side *side); /* perf events around an inference; side: NULL is fine */
/* Sets what of the options is about events around inferences; they are lent until the kernel's side has been opened. */
void counter_side_lend(const struct counter_side *side, struct kern_options *options); /* side: NULL is fine */
void counter_side_lent(struct counter_side *side);				       /* it has been; NULL is fine */
/* Emits what they are, and where they begin. -ENOMEM, or an error of the record function. */
int counter_side_start(struct counter_side *side);
__u64 counter_side_due(
	const struct counter_side *side);	  /* when they are read next; ~0: side is NULL, or has not begun */
int counter_side_look(struct counter_side *side); /* reads them if it is due; NULL is fine */
int counter_side_stop(struct counter_side *side); /* reads them for the last time; NULL is fine */

#endif

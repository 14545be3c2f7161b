/* SPDX-License-Identifier: BSD-2-Clause */
/* What the collector and its guard process share; between guard.c and guard_process.c only. */
#ifndef XPT_BASE_GUARD_PRIVATE_H
#define XPT_BASE_GUARD_PRIVATE_H

#include <stdatomic.h>

#include "base/guard.h"

#define GUARD_GOODBYE 'q' /* message: all is in order, just end */
#define GUARD_FILE 'f'	  /* message: comes with a descriptor */

struct guard_file_state {
	__u64 length;
	__u32 tail_length;
	char tail[GUARD_TAIL_MAX];
};

/* In memory that is shared by both. Only the collector writes. */
struct guard_table {
	_Atomic __u32 file_sequence; /* 0: no state yet; else state[file_sequence & 1] is whole */
	struct guard_file_state state[2];
};

/*
 * The guard's whole life, in the child of the fork; never returns. parent is a pidfd of the collector or -1. Makes
 * system calls only: after a fork nothing else is safe when the parent has threads after all.
 */
void guard_process(struct guard_table *table, int socket, int parent) __attribute__((noreturn));

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Sums over what lies inside a call on its thread. Calls are delivered in the order of their ends: what has ended since one
 * began is inside it; what ended before and is still here may be inside of one around it, or was inside of one that has no
 * end.
 */
#ifndef XPT_MODEL_OPERATOR_NESTING_H
#define XPT_MODEL_OPERATOR_NESTING_H

#include <stdbool.h>

#include "base/hashmap.h"
#include "base/link.h"

#define NESTING_THREADS_MAX 4096 /* the one that came first makes room */

struct nesting {
	struct map threads;
	struct link active; /* oldest first */
};
struct nesting_thread;

/* Of one call with all inside it; what they mean is the caller's. */
struct nested {
	__u64 first, second;
};

void nesting_init(struct nesting *nesting);
void nesting_free(struct nesting *nesting);
/* Of the index of a process. make: where there is none; NULL: no memory, or there is none. */
struct nesting_thread *nesting_find(struct nesting *nesting, unsigned int process, __u32 tid, bool make);
/* Takes off what has ended inside the call that began at start. Its sum. */
struct nested nesting_take(struct nesting_thread *thread, __u64 start);
/* The call has ended. outermost: nothing is around it. -ENOMEM. */
int nesting_add(struct nesting_thread *thread, bool outermost, __u64 end, struct nested sum);
/* The process is gone. */
void nesting_drop(struct nesting *nesting, unsigned int process);

#endif

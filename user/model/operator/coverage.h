/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of an inference lies in its operators. Calls are delivered in the order of their ends, so what is inside something
 * comes before it, and everything in an inference before the inference.
 */
#ifndef XPT_MODEL_OPERATOR_COVERAGE_H
#define XPT_MODEL_OPERATOR_COVERAGE_H

#include <stdbool.h>

#include "base/core/hashmap.h"
#include "bpf/wire.h"

/*
 * Sums over what lies inside a call on its thread. Calls are delivered in the order of their ends: what has ended since one
 * began is inside it; what ended before and is still here may be inside of one around it, or was inside of one that has no
 * end.
 */

#define NESTING_THREADS_MAX 4096 /* the oldest is evicted */

struct nesting {
	struct keyed_table threads; /* by process and number */
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
/* The process has ended. */
void nesting_drop(struct nesting *nesting, unsigned int process);

#define COVERAGES_MAX 4096 /* inferences under way at once; the oldest makes room */

struct coverage {
	struct keyed_table open;  /* inferences that have not ended, by process and begin */
	struct nesting operators; /* ns that each took */
};

/* Where a call happened: index of the process, thread, in how many calls of the thread, and not on its inference's thread. */
struct coverage_place {
	unsigned int process;
	__u32 tid;
	unsigned int depth;
	bool apart;
};

void coverage_init(struct coverage *coverage);
void coverage_free(struct coverage *coverage);

/*
 * An operator from start to end, of the inference that began at `inference` (0: of none). self: ns of it that are not in
 * operators inside it. -ENOMEM: self is all of it.
 */
int coverage_operator(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 start,
		      __u64 end, __u64 *self);
/*
 * An inference has ended. Whether there were operators; then covered: ns during which at least one of them was running, on
 * whatever thread.
 */
bool coverage_end(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 *covered);
/* The process has ended. */
void coverage_drop(struct coverage *coverage, unsigned int process);

#endif

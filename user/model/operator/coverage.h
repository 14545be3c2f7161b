/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How much of an inference lies in its operators. Calls are delivered in the order of their ends, so what is inside something
 * comes before it, and everything in an inference before the inference.
 */
#ifndef XPT_MODEL_OPERATOR_COVERAGE_H
#define XPT_MODEL_OPERATOR_COVERAGE_H

#include <stdbool.h>

#include "base/hashmap.h"
#include "base/link.h"
#include "bpf/wire.h"
#include "model/operator/nesting.h"

#define COVERAGES_MAX 4096 /* inferences under way at once; the oldest makes room */

struct coverage {
	struct map inferences;
	struct link open; /* oldest first */
	size_t open_count;
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
/* The process is gone. */
void coverage_drop(struct coverage *coverage, unsigned int process);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * In which operator a launch was made: the innermost one that was open on its thread. Calls are delivered in the order
 * of their ends, so that is known when the operator has returned; that there is none, when a call returns that is
 * nested in no other. Until then launches are held.
 */
#ifndef XPT_MODEL_OPERATOR_LAUNCHES_H
#define XPT_MODEL_OPERATOR_LAUNCHES_H

#include "base/pool.h"
#include "model/operator/operators.h"

#define LAUNCHES_MAX 65536 /* held at once; the oldest is told without its operator, which does not count it */

struct launches {
	struct sinks *sinks;
	struct map by_thread;
	struct link all; /* oldest first */
	size_t count;
	struct pool pool, threads;
};

void launches_init(struct launches *launches, struct sinks *sinks);
void launches_free(struct launches *launches);

/*
 * A call, after its own event. A launch that is no layer is held; an EVENT_LAUNCH tells of each of which it is known
 * now in which operator it was made. program: of the call, NULL: none. step: the operator if the call is one's; NULL:
 * it is none, or there are too many. -ENOMEM.
 */
int launches_call(struct launches *launches, const struct process *process, struct program *program, struct step *step,
		  const struct event_call *call);
/* No call of the process will return any more. */
void launches_drop_process(struct launches *launches, const struct process *process);
/* The recording has ended. */
void launches_drop_all(struct launches *launches);

#endif

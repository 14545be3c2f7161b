/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asynchronous inferences: what an enqueue or launch begins is ended by the first successful wait for its key, for its
 * stream, or for the whole device, that returns after the enqueue began.
 *
 * What is given up without a wait becomes an EVENT_UNPAIRED at once; but a launch is complete when all its jobs have
 * ended.
 */
#ifndef XPT_MODEL_INFERENCE_ASYNC_INFLIGHT_H
#define XPT_MODEL_INFERENCE_ASYNC_INFLIGHT_H

#include "base/core/hashmap.h"
#include "model/device/counters.h"
#include "model/device/jobs.h"
#include "model/program/programs.h"
#include "model/stream/event.h"

/* How something that was enqueued has ended. */
struct wait_end {
	__u64 time;
	__u32 tid;
	enum call_outcome outcome;
	bool has_status;
	__s64 status;
	const char *status_name;
	bool counted;
	struct xpt_counts counts; /* when it returned */
	struct model_states states;
};

#define ASYNC_STREAMS_MAX 4096 /* streams followed at once; the one not used for longest makes room */
#define ASYNC_QUEUES_MAX 4096  /* a queue is all that one process has under way in one runtime */
#define ASYNC_ORPHANS_MAX 4096 /* waits kept that may precede the return of their enqueue */

struct async_inflight {
	struct event_dispatch *events;
	struct job_observers *observers;
	const struct counter_samples *samples;
	struct map by_key;		 /* struct open_inference, by queue and key */
	struct keyed_table queues;	 /* of processes */
	struct keyed_table streams;	 /* of queues, the one used last at the end */
	struct keyed_table orphan_waits; /* of queues: that ended nothing, as what they are for may return yet */
	__u64 dropped;			 /* when what is dropped was */
	struct link opens;		 /* all open ones, oldest first */
	struct link ended;		 /* open ones that the call at hand has ended, until async_emit */
	struct link
		followed; /* open ones of other streams that have ended with them, until the call has been dealt with */
	size_t open_count;
	unsigned int next_queue;
	__u64 next_id;
};

void async_init(struct async_inflight *async, struct event_dispatch *events, struct job_observers *observers,
		const struct counter_samples *samples);
void async_free(struct async_inflight *async);

/*
 * An enqueue or launch that is no layer. Sets call->flow_out. program may be NULL, and so may activity, which follows the
 * jobs that have not ended yet. -ENOMEM.
 */
int async_begin(struct async_inflight *async, struct process *process, struct program *program,
		struct activity *activity, struct event_call *call);
/*
 * What runs on a stream and is no launch: a wait for its key ends the launches of the stream that came before, and so does
 * it itself where it blocks. Sets call->flow_in. -ENOMEM.
 */
int async_mark(struct async_inflight *async, struct process *process, struct event_call *call);
/* What its stream gets from here on runs after what its key stands for, on another one: when that has ended, so has this. -ENOMEM. */
int async_follow(struct async_inflight *async, struct process *process, const struct event_call *call);
/* A stream was made. -ENOMEM. */
int async_stream(struct async_inflight *async, struct process *process, const struct event_call *call);
/* A wait. Sets call->flow_in. -ENOMEM. */
int async_wait(struct async_inflight *async, struct process *process, struct event_call *call);
/* After the call's own event: emits the inferences that it ended, and the depth it changed. -ENOMEM. */
int async_emit(struct async_inflight *async, const struct process *process, const struct event_call *call);
/* The process has ended: nothing that it has under way will be waited for. Leaves async_emit nothing to do. */
void async_drop_process(struct async_inflight *async, const struct process *process, __u64 time);
/* The recording has ended. */
void async_drop_all(struct async_inflight *async, __u64 time);

/* A wait for the key has ended nothing; a later one replaces it. -ENOMEM. */
int orphan_wait_add(struct keyed_table *waits, unsigned int queue, __u64 key, const struct wait_end *end);
/* Takes out the wait for this key. Returns whether there was one. */
bool orphan_wait_take(struct keyed_table *waits, unsigned int queue, __u64 key, struct wait_end *end);

#endif

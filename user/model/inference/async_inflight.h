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
#include "model/device/counter_samples.h"
#include "model/device/jobs.h"
#include "model/program/programs.h"
#include "model/stream/event.h"

/*
 * Waits that ended nothing: what they were for may not have returned yet on its own thread. They are kept until it has.
 */

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
};

struct orphan_waits {
	struct keyed_table table; /* by queue and key */
};

/* Beyond most, the oldest makes room. */
void orphan_waits_init(struct orphan_waits *orphan_waits, size_t most);
void orphan_waits_free(struct orphan_waits *orphan_waits);

/* A later wait for the same key replaces the first. -ENOMEM. */
int orphan_waits_add(struct orphan_waits *orphan_waits, unsigned int queue, __u64 key, const struct wait_end *end);
/* Takes out the wait for this key. Returns whether there was one. */
bool orphan_waits_take(struct orphan_waits *orphan_waits, unsigned int queue, __u64 key, struct wait_end *end);
void orphan_waits_drop(struct orphan_waits *orphan_waits, unsigned int queue);

#define ASYNC_STREAMS_MAX 4096 /* streams followed at once; the one not used for longest makes room */
#define ASYNC_QUEUES_MAX 4096  /* a queue is all that one process has under way in one runtime */
#define ASYNC_ORPHANS_MAX 4096 /* waits kept that may precede the return of their enqueue */

struct async_inflight {
	struct event_dispatch *events;
	struct job_observers *observers;
	const struct counter_samples *samples;
	struct map by_key;  /* struct open_inference, by queue and key */
	struct map streams; /* struct stream, by queue and stream */
	struct map queues;  /* struct queue, by process and runtime */
	struct link opens;  /* all open ones, oldest first */
	struct link recent; /* streams, the one used last at the end */
	struct link all_queues;
	struct orphan_waits orphan_waits; /* waits that may precede the return of their enqueue */
	struct link ended;		  /* open ones that the call at hand has ended, until async_emit */
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

#endif

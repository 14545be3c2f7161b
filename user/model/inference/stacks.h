/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stacks of threads in calls: what modules, frames and stacks the records define, and samples of them, each joined with the call
 * that was open. Call and sample come in any order, and are kept until the other comes.
 */
#ifndef XPT_MODEL_INFERENCE_STACKS_H
#define XPT_MODEL_INFERENCE_STACKS_H

#include "base/core/hashmap.h"
#include "model/program/programs.h"
#include "model/stream/event.h"

#define STACK_CALLS_MAX 65536	  /* calls kept at once, and as many operators; the oldest makes room */
#define STACK_SAMPLES_MAX 65536	  /* samples that wait for their call; the oldest is emitted without it */
#define STACK_TEXT_MAX (64 << 20) /* bytes of names and paths; modules and frames beyond have none */

struct stacks {
	bool wanted; /* else nothing is to be added */
	struct event_dispatch *events;
	const struct programs *programs;
	struct keyed_table modules, frames, stacks; /* by their ids; they stay */
	size_t text_bytes, place_count;		    /* of all; place_count: frames of all stacks together */
	struct keyed_table calls;		    /* by thread and begin */
	struct keyed_table operators;		    /* the same; of processes */
	struct keyed_table samples;		    /* by thread and begin of the call */
	struct map by_inference;		    /* calls whose asynchronous inference has not ended, by its id */
};

void stacks_init(struct stacks *stacks, struct event_dispatch *events, const struct programs *programs);
void stacks_free(struct stacks *stacks);

/* From a MODULE or FRAME record; the first definition of an id holds. -EBADMSG, -ENOMEM. */
int stacks_add_module(struct stacks *stacks, __u64 id, const struct cJSON *object);
int stacks_add_frame(struct stacks *stacks, __u64 id, const struct cJSON *object);
/* Frames that are not defined are unknown ones. -ENOMEM. */
int stacks_add(struct stacks *stacks, const struct xpt_record_stack *record);

/* Emits an EVENT_STACK, or keeps the sample until its call is known. -EBADMSG: its reason is not known; -ENOMEM. */
int stacks_sample(struct stacks *stacks, const struct xpt_record_stack_sample *record);
/* Of a sink, with the stacks as context: notes calls and ends of inferences, and emits what has waited for them. -ENOMEM. */
int stacks_event(void *context, const struct event *event);
/* The operators of the process are forgotten. */
void stacks_drop_process(struct stacks *stacks, const struct process *process);
/* The recording has ended: no call will come any more. */
void stacks_drop_all(struct stacks *stacks);

#endif

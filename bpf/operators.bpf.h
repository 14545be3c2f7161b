/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Operators: steps of an inference. There are many in each, and they are short, so they have a way of their own through
 * the same frames that other calls use, with nothing in it that they do not need. What is fetched is the same for all
 * (XPT_ROLE_OPERATOR in wire.h). They may throw exceptions, and a C++ program cannot unwind a frame with a replaced
 * return address: so they get no return probe, but a probe on the return address. One that is left by an exception has
 * no end, and no record.
 */
#ifndef XPT_OPERATORS_BPF_H
#define XPT_OPERATORS_BPF_H

#include "callers.bpf.h"
#include "running.bpf.h"
#include "states.bpf.h"

#define OPERATOR_VALUES 4
#define OPERATOR_OBJECT (1 << 0) /* bits in valid */
#define OPERATOR_CLASS (1 << 1)
#define OPERATOR_INFERENCE (1 << 2 | 1 << 3) /* its program, and when it began */

/*
 * One inside an inference is recorded with it. One on a thread of its own is when all inferences are, and it belongs to the only
 * one that its process has; where programs are chosen, when there is such a one, of a program of which all are recorded.
 * False: it is left out.
 */
static __always_inline bool operator_place(const struct xpt_frame *around, struct xpt_frame *frame)
{
	const struct xpt_config *config;

	if (around && around->inference) {
		if (around->flags & FRAME_LEFT_OUT)
			return false;
		frame->flags = (around->flags & FRAME_APART) | FRAME_INSIDE;
		frame->inference_number = around->inference_number;
		frame->sample_every = around->sample_every;
		frame->inference = around->inference;
		frame->inference_of = around->inference_of;
		return true;
	}
	config = config_get();
	if (!config || (config->sample_every != 1 && !config->chosen_only))
		return false;
	frame->flags = FRAME_INSIDE;
	frame->sample_every = 1;
	frame->inference = 0;
	running_resolve(frame);
	return !config->chosen_only || (frame->inference && frame->sample_every == 1);
}

/* Which object it is and of which class; a function without an object is a class of its own. */
static __always_inline void operator_identify(struct xpt_thread *thread, const struct xpt_spec *spec,
					      struct xpt_frame *frame)
{
	if (spec->fetch[0].source == XPT_SOURCE_SITE) {
		frame->value[0] = 0;
		frame->value[1] = thread->registers.site;
		frame->valid = OPERATOR_CLASS;
		return;
	}
	frame->value[0] = thread->registers.argument[spec->fetch[0].source & (ARGUMENT_REGISTERS - 1)];
	frame->valid = OPERATOR_OBJECT;
	if (!read_user(&frame->value[1], sizeof(frame->value[1]), frame->value[0]))
		frame->valid |= OPERATOR_CLASS;
	else
		count_loss(XPT_LOSS_UNREADABLE);
}

/* The thread has its registers. */
__noinline int operator_begin(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	struct xpt_frame *frame, *around = NULL;
	__u32 depth;

	if (!thread || !spec)
		return 0;
	caller_resolve(thread);
	depth = thread->depth;
	if (depth) {
		around = &thread->frame[(depth - 1) & (XPT_DEPTH_MAX - 1)];
		if ((around->flags & FRAME_LEFT_OUT) || around->stack <= thread->registers.stack) {
			thread->return_address = 0; /* marks frames with replaced returns: not this one */
			frames_drop(thread, spec);
			depth = thread->depth;
			around = depth ? &thread->frame[(depth - 1) & (XPT_DEPTH_MAX - 1)] : NULL;
		}
	}
	if (depth >= XPT_DEPTH_MAX) {
		count_loss(XPT_LOSS_DEPTH);
		return 0;
	}
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	if (!operator_place(around, frame))
		return 0;
	frame->stack = thread->registers.stack;
	frame->return_address = 0;
	frame->over = 0;
	frame->spec = spec->index;
	frame->runtime = spec->runtime;
	frame->role = XPT_ROLE_OPERATOR;
	operator_identify(thread, spec, frame);
	thread->depth = depth + 1;
	states_begin(frame);
	frame->start = bpf_ktime_get_ns();
	return 0;
}

/* Takes the frame of the operator that was called with this stack pointer, and those above it, off. Its depth; -1: there is none. */
__noinline int operator_take(struct xpt_thread *thread, __u64 stack)
{
	__u32 depth;

	if (!thread)
		return -1;
	depth = thread->depth;
	for (__u32 i = 0; i < XPT_DEPTH_MAX; i++) {
		const struct xpt_frame *frame;

		if (!depth || depth > XPT_DEPTH_MAX)
			return -1;
		depth--;
		frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
		/* An inference that is left has its own return. */
		if (frame->stack > stack || (frame->flags & FRAME_RUNNING))
			return -1;
		if (frame->stack == stack && frame->role == XPT_ROLE_OPERATOR) {
			thread->depth = depth;
			return depth;
		}
	}
	return -1;
}

/* Behind the call of an operator; stack: what the stack pointer was at its entry. */
__noinline int operator_end(struct xpt_thread *thread, __u64 stack, __u64 end)
{
	const struct xpt_config *config = config_get();
	struct xpt_record_call *record;
	struct xpt_frame *frame;
	__u64 *value, task;
	__u32 size = sizeof(*record) + 8 * OPERATOR_VALUES, states;
	int depth;

	if (!thread || !config)
		return 0;
	depth = operator_take(thread, stack);
	if (depth < 0)
		return 0;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	states = states_end(frame);
	if (frame->inference && (!(frame->flags & FRAME_APART) || running_same(frame)))
		frame->valid |= OPERATOR_INFERENCE;
	record = (void *)thread->scratch;
	value = thread->scratch + sizeof(*record) / 8;
	task = bpf_get_current_pid_tgid();
	header_fill(&record->header, XPT_RECORD_CALL, 0, task >> 32, end);
	record->start = frame->start;
	record->tid = task;
	record->spec = frame->spec;
	record->depth = depth | states;
	record->flags = frame->flags & FRAME_APART ? XPT_CALL_APART : 0;
	record->valid = frame->valid;
	record->values = OPERATOR_VALUES;
	record->cpu = bpf_get_smp_processor_id();
	record->sample = frame->sample_every;
	value[0] = frame->value[0];
	value[1] = frame->value[1];
	value[2] = frame->inference_of;
	value[3] = frame->inference;
	if (config->number_operators && (frame->valid & OPERATOR_INFERENCE) && !(frame->flags & FRAME_APART)) {
		value[OPERATOR_VALUES] = frame->inference_number;
		record->flags |= XPT_CALL_NUMBERED;
		size += 8;
	}
	if (states & XPT_CALL_STATES_FOLLOW) {
		struct xpt_task_state *state = (void *)record + (size & 127);

		*state = frame->state;
		size += sizeof(*state);
	}
	record->header.size = size;
	emit_data(config, record, size, WAKEUP_WINDOW);
	return 0;
}

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Operators: steps of an inference. There are many in each, and they are short, so they have a way of their own through the
 * same frames that other calls use, with nothing in it that they do not need. What is fetched is the same for all
 * (XPT_ROLE_OPERATOR in wire.h).
 */
#ifndef XPT_OPERATORS_BPF_H
#define XPT_OPERATORS_BPF_H

#include "frames.bpf.h"
#include "running.bpf.h"

#define OPERATOR_VALUES 4
#define OPERATOR_OBJECT (1 << 0) /* bits in valid */
#define OPERATOR_CLASS (1 << 1)
#define OPERATOR_INFERENCE (1 << 2 | 1 << 3) /* its program, and when it began */

/*
 * One inside an inference is recorded with it. One on a thread of its own is when all inferences are, and it belongs to the only
 * one that its process has. False: it is left out.
 */
static __always_inline bool operator_place(const struct xpt_frame *around, struct xpt_frame *frame)
{
	const struct xpt_config *config;

	if (around && around->inference) {
		if (around->flags & FRAME_LEFT_OUT)
			return false;
		frame->flags = around->flags & FRAME_APART;
		frame->number = around->number;
		frame->sample_every = around->sample_every;
		frame->inference = around->inference;
		frame->inference_of = around->inference_of;
		return true;
	}
	config = config_get();
	if (!config || config->sample_every != 1)
		return false;
	frame->flags = 0;
	frame->sample_every = 1;
	frame->inference = 0;
	running_look(frame);
	return true;
}

/* The thread has its registers. RETURN_WANTED or RETURN_NOT_WANTED. */
__noinline int operator_begin(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	struct xpt_frame *frame, *around = NULL;
	__u32 depth;

	if (!thread || !spec)
		return RETURN_NOT_WANTED;
	depth = thread->depth;
	if (depth) {
		around = &thread->frame[(depth - 1) & (XPT_DEPTH_MAX - 1)];
		if ((around->flags & FRAME_LEFT_OUT) || around->stack <= thread->registers.stack) {
			thread->return_address = 0;
			frames_drop(thread, spec);
			depth = thread->depth;
			around = depth ? &thread->frame[(depth - 1) & (XPT_DEPTH_MAX - 1)] : NULL;
		}
	}
	if (depth >= XPT_DEPTH_MAX) {
		count_loss(XPT_LOSS_DEPTH);
		return RETURN_NOT_WANTED;
	}
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	if (!operator_place(around, frame))
		return RETURN_NOT_WANTED;
	frame->stack = thread->registers.stack;
	frame->return_address = 0;
	frame->over = 0;
	frame->spec = spec->index;
	frame->runtime = spec->runtime;
	frame->role = XPT_ROLE_OPERATOR;
	frame->value[0] = thread->registers.argument[spec->fetch[0].source & (ARGUMENT_REGISTERS - 1)];
	frame->valid = OPERATOR_OBJECT;
	if (!read_user(&frame->value[1], sizeof(frame->value[1]), frame->value[0]))
		frame->valid |= OPERATOR_CLASS;
	else
		count_loss(XPT_LOSS_UNREADABLE);
	thread->depth = depth + 1;
	frame->start = bpf_ktime_get_ns();
	return RETURN_WANTED;
}

__noinline int operator_end(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 stack, __u64 end)
{
	const struct xpt_config *config = config_get();
	struct xpt_record_call *record;
	struct xpt_frame *frame;
	__u64 *value, task;
	int depth;

	if (!thread || !spec || !config)
		return 0;
	depth = thread->depth - 1;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	if (depth >= 0 && frame->stack == stack && frame->spec == spec->index)
		thread->depth = depth;
	else
		depth = frame_take(thread, spec, stack);
	if (depth < 0)
		return 0;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	if (frame->inference && (!(frame->flags & FRAME_APART) || running_same(frame)))
		frame->valid |= OPERATOR_INFERENCE;
	record = (void *)thread->scratch;
	value = thread->scratch + sizeof(*record) / 8;
	task = bpf_get_current_pid_tgid();
	record->header.kind = XPT_RECORD_CALL;
	record->header.size = sizeof(*record) + 8 * OPERATOR_VALUES;
	record->header.tgid = task >> 32;
	record->header.time = end;
	record->start = frame->start;
	record->tid = task;
	record->spec = spec->index;
	record->depth = depth;
	record->flags = 0;
	record->valid = frame->valid;
	record->values = OPERATOR_VALUES;
	record->cpu = bpf_get_smp_processor_id();
	record->sample = frame->sample_every;
	value[0] = frame->value[0];
	value[1] = frame->value[1];
	value[2] = frame->inference_of;
	value[3] = frame->inference;
	emit_data(config, record, sizeof(*record) + 8 * OPERATOR_VALUES, WAKEUP_WINDOW);
	return 0;
}

#endif

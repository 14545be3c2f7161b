/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Which inference a step on a thread of its own belongs to: that is known where its process has exactly one inference
 * running from the step's begin to its end. Kept only while operators are traced.
 */
#ifndef XPT_RUNNING_BPF_H
#define XPT_RUNNING_BPF_H

#include "emit.bpf.h"

/* NULL: no memory; then no step of the process finds its inference that way. */
static __always_inline struct xpt_running *running_get(bool make)
{
	__u32 tgid = bpf_get_current_pid_tgid() >> 32, zero = 0;
	struct xpt_running *running = bpf_map_lookup_elem(&runnings, &tgid), *fresh;

	if (running || !make)
		return running;
	fresh = bpf_map_lookup_elem(&fresh_running, &zero);
	if (fresh)
		bpf_map_update_elem(&runnings, &tgid, fresh, BPF_NOEXIST);
	return bpf_map_lookup_elem(&runnings, &tgid);
}

/*
 * An inference is about to begin. Before its time is taken: what has ended when this is seen has ended before that. Has to be
 * followed by running_change().
 */
__noinline int running_begins(void)
{
	struct xpt_running *running = running_get(true);

	if (running)
		__sync_fetch_and_add(&running->changing, 1);
	return 0;
}

/* In place of running_change(): it is not followed to its end. Until then, no inference counts as its process's only one. */
__noinline int running_cancel(void)
{
	struct xpt_running *running = running_get(false);

	if (running)
		__sync_fetch_and_add(&running->changed, 1);
	return 0;
}

/* The frame's inference begins, or ends: change is 1 or -1. */
__noinline int running_change(struct xpt_frame *frame, __s32 change)
{
	struct xpt_running *running;

	if (!frame)
		return 0;
	running = running_get(false);
	if (!running)
		return 0;
	frame->flags |= FRAME_RUNNING;
	if (change < 0)
		__sync_fetch_and_add(&running->changing, 1);
	__sync_fetch_and_xor(&running->inference, frame->inference);
	__sync_fetch_and_xor(&running->program, frame->inference_of);
	__sync_fetch_and_xor(&running->sample_every, frame->sample_every);
	__sync_fetch_and_add(&running->open, change);
	__sync_fetch_and_add(&running->changed, 1);
	return 0;
}

/* The frame is dropped, whether its return was seen or not. */
__noinline int running_drop(struct xpt_frame *frame)
{
	if (!frame || !(frame->flags & FRAME_RUNNING))
		return 0;
	running_change(frame, -1);
	frame->flags &= ~FRAME_RUNNING;
	return 0;
}

/* The one inference that runs in the process, for a step outside of any on its thread. */
__noinline int running_resolve(struct xpt_frame *frame)
{
	const struct xpt_running *running = running_get(false);

	if (!frame || !running)
		return 0;
	frame->number = *(volatile const __u64 *)&running->changed;
	if (*(volatile const __u32 *)&running->open != 1)
		return 0;
	frame->inference = *(volatile const __u64 *)&running->inference;
	frame->inference_of = *(volatile const __u64 *)&running->program;
	frame->sample_every = *(volatile const __u32 *)&running->sample_every;
	frame->flags |= FRAME_APART;
	if (*(volatile const __u64 *)&running->changing != frame->number)
		frame->inference = 0;
	return 0;
}

/* Whether it has been the only one all the while since. */
static __always_inline bool running_same(const struct xpt_frame *frame)
{
	const struct xpt_running *running = running_get(false);

	return running && *(volatile const __u64 *)&running->changing == frame->number;
}

#endif

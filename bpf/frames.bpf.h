/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* The open calls of a thread: which of them it has left, and which one returns. */
#ifndef XPT_FRAMES_BPF_H
#define XPT_FRAMES_BPF_H

#include <bpf/bpf_core_read.h>

#include "fetch.bpf.h"
#include "running.bpf.h"

/* What the begin of a call wants of its return. */
#define RETURN_WANTED 0
#define RETURN_NOT_WANTED 1

/* Return address of a function with a return probe, of this collector or another one; 0: there is none. */
static __always_inline __u64 return_trampoline(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* Whether the return address at a place of the stack is the trampoline. */
__noinline int is_returning_there(__u64 stack)
{
	__u64 now;

	return !read_user(&now, sizeof(now), stack) && now && now == return_trampoline();
}

/* Is its return watched? */
static __always_inline bool frame_returns(const struct xpt_frame *frame)
{
	return !(frame->flags & FRAME_LEFT_OUT) || (frame->flags & FRAME_RUNNING) || !RETURN_POPS;
}

/* Whether a call may be recorded without its end being watched: else the kernel drops open frames below it in any case. */
#ifdef XPT_DECLINES_RETURNS
#define DECLINES_RETURNS true
#else
#define DECLINES_RETURNS false
#endif

/*
 * A frame below the stack pointer has been left, or the thread runs on another stack and comes back to it: then its return
 * address is the trampoline's still. Where that is in a register, nothing shows it.
 */
static __always_inline bool frame_is_on_other_stack(const struct xpt_thread *thread, const struct xpt_frame *frame)
{
	if (!DECLINES_RETURNS || thread->registers.link || frame->stack >= thread->registers.stack ||
	    frame->role == XPT_ROLE_OPERATOR || !frame_returns(frame))
		return false;
	return is_returning_there(frame->stack);
}

/* Is what begins now on the thread inside an inference that is recorded? */
static __always_inline bool is_inside(const struct xpt_thread *thread)
{
	const struct xpt_frame *around = &thread->frame[(thread->depth - 1) & (XPT_DEPTH_MAX - 1)];

	if (!thread->depth || (around->flags & FRAME_LEFT_OUT))
		return false;
	return (around->flags & FRAME_INSIDE) || around->role == XPT_ROLE_EXECUTE || around->role == XPT_ROLE_ENQUEUE ||
	       around->role == XPT_ROLE_LAUNCH;
}

/* A frame at or above the current stack pointer that the thread has not left yet. */
static __always_inline bool frame_is_open(const struct xpt_thread *thread, const struct xpt_frame *frame,
					  const struct xpt_spec *spec)
{
	__u64 now;

	if (frame->stack < thread->registers.stack)
		return frame_is_on_other_stack(thread, frame);
	/* Where operators throw, their end is not reported. */
	if (frame->stack == thread->registers.stack && frame->role == XPT_ROLE_OPERATOR &&
	    spec->role == XPT_ROLE_OPERATOR)
		return false;
	/*
	 * Same place on the stack: one function has jumped to the other, or the first was left by longjmp. A function that
	 * was jumped to finds the return address already replaced by that of the return probe.
	 */
	if (frame_returns(frame))
		return frame->stack > thread->registers.stack || frame->spec != spec->index ||
		       (thread->return_address && thread->return_address != frame->return_address);
	/* The same function again, unless it is entered at another place: an exported stub jumps to what it stands for. */
	if (frame->stack == thread->registers.stack && frame->spec == spec->index &&
	    frame->site == thread->registers.site)
		return false;
	/* The end of a call without an armed return is unknown; a later call overwrites its return address. */
	if (read_user(&now, sizeof(now), frame->stack))
		return false;
	return now == frame->return_address || (now && now == return_trampoline());
}

/* Whether the thread has left its frame at depth without a return; then its state is dropped. */
__noinline int frame_leave(struct xpt_thread *thread, const struct xpt_spec *spec, __u32 depth)
{
	struct xpt_frame *frame;

	if (!thread || !spec)
		return 0;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	if (frame_is_open(thread, frame, spec))
		return 0;
	running_drop(frame);
	return 1;
}

/* Forgets frames that the thread has left without their return being seen. */
__noinline int frames_drop(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	if (!thread || !spec)
		return 0;
	for (__u32 i = 0; i < XPT_DEPTH_MAX; i++) {
		__u32 depth = thread->depth;

		if (!depth || depth > XPT_DEPTH_MAX)
			break;
		if (!frame_leave(thread, spec, depth - 1))
			break;
		thread->depth = depth - 1;
	}
	return 0;
}

/* frame_take() where the frame is not the innermost one, or more than taking it off has to be done. */
__noinline int frame_search(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 stack)
{
	__u32 depth;

	if (!thread || !spec)
		return -1;
	depth = thread->depth;
	for (__u32 i = 0; i < XPT_DEPTH_MAX; i++) {
		struct xpt_frame *frame;

		if (!depth || depth > XPT_DEPTH_MAX)
			return -1;
		depth--;
		frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
		if (frame->stack > stack)
			return -1;
		if (frame->stack == stack && frame->spec == spec->index && frame_returns(frame)) {
			running_drop(frame);
			thread->depth = depth;
			return depth;
		}
		running_drop(frame);
	}
	return -1;
}

/* Takes the frame of a call that returns, and those above it, off. Its depth, or -1: its entry was not seen. */
static __always_inline int frame_take(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 stack)
{
	__u32 depth = (thread->depth - 1) & (XPT_DEPTH_MAX - 1);
	const struct xpt_frame *frame = &thread->frame[depth];

	if (!thread->depth || frame->stack != stack || frame->spec != spec->index ||
	    (frame->flags & (FRAME_LEFT_OUT | FRAME_RUNNING)))
		return frame_search(thread, spec, stack);
	thread->depth = depth;
	return depth;
}

#endif

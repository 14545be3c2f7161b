/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* What a thread does during a call: runs, waits for a CPU, is blocked. From what the scheduler counts of each task anyway. */
#ifndef XPT_STATES_BPF_H
#define XPT_STATES_BPF_H

#include <bpf/bpf_core_read.h>

#include "thread.bpf.h"

#define STATE_TRIES 4

/*
 * ns that the task has not run, plus what is the same for it at all times: only differences mean anything. While it runs,
 * exec_start is when its time was last added to sum_exec_runtime, on the clock of its CPU without interrupts and stolen time; both
 * grow together.
 */
static __always_inline __u64 time_off_cpu(struct task_struct *task)
{
	__u64 sum = 0, since = 0;

	for (__u32 i = 0; i < STATE_TRIES; i++) {
		sum = *(volatile __u64 *)&task->se.sum_exec_runtime;
		since = *(volatile __u64 *)&task->se.exec_start;
		/* Else it was accounted for in between. */
		if (sum == *(volatile __u64 *)&task->se.sum_exec_runtime)
			break;
	}
	if (bpf_core_field_exists(task->se.cfs_rq->rq))
		since += task->se.cfs_rq->rq->clock - task->se.cfs_rq->rq->clock_task;
	return since - sum;
}

/* Whether the kernel counts how long tasks wait for a CPU. */
static __always_inline bool states_known(const struct task_struct *task)
{
	return bpf_core_field_exists(task->sched_info.run_delay);
}

/* When the frame's call begins, just before its time is taken. */
__noinline int states_begin(struct xpt_frame *frame)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xpt_task_state *state;

	if (!frame || !states_known(task))
		return 0;
	state = &frame->state;
	state->off_cpu = time_off_cpu(task);
	state->waited = task->sched_info.run_delay;
	state->voluntary = task->nvcsw;
	state->involuntary = task->nivcsw;
	state->minor = task->min_flt;
	state->major = task->maj_flt;
	return 0;
}

/*
 * When it has ended, just after its time was taken: XPT_CALL_STATES, and with XPT_CALL_STATES_FOLLOW what it did is in the frame's
 * state; without, it has run all the time, without a page fault. 0: unknown.
 */
__noinline int states_end(struct xpt_frame *frame)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xpt_task_state *state;

	if (!frame || !states_known(task))
		return 0;
	state = &frame->state;
	state->voluntary = (__u32)task->nvcsw - state->voluntary;
	state->involuntary = (__u32)task->nivcsw - state->involuntary;
	state->minor = (__u32)task->min_flt - state->minor;
	state->major = (__u32)task->maj_flt - state->major;
	if (!(state->voluntary | state->involuntary | state->minor | state->major))
		return XPT_CALL_STATES;
	state->off_cpu = time_off_cpu(task) - state->off_cpu;
	state->waited = task->sched_info.run_delay - state->waited;
	return XPT_CALL_STATES | XPT_CALL_STATES_FOLLOW;
}

#endif

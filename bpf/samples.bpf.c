// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Stacks of threads that run in a call, met by a timer of each CPU (--samples). Maps are those of the main object. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#define XPT_ATOMIC
#include "stacks.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int stack_sample(struct bpf_perf_event_data *context)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct xpt_config *config = config_get();
	struct xpt_thread *thread;

	(void)context;
	if (!task->pid || !config || config->capture == XPT_CAPTURE_OFF)
		return 0;
	thread = thread_get(task);
	if (thread && thread->depth)
		stack_copy_now(thread, XPT_STACK_ON_CPU, bpf_ktime_get_ns());
	return 0;
}

// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Processes that are followed: their children, the programs they become, their ends. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "emit.bpf.h"

#define STOP_SIGNAL 19 /* SIGSTOP */

extern int bpf_send_signal_task(struct task_struct *task, int signal, enum pid_type type, __u64 value) __ksym __weak;

static __always_inline void task_emit(struct xpt_record_task *record, __u32 tgid, __u32 tid, __u8 event)
{
	record->header.kind = XPT_RECORD_TASK;
	record->header.size = sizeof(*record);
	record->header.tgid = tgid;
	record->header.time = bpf_ktime_get_ns();
	record->tid = tid;
	record->event = event;
	emit_control(record, sizeof(*record));
}

/* The child has not run yet: what stops it here stops it before its first instruction. */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = child->tgid, parent_tgid = parent->tgid;
	struct xpt_record_task record = {};
	__u32 *process, flags;

	if (tgid == parent_tgid)
		return 0;
	process = bpf_map_lookup_elem(&processes, &parent_tgid);
	if (!process)
		return 0;
	flags = *process;
	bpf_map_update_elem(&processes, &tgid, &flags, BPF_ANY);
	if (flags & XPT_PROCESS_HOLD) {
		if (bpf_send_signal_task && !bpf_send_signal_task(child, STOP_SIGNAL, PIDTYPE_TGID, 0))
			record.held = 1;
		else
			count_loss(XPT_LOSS_NOT_HELD);
	}
	record.other = parent_tgid;
	BPF_CORE_READ_STR_INTO(&record.name, child, comm);
	task_emit(&record, tgid, child->pid, XPT_TASK_FORK);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	__u32 *process = bpf_map_lookup_elem(&processes, &tgid);
	struct xpt_thread *thread;
	struct xpt_record_task record = {};

	if (!process)
		return 0;
	bpf_map_delete_elem(&runnings, &tgid);
	thread = bpf_task_storage_get(&threads, task, 0, 0);
	if (thread)
		thread->caller = thread->regions = 0;
	if ((*process & XPT_PROCESS_HOLD) && !bpf_send_signal(STOP_SIGNAL))
		record.held = 1;
	BPF_CORE_READ_STR_INTO(&record.name, task, comm);
	task_emit(&record, tgid, task->pid, XPT_TASK_EXEC);
	return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	struct xpt_record_task record = {};

	/* Two threads that end at the same time may both find nobody alive: the one that removes the entry tells. */
	if (task->signal->live.counter || bpf_map_delete_elem(&processes, &tgid))
		return 0;
	bpf_map_delete_elem(&runnings, &tgid);
	record.code = BPF_CORE_READ(task, signal, group_exit_code) ?: task->exit_code;
	BPF_CORE_READ_STR_INTO(&record.name, task, comm);
	task_emit(&record, tgid, task->pid, XPT_TASK_EXIT);
	return 0;
}

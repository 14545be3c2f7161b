// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/* Processes that are followed: their children, the programs they become, their ends. */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "family.bpf.h"

/* The reader polls: it is woken where it has something to do at once. */
static __always_inline void task_emit(struct xpt_record_task *record, __u32 tgid, __u32 tid, __u8 event, __u64 flags)
{
	header_fill(&record->header, XPT_RECORD_TASK, sizeof(*record), tgid, bpf_ktime_get_ns());
	record->tid = tid;
	record->event = event;
	if (bpf_ringbuf_output(&control_ring, record, sizeof(*record), flags))
		count_loss(XPT_LOSS_RING_FULL);
}

/*
 * The child has not run yet: as a member of the family it is traced from its first instruction on, by the probes that the family has. It is
 * reported where these may not be all: until user space has placed those of a single process for the family, or where its parent has
 * more.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(process_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 tgid = child->tgid, parent_tgid = parent->tgid;
	const struct xpt_config *config = config_get();
	struct xpt_record_task record = {};
	bool active, at_once;

	if (tgid == parent_tgid || !config || !is_target(parent_tgid))
		return 0;
	at_once = !config->family || family_is_private(parent_tgid);
	active = family_is_active(parent_tgid) || family_is_private(parent_tgid);
	family_add(tgid);
	/* The programs of its parent are its own, too. */
	if (active)
		family_activate(tgid);
	if (!active && !at_once)
		return 0;
	family_report(tgid);
	record.other = parent_tgid;
	record.shares_memory = BPF_CORE_READ(child, mm) == BPF_CORE_READ(parent, mm);
	BPF_CORE_READ_STR_INTO(&record.name, child, comm);
	task_emit(&record, tgid, child->pid, XPT_TASK_FORK, at_once ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
	return 0;
}

/* The slot of a thread that has another number by now. */
static __always_inline void slot_leave(__u32 pid)
{
	struct xpt_thread_slot *slot = slot_at(pid);

	if (slot && slot->owner % (1 << XPT_SLOT_PID_BITS) == pid / XPT_THREAD_SLOTS)
		slot->owner = 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(process_exec, struct task_struct *task, __s32 old_pid)
{
	__u32 tgid = task->tgid;
	struct xpt_thread *thread;
	struct xpt_record_task record = {};

	if (!is_target(tgid))
		return 0;
	bpf_map_delete_elem(&runnings, &tgid);
	/* A thread that was not the first one has the first one's number and time from now on. */
	if (old_pid != task->pid)
		slot_leave(old_pid);
	thread = thread_get(task);
	if (thread)
		thread->caller = thread->regions = 0;
	family_report(tgid);
	BPF_CORE_READ_STR_INTO(&record.name, task, comm);
	task_emit(&record, tgid, task->pid, XPT_TASK_EXEC, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* CPU time of a process with only this thread left: ns, up to a clock tick less. */
static __always_inline __u64 process_time(const struct task_struct *task)
{
	__u64 time = task->signal->sum_sched_runtime + task->se.sum_exec_runtime;

	return task->pid == task->tgid ? time : time + task->group_leader->se.sum_exec_runtime;
}

#define SIGNAL_GROUP_EXIT 0x4 /* all threads of a process end, as in the kernel */

SEC("tp_btf/sched_process_exit")
int BPF_PROG(process_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;
	const struct xpt_config *config = config_get();
	struct xpt_thread_slot *slot = slot_at(task->pid);
	struct xpt_shared *shared = shared_get();
	struct xpt_record_task record = {};
	bool followed;
	__u32 left;

	if (slot && slot->owner == slot_owner(task))
		slot->owner = 0;
	if (!config || !shared)
		return 0;
	/* When it was killed a thread of it may be in the kernel until nobody waits: it is not the last one that counts. */
	if (tgid == config->self && (task->signal->flags & SIGNAL_GROUP_EXIT || !task->signal->live.counter))
		shared->gone = 1;
	if (task->signal->live.counter)
		return 0;
	/* Two threads that end at the same time may both find nobody alive: the thread that removes the process reports it. */
	left = family_remove(tgid);
	followed = !bpf_map_delete_elem(&processes, &tgid);
	if (!followed && !(left & LEFT_MEMBER))
		return 0;
	bpf_map_delete_elem(&runnings, &tgid);
	if (!followed && !(left & LEFT_REPORTED))
		return 0;
	__sync_fetch_and_add(&shared->ended_ns, process_time(task));
	record.code = BPF_CORE_READ(task, signal, group_exit_code) ?: task->exit_code;
	BPF_CORE_READ_STR_INTO(&record.name, task, comm);
	task_emit(&record, tgid, task->pid, XPT_TASK_EXIT, BPF_RB_NO_WAKEUP);
	return 0;
}

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Records into rings, and what could not go there into the loss counters. */
#ifndef XPT_EMIT_BPF_H
#define XPT_EMIT_BPF_H

#include "maps.bpf.h"

#define NUMBER_FACTOR 0x9e3779b97f4a7c15 /* spreads a number over the high bits */

static __always_inline const struct xpt_config *config_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&settings, &zero);
}

static __always_inline struct xpt_shared *shared_get(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&shared_state, &zero);
}

/* ---- the state of a thread: in the slot for its number, or, where another thread has that, in its task storage ---- */

static __always_inline struct xpt_thread_slot *slot_at(__u32 pid)
{
	__u32 index = pid & (XPT_THREAD_SLOTS - 1);

	return bpf_map_lookup_elem(&thread_slots, &index);
}

/* Differs for all threads that have a slot in turn: the rest of their number in the low bits, when they began in the others. */
static __always_inline __u64 slot_owner(const struct task_struct *task)
{
	return task->start_time << XPT_SLOT_PID_BITS | (__u32)task->pid / XPT_THREAD_SLOTS;
}

/* NULL: it has none yet. */
static __always_inline struct xpt_thread *thread_get(struct task_struct *task)
{
	struct xpt_thread_slot *slot = slot_at(task->pid);

	if (slot && slot->owner == slot_owner(task))
		return &slot->thread;
	/* Nearly no task has any storage: quicker to see here. */
	return task->bpf_storage ? bpf_task_storage_get(&threads, task, 0, 0) : NULL;
}

/* ---- losses and records ---- */

static __always_inline void count_losses(__u32 cause, __u64 number)
{
	__u64 *count = bpf_map_lookup_elem(&losses, &cause);

	if (count)
		__sync_fetch_and_add(count, number);
}

static __always_inline void count_loss(__u32 cause)
{
	count_losses(cause, 1);
}

static __always_inline void header_fill(struct xpt_record_header *header, __u16 kind, __u32 size, __u32 tgid,
					__u64 time)
{
	header->kind = kind;
	header->size = size;
	header->tgid = tgid;
	header->time = time;
}

/* 0, or negative when the ring was full (counted). The control ring wakes its reader at once. */
static __always_inline long emit_control(void *record, __u64 size)
{
	long error = bpf_ringbuf_output(&control_ring, record, size, BPF_RB_FORCE_WAKEUP);

	if (error)
		count_loss(XPT_LOSS_RING_FULL);
	return error;
}

/* As if there were something in the control ring. */
static __always_inline void reader_wake(void)
{
	void *nothing = bpf_ringbuf_reserve(&control_ring, sizeof(__u64), 0);

	if (nothing)
		bpf_ringbuf_discard(nothing, BPF_RB_FORCE_WAKEUP);
}

/* Bytes: more than the largest record. */
#define WAKEUP_WINDOW 512

/*
 * The reader polls; it is woken only when a ring fills faster than it polls. Waking costs more than the record, so it
 * is done where the mark is passed, not for every record above it: so many bytes above it, WAKEUP_WINDOW for each
 * record since the last check; 0: no check.
 */
static __always_inline long emit_data(const struct xpt_config *config, void *record, __u64 size, __u32 window)
{
	__u32 index = bpf_get_smp_processor_id();
	void *ring;
	__u64 flags = BPF_RB_NO_WAKEUP;
	long error = -1;

	/* There are as many rings as CPUs, as a rule; a division takes as long as all else here. */
	if (index >= config->rings)
		index %= config->rings ?: 1;
	ring = bpf_map_lookup_elem(&data_rings, &index);
	if (ring) {
		if (window && bpf_ringbuf_query(ring, BPF_RB_AVAIL_DATA) - config->wakeup_bytes < window)
			flags = BPF_RB_FORCE_WAKEUP;
		error = bpf_ringbuf_output(ring, record, size, flags);
	}
	if (error)
		count_loss(XPT_LOSS_RING_FULL);
	return error;
}

#endif

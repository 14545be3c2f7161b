/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A thread that must not continue before user space has acted waits inside its probe. It takes a ticket, emits its
 * request, and loops until the answer is there or its deadline has passed. Nothing else of its process is touched, no
 * signal is sent, and without a collector nobody waits.
 */
#ifndef XPT_WAIT_BPF_H
#define XPT_WAIT_BPF_H

#include "emit.bpf.h"
#include "memory.bpf.h"

#define WAIT_TURNS (1 << 23)	    /* what bpf_loop() takes at most */
#define WAIT_SPINS 2048		    /* looks of one turn, some 16 us: WAIT_TURNS last longer than any limit */
#define WAIT_READS 16		    /* of a look; the verifier follows each one */
#define WAIT_QUICK 16		    /* turns that yield each; most answers come during them */
#define WAIT_YIELD_EVERY 4000000ull /* ns, of one thread that waits for probes */
#define SIGNAL_KILL 9

/* Deadlines that a process has missed in a row; a reused PID has another start time. */
struct wait_key {
	__u64 tgid;
	__u64 started;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, struct wait_key);
	__type(value, __u32);
} wait_misses __weak SEC(".maps");

/* By slot of the ticket. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XPT_WAIT_SLOTS);
	__type(key, __u32);
	__type(value, __u64);
} wait_answers __weak SEC(".maps");

/* Of one wait; as small as the stack of a program that sleeps has to be (bpf/thread.bpf.h). */
struct wait {
	__u64 ticket;
	__u64 deadline;
	struct memory_question stack; /* an address that is mapped */
	__u64 yielded;		      /* when; 0: it yields every turn */
};

static __always_inline struct wait_key wait_key(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return (struct wait_key){ task->tgid, task->group_leader->start_time };
}

/* The ticket of a request, or 0: the thread does not wait. limit: 0: waiting is off. */
__noinline __u64 wait_ticket(__u64 limit)
{
	struct xpt_shared *shared = shared_get();
	struct wait_key key = wait_key();
	const __u32 *misses = bpf_map_lookup_elem(&wait_misses, &key);

	if (!limit || !shared || shared->gone || (misses && *misses >= XPT_WAIT_PATIENCE))
		return 0;
	return __sync_fetch_and_add(&shared->tickets, 1) + 1;
}

/* Whether a real-time thread, as who places probes is, wants this CPU. */
static __always_inline bool wait_is_urgent(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return bpf_core_field_exists(task->se.cfs_rq) && bpf_core_field_exists(task->se.cfs_rq->rq) &&
	       BPF_CORE_READ(task, se.cfs_rq, rq, rt.rt_nr_running);
}

/*
 * Where the kernel does not preempt, a thread yields its CPU only while it reads a page, with the lock of its memory
 * held. On a CPU with other work that is for a time slice or more of theirs; placing a probe needs that lock, for each
 * one. So a thread that waits for probes yields only now and then, unless a collector needs its CPU.
 */
static __always_inline bool wait_yields(__u32 turn, struct wait *wait, const struct xpt_shared *shared, __u64 now)
{
	__u64 waiting = *(volatile const __u64 *)&shared->waiting ?: 1;

	if (!wait->yielded || turn < WAIT_QUICK || wait_is_urgent() ||
	    *(volatile const __u64 *)&shared->cpu == bpf_get_smp_processor_id() + 1)
		return true;
	if (now - wait->yielded < WAIT_YIELD_EVERY / waiting)
		return false;
	wait->yielded = now;
	return true;
}

/*
 * Not where a user would have to hand out the page. Who places a probe may hold the lock of the mappings, and needs this CPU:
 * then reading waits for the lock.
 */
static __always_inline bool stack_is_readable(struct wait *wait)
{
	wait->stack.faultable = false;
	return memory_ask(&wait->stack) == MEMORY_BUSY || wait->stack.faultable;
}

/* 1: the ticket is answered, or there is no room for answers. */
static long wait_look(__u32 look, struct wait *wait)
{
	__u32 slot = wait->ticket % XPT_WAIT_SLOTS;
	const __u64 *answer = bpf_map_lookup_elem(&wait_answers, &slot);

	if (!answer)
		return 1;
	for (__u32 i = 0; i < WAIT_READS; i++)
		if ((__s64)(*(volatile const __u64 *)answer - 2 * wait->ticket) >= 0)
			return 1;
	return 0;
}

/* One turn. 1: the wait is over. */
static long wait_turn(__u32 turn, struct wait *wait)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct xpt_shared *shared = shared_get();
	const struct xpt_config *config = config_get();
	__u64 now;
	char byte;

	if (!shared || !config)
		return 1;
	/* An answer that the last look of a turn finds is found by the first one of the next turn, too. */
	if (bpf_loop(WAIT_SPINS, wait_look, wait, 0) < WAIT_SPINS)
		return 1;
	if (*(volatile const __u64 *)&shared->gone || *(volatile const __u32 *)&config->capture == XPT_CAPTURE_OFF ||
	    (task->pending.signal.sig[0] >> (SIGNAL_KILL - 1) & 1))
		return 1;
	now = bpf_ktime_get_ns();
	if (now >= wait->deadline)
		return 1;
	if (wait_yields(turn, wait, shared, now) && stack_is_readable(wait))
		bpf_copy_from_user_task(&byte, sizeof(byte), (const void *)wait->stack.address, task, 0);
	return 0;
}

/* Whether it was answered in time. From here on an answer comes too late. */
static __always_inline bool wait_end(__u64 ticket)
{
	__u32 slot = ticket % XPT_WAIT_SLOTS;
	__u64 *answer = bpf_map_lookup_elem(&wait_answers, &slot);

	if (!answer)
		return false;
	/* Of a later ticket with the same slot: this one was answered, or is given up, before it. */
	if ((__s64)(*(volatile __u64 *)answer - 2 * ticket) >= 0)
		return true;
	return (__s64)(__sync_lock_test_and_set(answer, 2 * ticket + XPT_WAIT_MISSED) - 2 * ticket) >= 0;
}

/* Whether the process is to wait next time depends on how often in a row it has waited in vain. */
__noinline int wait_settle(__u64 ticket, __u32 loss)
{
	const struct xpt_shared *shared = shared_get();
	struct wait_key key = wait_key();
	__u32 *misses = bpf_map_lookup_elem(&wait_misses, &key), one = 1;

	if (wait_end(ticket)) {
		if (misses)
			*misses = 0;
		return 0;
	}
	if (!shared || shared->gone)
		return 0;
	count_loss(loss);
	if (misses)
		__sync_fetch_and_add(misses, 1);
	else
		bpf_map_update_elem(&wait_misses, &key, &one, BPF_NOEXIST);
	return 0;
}

/* Until the ticket is answered; stack: a mapped address; since: 0, or the time now, if it is probes that it waits for. */
__noinline int wait_turns(__u64 ticket, __u64 deadline, __u64 stack, __u64 since)
{
	struct wait wait = { ticket, deadline, { stack, false }, since };
	struct xpt_shared *shared = shared_get();

	if (!shared)
		return 0;
	__sync_fetch_and_add(&shared->waiting, 1);
	bpf_loop(WAIT_TURNS, wait_turn, &wait, 0);
	__sync_fetch_and_add(&shared->waiting, -1);
	return 0;
}

/* Waits for the answer to a ticket, after its request has been emitted. A missed deadline is counted. */
__noinline int wait_for(__u64 ticket, __u64 deadline, __u64 stack, __u32 loss)
{
	if (!ticket)
		return 0;
	wait_turns(ticket, deadline, stack, loss == XPT_LOSS_LATE_PROBES ? bpf_ktime_get_ns() : 0);
	return wait_settle(ticket, loss);
}

#endif

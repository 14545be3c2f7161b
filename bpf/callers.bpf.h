/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Functions that an exception may leave: a C++ program cannot pass a frame whose return address was replaced. So nothing watches
 * their return, but a probe behind each place that they are called from: user space puts it there once it is told of the place.
 */
#ifndef XPT_CALLERS_BPF_H
#define XPT_CALLERS_BPF_H

#include "frames.bpf.h"
#include "wait.bpf.h"

/* The ticket with which user space is asked to place the probe behind a place; another one, if it has been asked already. */
__noinline __u64 caller_ticket(__u64 tgid, __u64 address)
{
	const struct xpt_config *config = config_get();
	__u64 ticket = config ? wait_ticket(config->wait_probes) : 0;
	struct caller_key key = { tgid, address };
	const __u64 *known;

	if (!bpf_map_update_elem(&callers, &key, &ticket, BPF_NOEXIST))
		return ticket;
	known = bpf_map_lookup_elem(&callers, &key);
	return known ? *known : 0;
}

/* From where the function was called that the thread enters. A place is reported once; all threads wait for its probe. */
__noinline int caller_look(struct xpt_thread *thread)
{
	const struct xpt_config *config = config_get();
	struct xpt_record_caller *record;
	struct caller_key key;
	__u64 *known;

	if (!thread || !config)
		return 0;
	thread->return_address = thread->registers.link;
	if (!thread->return_address)
		read_user(&thread->return_address, sizeof(thread->return_address), thread->registers.stack);
	if (thread->return_address == thread->caller)
		return 0;
	thread->caller = thread->return_address;
	key.tgid = bpf_get_current_pid_tgid() >> 32;
	key.address = thread->caller;
	if (!key.address)
		return 0;
	thread->now = bpf_ktime_get_ns();
	known = bpf_map_lookup_elem(&callers, &key);
	if (known) {
		if (*known)
			wait_turns(*known, thread->now + config->wait_probes, thread->registers.stack, thread->now);
		*known = 0;
		return 0;
	}
	record = (void *)thread->scratch;
	record->header.kind = XPT_RECORD_CALLER;
	record->header.size = sizeof(*record);
	record->header.tgid = key.tgid;
	record->header.time = thread->now;
	record->address = key.address;
	record->ticket = thread->ticket = caller_ticket(key.tgid, key.address);
	if (!emit_control(record, sizeof(*record)))
		wait_for(thread->ticket, thread->now + config->wait_probes, thread->registers.stack,
			 XPT_LOSS_LATE_PROBES);
	return 0;
}

#endif

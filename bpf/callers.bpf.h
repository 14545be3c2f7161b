/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Functions that an exception may leave: a C++ program cannot pass a frame whose return address was replaced. So nothing watches
 * their return, but a probe behind each place that they are called from: user space puts it there once it is told of the place.
 */
#ifndef XPT_CALLERS_BPF_H
#define XPT_CALLERS_BPF_H

#include "frames.bpf.h"
#include "wait.bpf.h"

/* From where the function was called that the thread enters; user space is told of each place once. */
__noinline int caller_look(struct xpt_thread *thread)
{
	const struct xpt_config *config = config_get();
	struct xpt_record_caller *record;
	struct caller_key key;
	__u64 ticket, deadline;
	__u32 one = 1;

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
	if (!key.address || bpf_map_lookup_elem(&callers, &key))
		return 0;
	bpf_map_update_elem(&callers, &key, &one, BPF_ANY);
	record = (void *)thread->scratch;
	record->header.kind = XPT_RECORD_CALLER;
	record->header.size = sizeof(*record);
	record->header.tgid = key.tgid;
	record->header.time = bpf_ktime_get_ns();
	record->address = key.address;
	record->ticket = wait_ticket(config->wait_probes);
	deadline = record->header.time + config->wait_probes;
	ticket = record->ticket;
	if (!emit_control(record, sizeof(*record)))
		wait_for(ticket, deadline, thread->registers.stack, XPT_LOSS_LATE_PROBES);
	return 0;
}

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Places that get a probe when a process shows them. Functions that an exception may leave: a C++ program cannot unwind
 * a frame with a replaced return address; so they get no return probe, but a probe on each return address that they are
 * called from. And functions that are handed over to be called later.
 */
#ifndef XPT_CALLERS_BPF_H
#define XPT_CALLERS_BPF_H

#include "fetch.bpf.h"
#include "frames.bpf.h"
#include "wait.bpf.h"

/* Whether one more callback of the process gets a probe; else it is counted. */
__noinline int callback_count(void)
{
	struct caller_key key = { bpf_get_current_pid_tgid() >> 32, 0, 0 };
	__u64 *count = bpf_map_lookup_elem(&callers, &key), one = 1;

	if (!count) {
		bpf_map_update_elem(&callers, &key, &one, BPF_NOEXIST);
		return 1;
	}
	if (*count >= XPT_CALLBACKS_MAX) {
		count_loss(XPT_LOSS_CALLBACKS);
		return 0;
	}
	__sync_fetch_and_add(count, 1);
	return 1;
}

/* The ticket with which user space is asked to place the probe of a place; another one, if it has been asked already. */
__noinline __u64 caller_ticket(__u64 address, __u32 callback)
{
	const struct xpt_config *config = config_get();
	__u64 ticket = config ? wait_ticket(config->wait_probes) : 0;
	struct caller_key key = { bpf_get_current_pid_tgid() >> 32, callback, address };
	const __u64 *known;

	if (!bpf_map_update_elem(&callers, &key, &ticket, BPF_NOEXIST))
		return ticket;
	known = bpf_map_lookup_elem(&callers, &key);
	return known ? *known : 0;
}

/* A place is reported once; all threads wait for its probe. callback: as in struct xpt_record_caller. */
__noinline int caller_wait(struct xpt_thread *thread, __u64 address, __u32 callback)
{
	const struct xpt_config *config = config_get();
	struct caller_key key = { bpf_get_current_pid_tgid() >> 32, callback, address };
	__u64 *known = bpf_map_lookup_elem(&callers, &key);
	struct xpt_record_caller *record;

	if (!thread || !config)
		return 0;
	if (known && !*known)
		return 0;
	thread->now = bpf_ktime_get_ns();
	if (known) {
		wait_turns(*known, thread->now + config->wait_probes, thread->registers.stack, thread->now);
		*known = 0;
		return 0;
	}
	if (callback && !callback_count())
		return 0;
	record = (void *)thread->scratch;
	header_fill(&record->header, XPT_RECORD_CALLER, sizeof(*record), key.tgid, thread->now);
	record->address = address;
	record->callback = callback;
	record->tid = (__u32)bpf_get_current_pid_tgid();
	record->ticket = thread->ticket = caller_ticket(address, callback);
	if (!emit_control(record, sizeof(*record)))
		wait_for(thread->ticket, thread->now + config->wait_probes, thread->registers.stack,
			 XPT_LOSS_LATE_PROBES);
	return 0;
}

/* From where the function was called that the thread enters. */
__noinline int caller_resolve(struct xpt_thread *thread)
{
	if (!thread)
		return 0;
	return_address_read(thread);
	if (thread->return_address == thread->caller)
		return 0;
	thread->caller = thread->return_address;
	return thread->caller ? caller_wait(thread, thread->caller, 0) : 0;
}

/* The function that a call hands over has its probe before the call continues. */
__noinline int callback_resolve(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	__u64 address = 0;

	if (!thread || !spec)
		return 0;
	for (__u32 i = 0; i < XPT_FETCH_MAX && i < spec->fetches; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];

		if (fetch->meaning == XPT_MEANING_CALLBACK &&
		    (argument_read(&thread->registers, fetch->source, &address) || follow(fetch, &address)))
			address = 0;
	}
	return address ? caller_wait(thread, address, spec->index + 1) : 0;
}

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Perf events around inferences: device counters, as they are when a call begins and when it returns. */
#ifndef XPT_COUNTS_BPF_H
#define XPT_COUNTS_BPF_H

#include "emit.bpf.h"

/* Reads all into counts->at[at]. What cannot be read on this CPU is not valid. */
__noinline int counts_read(struct xpt_thread_counts *counts, __u32 at)
{
	const struct xpt_config *config = config_get();
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct xpt_counts *to;
	void *events;

	if (!counts || !config || at > COUNTS_AT_RETURN)
		return 0;
	to = &counts->at[at];
	to->valid = 0;
	to->cpu = cpu;
	events = bpf_map_lookup_elem(&counter_sets, &zero);
	if (!events)
		return 0;
	for (__u32 i = 0; i < XPT_SLOT_MAX; i++) {
		if (i >= config->slots)
			break;
		if (bpf_perf_event_read_value(events, i * config->slot_cpus + cpu, &counts->read, sizeof(counts->read)))
			continue;
		to->value[i] = counts->read.counter;
		to->valid |= 1 << i;
	}
	return 0;
}

/* When a call begins whose frame will be at this depth. 1: they are there; 0: none are read around such calls. */
__noinline int counts_begin(const struct xpt_spec *spec, __u32 depth)
{
	struct xpt_thread_counts *counts;

	if (!spec || !(XPT_ROLES_COUNTED >> (spec->role & 31) & 1))
		return 0;
	counts = bpf_task_storage_get(&thread_counts, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!counts)
		return 0;
	counts_read(counts, depth);
	return 1;
}

static __always_inline struct xpt_thread_counts *counts_get(void)
{
	return bpf_task_storage_get(&thread_counts, bpf_get_current_task_btf(), 0, 0);
}

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* Counters around inferences: of the thread, its CPU or a device, as they are when a call begins and when it returns. */
#ifndef XPT_COUNTS_BPF_H
#define XPT_COUNTS_BPF_H

#include "emit.bpf.h"
#include "states.bpf.h"

#define TIME_BASE (1ull << 62) /* ns; the clocks may differ to either side */

/* ns that the current thread has run, plus what is the same for it at all times. */
__noinline __u64 task_time(void)
{
	__u64 off = time_off_cpu(bpf_get_current_task_btf());

	return TIME_BASE + bpf_ktime_get_ns() - off;
}

/* enum xpt_task_count */
__noinline __u64 task_count(__u32 what)
{
	struct task_struct *task = bpf_get_current_task_btf();

	switch (what) {
	case XPT_TASK_TIME:
		return task_time();
	case XPT_TASK_FAULTS:
		return task->min_flt + task->maj_flt;
	case XPT_TASK_MINOR_FAULTS:
		return task->min_flt;
	case XPT_TASK_MAJOR_FAULTS:
		return task->maj_flt;
	case XPT_TASK_SWITCHES:
		return task->nvcsw + task->nivcsw;
	default:
		return task->se.nr_migrations;
	}
}

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
	for (__u32 i = 0; i < XPT_SLOT_MAX; i++) {
		if (i >= config->slots)
			break;
		if (config->slot_tasks[i]) {
			to->value[i] = task_count(config->slot_tasks[i]);
			to->valid |= 1 << i;
			continue;
		}
		if (!events ||
		    bpf_perf_event_read_value(events, i * config->slot_cpus + cpu, &counts->read, sizeof(counts->read)))
			continue;
		to->value[i] = counts->read.counter;
		to->valid |= 1 << i;
	}
	return 0;
}

/* When a call begins that will have its frame at this depth. 1: they are there; 0: none are read around such calls. */
__noinline int counts_begin(const struct xpt_spec *spec, __u32 depth)
{
	struct xpt_thread_counts *counts;

	if (!spec || !(XPT_ROLES_COUNTED >> (spec->role & 31) & 1))
		return 0;
	counts = bpf_task_storage_get(&thread_counts, bpf_get_current_task_btf(), 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!counts)
		return 0;
	counts_read(counts, depth);
	if (spec->flags & XPT_SPEC_ENTRY_ONLY)
		counts_read(counts, COUNTS_AT_RETURN);
	return 1;
}

static __always_inline struct xpt_thread_counts *counts_get(void)
{
	return bpf_task_storage_get(&thread_counts, bpf_get_current_task_btf(), 0, 0);
}

#endif

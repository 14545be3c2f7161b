/* SPDX-License-Identifier: BSD-2-Clause */
/* Events that the kernel has names for on every machine: perf_event_open(2). */
#include <linux/perf_event.h>

#include "counter/core/counter.h"

#define SOFTWARE(name, alias, id, unit, description, task)                                                          \
	{                                                                                                           \
		name, alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, "software", unit, description, XPT_TASK_##task \
	}
#define HARDWARE(name, alias, id, description)                                                                  \
	{                                                                                                       \
		name, alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, "hardware", "", description, XPT_TASK_NONE \
	}

const struct kernel_event kernel_events[] = {
	SOFTWARE("cpu-clock", NULL, CPU_CLOCK, "ns", "time of the CPU's clock", NONE),
	SOFTWARE("task-clock", NULL, TASK_CLOCK, "ns", "time in which tasks ran", TIME),
	SOFTWARE("page-faults", "faults", PAGE_FAULTS, "", "page faults", FAULTS),
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN, "", "page faults without reading from disk", MINOR_FAULTS),
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ, "", "page faults that read from disk", MAJOR_FAULTS),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES, "", "switches from one task to another", SWITCHES),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS, "", "tasks that went on on another CPU", MIGRATIONS),
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS, "", "unaligned accesses that the kernel handled", NONE),
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS, "", "instructions that the kernel emulated", NONE),
	HARDWARE("cycles", "cpu-cycles", CPU_CYCLES, "cycles of the CPU"),
	HARDWARE("instructions", NULL, INSTRUCTIONS, "instructions retired"),
	HARDWARE("cache-references", NULL, CACHE_REFERENCES, "accesses to the last-level cache"),
	HARDWARE("cache-misses", NULL, CACHE_MISSES, "accesses that the last-level cache could not serve"),
	HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS, "branches retired"),
	HARDWARE("branch-misses", NULL, BRANCH_MISSES, "branches that were predicted wrongly"),
	HARDWARE("bus-cycles", NULL, BUS_CYCLES, "cycles of the bus"),
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES, "cycles at the nominal frequency"),
};
const size_t kernel_event_count = sizeof(kernel_events) / sizeof(kernel_events[0]);

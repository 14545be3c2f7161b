/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* All maps, declared once for every object: the linker and the loader make one map of each name. */
#ifndef XPT_MAPS_BPF_H
#define XPT_MAPS_BPF_H

#include "thread.bpf.h"

#define XPT_PROCESSES_MAX 16384

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xpt_config);
} settings __weak SEC(".maps");

/* What to do at a site; the attach cookie is the index. Sized when loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xpt_spec);
} specs __weak SEC(".maps");

/* State of threads, by the low bits of their numbers: quicker to find than in task storage. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, XPT_THREAD_SLOTS);
	__type(key, __u32);
	__type(value, struct xpt_thread_slot);
} thread_slots __weak SEC(".maps");

/* Of threads that found their slot taken. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct xpt_thread);
} threads __weak SEC(".maps");

/* By shard and XPT_COOKIE_HITS_SHIFT: a CPU counts in the shard of its number. Sized when loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u64);
} site_hits __weak SEC(".maps");

/* By index: a thread remembers those of its latest programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XPT_PROGRAMS_MAX + 1);
	__type(key, __u32);
	__type(value, struct xpt_program_entry);
} program_entries __weak SEC(".maps");

/* Index of a program's entry. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XPT_PROGRAMS_MAX);
	__type(key, struct xpt_program_key);
	__type(value, __u32);
} programs __weak SEC(".maps");

/* By process. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, XPT_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct xpt_running);
} runnings __weak SEC(".maps");

/* What new ones begin with: older kernels take the value of an update from a stack or a map only. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xpt_running);
} fresh_running __weak SEC(".maps");

/*
 * From where operators of a process are called, and callbacks. Value: the ticket of who waits for the probe there; 0: it has been asked for.
 * Of address 0: how many callbacks the process has handed over.
 */
struct caller_key {
	__u32 tgid;
	__u32 callback; /* as in struct xpt_record_caller */
	__u64 address;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct caller_key);
	__type(value, __u64);
} callers __weak SEC(".maps");

/* Names of regions that were emitted to user space. */
struct region_name_key {
	__u64 process; /* number of the process and the program that it runs: never that of a later one */
	__u64 name;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct region_name_key);
	__type(value, __u32);
} region_names __weak SEC(".maps");

/* What user space maps, too. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct xpt_shared);
} shared_state __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, XPT_FAMILY_WORDS);
	__type(key, __u32);
	__type(value, struct xpt_family);
} family __weak SEC(".maps");

/* Processes to follow that are not of the family: their children, programs and end. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, XPT_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, __u32);
} processes __weak SEC(".maps");

/* By enum xpt_loss. Several tasks of one CPU may count at once, so the additions are atomic all the same. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, XPT_LOSS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} losses __weak SEC(".maps");

/* Rare records that the others cannot be understood without: never crowded out by calls. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 512 * 1024);
} control_ring __weak SEC(".maps");

/* Copies of stacks. Not made unless they are taken; sized when loaded. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} stack_ring __weak SEC(".maps");

/* By process. Not made unless stacks are taken. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, XPT_PROCESSES_MAX);
	__type(key, __u32);
	__type(value, struct xpt_python);
} pythons __weak SEC(".maps");

/* Holds perf events: those of struct xpt_config.slots. */
struct counter_events {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(map_flags, BPF_F_PRESERVE_ELEMS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
};

/* Empty when none is to be read. In a map, because programs that sleep may not use one of its kind directly. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, __u32);
	__array(values, struct counter_events);
} counter_sets __weak SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct xpt_thread_counts);
} thread_counts __weak SEC(".maps");

struct data_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
};

/* One ring for each group of CPUs: producers that share a ring slow each other down. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, XPT_RINGS_MAX);
	__type(key, __u32);
	__array(values, struct data_ring);
} data_rings __weak SEC(".maps");

#endif

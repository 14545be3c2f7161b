/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * The counts of programs. An entry is found by its index: a thread keeps those of its latest programs, and compares the key of
 * the entry at each use, because it may have become another program's. Free entries are in a list; what both sides do to it
 * they do in one step, and each change has a number, so that a step based on an older state of it fails.
 */
#ifndef XPT_PROGRAMS_BPF_H
#define XPT_PROGRAMS_BPF_H

#include "emit.bpf.h"

#define LIST_TRIES 64 /* of one step; then an entry is taken that was never used, or a released one is not used again */

static __always_inline struct xpt_program_key entry_key(const struct xpt_spec *spec, __u64 handle)
{
	bool by_program = spec->flags & XPT_SPEC_BY_PROGRAM;

	return (struct xpt_program_key){
		.tgid = bpf_get_current_pid_tgid() >> 32,
		.runtime = spec->runtime,
		.spec = by_program ? 0 : spec->index + 1,
		.handle = by_program ? handle : 0,
	};
}

/* The list after a change: index is the first one then. */
static __always_inline __u64 list_next(__u64 list, __u32 index)
{
	return ((list >> 32) + 1) << 32 | index;
}

static __always_inline struct xpt_program_entry *entry_at(__u32 index)
{
	return bpf_map_lookup_elem(&program_entries, &index);
}

/* Index of an entry that no program has any more, or has had yet. 0: there is none. */
__noinline int entry_take(void)
{
	struct xpt_shared *shared = shared_get();
	const struct xpt_program_entry *entry;
	__u64 used, list;

	if (!shared)
		return 0;
	for (__u32 i = 0; i < LIST_TRIES; i++) {
		list = *(volatile __u64 *)&shared->free_entries;
		entry = entry_at((__u32)list);
		if (!(__u32)list || !entry)
			break;
		if (__sync_val_compare_and_swap(&shared->free_entries, list, list_next(list, entry->next)) == list)
			return (__u32)list;
	}
	used = __sync_fetch_and_add(&shared->used_entries, 1);
	if (used < XPT_PROGRAMS_MAX)
		return used + 1;
	__sync_fetch_and_add(&shared->used_entries, -1);
	return 0;
}

/* The entry becomes free. As entry_release() in user/kern/state.c. */
__noinline int entry_release(__u32 index)
{
	struct xpt_shared *shared = shared_get();
	struct xpt_program_entry *entry = entry_at(index);
	__u64 list;

	if (!shared || !entry)
		return 0;
	entry->key.tgid = 0;
	for (__u32 i = 0; i < LIST_TRIES; i++) {
		list = *(volatile __u64 *)&shared->free_entries;
		*(volatile __u32 *)&entry->next = list;
		if (__sync_val_compare_and_swap(&shared->free_entries, list, list_next(list, index)) == list)
			break;
	}
	return 0;
}

/* What was meant for the program before does not count any more. Behind the change of since, which user space compares first. */
static __always_inline void entry_reset_rate(struct xpt_program_entry *entry)
{
	__sync_lock_test_and_set(&entry->rate, (entry->rate | XPT_RATE_MASK) + 1);
}

/* Index of the entry of a new program; another thread may have made it meanwhile. 0: the table is full. */
__noinline int entry_make(const struct xpt_spec *spec, __u64 handle)
{
	const struct xpt_shared *shared = shared_get();
	struct xpt_program_entry *entry;
	struct xpt_program_key key;
	const __u32 *known;
	__u32 index = entry_take();

	entry = entry_at(index);
	if (!spec || !index || !entry)
		return 0;
	key = entry_key(spec, handle);
	entry->count = (struct xpt_program_count){};
	entry->next = 0;
	entry->key.runtime = key.runtime;
	entry->key.spec = key.spec;
	entry->key.handle = key.handle;
	*(volatile __u64 *)&entry->since = bpf_ktime_get_ns();
	entry_reset_rate(entry);
	if (!bpf_map_update_elem(&programs, &key, &index, BPF_NOEXIST)) {
		*(volatile __u32 *)&entry->key.tgid = key.tgid;
		if (shared && shared->wake_new)
			reader_wake();
		return index;
	}
	entry_release(index);
	known = bpf_map_lookup_elem(&programs, &key);
	return known ? *known : 0;
}

/* Index of the entry of the program, if it has one; else 0. */
__noinline int entry_find(const struct xpt_spec *spec, __u64 handle)
{
	struct xpt_program_key key;
	const __u32 *index;

	if (!spec)
		return 0;
	key = entry_key(spec, handle);
	index = bpf_map_lookup_elem(&programs, &key);
	return index ? *index : 0;
}

/* Made when there is none. 0: the table is full (counted). */
static __always_inline __u32 entry_index(const struct xpt_spec *spec, __u64 handle)
{
	__u32 index = entry_find(spec, handle) ?: entry_make(spec, handle);

	if (!index)
		count_loss(XPT_LOSS_PROGRAMS);
	return index;
}

/* NULL: the table is full. */
static __always_inline struct xpt_program_entry *entry_get(const struct xpt_spec *spec, __u64 handle)
{
	__u32 index = entry_index(spec, handle);

	return index ? entry_at(index) : NULL;
}

static __always_inline bool entry_is(const struct xpt_program_entry *entry, const struct xpt_spec *spec, __u64 handle)
{
	const struct xpt_program_key *key = &entry->key;

	if (key->tgid != bpf_get_current_pid_tgid() >> 32 || key->runtime != spec->runtime)
		return false;
	if (spec->flags & XPT_SPEC_BY_PROGRAM)
		return key->handle == handle && !key->spec;
	return key->spec == spec->index + 1;
}

/* The same of the thread's call. */
static __always_inline struct xpt_program_entry *entry_of_call(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	__u64 handle = thread->handle;
	__u32 place = (spec->flags & XPT_SPEC_BY_PROGRAM ? (handle * NUMBER_FACTOR) >> 32 : spec->index) &
		      (XPT_ENTRIES_KEPT - 1);
	struct xpt_program_entry *entry = entry_at(thread->entry[place]);
	__u32 index;

	if (entry && entry_is(entry, spec, handle))
		return entry;
	index = entry_index(spec, handle);
	thread->entry[place] = index;
	return index ? entry_at(index) : NULL;
}

#endif

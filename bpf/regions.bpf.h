/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Regions: stretches of user code between two places. They may be short and many, so begin and end are put together
 * here and make one record, and a name is sent to user space once a process: a hash of its text stands for it. A
 * thread's regions need not nest, nor follow its stack.
 */
#ifndef XPT_REGIONS_BPF_H
#define XPT_REGIONS_BPF_H

#include "callers.bpf.h"

static __always_inline __u64 number_mix(__u64 number, __u64 word)
{
	number = (number ^ word) * NUMBER_FACTOR;
	return number ^ number >> 32;
}

/* The same for the same text, and hardly ever for others; not 0. */
static __always_inline __u64 text_number(const __u64 *words, __u32 length)
{
	__u64 number = length + 1;
	__u32 whole = length / 8, left = length % 8;

	for (__u32 i = 0; i < XPT_STRING_MAX / 8 && i < whole; i++)
		number = number_mix(number, words[i]);
	if (left)
		number = number_mix(number, words[whole & (XPT_STRING_MAX / 8 - 1)] & ((1ull << 8 * left) - 1));
	return number ?: 1;
}

/* Emits the name in scratch to user space, unless it has been. */
__noinline int region_name_emit(struct xpt_thread *thread, __u64 name, __u32 length, __u32 truncated)
{
	struct task_struct *task = bpf_get_current_task_btf();
	const struct xpt_config *config = config_get();
	struct xpt_record_region_name *record;
	struct region_name_key key;
	__u32 one = 1, size;

	if (!thread || !config)
		return 0;
	key.process = task->group_leader->start_time * NUMBER_FACTOR ^ (task->self_exec_id << 32 | task->tgid);
	key.name = name;
	if (bpf_map_lookup_elem(&region_names, &key))
		return 0;
	record = (void *)thread->scratch;
	size = XPT_ALIGN8(sizeof(*record) + length) & 511;
	if (size > sizeof(thread->scratch))
		return 0;
	header_fill(&record->header, XPT_RECORD_REGION_NAME, size, task->tgid, bpf_ktime_get_ns());
	record->name = name;
	record->length = length;
	record->truncated = truncated;
	if (!emit_data(config, record, size, WAKEUP_WINDOW))
		bpf_map_update_elem(&region_names, &key, &one, BPF_ANY);
	return 0;
}

/* The number of the name at the address into thread->number; 0: it cannot be read, or is empty. */
__noinline int region_name(struct xpt_thread *thread, __u64 address)
{
	bool truncated = false;
	__u64 *text;
	long length;

	if (!thread)
		return 0;
	thread->number = 0;
	if (!address)
		return 0;
	text = thread->scratch + sizeof(struct xpt_record_region_name) / 8;
	length = read_text((char *)text, address, &truncated);
	if (length <= 0 || length > XPT_STRING_MAX)
		return 0;
	thread->number = text_number(text, length);
	return region_name_emit(thread, thread->number, length, truncated);
}

/* The region's handle into thread->handle, its name's number into thread->number, as far as there are such. */
__noinline int region_resolve(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	if (!thread || !spec)
		return 0;
	thread->handle = thread->number = 0;
	for (__u32 i = 0; i < 2 && i < spec->fetches; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];
		__u64 value = 0;

		if (argument_read(&thread->registers, fetch->source, &value) || follow(fetch, &value))
			continue; /* a region may have no name yet */
		if (fetch->meaning == XPT_MEANING_PROGRAM)
			thread->handle = value;
		else if (fetch->type == XPT_TYPE_STRING)
			region_name(thread, value);
	}
	return 0;
}

/* Where the region with the place is, unless a later one has taken that. */
static __always_inline struct xpt_open_region *region_slot(struct xpt_thread *thread, __u32 place)
{
	return &thread->region[place & (XPT_REGIONS_MAX - 1)];
}

/* Moves the region there, if it is open, to the place below, so that none lies between. Returns the place above it. */
__noinline int region_move(struct xpt_thread *thread, __u32 place, __u32 below)
{
	const struct xpt_open_region *region;
	struct xpt_open_region *moved;

	if (!thread)
		return below;
	region = region_slot(thread, place);
	if (region->place != place || !region->start)
		return below;
	moved = region_slot(thread, below);
	*moved = *region;
	moved->place = below;
	return below + 1;
}

/* Takes those that have ended from between those that are open. */
__noinline int regions_pack(struct xpt_thread *thread)
{
	__u32 first, below;

	if (!thread)
		return 0;
	first = below = thread->regions - XPT_REGIONS_MAX;
	for (__u32 i = 0; i < XPT_REGIONS_MAX; i++)
		below = region_move(thread, first + i, below);
	thread->regions = below;
	return 0;
}

/* Whether the next one takes the place of one that is open. */
static __always_inline bool regions_full(struct xpt_thread *thread)
{
	__u32 place = thread->regions - XPT_REGIONS_MAX;
	const struct xpt_open_region *region = region_slot(thread, place);

	return thread->regions >= XPT_REGIONS_MAX && region->start && region->place == place;
}

/* The region begins; where too many are open, in the place of the oldest: its end may never come. */
static __always_inline struct xpt_open_region *region_open(struct xpt_thread *thread, const struct xpt_spec *spec,
							   __u64 handle, __u64 name)
{
	struct xpt_open_region *region;
	__u32 place;

	if (regions_full(thread))
		regions_pack(thread);
	if (regions_full(thread))
		count_loss(XPT_LOSS_DEPTH);
	place = thread->regions++;
	region = region_slot(thread, place);
	region->place = place;
	region->handle = handle;
	region->name = name;
	region->spec = spec->index;
	region->function = 0;
	region->start = bpf_ktime_get_ns();
	return region;
}

/* Takes those that have ended off the top. */
__noinline int regions_settle(struct xpt_thread *thread)
{
	if (!thread)
		return 0;
	for (__u32 i = 0; i < XPT_REGIONS_MAX && thread->regions; i++) {
		const struct xpt_open_region *last = region_slot(thread, thread->regions - 1);

		if (last->place != thread->regions - 1)
			thread->regions = 0; /* and below it none is there either */
		else if (!last->start)
			thread->regions--;
		else
			break;
	}
	return 0;
}

__noinline int region_emit(struct xpt_thread *thread, __u32 place, __u64 end)
{
	const struct xpt_config *config = config_get();
	__u64 task = bpf_get_current_pid_tgid();
	struct xpt_record_region *record;
	struct xpt_open_region *region;

	if (!thread || !config)
		return 0;
	region = region_slot(thread, place);
	record = (void *)thread->scratch;
	header_fill(&record->header, XPT_RECORD_REGION, sizeof(*record), task >> 32, end);
	record->start = region->start;
	record->tid = task;
	record->spec = region->spec;
	record->cpu = bpf_get_smp_processor_id();
	record->handle = region->function ? 0 : region->handle;
	record->name = region->name;
	region->start = 0;
	emit_data(config, record, sizeof(*record), WAKEUP_WINDOW);
	return 0;
}

/*
 * What a search from the latest region downwards finds at a place. Each is a function: the verifier follows the body of a loop
 * once an iteration.
 */
enum { PLACE_PASSED, PLACE_FOUND, PLACE_LAST };

/* PLACE_FOUND: an open region, which is a function or is none. */
static __always_inline int place_check(const struct xpt_open_region *region, __u32 place, bool function)
{
	if (region->place != place)
		return PLACE_LAST;
	return region->start && !!region->function == function ? PLACE_FOUND : PLACE_PASSED;
}

/* Whether the region there is what the thread ends now. */
__noinline int region_matches(struct xpt_thread *thread, __u32 place)
{
	const struct xpt_open_region *region;
	int found;

	if (!thread)
		return PLACE_LAST;
	region = region_slot(thread, place);
	found = place_check(region, place, false);
	if (found != PLACE_FOUND)
		return found;
	if (region->handle && thread->handle)
		return region->handle == thread->handle ? PLACE_FOUND : PLACE_PASSED;
	return region->name == thread->number ? PLACE_FOUND : PLACE_PASSED;
}

/* The place of the latest region of those that the thread ends now; -1: none has begun. */
__noinline int region_find(struct xpt_thread *thread)
{
	if (!thread)
		return -1;
	for (__u32 i = 1; i <= XPT_REGIONS_MAX && i <= thread->regions; i++) {
		__u32 place = thread->regions - i;
		int found = region_matches(thread, place);

		if (found != PLACE_PASSED)
			return found == PLACE_FOUND ? place : -1;
	}
	return -1;
}

/* ---- functions ---- */

/* Takes the function there away if the thread, which enters another one, has left it. */
__noinline int function_left(struct xpt_thread *thread, __u32 place)
{
	struct xpt_open_region *region;
	__u64 stack;
	int found;

	if (!thread)
		return PLACE_LAST;
	stack = thread->registers.stack;
	region = region_slot(thread, place);
	found = place_check(region, place, true);
	if (found != PLACE_FOUND)
		return found;
	if (region->handle > stack || (region->handle == stack && region->return_address == thread->return_address &&
				       region->name != thread->registers.site))
		return PLACE_LAST;
	region->start = 0;
	return PLACE_PASSED;
}

/*
 * The thread enters a function: those that it has left by an exception or longjmp have their ends no more. Where another one has the
 * same stack pointer and returns to the same place, it has jumped to this one: they end together.
 */
__noinline int functions_left(struct xpt_thread *thread)
{
	if (!thread)
		return 0;
	for (__u32 i = 1; i <= XPT_REGIONS_MAX && i <= thread->regions; i++) {
		if (function_left(thread, thread->regions - i) == PLACE_LAST)
			break;
	}
	return regions_settle(thread);
}

__noinline int function_begin(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	struct xpt_open_region *region;

	if (!thread || !spec)
		return 0;
	caller_resolve(thread);
	if (thread->regions)
		functions_left(thread);
	region = region_open(thread, spec, thread->registers.stack, thread->registers.site);
	region->function = 1;
	region->return_address = thread->return_address;
	return 0;
}

/* Ends the function there if it was entered with the stack pointer; one below it has been left. */
__noinline int function_ends(struct xpt_thread *thread, __u32 place, __u64 stack, __u64 end)
{
	struct xpt_open_region *region;
	int found;

	if (!thread)
		return PLACE_LAST;
	region = region_slot(thread, place);
	found = place_check(region, place, true);
	if (found != PLACE_FOUND)
		return found;
	if (region->handle > stack)
		return PLACE_LAST;
	if (region->handle == stack)
		region_emit(thread, place, end);
	else
		region->start = 0;
	return PLACE_PASSED;
}

/* Behind a call; stack: what the stack pointer was at the entry of what was called. */
__noinline int function_end(struct xpt_thread *thread, __u64 stack, __u64 end)
{
	if (!thread || !thread->regions)
		return 0;
	for (__u32 i = 1; i <= XPT_REGIONS_MAX && i <= thread->regions; i++) {
		if (function_ends(thread, thread->regions - i, stack, end) == PLACE_LAST)
			break;
	}
	return regions_settle(thread);
}

/* ---- both ---- */

/* A place where regions begin or end. The thread has its registers. */
static __always_inline void region_pass(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	__u64 now = bpf_ktime_get_ns();
	int place;

	if (spec->role == XPT_ROLE_REGION) {
		function_begin(thread, spec);
		return;
	}
	region_resolve(thread, spec);
	if (spec->role == XPT_ROLE_REGION_BEGIN) {
		region_open(thread, spec, thread->handle, thread->number);
		return;
	}
	place = region_find(thread);
	if (place < 0)
		return;
	region_emit(thread, place, now);
	regions_settle(thread);
}

#endif

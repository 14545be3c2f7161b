/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A traced call from its beginning to its record. The same for every kind of link: calls.bpf.c has one program for the
 * entry and one for the return, session.bpf.c one for both.
 */
#ifndef XPT_CALLS_BPF_H
#define XPT_CALLS_BPF_H

#include <bpf/bpf_core_read.h>

#include "fetch.bpf.h"

/* What call_begin() wants of the return. */
#define RETURN_WANTED 0
#define RETURN_NOT_WANTED 1

static __always_inline void hold(struct xpt_record_header *header, __u8 *flags)
{
	__u32 tgid = header->tgid;
	__u32 *process = bpf_map_lookup_elem(&processes, &tgid);

	if (process && (*process & XPT_PROCESS_HOLD) && !bpf_send_signal(19 /* SIGSTOP */))
		*flags |= XPT_CALL_HELD;
}

/* The thread's state; its name is sent along with its first call. */
static __always_inline struct xpt_thread *thread_get(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xpt_thread *thread = bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (thread && !thread->known) {
		struct xpt_record_task record = {};
		__u64 id = bpf_get_current_pid_tgid();

		record.header.kind = XPT_RECORD_TASK;
		record.header.size = sizeof(record);
		record.header.tgid = id >> 32;
		record.header.time = bpf_ktime_get_ns();
		record.tid = id;
		record.event = XPT_TASK_THREAD;
		bpf_get_current_comm(record.name, sizeof(record.name));
		thread->known = !emit_control(&record, sizeof(record));
	}
	return thread;
}

/* Where a function returns to whose return somebody watches, this collector or another one; 0: nobody does. */
static __always_inline __u64 return_trampoline(void)
{
	struct task_struct *task = bpf_get_current_task_btf();

	return BPF_CORE_READ(task, mm, uprobes_state.xol_area, vaddr);
}

/* A frame at or above the current stack pointer that the thread has not left yet. */
static __always_inline bool frame_is_open(const struct xpt_frame *frame, const struct xpt_spec *spec,
					  const struct registers *registers, __u64 return_address)
{
	__u64 now;

	if (frame->stack < registers->stack)
		return false;
	/*
	 * Same place on the stack: one function has jumped to the other, or the first was left by longjmp. A function that
	 * was jumped to finds the return address already replaced by that of the return probe.
	 */
	if (!(frame->flags & FRAME_LEFT_OUT))
		return frame->stack > registers->stack || frame->spec != spec->index ||
		       (return_address && return_address != frame->return_address);
	if (frame->stack == registers->stack && frame->spec == spec->index)
		return false;
	/* Nothing tells when a call without an armed return ends; a later call overwrites its return address. */
	if (registers->link)
		return true;
	if (read_user(&now, sizeof(now), frame->stack))
		return false;
	return now == frame->return_address || (now && now == return_trampoline());
}

/* Forgets frames that the thread has left without their return being seen. */
__noinline int frames_drop(struct xpt_thread *thread, const struct xpt_spec *spec, const struct registers *registers,
			   __u64 return_address)
{
	if (!thread || !spec || !registers)
		return 0;
	for (__u32 i = 0; i < XPT_DEPTH_MAX; i++) {
		__u32 depth = thread->depth;

		if (!depth || depth > XPT_DEPTH_MAX)
			break;
		if (frame_is_open(&thread->frame[(depth - 1) & (XPT_DEPTH_MAX - 1)], spec, registers, return_address))
			break;
		thread->depth = depth - 1;
	}
	return 0;
}

/* Is this call the same operation as one that is open, one runtime further down? */
__noinline int is_layer(const struct xpt_thread *thread, const struct xpt_spec *spec)
{
	if (!thread || !spec)
		return 0;
	for (__u32 i = 0; i < XPT_DEPTH_MAX; i++) {
		const struct xpt_frame *frame = &thread->frame[i];

		if (i >= thread->depth)
			break;
		if (frame->role == spec->role && (frame->over >> (spec->runtime & (XPT_RUNTIME_MAX - 1)) & 1))
			return 1;
	}
	return 0;
}

/* Takes the frame of a call that returns, and those above it, off. Its depth, or -1: its entry was not seen. */
__noinline int frame_take(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 stack)
{
	__u32 depth;

	if (!thread || !spec)
		return -1;
	depth = thread->depth;
	for (__u32 i = 0; i < XPT_DEPTH_MAX; i++) {
		const struct xpt_frame *frame;

		if (!depth || depth > XPT_DEPTH_MAX)
			return -1;
		depth--;
		frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
		if (frame->stack > stack)
			return -1;
		if (frame->stack == stack && frame->spec == spec->index && !(frame->flags & FRAME_LEFT_OUT)) {
			thread->depth = depth;
			return depth;
		}
	}
	return -1;
}

static __always_inline struct xpt_program_entry *entry_get(__u32 tgid, const struct xpt_spec *spec, __u64 handle,
							   bool create)
{
	struct xpt_program_key key = { .tgid = tgid, .runtime = spec->runtime };
	struct xpt_program_entry *entry, fresh = {};

	if (spec->flags & XPT_SPEC_BY_PROGRAM)
		key.handle = handle;
	else
		key.spec = spec->index + 1;
	entry = bpf_map_lookup_elem(&programs, &key);
	if (entry || !create)
		return entry;
	fresh.since = bpf_ktime_get_ns();
	bpf_map_update_elem(&programs, &key, &fresh, BPF_NOEXIST);
	entry = bpf_map_lookup_elem(&programs, &key);
	if (!entry)
		count_loss(XPT_LOSS_PROGRAMS);
	return entry;
}

static __always_inline void count_lost(__u32 tgid, const struct xpt_spec *spec, __u64 handle)
{
	struct xpt_program_entry *entry = entry_get(tgid, spec, handle, false);

	if (entry)
		__sync_fetch_and_add(&entry->count.lost, 1);
}

/*
 * The counts of a handle up to now, because what runs under it from here on may be another program. A handle that is
 * given back takes its entry with it, so that the table holds live ones only; of one that may be in use, the counts are
 * taken off and the entry stays: other threads may be counting in it at this moment.
 */
static __always_inline void program_cut(const struct xpt_thread *thread, const struct xpt_spec *spec, __u64 handle)
{
	struct xpt_record_total record = {};
	struct xpt_program_entry *entry;

	record.key.tgid = bpf_get_current_pid_tgid() >> 32;
	record.key.runtime = spec->runtime;
	record.key.handle = handle;
	entry = bpf_map_lookup_elem(&programs, &record.key);
	if (!entry)
		return;
	record.header.kind = XPT_RECORD_TOTAL;
	record.header.size = sizeof(record);
	record.header.tgid = record.key.tgid;
	record.header.time = thread->now;
	record.count = entry->count;
	if ((record.count.calls || record.count.layers) && emit_control(&record, sizeof(record)))
		return;
	if (spec->role == XPT_ROLE_PROGRAM_UNLOAD) {
		bpf_map_delete_elem(&programs, &record.key);
		return;
	}
	entry->sample_every = 0;
	__sync_fetch_and_add(&entry->count.calls, -record.count.calls);
	__sync_fetch_and_add(&entry->count.left_out, -record.count.left_out);
	__sync_fetch_and_add(&entry->count.lost, -record.count.lost);
	__sync_fetch_and_add(&entry->count.layers, -record.count.layers);
	entry->since = thread->now;
}

/* An out pointer of NULL for an event that nobody wants is no loss. */
static __always_inline void count_unreadable(const struct xpt_fetch *fetch)
{
	if (fetch->meaning != XPT_MEANING_KEY)
		count_loss(XPT_LOSS_UNREADABLE);
}

static __always_inline bool succeeded(__u8 success, __u64 value)
{
	switch (success) {
	case XPT_SUCCESS_ZERO32:
		return (__u32)value == 0;
	case XPT_SUCCESS_ZERO64:
		return value == 0;
	case XPT_SUCCESS_NONZERO:
		return value != 0;
	default:
		return true;
	}
}

/* Fetches at the return are made when the call went well; the status always. */
static __always_inline void fetch_results(struct xpt_thread *thread, struct xpt_frame *frame,
					  const struct xpt_spec *spec, __u64 returned)
{
	bool success = succeeded(spec->success, returned);

	for (__u32 i = 0; i < XPT_FETCH_MAX; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];

		if (i >= spec->fetches)
			break;
		if (!fetch->at_return)
			continue;
		if (!success && fetch->meaning != XPT_MEANING_STATUS) {
			frame->valid &= ~(1 << i);
		} else if (is_plain(fetch) && fetch->source == XPT_SOURCE_RETURN) {
			frame->value[i] = plain_value(fetch, returned);
			frame->valid |= 1 << i;
		} else if (fetch_at_return(thread, spec, i, returned)) {
			count_unreadable(fetch);
		}
	}
}

static __always_inline void call_emit(const struct xpt_config *config, const struct xpt_frame *frame,
				      const struct xpt_spec *spec, __u32 depth, __u64 end, __u8 flags)
{
	struct {
		struct xpt_record_header header;
		__u64 start;
		__u32 tid;
		__u16 spec;
		__u8 depth;
		__u8 flags;
		__u8 valid;
		__u8 values;
		__u16 cpu;
		__u32 sample;
		__u64 value[2 * XPT_FETCH_MAX]; /* one more than there are fetches, rounded up to what a mask can bound */
	} record;
	const struct task_struct *task = bpf_get_current_task_btf();
	__u32 values = 0, size;
	long error;

	_Static_assert(sizeof(record) == sizeof(struct xpt_record_call) + 16 * XPT_FETCH_MAX, "same layout");
	record.header.kind = XPT_RECORD_CALL;
	record.header.tgid = task->tgid;
	record.header.time = end;
	record.start = frame->start;
	record.tid = task->pid;
	record.spec = spec->index;
	record.depth = depth;
	record.flags = flags;
	if (frame->flags & FRAME_LAYER)
		record.flags |= XPT_CALL_LAYER;
	record.valid = frame->valid;
	record.cpu = bpf_get_smp_processor_id();
	record.sample = frame->sample_every;
	for (__u32 i = 0; i < XPT_FETCH_MAX; i++) {
		if (i >= spec->fetches)
			break;
		if (spec->fetch[i].type != XPT_TYPE_STRING)
			record.value[values++ & (XPT_FETCH_MAX - 1)] = frame->value[i];
	}
	if (values > XPT_FETCH_MAX)
		values = XPT_FETCH_MAX;
	record.values = values;
	if (frame->flags & FRAME_NUMBERED) {
		record.flags |= XPT_CALL_NUMBERED;
		record.value[values++] = frame->number;
	}
	if (spec->flags & XPT_SPEC_HOLD)
		hold(&record.header, &record.flags);
	size = sizeof(struct xpt_record_call) + 8 * values;
	record.header.size = size;
	if (spec->flags & XPT_SPEC_CONTROL)
		error = emit_control(&record, size);
	else
		error = emit_data(config, &record, size);
	if (error)
		count_lost(record.header.tgid, spec, frame->program);
}

/* Is this call one that sampling leaves out? What the frame has to know of it is set. */
static __always_inline bool call_count(const struct xpt_config *config, const struct xpt_spec *spec,
				       struct xpt_program_entry *entry, __u64 *number, __u32 *sample_every)
{
	__u32 every;

	*number = __sync_fetch_and_add(&entry->count.calls, 1);
	*sample_every = 1;
	if (!(spec->flags & XPT_SPEC_SAMPLED))
		return false;
	every = entry->sample_every ?: config->sample_every;
	*sample_every = every;
	if (every <= 1 || (every != XPT_SAMPLE_NONE && *number % every == 0))
		return false;
	__sync_fetch_and_add(&entry->count.left_out, 1);
	return true;
}

static __always_inline int call_begin(struct pt_regs *context, __u32 index)
{
	const struct xpt_spec *spec = bpf_map_lookup_elem(&specs, &index);
	const struct xpt_config *config = config_get();
	__u32 tgid = bpf_get_current_task_btf()->tgid, sample_every = 1;
	__u64 return_address = 0, handle = 0, number = 0;
	struct xpt_program_entry *entry;
	struct registers registers;
	struct xpt_thread *thread;
	struct xpt_frame *frame;
	bool left_out = false, layer = false;
	__u32 depth;

	if (!spec || !config || config->stopping || tgid == config->self || !(config->roles >> (spec->role & 31) & 1))
		return RETURN_NOT_WANTED;
	registers_read(context, &registers);
	if ((spec->flags & XPT_SPEC_BY_PROGRAM) && spec->fetches) {
		if (!argument_read(&registers, spec->fetch[0].source, &handle))
			follow(&spec->fetch[0], &handle);
	}
	thread = thread_get();
	if (!thread) {
		entry = entry_get(tgid, spec, handle, true);
		if (entry) {
			__sync_fetch_and_add(&entry->count.calls, 1);
			__sync_fetch_and_add(&entry->count.lost, 1);
		}
		count_loss(XPT_LOSS_THREAD);
		return RETURN_NOT_WANTED;
	}
	if (spec->over) {
		return_address = registers.link;
		if (!return_address)
			read_user(&return_address, sizeof(return_address), registers.stack);
	}
	if (thread->depth) {
		frames_drop(thread, spec, &registers, return_address);
		layer = is_layer(thread, spec);
	}
	entry = entry_get(tgid, spec, handle, true);
	if (entry && layer)
		__sync_fetch_and_add(&entry->count.layers, 1);
	else if (entry)
		left_out = call_count(config, spec, entry, &number, &sample_every);
	if (left_out && !spec->over)
		return RETURN_NOT_WANTED;
	depth = thread->depth;
	if (depth >= XPT_DEPTH_MAX) {
		if (!left_out && entry && !layer)
			__sync_fetch_and_add(&entry->count.lost, 1);
		count_loss(XPT_LOSS_DEPTH);
		return RETURN_NOT_WANTED;
	}
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	frame->stack = registers.stack;
	frame->return_address = return_address;
	frame->over = spec->over;
	frame->program = handle;
	frame->spec = spec->index;
	frame->runtime = spec->runtime;
	frame->role = spec->role;
	frame->flags = (left_out ? FRAME_LEFT_OUT : 0) | (layer ? FRAME_LAYER : 0);
	if ((spec->flags & XPT_SPEC_SAMPLED) && entry && !layer)
		frame->flags |= FRAME_NUMBERED;
	frame->sample_every = sample_every;
	frame->number = number;
	frame->valid = 0;
	if (left_out) {
		thread->depth = depth + 1;
		return RETURN_NOT_WANTED;
	}
	frame->start = thread->start = bpf_ktime_get_ns();
	thread->now = frame->start - 1;
	for (__u32 i = 0; i < XPT_FETCH_MAX && i < spec->fetches; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];

		if (fetch->source == XPT_SOURCE_RETURN)
			continue;
		if (is_plain(fetch) && !fetch->at_return && fetch->source < REGISTER_COUNT) {
			frame->value[i] = plain_value(fetch,
						      registers.argument[fetch->source & (ARGUMENT_REGISTERS - 1)]);
			frame->valid |= 1 << i;
		} else if (fetch_at_entry(thread, spec, &registers, i)) {
			count_unreadable(fetch);
		}
	}
	if (spec->role == XPT_ROLE_PROGRAM_UNLOAD && spec->fetches && (frame->valid & 1))
		program_cut(thread, spec, frame->value[0]);
	if (spec->flags & XPT_SPEC_ENTRY_ONLY) {
		call_emit(config, frame, spec, depth, frame->start, XPT_CALL_NO_END);
		return RETURN_NOT_WANTED;
	}
	thread->depth = depth + 1;
	return RETURN_WANTED;
}

static __always_inline void call_end(struct pt_regs *context, __u32 index)
{
	__u64 end = bpf_ktime_get_ns();
	const struct xpt_spec *spec = bpf_map_lookup_elem(&specs, &index);
	const struct xpt_config *config = config_get();
	struct xpt_thread *thread;
	struct xpt_frame *frame;
	__u64 stack;
	int depth;

	if (!spec || !config)
		return;
	thread = bpf_task_storage_get(&threads, bpf_get_current_task_btf(), 0, 0);
	if (!thread)
		return;
	stack = STACK_POINTER(context) - RETURN_POPS;
	depth = thread->depth - 1;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	/* Nearly always the innermost one. */
	if (depth >= 0 && depth < XPT_DEPTH_MAX && frame->stack == stack && frame->spec == spec->index &&
	    !(frame->flags & FRAME_LEFT_OUT))
		thread->depth = depth;
	else
		depth = frame_take(thread, spec, stack);
	if (depth < 0)
		return;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	thread->start = frame->start;
	thread->now = end - 1;
	fetch_results(thread, frame, spec, RETURN_VALUE(context));
	if ((spec->role == XPT_ROLE_PROGRAM_LOAD || spec->role == XPT_ROLE_PROGRAM_NAME) && (frame->valid & 1))
		program_cut(thread, spec, frame->value[0]);
	call_emit(config, frame, spec, depth, end, 0);
}

#endif

/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * A traced call from its beginning to its record. The same for every kind of link: calls.bpf.c has one program for the
 * entry and one for the return, session.bpf.c one for both.
 */
#ifndef XPT_CALLS_BPF_H
#define XPT_CALLS_BPF_H

#include "counts.bpf.h"
#include "family.bpf.h"
#include "fetch.bpf.h"
#include "operators.bpf.h"
#include "programs.bpf.h"
#include "regions.bpf.h"
#include "stacks.bpf.h"
#include "states.bpf.h"
#include "wait.bpf.h"

/* Gives the current thread the slot for its number. Whether it was free. */
__noinline int slot_take(void)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct xpt_thread_slot *slot = slot_at(task->pid);

	if (!slot || slot->owner || __sync_val_compare_and_swap(&slot->owner, 0, slot_owner(task)))
		return 0;
	slot->thread.depth = slot->thread.known = slot->thread.loader = slot->thread.regions = 0;
	slot->thread.caller = slot->thread.python = slot->thread.off_cpu.start = 0;
	return 1;
}

/* The state of the current thread, made when there is none. NULL: no memory. */
static __always_inline struct xpt_thread *thread_make(struct task_struct *task)
{
	struct xpt_thread *thread = thread_get(task);
	struct xpt_thread_slot *slot;

	if (thread)
		return thread;
	if (slot_take() && (slot = slot_at(task->pid)))
		return &slot->thread;
	return bpf_task_storage_get(&threads, task, 0, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* The thread's name is sent along with its first call. */
__noinline int thread_announce(struct xpt_thread *thread)
{
	struct xpt_record_task *record;
	__u64 id = bpf_get_current_pid_tgid();

	if (!thread)
		return 0;
	record = (void *)thread->scratch;
	family_activate(id >> 32);
	header_fill(&record->header, XPT_RECORD_TASK, sizeof(*record), id >> 32, bpf_ktime_get_ns());
	record->tid = id;
	record->event = XPT_TASK_THREAD;
	record->shares_memory = 0;
	record->reserved = 0;
	record->other = 0;
	record->code = 0;
	bpf_get_current_comm(record->name, sizeof(record->name));
	thread->known = !emit_control(record, sizeof(*record));
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

/* The call's program lost it. */
__noinline int count_lost(const struct xpt_spec *spec, __u64 handle)
{
	struct xpt_program_entry *entry = entry_at(entry_find(spec, handle));

	/* The first entry is no program's. */
	if (entry)
		__sync_fetch_and_add(&entry->count.lost, 1);
	return 0;
}

/* A call of a thread without memory for its state. argument: that to find the handle by. */
__noinline int count_unseen(const struct xpt_spec *spec, __u64 argument)
{
	struct xpt_program_entry *entry;

	count_loss(XPT_LOSS_THREAD);
	if (!spec)
		return 0;
	if (spec->flags & XPT_SPEC_BY_PROGRAM)
		follow(&spec->fetch[0], &argument);
	entry = entry_get(spec, argument);
	if (entry) {
		__sync_fetch_and_add(&entry->count.calls, 1);
		__sync_fetch_and_add(&entry->count.lost, 1);
	}
	return 0;
}

/*
 * The counts of a handle up to now, because what runs under it from here on may be another program. A handle that is
 * released takes its entry with it, so that the table holds live ones only; of one that may be in use, the counts are
 * taken off and the entry stays: other threads may be counting in it at this moment.
 */
__noinline int program_cut(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 handle)
{
	struct xpt_program_key key = { .tgid = bpf_get_current_pid_tgid() >> 32, .handle = handle };
	struct xpt_record_total *record;
	struct xpt_program_entry *entry;
	const __u32 *index;
	__u32 released;

	if (!thread || !spec)
		return 0;
	record = (void *)thread->scratch;
	key.runtime = spec->runtime;
	index = bpf_map_lookup_elem(&programs, &key);
	released = index ? *index : 0;
	entry = released ? entry_at(released) : NULL;
	if (!entry)
		return 0;
	header_fill(&record->header, XPT_RECORD_TOTAL, sizeof(*record), key.tgid, thread->now);
	record->key = key;
	record->count = entry->count;
	if ((record->count.calls || record->count.layers) && emit_control(record, sizeof(*record)))
		return 0;
	if (spec->role == XPT_ROLE_PROGRAM_UNLOAD) {
		if (!bpf_map_delete_elem(&programs, &key))
			entry_release(released);
		return 0;
	}
	__sync_fetch_and_add(&entry->count.calls, -record->count.calls);
	__sync_fetch_and_add(&entry->count.left_out, -record->count.left_out);
	__sync_fetch_and_add(&entry->count.lost, -record->count.lost);
	__sync_fetch_and_add(&entry->count.layers, -record->count.layers);
	*(volatile __u64 *)&entry->since = thread->now;
	entry_reset_rate(entry);
	return 0;
}

/*
 * An out pointer of NULL for an event that nobody wants is no loss, nor are optional properties of a queue or a batch.
 */
static __always_inline void count_unreadable(const struct xpt_fetch *fetch)
{
	if (fetch->meaning != XPT_MEANING_KEY && fetch->meaning != XPT_MEANING_ORDERED &&
	    fetch->meaning < XPT_MEANING_POSITION)
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
__noinline int fetch_results(struct xpt_thread *thread, const struct xpt_spec *spec, __u64 returned)
{
	struct xpt_frame *frame;
	bool success;

	if (!thread || !spec)
		return 0;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	success = succeeded(spec->success, returned);

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
	return 0;
}

/* Values behind a call's record: of its fetches, its number, its counts, what its thread did, and its ticket. */
#define VALUES_MASK 31
_Static_assert(XPT_FETCH_MAX + 2 + (2 * sizeof(struct xpt_counts) + sizeof(struct xpt_task_state)) / 8 <=
		       VALUES_MASK + 1,
	       "room for all");

/* Behind the other values; how many there are then. */
__noinline int counts_append(struct xpt_thread *thread, __u32 depth, __u32 values)
{
	const struct xpt_thread_counts *counts = counts_get();
	__u64 *value;

	if (!thread || !counts)
		return values;
	value = thread->scratch + sizeof(struct xpt_record_call) / 8;
	for (__u32 side = 0; side < 2; side++) {
		const struct xpt_counts *from = &counts->at[side ? COUNTS_AT_RETURN : depth & (XPT_DEPTH_MAX - 1)];

		value[values++ & VALUES_MASK] = from->valid | (__u64)from->cpu << 32;
		for (__u32 i = 0; i < XPT_SLOT_MAX; i++)
			value[values++ & VALUES_MASK] = from->value[i];
	}
	return values;
}

/* Behind the other values; how many there are then. */
__noinline int states_append(struct xpt_thread *thread, __u32 depth, __u32 values)
{
	const struct xpt_frame *frame;
	__u64 *value;

	if (!thread)
		return values;
	((struct xpt_record_call *)thread->scratch)->depth |= thread->states;
	if (!(thread->states & XPT_CALL_STATES_FOLLOW))
		return values;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	value = thread->scratch + sizeof(struct xpt_record_call) / 8;
	value[values++ & VALUES_MASK] = frame->state.off_cpu;
	value[values++ & VALUES_MASK] = frame->state.waited;
	value[values++ & VALUES_MASK] = frame->state.voluntary | (__u64)frame->state.involuntary << 32;
	value[values++ & VALUES_MASK] = frame->state.minor | (__u64)frame->state.major << 32;
	return values;
}

/* Waits for the answer to the record emitted at a time. */
__noinline int call_wait(const struct xpt_thread *thread, __u64 time)
{
	const struct xpt_config *config = config_get();

	if (!thread || !config)
		return 0;
	return wait_for(thread->ticket, time + config->wait_probes, thread->stack, XPT_LOSS_LATE_PROBES);
}

/* Takes a ticket for the call, if it waits; it is behind the other values. How many there are then. */
__noinline int ticket_append(struct xpt_thread *thread, __u32 values)
{
	const struct xpt_config *config = config_get();

	if (!thread || !config)
		return values;
	thread->ticket = wait_ticket(config->wait_probes);
	if (thread->ticket)
		thread->scratch[sizeof(struct xpt_record_call) / 8 + (values++ & VALUES_MASK)] = thread->ticket;
	return values;
}

/* The record of the call of the frame at depth. */
__noinline int call_emit(struct xpt_thread *thread, const struct xpt_spec *spec, __u32 depth, __u64 end, __u32 flags)
{
	const struct xpt_config *config = config_get();
	struct xpt_record_call *record;
	const struct xpt_frame *frame;
	__u32 values = 0, size;
	__u64 *value;
	__u64 task;

	if (!thread || !spec || !config)
		return 0;
	_Static_assert(sizeof(thread->scratch) >= sizeof(struct xpt_record_call) + 8 * (VALUES_MASK + 1),
		       "room for all values");
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	record = (void *)thread->scratch;
	value = thread->scratch + sizeof(*record) / 8;
	task = bpf_get_current_pid_tgid();
	header_fill(&record->header, XPT_RECORD_CALL, 0, task >> 32, end);
	record->start = frame->start;
	record->tid = task;
	record->spec = spec->index;
	record->depth = depth;
	record->flags = flags | (frame->flags & FRAME_LAYER ? XPT_CALL_LAYER : 0) |
			(frame->flags & FRAME_NUMBERED ? XPT_CALL_NUMBERED : 0) |
			(frame->flags & FRAME_INSIDE ? XPT_CALL_INSIDE : 0);
	record->valid = frame->valid;
	record->cpu = bpf_get_smp_processor_id();
	record->sample = frame->sample_every;
	for (__u32 i = 0; i < XPT_FETCH_MAX; i++) {
		if (i >= spec->fetches)
			break;
		if (spec->fetch[i].type != XPT_TYPE_STRING)
			value[values++ & VALUES_MASK] = frame->value[i];
	}
	record->values = values;
	if (frame->flags & FRAME_NUMBERED)
		value[values++ & VALUES_MASK] = frame->number;
	if (frame->flags & FRAME_COUNTED) {
		values = counts_append(thread, depth, values);
		record->flags |= XPT_CALL_COUNTED;
	}
	if (thread->states)
		values = states_append(thread, depth, values);
	thread->ticket = 0;
	if (spec->flags & XPT_SPEC_WAIT)
		values = ticket_append(thread, values);
	if (thread->ticket)
		record->flags |= XPT_CALL_WAITS;
	size = (sizeof(*record) + 8 * values) & 255;
	record->header.size = size;
	if (spec->flags & XPT_SPEC_CONTROL ? emit_control(record, size) :
					     emit_data(config, record, size, WAKEUP_WINDOW))
		count_lost(spec, frame->program);
	else if (thread->ticket)
		call_wait(thread, end);
	return 0;
}

#define COUNTED (1 << 0)
#define COUNTED_LEFT_OUT (1 << 1)

/* Shards of site_hits, a power of two; 0: there is no budget, and hits are not counted. Set before loading; all objects share it. */
const volatile __u32 hit_shards SEC(".rodata.hits") = 0;

/* The rate of a program under a budget; 1 for the first call after it was changed. */
static __always_inline __u32 budget_rate(struct xpt_program_entry *entry, __u32 every)
{
	__u32 factor = entry->next;

	if ((factor & XPT_TAKE_NEXT) &&
	    __sync_val_compare_and_swap(&entry->next, factor, factor & ~XPT_TAKE_NEXT) == factor)
		return 1;
	factor &= ~XPT_TAKE_NEXT;
	return factor > 1 ? every * factor : every;
}

/* Counts the thread's call, and finds whether sampling leaves it out. Bits as above. */
__noinline int call_count(struct xpt_thread *thread, const struct xpt_spec *spec, __u32 layer)
{
	const struct xpt_config *config = config_get();
	struct xpt_program_entry *entry;
	__u32 every;

	if (!thread || !spec || !config)
		return 0;
	thread->sample_every = 1;
	entry = entry_of_call(thread, spec);
	if (!entry)
		return 0;
	if (layer) {
		__sync_fetch_and_add(&entry->count.layers, 1);
		return COUNTED;
	}
	thread->number = __sync_fetch_and_add(&entry->count.calls, 1);
	if (!(spec->flags & XPT_SPEC_SAMPLED))
		return COUNTED;
	every = config->chosen_only && is_inside(thread) ? 1 : XPT_RATE_EVERY(entry->rate) ?: config->sample_every;
	if (hit_shards && every != XPT_SAMPLE_NONE)
		every = budget_rate(entry, every);
	thread->sample_every = every;
	if (every <= 1 || (every != XPT_SAMPLE_NONE && thread->number % every == 0))
		return COUNTED;
	__sync_fetch_and_add(&entry->count.left_out, 1);
	return COUNTED | COUNTED_LEFT_OUT;
}

/* The frame at the thread's depth becomes that of the call. counted: as of call_count(). */
__noinline int frame_begin(struct xpt_thread *thread, const struct xpt_spec *spec, int counted, int layer)
{
	struct xpt_frame *frame;

	if (!thread || !spec)
		return 0;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	frame->stack = thread->registers.stack;
	frame->site = thread->registers.site;
	frame->return_address = thread->return_address;
	frame->over = spec->over;
	frame->program = thread->handle;
	frame->spec = spec->index;
	frame->runtime = spec->runtime;
	frame->role = spec->role;
	frame->flags = (counted & COUNTED_LEFT_OUT ? FRAME_LEFT_OUT : 0) | (layer ? FRAME_LAYER : 0);
	if ((spec->flags & XPT_SPEC_SAMPLED) && counted && !layer)
		frame->flags |= FRAME_NUMBERED;
	frame->sample_every = thread->sample_every;
	frame->number = thread->number;
	frame->valid = 0;
	if (is_inside(thread))
		frame->flags |= FRAME_INSIDE;
	return 0;
}

/* The handle of the call's program, and where it returns to, as far as the spec wants them. */
__noinline int call_resolve(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	__u64 handle = 0;

	if (!thread || !spec)
		return 0;
	thread->handle = thread->return_address = 0;
	if ((spec->flags & XPT_SPEC_BY_PROGRAM) && spec->fetches) {
		if (!argument_read(&thread->registers, spec->fetch[0].source, &handle))
			follow(&spec->fetch[0], &handle);
		thread->handle = handle;
	}
	if (spec->flags & XPT_SPEC_AROUND)
		return_address_read(thread);
	return 0;
}

/* What is fetched when the call begins; the frame is the one at the thread's depth. */
__noinline int fetch_arguments(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	struct xpt_frame *frame;

	if (!thread || !spec)
		return 0;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	for (__u32 i = 0; i < XPT_FETCH_MAX && i < spec->fetches; i++) {
		const struct xpt_fetch *fetch = &spec->fetch[i];

		if (fetch->source == XPT_SOURCE_RETURN)
			continue;
		if (is_plain(fetch) && !fetch->at_return && fetch->source < REGISTER_COUNT) {
			frame->value[i] =
				plain_value(fetch,
					    thread->registers.argument[fetch->source & (ARGUMENT_REGISTERS - 1)]);
			frame->valid |= 1 << i;
		} else if (fetch_at_entry(thread, spec, i)) {
			count_unreadable(fetch);
		}
	}
	return 0;
}

/* The inference that the frame at the thread's depth is, or is in. */
static __always_inline void inference_mark(struct xpt_thread *thread, bool own)
{
	const struct xpt_frame *around = &thread->frame[(thread->depth - 1) & (XPT_DEPTH_MAX - 1)];
	struct xpt_frame *frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];

	if (own) {
		frame->inference = frame->start;
		frame->inference_of = thread->handle;
		frame->inference_number = frame->number;
		running_change(frame, 1);
	} else if (thread->depth) {
		frame->inference = around->inference;
		frame->inference_of = around->inference_of;
		frame->inference_number = around->inference_number;
		frame->flags |= around->flags & FRAME_APART;
	} else {
		frame->inference = 0;
	}
}

/* Behind a call; stack: what the stack pointer was at the entry of what was called. */
static __always_inline void called_end(struct task_struct *task, __u64 stack)
{
	__u64 end = bpf_ktime_get_ns();
	struct xpt_thread *thread = thread_get(task);

	if (!thread)
		return;
	if (thread->depth)
		operator_end(thread, stack, end);
	if (thread->regions)
		function_end(thread, stack, end);
}

#define ARMED_MAX 64	 /* returns of a thread, as in the kernel */
#define LOADER_DELETES 2 /* r_debug.r_state: RT_DELETE; 0 is RT_CONSISTENT */

/* Whether the dynamic loader, which calls before and after each change of its list, has mapped something. */
__noinline int loader_has_added(struct xpt_thread *thread, __s64 state_offset)
{
	__u32 state = 0, before;

	if (!thread)
		return 0;
	if (!state_offset || read_user(&state, sizeof(state), thread->registers.site + state_offset))
		return 1;
	before = thread->loader;
	thread->loader = state;
	return !state && before != LOADER_DELETES;
}

/* Towards the end, what began in time is still recorded as a whole. */
__noinline int is_inside_at_end(const struct xpt_spec *spec)
{
	const struct xpt_thread *thread = thread_get(bpf_get_current_task_btf());
	const struct xpt_running *running;

	if (!spec)
		return 0;
	if (spec->role == XPT_ROLE_OPERATOR_END || (thread && is_inside(thread)))
		return 1;
	running = spec->role == XPT_ROLE_OPERATOR ? running_get(false) : NULL;
	return running && running->open;
}

/*
 * Arming a return makes the kernel drop those below the stack pointer, whoever has armed them. Is one of them still
 * open, because the thread runs on a higher stack now? On a signal stack all are: the trampoline itself, which
 * overwrites the return address, may have been interrupted. Where a return address is in a register, nobody knows where
 * the function has saved it: those left by longjmp count as open, too.
 */
static __always_inline bool drops_open_return(const struct xpt_thread *thread)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	const struct return_instance *armed = task->utask->return_instances;

	if (!RETURN_POPS)
		return true;
	for (__u32 i = 0; i < ARMED_MAX && armed && armed->stack < thread->registers.stack; i++) {
		if (thread->registers.stack - task->sas_ss_sp < task->sas_ss_size && armed->stack < task->sas_ss_sp)
			return true;
		if (is_returning_there(armed->stack))
			return true;
		armed = armed->next;
	}
	return false;
}

/* Whether a return is armed below the stack pointer: only then drops_open_return(). */
static __always_inline bool armed_below(const struct xpt_thread *thread)
{
	const struct return_instance *armed = bpf_get_current_task_btf()->utask->return_instances;

	return armed && armed->stack < thread->registers.stack;
}

/* Whether the call that begins must do without its end. */
__noinline int return_decline(struct xpt_thread *thread)
{
	if (!DECLINES_RETURNS || !thread || !drops_open_return(thread))
		return 0;
	count_loss(XPT_LOSS_STACKS);
	return 1;
}

/* The frame at the thread's depth is recorded without its end. */
__noinline int call_decline(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	if (!thread || !spec || !return_decline(thread))
		return 0;
	/* Of what is read at the return only the address is known. */
	for (__u32 i = 0; i < XPT_FETCH_MAX && i < spec->fetches; i++) {
		if (spec->fetch[i].at_return)
			thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)].valid &= ~(1 << i);
	}
	call_emit(thread, spec, thread->depth, thread->start, XPT_CALL_NO_END);
	return 1;
}

/*
 * Of a call that is left out and has a frame, the one at the thread's depth. Where a program is chosen it runs beside those
 * that are recorded, so that nothing on other threads is taken for theirs: then its end has to be seen.
 */
__noinline int left_out_begin(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	const struct xpt_config *config = config_get();
	struct xpt_frame *frame;

	if (!thread || !spec || !config)
		return RETURN_NOT_WANTED;
	if (!RETURN_POPS && (spec->flags & XPT_SPEC_ENTRY_ONLY))
		return RETURN_NOT_WANTED;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	frame->inference = 1; /* so are the steps inside */
	if (config->chosen_only && (spec->flags & XPT_SPEC_RUNNING)) {
		running_begins();
		frame->start = bpf_ktime_get_ns();
		inference_mark(thread, true);
	}
	if (frame_returns(frame) && DECLINES_RETURNS && armed_below(thread) && return_decline(thread)) {
		if (frame->flags & FRAME_RUNNING)
			running_cancel();
		return RETURN_NOT_WANTED;
	}
	thread->depth++;
	return frame_returns(frame) ? RETURN_WANTED : RETURN_NOT_WANTED;
}

/* Whether it is to be timed. */
static __always_inline bool count_hit(const struct xpt_spec *spec, __u64 cookie)
{
	__u32 counter = spec->role == XPT_ROLE_LOADER ? 0 : (cookie >> XPT_COOKIE_HITS_SHIFT) & (XPT_HITS_MAX - 1);
	__u32 index = (bpf_get_smp_processor_id() & (hit_shards - 1)) * XPT_HITS_MAX + counter;
	__u64 *hits = bpf_map_lookup_elem(&site_hits, &index);

	if (!hits)
		return false;
	return __sync_fetch_and_add(hits, 1) % XPT_HITS_TIMED_EVERY == 0 || counter == XPT_HITS_TIMED;
}

/* The frame is the one at the thread's depth. */
__noinline int call_start(struct xpt_thread *thread)
{
	struct xpt_frame *frame;

	if (!thread)
		return 0;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	states_begin(frame);
	frame->start = thread->start = bpf_ktime_get_ns();
	thread->now = frame->start - 1;
	thread->stack = thread->registers.stack;
	thread->states = 0;
	return 0;
}

#define TIMED_STEPPED 1 /* in the time at which a hit began: it is an expensive one */

__noinline int run_timed(__u64 start)
{
	__u64 took = bpf_ktime_get_ns() - start;
	struct xpt_shared *shared = shared_get();

	if (!shared)
		return 0;
	if (start & TIMED_STEPPED) {
		__sync_fetch_and_add(&shared->stepped, 1);
		reader_wake();
	}
	if (took > XPT_HITS_TIMED_MAX)
		return 0;
	__sync_fetch_and_add(&shared->timed_ns, took);
	__sync_fetch_and_add(&shared->timed_runs, 1);
	return 0;
}

/* What begins with a call, its time last. */
__noinline int call_begin_time(struct xpt_thread *thread, const struct xpt_spec *spec)
{
	const struct xpt_config *config = config_get();
	struct xpt_frame *frame;

	if (!thread || !spec || !config)
		return 0;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	/* Before the time, as it comes behind it at the return: nor is reading them. */
	if (config->slots && !(frame->flags & FRAME_LAYER) && counts_begin(spec, thread->depth))
		frame->flags |= FRAME_COUNTED;
	if ((spec->flags & XPT_SPEC_RUNNING) && !(frame->flags & FRAME_LAYER))
		running_begins();
	call_start(thread);
	return 0;
}

/* The same, with a copy of the stack, which is sent when the time is known. */
static __noinline int call_begin_stack(struct pt_regs *context, struct xpt_thread *thread, const struct xpt_spec *spec)
{
	struct xpt_record_stack_copy *copy;

	thread->now = bpf_ktime_get_ns();
	python_copy(thread);
	copy = bpf_ringbuf_reserve(&stack_ring, sizeof(struct stack_room), 0);
	if (!copy) {
		count_loss(XPT_LOSS_STACK_COPIES);
		return call_begin_time(thread, spec);
	}
	stack_registers(context, copy->registers);
	stack_copy((void *)copy, thread->registers.stack, thread->now);
	copy->reason = XPT_STACK_CALL;
	copy->number = thread->number;
	copy->handle = thread->handle;
	copy->spec = spec->index;
	call_begin_time(thread, spec);
	copy->call_start = thread->start;
	bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);
	return 0;
}

/* *timed: when it has begun, if it is to be timed. */
static __always_inline int call_try(struct pt_regs *context, __u64 cookie, __u64 *timed)
{
	__u32 index = cookie & 0xffff;
	const struct xpt_spec *spec = bpf_map_lookup_elem(&specs, &index);
	const struct xpt_config *config = config_get();
	struct task_struct *task = bpf_get_current_task_btf();
	struct xpt_thread *thread;
	struct xpt_frame *frame;
	bool layer = false;
	int counted;

	if (!spec || !config || task->tgid == config->self || !(config->roles >> (spec->role & 31) & 1))
		return RETURN_NOT_WANTED;
	if (!is_meant(cookie, task->tgid))
		return RETURN_NOT_WANTED;
	if (hit_shards && count_hit(spec, cookie))
		*timed = (bpf_ktime_get_ns() & ~(__u64)TIMED_STEPPED) |
			 (cookie & XPT_COOKIE_STEPPED ? TIMED_STEPPED : 0);
	if (config->capture != XPT_CAPTURE_ON && (config->capture == XPT_CAPTURE_OFF || !is_inside_at_end(spec)))
		return RETURN_NOT_WANTED;
	if (spec->role == XPT_ROLE_OPERATOR_END) {
		called_end(task, STACK_POINTER(context) - RETURN_POPS);
		return RETURN_NOT_WANTED;
	}
	thread = thread_make(task);
	if (!thread) {
		__u64 first = FIRST_ARGUMENT(context), second = SECOND_ARGUMENT(context);

		/* Else one load with an offset that is not constant is made of both, which the verifier does not take. */
		barrier_var(first);
		barrier_var(second);
		count_unseen(spec, spec->fetch[0].source ? second : first);
		return RETURN_NOT_WANTED;
	}
	if (!thread->known && spec->role != XPT_ROLE_LOADER)
		thread_announce(thread);
	registers_read(context, &thread->registers);
	if (spec->role == XPT_ROLE_LOADER && !loader_has_added(thread, (__s64)cookie >> XPT_COOKIE_STATE_SHIFT))
		return RETURN_NOT_WANTED;
	if (spec->role == XPT_ROLE_OPERATOR) {
		operator_begin(thread, spec);
		return RETURN_NOT_WANTED;
	}
	if (spec->role == XPT_ROLE_REGION_BEGIN || spec->role == XPT_ROLE_REGION_END || spec->role == XPT_ROLE_REGION) {
		region_pass(thread, spec);
		return RETURN_NOT_WANTED;
	}
	call_resolve(thread, spec);
	if (thread->depth) {
		frames_drop(thread, spec);
		layer = is_layer(thread, spec);
	}
	counted = call_count(thread, spec, layer);
	if ((counted & COUNTED_LEFT_OUT) && !(spec->flags & XPT_SPEC_AROUND))
		return RETURN_NOT_WANTED;
	if (thread->depth >= XPT_DEPTH_MAX) {
		if (counted == COUNTED && !layer)
			count_lost(spec, thread->handle);
		count_loss(XPT_LOSS_DEPTH);
		return RETURN_NOT_WANTED;
	}
	frame_begin(thread, spec, counted, layer);
	if (counted & COUNTED_LEFT_OUT)
		return left_out_begin(thread, spec);
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	/* Before the time: what the thread waits for is not a part of the call's duration. */
	if (spec->flags & XPT_SPEC_CALLBACK)
		callback_resolve(thread, spec);
	if (stacks_second && stack_is_due(thread, spec))
		call_begin_stack(context, thread, spec);
	else
		call_begin_time(thread, spec);
	fetch_arguments(thread, spec);
	if (spec->role == XPT_ROLE_PROGRAM_UNLOAD && spec->fetches && (frame->valid & 1))
		program_cut(thread, spec, frame->value[0]);
	if (spec->flags & XPT_SPEC_ENTRY_ONLY) {
		call_emit(thread, spec, thread->depth, frame->start, XPT_CALL_NO_END);
		return RETURN_NOT_WANTED;
	}
	if (DECLINES_RETURNS && armed_below(thread) && call_decline(thread, spec)) {
		if ((spec->flags & XPT_SPEC_RUNNING) && !layer)
			running_cancel();
		return RETURN_NOT_WANTED;
	}
	inference_mark(thread, (spec->flags & XPT_SPEC_RUNNING) && !layer);
	thread->depth++;
	return RETURN_WANTED;
}

static __always_inline int call_begin(struct pt_regs *context, __u64 cookie)
{
	__u64 timed = 0;
	int answer = call_try(context, cookie, &timed);

	if (hit_shards && timed)
		run_timed(timed);
	return answer;
}

static __always_inline void call_end(struct pt_regs *context, __u64 cookie)
{
	__u64 end = bpf_ktime_get_ns();
	__u32 index = cookie & 0xffff;
	const struct xpt_spec *spec = bpf_map_lookup_elem(&specs, &index);
	const struct xpt_config *config = config_get();
	struct xpt_thread *thread;
	struct xpt_frame *frame;
	int depth;

	if (!spec || !config)
		return;
	thread = thread_get(bpf_get_current_task_btf());
	if (!thread)
		return;
	depth = frame_take(thread, spec, STACK_POINTER(context) - RETURN_POPS);
	if (depth < 0)
		return;
	frame = &thread->frame[depth & (XPT_DEPTH_MAX - 1)];
	if ((frame->flags & FRAME_LEFT_OUT) || config->capture == XPT_CAPTURE_OFF)
		return;
	thread->states = states_end(frame);
	thread->stack = STACK_POINTER(context);
	if (frame->flags & FRAME_COUNTED)
		counts_read(counts_get(), COUNTS_AT_RETURN);
	thread->start = frame->start;
	thread->now = end - 1;
	fetch_results(thread, spec, RETURN_VALUE(context));
	if ((spec->role == XPT_ROLE_PROGRAM_LOAD || spec->role == XPT_ROLE_PROGRAM_NAME) && (frame->valid & 1))
		program_cut(thread, spec, frame->value[0]);
	call_emit(thread, spec, depth, end, 0);
}

#endif

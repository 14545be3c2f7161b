/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of stacks: their return addresses, by the unwind tables of the files, and the stack that they are. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "stack/private.h"

#define READ_AGAIN 100000000ull /* ns until the mappings of a process are read again for an address that is in none */
#define RESTARTS_MAX 16		/* of one stack, by frame pointers */
#define SCAN_WORDS 64		/* of the stack, in which the caller of code without unwind tables is looked for */
#define SCAN_TRIES 6		/* addresses there that may be it */

#if defined(__x86_64__)
#define REGISTERS 17
#define FRAME_POINTER 6
#define STACK_POINTER 7
#define PROGRAM_COUNTER 16
#elif defined(__aarch64__)
#define REGISTERS 32
#define FRAME_POINTER 29
#define LINK_REGISTER 30
#define STACK_POINTER 31
#define PROGRAM_COUNTER 32
#endif

/* One that is being unwound. */
struct unwinding {
	struct process *process;
	struct xpt_record_stack_copy *copy;
	__u64 registers[XPT_STACK_REGISTERS];
	__u64 frame_pointer, stack_pointer; /* of the outermost frame so far */
	bool resumed;			    /* from a frame pointer: the first address is one that is returned to */
	unsigned int count;
	/* address: to be looked up: of the call, where it is one that is returned to */
	struct native_frame frames[XPT_STACK_FRAMES_MAX];
	const struct xpt_record_python_copy *python; /* NULL: none */
};

/*
 * A return address without its signature, which AArch64 has above the bits of an address; xpaclri takes it away where processors have
 * signatures. Other words are kept, unless they are no addresses.
 */
static __u64 without_signature(__u64 word)
{
#if defined(__aarch64__)
	register __u64 link __asm__("x30") = word;

	__asm__("hint #7" : "+r"(link));
	return link;
#else
	return word;
#endif
}

/* ---- what libdw asks for ---- */

static bool copy_word(const struct xpt_record_stack_copy *copy, __u64 address, __u64 *word)
{
	__u64 at = address - copy->stack;

	if (address < copy->stack || at > copy->length || copy->length - at < sizeof(*word))
		return false;
	memcpy(word, copy->bytes + at, sizeof(*word));
	*word = without_signature(*word);
	return true;
}

static bool memory_read(Dwfl *dwfl, Dwarf_Addr address, Dwarf_Word *result, void *context)
{
	const struct process *process = context;
	__u64 word;

	(void)dwfl;
	if (!process->unwinding || !copy_word(process->unwinding->copy, address, &word))
		return false;
	*result = word;
	return true;
}

static pid_t next_thread(Dwfl *dwfl, void *context, void **argument)
{
	(void)dwfl;
	if (*argument)
		return 0;
	*argument = context;
	return (pid_t)((const struct process *)context)->tgid;
}

static bool get_thread(Dwfl *dwfl, pid_t thread, void *context, void **argument)
{
	(void)dwfl;
	(void)thread;
	*argument = context;
	return true;
}

static bool set_registers(Dwfl_Thread *thread, void *argument)
{
	const struct process *process = argument;
	Dwarf_Word registers[XPT_STACK_REGISTERS];

	for (unsigned int i = 0; i < XPT_STACK_REGISTERS; i++)
		registers[i] = process->unwinding->registers[i];
#ifdef LINK_REGISTER
	registers[LINK_REGISTER] = without_signature(registers[LINK_REGISTER]);
#endif
	if (!dwfl_thread_state_registers(thread, 0, REGISTERS, registers))
		return false;
	if (PROGRAM_COUNTER >= REGISTERS)
		dwfl_thread_state_register_pc(thread, registers[PROGRAM_COUNTER]);
	return true;
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = memory_read,
	.set_initial_registers = set_registers,
};

/* ---- unwinding ---- */

static int on_frame(Dwfl_Frame *frame, void *context)
{
	struct unwinding *unwinding = context;
	Dwarf_Word frame_pointer = 0, stack_pointer = 0;
	Dwarf_Addr address;
	bool is_activation;

	if (!dwfl_frame_pc(frame, &address, &is_activation))
		return DWARF_CB_ABORT;
	if (unwinding->resumed) {
		is_activation = false;
		unwinding->resumed = false;
	}
	dwfl_frame_reg(frame, FRAME_POINTER, &frame_pointer);
	dwfl_frame_reg(frame, STACK_POINTER, &stack_pointer);
	/* Frames that do not come nearer to the begin of the thread have no end. */
	if (unwinding->count && (stack_pointer < unwinding->stack_pointer ||
				 (stack_pointer == unwinding->stack_pointer && unwinding->count > 1)))
		return DWARF_CB_ABORT;
	unwinding->frame_pointer = frame_pointer;
	unwinding->stack_pointer = stack_pointer;
	if (unwinding->count)
		unwinding->frames[unwinding->count - 1].end = stack_pointer;
	unwinding->frames[unwinding->count++] = (struct native_frame){ is_activation ? address : address - 1,
								       stack_pointer, ~0ull };
	return unwinding->count < XPT_STACK_FRAMES_MAX ? DWARF_CB_OK : DWARF_CB_ABORT;
}

/* Goes on with the caller of the outermost frame by its frame pointer. */
static bool resume(struct unwinding *unwinding)
{
	const struct xpt_record_stack_copy *copy = unwinding->copy;
	__u64 *registers = unwinding->registers, caller, address;

	if (unwinding->frame_pointer < unwinding->stack_pointer || unwinding->frame_pointer % sizeof(__u64) ||
	    !copy_word(copy, unwinding->frame_pointer, &caller) ||
	    !copy_word(copy, unwinding->frame_pointer + sizeof(caller), &address) || !address)
		return false;
	memset(registers, 0, sizeof(unwinding->registers));
	registers[FRAME_POINTER] = caller;
	registers[STACK_POINTER] = unwinding->frame_pointer + 2 * sizeof(__u64);
	registers[PROGRAM_COUNTER] = address;
	unwinding->resumed = true;
	return true;
}

/* Whether the thread's start was reached. */
static bool unwind(struct unwinding *unwinding)
{
	struct process *process = unwinding->process;
	unsigned int before;
	int result = -1;

	if (!process->attached)
		process->attached = dwfl_attach_state(process->dwfl, NULL, (pid_t)process->tgid, &thread_callbacks,
						      process);
	if (!process->attached)
		return false;
	process->unwinding = unwinding;
	for (unsigned int tries = 0; tries < RESTARTS_MAX && result; tries++) {
		if (tries && (unwinding->count >= XPT_STACK_FRAMES_MAX || !resume(unwinding)))
			break;
		before = unwinding->count;
		result = dwfl_getthread_frames(process->dwfl, (pid_t)process->tgid, on_frame, unwinding);
		if (unwinding->count == before)
			break;
	}
	process->unwinding = NULL;
	return !result;
}

/* Puts the addresses back that the kernel has replaced. */
static void restore_returns(struct xpt_record_stack_copy *copy)
{
	unsigned int next = 0;
	__u64 word;

	if (!copy->trampoline)
		return;
#ifdef LINK_REGISTER
	if (without_signature(copy->registers[LINK_REGISTER]) == copy->trampoline && copy->returns)
		copy->registers[LINK_REGISTER] = copy->returned[next++].address;
#endif
	for (__u32 at = 0; at + sizeof(word) <= copy->length; at += sizeof(word)) {
		memcpy(&word, copy->bytes + at, sizeof(word));
		if (without_signature(word) != copy->trampoline)
			continue;
#ifndef LINK_REGISTER
		while (next < copy->returns && copy->returned[next].stack < copy->stack + at)
			next++;
		if (next < copy->returns && copy->returned[next].stack != copy->stack + at)
			continue;
#endif
		if (next < copy->returns)
			memcpy(copy->bytes + at, &copy->returned[next++].address, sizeof(word));
	}
}

static bool is_mapped(const struct unwinding *unwinding)
{
	for (unsigned int i = 0; i < unwinding->count; i++)
		if (!process_range(unwinding->process, unwinding->frames[i].address))
			return false;
	return unwinding->count > 0;
}

static void begin(struct unwinding *unwinding)
{
	memcpy(unwinding->registers, unwinding->copy->registers, sizeof(unwinding->registers));
	unwinding->count = 0;
	unwinding->frame_pointer = unwinding->stack_pointer = 0;
	unwinding->resumed = false;
}

/* ---- stacks ---- */

static __u64 hash_frames(const __u32 *frames, __u32 count)
{
	__u64 hash = 0xcbf29ce484222325;

	for (__u32 i = 0; i < count; i++)
		hash = (hash ^ frames[i]) * 0x100000001b3;
	return hash;
}

static int give_stack(struct unwinder *unwinder, const struct known_stack *stack, __u32 flags)
{
	__u32 size = XPT_ALIGN8(sizeof(struct xpt_record_stack) + stack->count * sizeof(stack->frame[0]));
	struct xpt_record_stack *record = calloc(1, size);

	if (!record)
		return -ENOMEM;
	record->header = (struct xpt_record_header){ XPT_RECORD_STACK, size, 0, 0 };
	record->id = stack->id;
	record->frames = stack->count;
	record->flags = flags;
	memcpy(record->frame, stack->frame, stack->count * sizeof(stack->frame[0]));
	unwinder->options.record(unwinder->options.context, &record->header);
	free(record);
	return 0;
}

/* The id of the stack with these frames, whose record is made when there is none. */
static int find_stack(struct unwinder *unwinder, const __u32 *frames, __u32 count, __u32 flags, __u64 *id)
{
	__u64 hash = hash_frames(frames, count);
	struct map_node *node = map_find(&unwinder->stacks, hash, flags);
	struct known_stack *stack;
	int error;

	for (; node; node = map_next(node)) {
		stack = container_of(node, struct known_stack, node);
		if (stack->count == count && !memcmp(stack->frame, frames, count * sizeof(*frames))) {
			*id = stack->id;
			return 0;
		}
	}
	if (unwinder->stacks.count >= STACKS_MAX)
		return -ENOSPC;
	stack = calloc(1, sizeof(*stack) + count * sizeof(*frames));
	if (!stack)
		return -ENOMEM;
	stack->id = unwinder->next_stack;
	stack->count = count;
	memcpy(stack->frame, frames, count * sizeof(*frames));
	error = give_stack(unwinder, stack, flags);
	error = error ?: map_add(&unwinder->stacks, &stack->node, hash, flags);
	if (error) {
		free(stack);
		return error;
	}
	link_append(&unwinder->stack_list, &stack->link);
	*id = unwinder->next_stack++;
	return 0;
}

/* Frames as they are recorded. */
struct frame_list {
	__u32 frame[XPT_STACK_FRAMES_MAX];
	__u32 count;
	bool cut, failed; /* there are more; no memory */
};

static void add_frames(struct frame_list *list, const __u32 *frames, unsigned int count)
{
	list->cut |= count > XPT_STACK_FRAMES_MAX - list->count;
	if (list->cut)
		return;
	memcpy(list->frame + list->count, frames, count * sizeof(*frames));
	list->count += count;
}

static void add_python(const struct unwinding *unwinding, struct frame_list *list, unsigned int from, unsigned int to)
{
	for (unsigned int i = from; i < to; i++) {
		const struct xpt_python_frame *frame = &unwinding->python->frame[i];
		__u32 id;

		if (!frame->address || python_is_shim(unwinding->process, frame))
			continue;
		id = python_frame(unwinding->process, frame);
		list->failed |= !id;
		add_frames(list, &id, 1);
	}
}

/* Python frames in place of the interpreter's loop that runs them. */
static void find_frames(const struct unwinding *unwinding, struct frame_list *list)
{
	const unsigned int python = unwinding->python ? unwinding->python->frames : 0;
	unsigned int next = 0, end;

	for (unsigned int i = 0; i < unwinding->count && !list->cut; i++) {
		const struct place *place;

		end = python ? python_end(unwinding->process, unwinding->python, next, &unwinding->frames[i]) : next;
		if (end > next) {
			add_python(unwinding, list, next, end);
			next = end;
			continue;
		}
		place = place_get(unwinding->process, unwinding->frames[i].address);
		list->failed |= !place;
		if (place)
			add_frames(list, place->frame, place->count);
	}
	/* Those whose loop is not known. */
	add_python(unwinding, list, next, python);
	list->cut |= python && unwinding->python->truncated;
}

static bool is_python(const struct unwinding *unwinding, const struct xpt_record_python_copy *python)
{
	return python && unwinding->process->python.minor && python->tid == unwinding->copy->tid &&
	       python->frames <= XPT_PYTHON_FRAMES_MAX;
}

/* Goes on behind the innermost frame, as if a word on the stack were where that returns to. */
static bool unwind_from(struct unwinding *unwinding, __u64 place, __u64 address, __u64 frame_pointer)
{
	begin(unwinding);
	unwinding->frames[unwinding->count++] = (struct native_frame){ unwinding->copy->registers[PROGRAM_COUNTER],
								       unwinding->copy->stack, place };
	unwinding->stack_pointer = unwinding->copy->stack;
	unwinding->registers[PROGRAM_COUNTER] = address;
	unwinding->registers[STACK_POINTER] = place + sizeof(address);
	unwinding->registers[FRAME_POINTER] = frame_pointer;
	unwinding->resumed = true;
	return unwind(unwinding);
}

/*
 * Code without unwind tables, written in assembly or made by the process, calls nothing as a rule: its caller is the first address of
 * code on the stack from which the thread's start is reached. What it has saved there before may be the frame pointer.
 */
static bool unwind_by_scan(struct unwinding *unwinding)
{
	const struct xpt_record_stack_copy *copy = unwinding->copy;
	const struct code_range *range;
	__u64 word, saved = 0, place = copy->stack;
	unsigned int tries = 0;

	for (unsigned int i = 0; i < SCAN_WORDS && tries < SCAN_TRIES && copy_word(copy, place, &word); i++) {
		range = word ? process_range(unwinding->process, word - 1) : NULL;
		if (!range || !range->executable) {
			if (!saved && word > place && word - copy->stack < copy->length && word % sizeof(word) == 0)
				saved = word;
		} else {
			tries++;
			if ((saved && unwind_from(unwinding, place, word, saved)) ||
			    unwind_from(unwinding, place, word, copy->registers[FRAME_POINTER]))
				return true;
		}
		place += sizeof(word);
	}
	return false;
}

int unwinder_stack(struct unwinder *unwinder, struct xpt_record_stack_copy *copy,
		   const struct xpt_record_python_copy *python, struct xpt_record_stack_sample *sample)
{
	struct unwinding unwinding = { .copy = copy };
	struct frame_list list = {};
	bool complete;

	if (copy->length > XPT_STACK_BYTES_MAX || copy->header.size < sizeof(*copy) + copy->length ||
	    copy->returns > XPT_STACK_RETURNS_MAX)
		return -EBADMSG;
	unwinding.process = process_get(unwinder, copy->header.tgid);
	if (!unwinding.process)
		return -ENOMEM;
	restore_returns(copy);
	begin(&unwinding);
	complete = unwind(&unwinding);
	if ((!complete || !is_mapped(&unwinding)) && clock_monotonic() - unwinding.process->read >= READ_AGAIN) {
		process_read(unwinding.process);
		begin(&unwinding);
		complete = unwind(&unwinding);
	}
	/*
	 * Met between a probe's breakpoint and the kernel's handling of it: on x86 the instruction pointer is behind the breakpoint,
	 * whose instruction has not been executed.
	 */
	if (!complete && copy->reason != XPT_STACK_CALL) {
		copy->registers[PROGRAM_COUNTER]--;
		begin(&unwinding);
		complete = unwind(&unwinding);
		if (!complete) {
			copy->registers[PROGRAM_COUNTER]++;
			complete = unwind_by_scan(&unwinding);
		}
		if (!complete) {
			begin(&unwinding);
			unwind(&unwinding);
		}
	}
	if (!unwinding.count)
		unwinding.frames[unwinding.count++].address = copy->registers[PROGRAM_COUNTER];
	unwinding.python = is_python(&unwinding, python) ? python : NULL;
	find_frames(&unwinding, &list);
	if (list.failed)
		return -ENOMEM;
	*sample = (struct xpt_record_stack_sample){
		.header = { XPT_RECORD_STACK_SAMPLE, sizeof(*sample), copy->header.tgid, copy->header.time },
		.call_start = copy->call_start,
		.tid = copy->tid,
		.operator_start = copy->operator_start,
		.reason = copy->reason,
	};
	return find_stack(unwinder, list.frame, list.count, complete && !list.cut ? 0 : XPT_STACK_PARTIAL,
			  &sample->stack);
}

/* ---- the unwinder ---- */

struct unwinder *unwinder_create(const struct unwinder_options *options)
{
	struct unwinder *unwinder = calloc(1, sizeof(*unwinder));

	if (!unwinder)
		return NULL;
	unwinder->options = *options;
	unwinder->next_module = unwinder->next_frame = options->first_id;
	unwinder->next_stack = options->first_id;
	link_init(&unwinder->process_list);
	link_init(&unwinder->module_list);
	link_init(&unwinder->place_list);
	link_init(&unwinder->stack_list);
	return unwinder;
}

void unwinder_free(struct unwinder *unwinder)
{
	struct known_stack *stack, *next_stack;
	struct place *place, *next_place;

	if (!unwinder)
		return;
	while (unwinder->process_list.next != &unwinder->process_list)
		process_free(container_of(unwinder->process_list.next, struct process, link));
	link_for_each_safe(place, next_place, &unwinder->place_list, link)
		free(place);
	link_for_each_safe(stack, next_stack, &unwinder->stack_list, link)
		free(stack);
	modules_free(unwinder);
	map_free(&unwinder->processes);
	map_free(&unwinder->places);
	map_free(&unwinder->stacks);
	free(unwinder);
}

void unwinder_prepare(struct unwinder *unwinder, __u32 tgid)
{
	struct process *process = process_get(unwinder, tgid);

	if (process)
		process_read(process);
}

void unwinder_forget(struct unwinder *unwinder, __u32 tgid)
{
	struct map_node *node = map_find(&unwinder->processes, tgid, 0);

	if (node)
		process_free(container_of(node, struct process, node));
}

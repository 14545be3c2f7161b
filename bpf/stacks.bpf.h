/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/*
 * Stacks of threads that begin an inference, or are in one: registers and stack are copied as they are, and unwound in user space. That
 * of a call is copied before its time begins.
 */
#ifndef XPT_STACKS_BPF_H
#define XPT_STACKS_BPF_H

#include "emit.bpf.h"
#include "frames.bpf.h"
#include "memory.bpf.h"

/* Stacks that are taken in a second at most; 0: none, and the ring is not there. Set before loading; all objects share it. */
const volatile __u32 stacks_second SEC(".rodata.stacks") = 0;

#define SECOND 1000000000ull
#define STACK_ROLES (1u << XPT_ROLE_EXECUTE | 1u << XPT_ROLE_ENQUEUE | 1u << XPT_ROLE_LAUNCH)

/* Whether one is due now, of those that this counts; then the next one is later. */
static __always_inline bool stack_takes(__u64 *at)
{
	__u64 now = bpf_ktime_get_ns(), due = *at;

	return now >= due && __sync_val_compare_and_swap(at, due, now + SECOND / (stacks_second ?: 1)) == due;
}

/* Whether to copy the stack of the call: an inference inside no other one, at most stacks_second times a second. */
__noinline int stack_is_due(const struct xpt_thread *thread, const struct xpt_spec *spec)
{
	const struct xpt_frame *frame;
	struct xpt_shared *shared;

	if (!thread || !spec)
		return 0;
	frame = &thread->frame[thread->depth & (XPT_DEPTH_MAX - 1)];
	if (!(STACK_ROLES >> (spec->role & 31) & 1) || (frame->flags & (FRAME_LAYER | FRAME_INSIDE | FRAME_LEFT_OUT)))
		return 0;
	shared = shared_get();
	if (!shared)
		return 0;
	return stack_takes(&shared->stack_due);
}

#if defined(__TARGET_ARCH_x86)

static __always_inline __u64 stack_base(const struct task_struct *task)
{
	return task->thread.fsbase; /* the C library's thread structure is on top of the stack */
}

#define THREAD_BELOW 0

/* In the order of DWARF. */
static __always_inline void stack_registers(struct pt_regs *context, __u64 *to)
{
	to[0] = context->ax;
	to[1] = context->dx;
	to[2] = context->cx;
	to[3] = context->bx;
	to[4] = context->si;
	to[5] = context->di;
	to[6] = context->bp;
	to[7] = context->sp;
	to[8] = context->r8;
	to[9] = context->r9;
	to[10] = context->r10;
	to[11] = context->r11;
	to[12] = context->r12;
	to[13] = context->r13;
	to[14] = context->r14;
	to[15] = context->r15;
	to[16] = context->ip;
}

#elif defined(__TARGET_ARCH_arm64)

static __always_inline __u64 stack_base(const struct task_struct *task)
{
	return task->thread.uw.tp_value;
}

/* Bytes, at most, by which the thread structure, whose address is the thread's id, lies below that. */
#define THREAD_BELOW 4096

static __always_inline void stack_registers(struct pt_regs *context, __u64 *to)
{
	struct user_pt_regs *user = (struct user_pt_regs *)context;

#pragma unroll
	for (int i = 0; i < 31; i++)
		to[i] = user->regs[i];
	to[31] = user->sp;
	to[32] = user->pc;
}

#endif

/* Of a struct xpt_record_stack_copy with all its bytes. */
struct stack_room {
	__u64 words[(sizeof(struct xpt_record_stack_copy) + XPT_STACK_BYTES_MAX) / 8];
};

/* Where the returns of the thread's open calls go, whose probes have replaced the addresses on the stack. */
__noinline int stack_returns(struct xpt_record_stack_copy *copy)
{
	const struct task_struct *task = bpf_get_current_task_btf();
	const struct return_instance *armed;
	__u32 used = 0;

	if (!copy)
		return 0;
	copy->trampoline = return_trampoline();
	if (task->utask) {
		armed = task->utask->return_instances;
		for (__u32 i = 0; i < XPT_STACK_RETURNS_MAX && armed; i++) {
			copy->returned[i].stack = armed->stack;
			copy->returned[i].address = armed->orig_ret_vaddr;
			used++;
			armed = armed->next;
		}
	}
	copy->returns = used;
	return 0;
}

/* How much of the stack there is above the stack pointer, as far as that is known. */
static __always_inline __u64 stack_size(const struct task_struct *task, __u64 stack)
{
	__u64 base = stack_base(task), top = task->mm->arg_start;

	/* The first thread's is elsewhere; a stack that the program made itself ends anywhere. */
	if (top > stack && (base <= stack || base - stack > top - stack))
		base = top;
	return base > stack && base - stack < XPT_STACK_BYTES_MAX ? base - stack : XPT_STACK_BYTES_MAX;
}

static __always_inline long stack_read_piece(void *bytes, __u32 length, __u64 stack)
{
	long error = bpf_probe_read_user(bytes, length, (const void *)stack);

#ifndef XPT_ATOMIC
	if (error && memory_is_one(stack, length))
		error = bpf_copy_from_user(bytes, length, (const void *)stack);
#endif
	return error;
}

/* Reads as much of the stack as there is into the copy. */
static __always_inline void stack_read(struct xpt_record_stack_copy *copy, void *bytes, __u64 stack)
{
	__u32 length = stack_size(bpf_get_current_task_btf(), stack);

	for (__u32 i = 0; i < 3; i++) {
		/* It is in range: the verifier of older kernels forgets what was compared. */
		length = ((length - 1) & (XPT_STACK_BYTES_MAX - 1)) + 1;
		if (!stack_read_piece(bytes, length, stack)) {
			copy->length = length;
			return;
		}
		/* Where the stack ends is not known: up to the end of a page. */
		length = (length < 8192 ? 4096 : 8192) - (stack & 4095);
	}
	copy->length = 0;
}

/* ---- frames of a Python interpreter ---- */

#define PYTHON_INTERPRETERS 4
#define PYTHON_THREADS 128 /* of one */

static __always_inline __u64 python_word(__u64 address)
{
	__u64 word = 0;

	if (read_user(&word, sizeof(word), address))
		return 0;
	return word;
}

/* Whether the state has the id of the thread whose stack has this base. */
static __always_inline bool python_is(const struct xpt_python *python, __u64 state, __u64 base)
{
	return base - python_word(state + python->thread_id) <= THREAD_BELOW;
}

/* The state of the thread whose stack has this base, among those from first on. 0: there is none. */
__noinline __u64 python_thread(const struct xpt_python *python, __u64 first, __u64 base)
{
	if (!python)
		return 0;
	for (__u32 i = 0; i < PYTHON_THREADS; i++) {
		if (!first || python_is(python, first, base))
			return first;
		first = python_word(first + python->next_thread);
	}
	return 0;
}

/* The state of the current thread. 0: it has none. */
__noinline __u64 python_state(struct xpt_thread *thread, const struct xpt_python *python)
{
	__u64 interpreter, base = stack_base(bpf_get_current_task_btf());

	if (!thread || !python)
		return 0;
	if (thread->python && python_is(python, thread->python, base))
		return thread->python;
	thread->python = 0;
	interpreter = python_word(python->interpreters);
	for (__u32 i = 0; i < PYTHON_INTERPRETERS && interpreter && !thread->python; i++) {
		thread->python = python_thread(python, python_word(interpreter + python->threads), base);
		interpreter = python_word(interpreter + python->next_interpreter);
	}
	return thread->python;
}

/* One frame at an address; that of the one around it, 0: there is none, or it cannot be read. */
__noinline __u64 python_frame(struct xpt_python_frame *frame, const struct xpt_python *python, __u64 address)
{
	__u32 bytes;

	if (!frame || !python)
		return 0;
	frame->address = address;
	bytes = python->frame_bytes;
	if (bytes > XPT_PYTHON_FRAME_BYTES || bytes < 8)
		return 0;
	if (read_user(frame->words, bytes, address)) {
		frame->address = 0;
		return 0;
	}
	return frame->words[(python->previous / 8) & 7];
}

/*
 * Copies the frames of the current thread, if it is one of a Python process. Static: functions that are not are verified also where
 * they are not called, and without stacks its maps are not there.
 */
static __noinline int python_copy(struct xpt_thread *thread)
{
	__u64 task = bpf_get_current_pid_tgid(), frame;
	struct xpt_record_python_copy *copy;
	struct xpt_python *python;
	__u32 tgid = task >> 32, i;

	python = bpf_map_lookup_elem(&pythons, &tgid);
	if (!python)
		return 0;
	frame = python_state(thread, python);
	frame = frame ? python_word(frame + python->frame) : 0;
	if (frame && python->inner)
		frame = python_word(frame + python->inner - 1);
	if (!frame)
		return 0;
	copy = bpf_ringbuf_reserve(&stack_ring, sizeof(*copy) + XPT_PYTHON_FRAMES_MAX * sizeof(struct xpt_python_frame),
				   0);
	if (!copy)
		return 0;
	for (i = 0; i < XPT_PYTHON_FRAMES_MAX && frame; i++)
		frame = python_frame(&copy->frame[i], python, frame);
	header_fill(&copy->header, XPT_RECORD_PYTHON_COPY, sizeof(*copy) + i * sizeof(copy->frame[0]), tgid,
		    bpf_ktime_get_ns());
	copy->tid = task;
	copy->frames = i;
	copy->truncated = frame != 0;
	copy->reserved = 0;
	bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);
	return 0;
}

/* ---- a stack ---- */

/* All but the registers, the reason, and what is open then. */
__noinline int stack_copy(struct stack_room *room, __u64 stack, __u64 time)
{
	__u64 task = bpf_get_current_pid_tgid();
	struct xpt_record_stack_copy *copy;

	if (!room)
		return 0;
	copy = (void *)room;
	header_fill(&copy->header, XPT_RECORD_STACK_COPY, 0, task >> 32, time);
	copy->call_start = copy->operator_start = 0;
	copy->number = copy->handle = 0;
	copy->stack = stack;
	copy->tid = task;
	stack_returns(copy);
	stack_read(copy, copy->bytes, stack);
	copy->header.size = XPT_ALIGN8(sizeof(*copy) + copy->length);
	return 0;
}

#ifdef XPT_ATOMIC
/* Finds the recorded calls that are open on the thread. Whether there is one that is no operator. */
static __noinline int stack_place(struct xpt_thread *thread)
{
	__u32 depth = thread->depth;

	thread->open_call = thread->open_operator = 0;
	for (__u32 i = 0; i < XPT_DEPTH_MAX && depth; i++) {
		const struct xpt_frame *frame = &thread->frame[--depth & (XPT_DEPTH_MAX - 1)];

		if (frame->flags & FRAME_LEFT_OUT)
			return 0;
		if (frame->role != XPT_ROLE_OPERATOR) {
			thread->open_call = frame->start;
			thread->open_spec = frame->spec;
			return 1;
		}
		if (!thread->open_operator)
			thread->open_operator = frame->start;
	}
	return 0;
}

/* That of the current thread, while it is in a call; 0: it was not taken. time: of the sample. */
static __noinline int stack_copy_now(struct xpt_thread *thread, __u32 reason, __u64 time)
{
	struct pt_regs *registers = (struct pt_regs *)bpf_task_pt_regs(bpf_get_current_task_btf());
	struct xpt_record_stack_copy *copy;

	if (!stack_place(thread))
		return 0;
	python_copy(thread);
	copy = bpf_ringbuf_reserve(&stack_ring, sizeof(struct stack_room), 0);
	if (!copy) {
		count_loss(XPT_LOSS_STACK_COPIES);
		return 0;
	}
	stack_registers(registers, copy->registers);
	stack_copy((void *)copy, STACK_POINTER(registers), time);
	copy->reason = reason;
	copy->call_start = thread->open_call;
	copy->operator_start = thread->open_operator;
	copy->spec = thread->open_spec;
	bpf_ringbuf_submit(copy, BPF_RB_NO_WAKEUP);
	return 1;
}
#endif

#endif

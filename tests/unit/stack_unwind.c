/* SPDX-License-Identifier: BSD-2-Clause */
/* Copies of this process's own stack, and such as no process has. */
#include "stack/stack.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "model/stream/records.h"

#if defined(__x86_64__)
#define FRAME_POINTER 6
#define STACK_POINTER 7
#define PROGRAM_COUNTER 16
#elif defined(__aarch64__)
#define FRAME_POINTER 29
#define STACK_POINTER 31
#define PROGRAM_COUNTER 32
#endif

#define FRAMES_MAX 4096

union copy {
	struct xpt_record_stack_copy copy;
	char room[sizeof(struct xpt_record_stack_copy) + XPT_STACK_BYTES_MAX];
};

/* What was made of them. */
struct seen {
	char *frames[FRAMES_MAX];
	unsigned int frame_count, modules, stacks;
	__u32 latest[XPT_STACK_FRAMES_MAX];
	__u32 count, flags;
	int missing; /* no file can be opened */
};

static int open_file(void *context, const struct stack_file *file)
{
	const struct seen *seen = context;
	char path[64];
	int descriptor;

	if (seen->missing)
		return -ENOENT;
	if (file->kind == STACK_FILE_MAPS)
		snprintf(path, sizeof(path), "/proc/self/maps");
	else if (file->kind == STACK_FILE_MAPPED)
		snprintf(path, sizeof(path), "/proc/self/map_files/%llx-%llx", file->start, file->end);
	else if (file->kind == STACK_FILE_MEMORY)
		snprintf(path, sizeof(path), "/proc/self/mem");
	else
		return -ENOENT;
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	/* map_files is for root only. */
	if (descriptor < 0 && file->kind == STACK_FILE_MAPPED)
		descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return descriptor < 0 ? -errno : descriptor;
}

static void seen_free(struct seen *seen, struct unwinder *unwinder)
{
	unwinder_free(unwinder);
	for (unsigned int i = 0; i < FRAMES_MAX; i++)
		free(seen->frames[i]);
}

static void on_record(void *context, const struct xpt_record_header *record)
{
	const struct xpt_record_text *text = (const void *)record;
	const struct xpt_record_stack *stack = (const void *)record;
	struct seen *seen = context;

	cr_assert(record_validate(record, record->size));
	if (record->kind == XPT_RECORD_MODULE) {
		seen->modules++;
	} else if (record->kind == XPT_RECORD_FRAME) {
		cr_assert_eq(text->id, ++seen->frame_count);
		cr_assert_lt(seen->frame_count, FRAMES_MAX);
		seen->frames[text->id] = strndup(text->text, text->length);
	} else {
		cr_assert_eq(record->kind, XPT_RECORD_STACK);
		cr_assert_eq(stack->id, ++seen->stacks);
		seen->count = stack->frames;
		seen->flags = stack->flags;
		memcpy(seen->latest, stack->frame, stack->frames * sizeof(stack->frame[0]));
		for (__u32 i = 0; i < stack->frames; i++)
			cr_assert(stack->frame[i] && stack->frame[i] <= seen->frame_count);
	}
}

static void on_python(void *context, __u32 tgid, const struct xpt_python *python)
{
	(void)context;
	(void)tgid;
	(void)python;
	cr_assert_fail("this is no interpreter");
}

static void on_python_refused(void *context, __u32 tgid, int error)
{
	(void)error;
	on_python(context, tgid, NULL);
}

static struct unwinder *unwinder_new(struct seen *seen)
{
	const struct unwinder_options options = { open_file, on_record, on_python, on_python_refused, seen, 1 };

	*seen = (struct seen){};
	return unwinder_create(&options);
}

static void read_registers(const ucontext_t *context, __u64 *registers)
{
#if defined(__x86_64__)
	static const int order[] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP, REG_R8,
				     REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15, REG_RIP };

	for (size_t i = 0; i < sizeof(order) / sizeof(order[0]); i++)
		registers[i] = (__u64)context->uc_mcontext.gregs[order[i]];
#else
	memcpy(registers, context->uc_mcontext.regs, sizeof(context->uc_mcontext.regs));
	registers[STACK_POINTER] = context->uc_mcontext.sp;
	registers[PROGRAM_COUNTER] = context->uc_mcontext.pc;
#endif
}

static __attribute__((noinline, no_sanitize_address)) void take_copy(union copy *copy)
{
	ucontext_t context;

	memset(copy, 0, sizeof(*copy));
	getcontext(&context);
	read_registers(&context, copy->copy.registers);
	copy->copy.header = (struct xpt_record_header){ XPT_RECORD_STACK_COPY, 0, (__u32)getpid(), 12 };
	copy->copy.reason = XPT_STACK_CALL;
	copy->copy.call_start = 13;
	copy->copy.tid = (__u32)gettid();
	copy->copy.stack = copy->copy.registers[STACK_POINTER];
	copy->copy.length = 8192;
	for (__u32 i = 0; i < copy->copy.length; i++)
		copy->copy.bytes[i] = ((const volatile char *)copy->copy.stack)[i];
	copy->copy.header.size = (__u16)(sizeof(copy->copy) + copy->copy.length);
}

static __attribute__((noinline)) void inner_of_chain(union copy *copy)
{
	take_copy(copy);
	__asm__ volatile("" ::: "memory");
}

static __attribute__((noinline)) void outer_of_chain(union copy *copy)
{
	inner_of_chain(copy);
	__asm__ volatile("" ::: "memory");
}

static int frame_is(const struct seen *seen, __u32 index, const char *name)
{
	char member[128];

	snprintf(member, sizeof(member), "\"function\":\"%s\"", name);
	return index < seen->count && strstr(seen->frames[seen->latest[index]], member);
}

Test(stack_unwind, own_stack)
{
	struct xpt_record_stack_sample sample;
	struct seen seen;
	struct unwinder *unwinder = unwinder_new(&seen);
	union copy copy;

	outer_of_chain(&copy);
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), 0);
	cr_assert_eq(sample.header.tgid, getpid());
	cr_assert_eq(sample.header.time, 12);
	cr_assert_eq(sample.call_start, 13);
	cr_assert_eq(sample.reason, XPT_STACK_CALL);
	cr_assert_eq(sample.stack, 1);
	cr_assert(frame_is(&seen, 0, "take_copy"));
	cr_assert(frame_is(&seen, 1, "inner_of_chain"));
	cr_assert(frame_is(&seen, 2, "outer_of_chain"));
	cr_assert(seen.modules);
	/* The same again is the same stack. */
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), 0);
	cr_assert_eq(sample.stack, 1);
	cr_assert_eq(seen.stacks, 1);
	seen_free(&seen, unwinder);
}

Test(stack_unwind, returns_that_are_probed)
{
	struct xpt_record_stack_sample sample;
	struct seen seen;
	struct unwinder *unwinder = unwinder_new(&seen);
	const __u64 trampoline = 0x7fffffffe000, signature = ~0ull << 48;
	struct seen before;
	union copy copy;
	__u64 word, own, probed;

	outer_of_chain(&copy);
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), 0);
	before = seen;
	/* The first word that is the address in outer_of_chain(): its frame has the function behind it. */
	own = (__u64)outer_of_chain;
	copy.copy.trampoline = trampoline;
	for (__u32 at = 0; at < copy.copy.length && !copy.copy.returns; at += sizeof(word)) {
		memcpy(&word, copy.copy.bytes + at, sizeof(word));
		if ((word & ~signature) - own >= 64)
			continue;
		copy.copy.returned[0].stack = copy.copy.stack + at;
		copy.copy.returned[0].address = word & ~signature;
		copy.copy.returns = 1;
		/* AArch64: signed by the function, as what was there. */
		probed = trampoline | (word & signature);
		memcpy(copy.copy.bytes + at, &probed, sizeof(probed));
	}
	cr_assert_eq(copy.copy.returns, 1);
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), 0);
	cr_assert_eq(sample.stack, 1, "another stack: %u frames instead of %u", seen.count, before.count);
	seen_free(&seen, unwinder);
}

Test(stack_unwind, without_files)
{
	struct xpt_record_stack_sample sample;
	struct seen seen;
	struct unwinder *unwinder = unwinder_new(&seen);
	union copy copy;

	seen.missing = 1;
	outer_of_chain(&copy);
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), 0);
	cr_assert_eq(seen.flags, XPT_STACK_PARTIAL);
	cr_assert(strstr(seen.frames[seen.latest[0]], "\"kind\":\"unknown\""));
	seen_free(&seen, unwinder);
}

Test(stack_unwind, invalid_copies)
{
	struct xpt_record_stack_sample sample;
	struct seen seen;
	struct unwinder *unwinder = unwinder_new(&seen);
	union copy copy;

	outer_of_chain(&copy);
	copy.copy.length = XPT_STACK_BYTES_MAX + 8;
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), -EBADMSG);
	outer_of_chain(&copy);
	copy.copy.header.size = sizeof(copy.copy);
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), -EBADMSG);
	outer_of_chain(&copy);
	copy.copy.returns = XPT_STACK_RETURNS_MAX + 1;
	cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), -EBADMSG);
	seen_free(&seen, unwinder);
}

/* Each frame pointer leads to itself, or to the next one, for as long as there is room. */
Test(stack_unwind, loops, .timeout = 30)
{
	struct xpt_record_stack_sample sample;
	struct seen seen;
	struct unwinder *unwinder = unwinder_new(&seen);
	union copy copy;

	for (__u64 step = 0; step <= 16; step += 16) {
		outer_of_chain(&copy);
		copy.copy.registers[PROGRAM_COUNTER] = 0x1000;
		copy.copy.registers[FRAME_POINTER] = copy.copy.stack;
		for (__u32 at = 0; at + 16 <= copy.copy.length; at += 16) {
			const __u64 words[] = { copy.copy.stack + at + step, 0x2000 };

			memcpy(copy.copy.bytes + at, words, sizeof(words));
		}
		cr_assert_eq(unwinder_stack(unwinder, &copy.copy, NULL, &sample), 0);
		cr_assert_eq(seen.flags, XPT_STACK_PARTIAL);
		cr_assert_leq(seen.count, XPT_STACK_FRAMES_MAX);
	}
	seen_free(&seen, unwinder);
}

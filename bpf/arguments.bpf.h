/* SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause) */
/* How the architecture passes arguments. The only place on the kernel side that knows which one it is. */
#ifndef XPT_ARGUMENTS_BPF_H
#define XPT_ARGUMENTS_BPF_H

#include <bpf/bpf_helpers.h>

#define ARGUMENT_REGISTERS 8 /* room; what a smaller architecture lacks is on its stack */

struct registers {
	__u64 argument[ARGUMENT_REGISTERS];
	__u64 stack;
	__u64 link; /* return address when it is in a register, else 0 */
	__u64 site; /* address of the probe */
#if defined(__TARGET_ARCH_arm64)
	__u64 result; /* address for a result that is returned in memory; elsewhere that is an argument */
#endif
};

#if defined(__TARGET_ARCH_x86)

#define REGISTER_COUNT 6
#define STACK_ARGUMENTS \
	8	      /* bytes between the stack pointer at entry and the first argument there: the return address */
#define RETURN_POPS 8 /* bytes that a return takes off the stack */

static __always_inline void registers_read(struct pt_regs *context, struct registers *registers)
{
	registers->argument[0] = context->di;
	registers->argument[1] = context->si;
	registers->argument[2] = context->dx;
	registers->argument[3] = context->cx;
	registers->argument[4] = context->r8;
	registers->argument[5] = context->r9;
	registers->stack = context->sp;
	registers->link = 0;
	registers->site = context->ip;
}

/* Argument 0 or 1, which is where every described call has its program. */
#define FIRST_ARGUMENT(context) ((context)->di)
#define SECOND_ARGUMENT(context) ((context)->si)
#define RETURN_VALUE(context) ((context)->ax)
#define STACK_POINTER(context) ((context)->sp)

#elif defined(__TARGET_ARCH_arm64)

#define REGISTER_COUNT 8
#define STACK_ARGUMENTS 0
#define RETURN_POPS 0

static __always_inline void registers_read(struct pt_regs *context, struct registers *registers)
{
	struct user_pt_regs *user = (struct user_pt_regs *)context;

	for (int i = 0; i < 8; i++)
		registers->argument[i] = user->regs[i];
	registers->stack = user->sp;
	registers->link = user->regs[30];
	registers->site = user->pc;
	registers->result = user->regs[8];
}

#define FIRST_ARGUMENT(context) (((struct user_pt_regs *)(context))->regs[0])
#define SECOND_ARGUMENT(context) (((struct user_pt_regs *)(context))->regs[1])
#define RETURN_VALUE(context) (((struct user_pt_regs *)(context))->regs[0])
#define STACK_POINTER(context) (((struct user_pt_regs *)(context))->sp)

#else
#error "unknown architecture"
#endif

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What site_choose() has to know about one machine instruction; one implementation a machine. */
#ifndef XPT_TARGET_PROBE_SITE_DECODER_H
#define XPT_TARGET_PROBE_SITE_DECODER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

enum site_flow {
	SITE_FLOW_NEXT,	  /* execution continues with the next instruction */
	SITE_FLOW_BRANCH, /* to target or the next one */
	SITE_FLOW_JUMP,	  /* to target */
	SITE_FLOW_TAIL,	  /* to an address from a register or a plain pointer: a tail call */
	SITE_FLOW_SWITCH, /* to an address that may come from a jump table of this function */
	SITE_FLOW_STOP,	  /* call, return, trap: control comes back elsewhere, later or never */
};

struct site_instruction {
	size_t length;
	enum site_flow flow;
	__u64 target;	/* of SITE_FLOW_BRANCH and _JUMP */
	__u32 writes;	/* bit i: the register of argument i may be written */
	__u32 changes;	/* bit i: general register i, in the machine's numbering, is written */
	__u32 pointer;	/* the one of them that now holds a pointer just as it lay in memory; 0: none */
	__u32 jumps_to; /* of SITE_FLOW_SWITCH: the register that holds the address; 0: it is in memory */
	bool tracked;	/* indirect jump that must land on a landing pad where the machine enforces them */
	bool optimised; /* nop that the kernel may turn into a call */
	bool emulated;	/* the kernel emulates it under a probe */
	bool refused;	/* some kernel takes no probe here */
	bool landing;	/* marks where indirect branches may land, and does nothing else (endbr64, bti) */
	bool stack;	/* moves the stack pointer */
	bool push;	/* saves a register: executed once a call, even where branches are not all known */
	/* A probe behind it still sees what the caller passed: the stack pointer, the return address, and all memory but
	 * that below the stack pointer stay as they are. */
	bool transparent;
};

/* Decodes the instruction at address; -ENOEXEC: there is none. length: bytes that may be read, more than 0. */
typedef int (*site_decode_fn)(const unsigned char *bytes, size_t length, __u64 address,
			      struct site_instruction *instruction);

int site_decode_x86(const unsigned char *bytes, size_t length, __u64 address, struct site_instruction *instruction);
int site_decode_arm64(const unsigned char *bytes, size_t length, __u64 address, struct site_instruction *instruction);

#endif

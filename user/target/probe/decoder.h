/* SPDX-License-Identifier: BSD-2-Clause */
/* What the code of one machine means; one implementation a machine. */
#ifndef XPT_TARGET_PROBE_DECODER_H
#define XPT_TARGET_PROBE_DECODER_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* ---- what site_choose() has to know about one instruction ---- */

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

/* ---- which addresses a short function can return, by following its registers ---- */

#define TABLE_CANDIDATE_MAX 16

/* An address in the file that the code computed. */
struct table_candidate {
	__u64 address;
	bool loaded;   /* the value is in memory at address (a GOT entry or a pointer variable) */
	bool returned; /* it was in the return register at a return; else it was only computed */
};

struct table_candidates {
	struct table_candidate list[TABLE_CANDIDATE_MAX];
	size_t count;
	__u64 tail; /* the function ends by jumping here; 0: it does not */
};

/* Follows the code of a function that is at address; adds to candidates, each once. */
typedef void (*table_decode_fn)(const unsigned char *code, size_t length, __u64 address,
				struct table_candidates *candidates);

void table_decode_x86(const unsigned char *code, size_t length, __u64 address, struct table_candidates *candidates);
void table_decode_arm64(const unsigned char *code, size_t length, __u64 address, struct table_candidates *candidates);

/* ---- for the implementations: what registers are known to hold, and where branches carry it ---- */

#define TABLE_REGISTERS 32
#define TABLE_INSTRUCTION_MAX 40
#define TABLE_MERGE_MAX 8

struct table_value {
	bool known;
	bool loaded; /* as in struct table_candidate */
	__u64 address;
};

struct table_state {
	bool reachable;
	struct table_value registers[TABLE_REGISTERS];
};

struct table_walk {
	struct table_state now;
	struct table_candidates *candidates;
	struct {
		__u64 target;
		struct table_state state;
	} pending[TABLE_MERGE_MAX]; /* states that forward branches carry */
	size_t pending_count;
	__u64 start, end; /* of the code at hand */
};

void table_walk_begin(struct table_walk *walk, __u64 address, size_t length, struct table_candidates *candidates);
/* Before the instruction at address: joins what branches brought here. */
void table_walk_arrive(struct table_walk *walk, __u64 address);
void table_walk_set(struct table_walk *walk, unsigned int reg, __u64 address, bool loaded);
/* The same for what is likely meant as an address by itself: it becomes a candidate even when it isn't returned. */
void table_walk_compute(struct table_walk *walk, unsigned int reg, __u64 address, bool loaded);
void table_walk_copy(struct table_walk *walk, unsigned int to, unsigned int from);
void table_walk_forget(struct table_walk *walk, unsigned int reg);
void table_walk_branch(struct table_walk *walk, __u64 target);
/* An unconditional jump: out of the current code, the function continues there. */
void table_walk_jump(struct table_walk *walk, __u64 target);
void table_walk_return(struct table_walk *walk, unsigned int reg);

#endif

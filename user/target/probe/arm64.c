/* SPDX-License-Identifier: BSD-2-Clause */
/* AArch64: instructions under a probe, and accessors of tables. References to strings are in elf/references.c. */
#include <errno.h>
#include <string.h>

#include "target/elf/arm64.h"
#include "target/probe/decoder.h"

/* ---- sites ---- */

/*
 * AArch64 instructions under a probe. A probe is moved past a landing pad or a nop and nothing else: the return address
 * is in a register here, and pointer authentication signs it with the stack pointer right after the entry, so the
 * instructions that x86-64 lets pass would each have to be proved harmless.
 */

struct pattern {
	__u32 mask, value;
	enum site_flow flow;
};

/* What arch/arm64/kernel/probes simulates. Everything else that is allowed runs from a copy. */
static const struct pattern simulated[] = {
	{ 0x1f000000, 0x10000000, SITE_FLOW_NEXT },   /* adr, adrp */
	{ 0xff000010, 0x54000000, SITE_FLOW_BRANCH }, /* b.cond */
	{ 0x7e000000, 0x34000000, SITE_FLOW_BRANCH }, /* cbz, cbnz */
	{ 0x7e000000, 0x36000000, SITE_FLOW_BRANCH }, /* tbz, tbnz */
	{ 0xfc000000, 0x14000000, SITE_FLOW_JUMP },   /* b */
	{ 0xfc000000, 0x94000000, SITE_FLOW_STOP },   /* bl */
	{ 0xfffffc1f, 0xd61f0000, SITE_FLOW_SWITCH }, /* br */
	{ 0xfffffc1f, 0xd63f0000, SITE_FLOW_STOP },   /* blr */
	{ 0xfffffc1f, 0xd65f0000, SITE_FLOW_STOP },   /* ret */
	{ 0xffffffff, 0xd503201f, SITE_FLOW_NEXT },   /* nop */
};

/*
 * Refused by kernels: system and exception instructions, authenticated branches, exclusive loads and stores, and what has effects that
 * not all kernels know: before 6.12 they read literals of general registers from user memory without protection, and let those of
 * vector registers, conditional branches with a hint and parts of a memory copy run from a copy at another address.
 */
static const struct pattern refused[] = {
	{ 0x3b000000, 0x18000000, SITE_FLOW_NEXT },   /* ldr, ldrsw, prfm: literal */
	{ 0x3b200c00, 0x19000400, SITE_FLOW_NEXT },   /* cpy, set */
	{ 0xff000010, 0x54000010, SITE_FLOW_BRANCH }, /* bc.cond */
	{ 0xff000000, 0xd4000000, SITE_FLOW_STOP },   /* svc, hvc, smc, brk, hlt */
	{ 0xfffff800, 0xd71f0800, SITE_FLOW_SWITCH }, /* braa, brab */
	{ 0xfffff81f, 0xd61f081f, SITE_FLOW_SWITCH }, /* braaz, brabz */
	{ 0xfffff800, 0xd73f0800, SITE_FLOW_STOP },   /* blraa, blrab */
	{ 0xfffff81f, 0xd63f081f, SITE_FLOW_STOP },   /* blraaz, blrabz */
	{ 0xfffffbff, 0xd65f0bff, SITE_FLOW_STOP },   /* retaa, retab */
	{ 0xffffffff, 0xd69f03e0, SITE_FLOW_STOP },   /* eret */
	{ 0xfffffbff, 0xd69f0bff, SITE_FLOW_STOP },   /* eretaa, eretab */
	{ 0xffffffe0, 0xd53b4220, SITE_FLOW_NEXT },   /* mrs, daif */
	{ 0xfff8f01f, 0xd500401f, SITE_FLOW_NEXT },   /* msr, immediate */
	{ 0xfff00000, 0xd5100000, SITE_FLOW_NEXT },   /* msr, register */
	{ 0x3f800000, 0x08000000, SITE_FLOW_NEXT },   /* exclusive loads and stores */
	{ 0xffff0000, 0x00000000, SITE_FLOW_STOP },   /* udf */
};

/* Move the stack pointer: what computes it, and loads and stores that leave the address that they used in it. */
static const struct pattern moving[] = {
	{ 0x3f80001f, 0x1100001f, SITE_FLOW_NEXT }, /* add, sub: immediate */
	{ 0x3fe0001f, 0x0b20001f, SITE_FLOW_NEXT }, /* add, sub: extended register */
	{ 0x5f80001f, 0x1200001f, SITE_FLOW_NEXT }, /* and, orr: immediate */
	{ 0x7f80001f, 0x5200001f, SITE_FLOW_NEXT }, /* eor: immediate */
	{ 0xbfc0001f, 0x9180001f, SITE_FLOW_NEXT }, /* addg, subg */
	{ 0xffa0f81f, 0x0420501f, SITE_FLOW_NEXT }, /* addvl, addpl */
	{ 0x3a8003e0, 0x288003e0, SITE_FLOW_NEXT }, /* ldp, stp: before or after */
	{ 0x3b2007e0, 0x380007e0, SITE_FLOW_NEXT }, /* ldr, str: before or after */
	{ 0xbe8003e0, 0x0c8003e0, SITE_FLOW_NEXT }, /* ld1 to ld4, st1 to st4: after */
	{ 0xff2007e0, 0xd92007e0, SITE_FLOW_NEXT }, /* stg, st2g: before or after */
};

/* Hints that kernels let run from a copy, by their number: nop, xpaclri, those that sign, landing pads. They refuse all others. */
#define STEPPED_HINTS                                                                                           \
	(1ull << 0 | 1ull << 7 | 1ull << 8 | 1ull << 10 | 0xfull << 24 | 1ull << 32 | 1ull << 34 | 1ull << 36 | \
	 1ull << 38)

static bool is_refused_hint(__u32 word)
{
	unsigned int number = word >> 5 & 0x7f;

	return (word & 0xfffff01f) == 0xd503201f && (number >= 64 || !(STEPPED_HINTS >> number & 1));
}

static const struct pattern *find(const struct pattern *patterns, size_t count, __u32 word)
{
	for (size_t i = 0; i < count; i++)
		if ((word & patterns[i].mask) == patterns[i].value)
			return &patterns[i];
	return NULL;
}

int site_decode_arm64(const unsigned char *bytes, size_t length, __u64 address, struct site_instruction *instruction)
{
	const struct pattern *pattern;
	__u32 word;

	memset(instruction, 0, sizeof(*instruction));
	if (length < 4 || address & 3)
		return -ENOEXEC;
	memcpy(&word, bytes, sizeof(word));
	instruction->length = 4;
	instruction->flow = SITE_FLOW_NEXT;
	instruction->tracked = true;
	pattern = find(simulated, sizeof(simulated) / sizeof(*simulated), word);
	if (pattern) {
		instruction->emulated = true;
		instruction->flow = pattern->flow;
	}
	pattern = find(refused, sizeof(refused) / sizeof(*refused), word);
	if (pattern)
		instruction->flow = pattern->flow;
	instruction->refused = pattern || is_refused_hint(word);
	if (instruction->flow == SITE_FLOW_BRANCH || instruction->flow == SITE_FLOW_JUMP)
		instruction->target = address + (__u64)arm64_branch(word) * 4;
	instruction->stack = find(moving, sizeof(moving) / sizeof(*moving), word);
	/* hint 32, 34, 36, 38: bti, bti c, bti j, bti jc */
	instruction->landing = (word & 0xffffff3f) == 0xd503241f;
	instruction->transparent = instruction->landing || word == 0xd503201f;
	return 0;
}

/* ---- tables ---- */

/* Accessors: adrp x0, page; add x0, x0, #rest; ret, and what surrounds it. */

#define REGISTER_RETURN 0
#define REGISTER_ZERO 31

static void follow_add(struct table_walk *walk, __u32 word)
{
	unsigned int to = word & 31, from = word >> 5 & 31;
	__u64 amount = word >> 10 & 0xfff;

	if (word >> 22 & 1)
		amount <<= 12;
	if (walk->now.registers[from].known && !walk->now.registers[from].loaded && to != REGISTER_ZERO)
		table_walk_compute(walk, to, walk->now.registers[from].address + amount, false);
	else
		table_walk_forget(walk, to);
}

static void follow_load(struct table_walk *walk, __u32 word)
{
	unsigned int to = word & 31, from = word >> 5 & 31;

	if (walk->now.registers[from].known && !walk->now.registers[from].loaded && to != REGISTER_ZERO)
		table_walk_compute(walk, to, walk->now.registers[from].address + 8ull * (word >> 10 & 0xfff), true);
	else
		table_walk_forget(walk, to);
}

static void follow_select(struct table_walk *walk, __u32 word)
{
	unsigned int to = word & 31, first = word >> 5 & 31, second = word >> 16 & 31;

	/* table or NULL: whichever is known is the table */
	table_walk_copy(walk, to, walk->now.registers[first].known ? first : second);
}

static void forget_call(struct table_walk *walk)
{
	for (unsigned int i = 0; i <= 18; i++)
		table_walk_forget(walk, i);
}

static bool is_conditional_branch(__u32 word)
{
	return (word & 0xff000010) == 0x54000000 || (word & 0x7c000000) == 0x34000000;
}

/* Most instructions write the register in their low five bits; for those that do not, forgetting it costs little. */
static void forget_written(struct table_walk *walk, __u32 word)
{
	table_walk_forget(walk, word & 31);
	if ((word & 0x3a000000) == 0x28000000) /* pairs */
		table_walk_forget(walk, word >> 10 & 31);
}

static void step(struct table_walk *walk, __u32 word, __u64 address)
{
	if ((word & 0xfc000000) == 0x14000000) /* b */
		table_walk_jump(walk, address + (__u64)arm64_branch(word) * 4);
	else if (is_conditional_branch(word))
		table_walk_branch(walk, address + (__u64)arm64_branch(word) * 4);
	else if ((word & 0xfffffc1f) == 0xd65f0000 || (word & 0xfffffbff) == 0xd65f0bff) /* ret, retaa, retab */
		table_walk_return(walk, REGISTER_RETURN);
	else if ((word & 0xfffffc1f) == 0xd61f0000) /* br */
		table_walk_jump(walk, 0);
	else if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000) /* bl, blr */
		forget_call(walk);
	else if ((word & 0x1f000000) == 0x10000000) /* adr, adrp */
		table_walk_set(walk, word & 31, arm64_page(word, address), false);
	else if ((word & 0xff800000) == 0x91000000) /* add, 64 bits, immediate */
		follow_add(walk, word);
	else if ((word & 0xffc00000) == 0xf9400000) /* ldr, 64 bits, unsigned offset */
		follow_load(walk, word);
	else if ((word & 0xff000000) == 0x58000000) /* ldr, 64 bits, literal */
		table_walk_compute(walk, word & 31, address + (__u64)arm64_field(word, 5, 19) * 4, true);
	else if ((word & 0xffe0ffe0) == 0xaa0003e0) /* mov */
		table_walk_copy(walk, word & 31, word >> 16 & 31);
	else if ((word & 0xffe00c00) == 0x9a800000) /* csel, 64 bits */
		follow_select(walk, word);
	else if ((word & 0xfffff01f) != 0xd503201f) /* hints write nothing */
		forget_written(walk, word);
	/* number 31 is the zero register here; as the stack pointer it holds no table either */
	table_walk_forget(walk, REGISTER_ZERO);
}

void table_decode_arm64(const unsigned char *code, size_t length, __u64 address, struct table_candidates *candidates)
{
	struct table_walk walk;

	table_walk_begin(&walk, address, length, candidates);
	for (unsigned int i = 0; i < TABLE_INSTRUCTION_MAX && 4 * i + 4 <= length; i++) {
		__u32 word;

		memcpy(&word, code + 4 * i, sizeof(word));
		table_walk_arrive(&walk, address + 4 * i);
		step(&walk, word, address + 4 * i);
	}
}

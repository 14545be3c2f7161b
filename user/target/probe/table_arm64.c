/* SPDX-License-Identifier: BSD-2-Clause */
/* Accessors on AArch64: adrp x0, page; add x0, x0, #rest; ret, and what surrounds it. */
#include <string.h>

#include "target/probe/table_decoder.h"

#define REGISTER_RETURN 0
#define REGISTER_ZERO 31

static __s64 sign_extend(__u64 value, unsigned int bits)
{
	return (__s64)(value << (64 - bits)) >> (64 - bits);
}

/* adr and adrp hold their distance in two pieces. */
static __u64 page_target(__u32 word, __u64 address)
{
	__u64 field = ((word >> 5 & 0x7ffff) << 2) | (word >> 29 & 3);
	__s64 distance = sign_extend(field, 21);

	if (word >> 31)
		return (address & ~0xfffull) + (__u64)distance * 4096;
	return address + (__u64)distance;
}

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

static void branch(struct table_walk *walk, __u32 word, __u64 address)
{
	if ((word & 0xfc000000) == 0x14000000) /* b */
		table_walk_jump(walk, address + (__u64)sign_extend(word & 0x3ffffff, 26) * 4);
	else if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		table_walk_branch(walk, address + (__u64)sign_extend(word >> 5 & 0x3fff, 14) * 4);
	else
		table_walk_branch(walk, address + (__u64)sign_extend(word >> 5 & 0x7ffff, 19) * 4);
}

static bool is_branch(__u32 word)
{
	return (word & 0xfc000000) == 0x14000000 || (word & 0xff000010) == 0x54000000 ||
	       (word & 0x7c000000) == 0x34000000;
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
	if (is_branch(word))
		branch(walk, word, address);
	else if ((word & 0xfffffc1f) == 0xd65f0000 || (word & 0xfffffbff) == 0xd65f0bff) /* ret, retaa, retab */
		table_walk_return(walk, REGISTER_RETURN);
	else if ((word & 0xfffffc1f) == 0xd61f0000) /* br */
		table_walk_jump(walk, 0);
	else if ((word & 0xfc000000) == 0x94000000 || (word & 0xfffffc1f) == 0xd63f0000) /* bl, blr */
		forget_call(walk);
	else if ((word & 0x1f000000) == 0x10000000) /* adr, adrp */
		table_walk_set(walk, word & 31, page_target(word, address), false);
	else if ((word & 0xff800000) == 0x91000000) /* add, 64 bits, immediate */
		follow_add(walk, word);
	else if ((word & 0xffc00000) == 0xf9400000) /* ldr, 64 bits, unsigned offset */
		follow_load(walk, word);
	else if ((word & 0xff000000) == 0x58000000) /* ldr, 64 bits, literal */
		table_walk_compute(walk, word & 31, address + (__u64)sign_extend(word >> 5 & 0x7ffff, 19) * 4, true);
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

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions whose variables lie in the red zone: small leaves, before, inside and after a region. Whatever writes below
 * the stack pointer, where the compiler does not expect it, changes a sum. With LEAF_NOP there is a place for a probe in
 * the middle of one, as the header must not have it: to see that it would be seen.
 */
#include "shared.h"

#define WORDS 14 /* 112 bytes of the 128 */

static uint64_t word(uint64_t seed, unsigned int i)
{
	return seed * 6364136223846793005u + i;
}

/* volatile: the words must lie in memory. */
static __attribute__((noinline)) uint64_t leaf(uint64_t seed)
{
	volatile uint64_t words[WORDS];
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		words[i] = word(seed, i);
#ifdef LEAF_NOP
	__asm__ volatile(".globl leaf_nop\nleaf_nop:\t.byte 0x0f, 0x1f, 0x44, 0, 0");
#endif
	for (i = 0; i < WORDS; i++)
		sum += words[i];
	return sum;
}

uint64_t leaf_sum(struct xpt_region *region, uint64_t seed)
{
	volatile uint64_t words[WORDS];
	uint64_t sum = leaf(seed);
	unsigned int i;

	for (i = 0; i < WORDS; i++)
		words[i] = word(seed, i);
	xpt_region_start(region);
	sum += leaf(seed);
	xpt_region_stop(region);
	for (i = 0; i < WORDS; i++)
		sum += words[i];
	return sum + leaf(seed);
}

uint64_t leaf_expected(uint64_t seed)
{
	return 4 * (WORDS * seed * 6364136223846793005u + WORDS * (WORDS - 1) / 2);
}

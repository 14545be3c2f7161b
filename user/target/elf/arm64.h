/* SPDX-License-Identifier: BSD-2-Clause */
/* Where instructions of AArch64 lead to: distances that they hold. */
#ifndef XPT_TARGET_ELF_ARM64_H
#define XPT_TARGET_ELF_ARM64_H

#include <linux/types.h>

/* The signed number in so many bits from the lowest one on. */
static inline __s64 arm64_field(__u32 word, unsigned int low, unsigned int bits)
{
	return (__s64)((__u64)(word >> low) << (64 - bits)) >> (64 - bits);
}

/* Of adr and adrp, which hold their distance in two pieces: the address or page for one at an address. */
static inline __u64 arm64_page(__u32 word, __u64 address)
{
	__s64 bytes = arm64_field((word >> 5 & 0x7ffff) << 2 | (word >> 29 & 3), 0, 21);

	return word >> 31 ? (address & ~0xfffull) + (__u64)bytes * 4096 : address + (__u64)bytes;
}

/* How many instructions a branch leads on or back; 0: it is none, or one to itself. */
static inline __s64 arm64_branch(__u32 word)
{
	if ((word & 0x7c000000) == 0x14000000) /* b, bl */
		return arm64_field(word, 0, 26);
	if ((word & 0x7e000000) == 0x36000000) /* tbz, tbnz */
		return arm64_field(word, 5, 14);
	if ((word & 0xff000000) == 0x54000000 || (word & 0x7e000000) == 0x34000000) /* b.cond, bc.cond, cbz, cbnz */
		return arm64_field(word, 5, 19);
	return 0;
}

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* CRC-32C (Castagnoli), eight bytes at a step: by the processor where it can, else from tables. The sums are the same. */
#ifndef XPT_RECORD_CRC32C_H
#define XPT_RECORD_CRC32C_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

/* Filled once by each user: 8 KiB, so that there is no global state to be made at start. */
struct crc32c {
	__u32 table[8][256];
	bool by_processor; /* it can; may be set to false */
};

void crc32c_init(struct crc32c *crc);
/* The sum of bytes that follow those of sum; 0 to begin with. */
__u32 crc32c_add(const struct crc32c *crc, __u32 sum, const void *bytes, size_t length);

#endif

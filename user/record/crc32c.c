/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/crc32c.h"

#include <endian.h>
#include <string.h>

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 with its bits reversed */

void crc32c_init(struct crc32c *crc)
{
	unsigned int byte, step;

	for (byte = 0; byte < 256; byte++) {
		__u32 sum = byte;

		for (step = 0; step < 8; step++)
			sum = sum & 1 ? sum >> 1 ^ POLYNOMIAL : sum >> 1;
		crc->table[0][byte] = sum;
	}
	/* table[n]: the same byte with n zero bytes behind it. */
	for (step = 1; step < 8; step++)
		for (byte = 0; byte < 256; byte++) {
			__u32 sum = crc->table[step - 1][byte];

			crc->table[step][byte] = sum >> 8 ^ crc->table[0][sum & 0xff];
		}
}

__u32 crc32c_add(const struct crc32c *crc, __u32 sum, const void *bytes, size_t length)
{
	const __u32(*table)[256] = crc->table;
	const unsigned char *at = bytes;

	sum = ~sum;
	while (length >= 8) {
		__u32 low, high;

		memcpy(&low, at, 4);
		memcpy(&high, at + 4, 4);
		low = le32toh(low) ^ sum;
		high = le32toh(high);
		sum = table[7][low & 0xff] ^ table[6][low >> 8 & 0xff] ^ table[5][low >> 16 & 0xff] ^
		      table[4][low >> 24] ^ table[3][high & 0xff] ^ table[2][high >> 8 & 0xff] ^
		      table[1][high >> 16 & 0xff] ^ table[0][high >> 24];
		at += 8;
		length -= 8;
	}
	while (length--)
		sum = sum >> 8 ^ table[0][(sum ^ *at++) & 0xff];
	return ~sum;
}

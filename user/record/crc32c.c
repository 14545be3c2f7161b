/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/format.h"

#include <endian.h>
#include <string.h>
#ifdef __aarch64__
#include <arm_acle.h>
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

#define POLYNOMIAL 0x82f63b78u /* 0x1edc6f41 with its bits reversed */

/* ---- by the processor ---- */

#if defined(__x86_64__)

static bool processor_can(void)
{
	return __builtin_cpu_supports("sse4.2");
}

__attribute__((target("sse4.2"))) static __u32 add_by_processor(__u32 sum, const unsigned char *at, size_t length)
{
	__u64 wide = sum, word;

	for (; length >= 8; at += 8, length -= 8) {
		memcpy(&word, at, 8);
		wide = __builtin_ia32_crc32di(wide, word);
	}
	for (sum = (__u32)wide; length; length--)
		sum = __builtin_ia32_crc32qi(sum, *at++);
	return sum;
}

#elif defined(__aarch64__)

static bool processor_can(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

__attribute__((target("+crc"))) static __u32 add_by_processor(__u32 sum, const unsigned char *at, size_t length)
{
	__u64 word;

	for (; length >= 8; at += 8, length -= 8) {
		memcpy(&word, at, 8);
		sum = __crc32cd(sum, word);
	}
	for (; length; length--)
		sum = __crc32cb(sum, *at++);
	return sum;
}

#else
#error "architecture is not supported"
#endif

/* ---- from tables ---- */

void crc32c_init(struct crc32c *crc)
{
	unsigned int byte, step;

	crc->by_processor = processor_can();
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

static __u32 add_by_tables(const struct crc32c *crc, __u32 sum, const unsigned char *at, size_t length)
{
	const __u32(*table)[256] = crc->table;

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
	return sum;
}

__u32 crc32c_add(const struct crc32c *crc, __u32 sum, const void *bytes, size_t length)
{
	return ~(crc->by_processor ? add_by_processor(~sum, bytes, length) : add_by_tables(crc, ~sum, bytes, length));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/format.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static struct crc32c crc;

static void fill(void)
{
	crc32c_init(&crc);
}

static void fill_tables(void)
{
	crc32c_init(&crc);
	crc.by_processor = false;
}

TestSuite(record_crc32c, .init = fill);

/* Test vectors of RFC 3720, B.4. */
static void check_known_sums(void)
{
	unsigned char bytes[32];
	int i;

	memset(bytes, 0, 32);
	cr_assert_eq(crc32c_add(&crc, 0, bytes, 32), 0x8a9136aa);
	memset(bytes, 0xff, 32);
	cr_assert_eq(crc32c_add(&crc, 0, bytes, 32), 0x62a8ab43);
	for (i = 0; i < 32; i++)
		bytes[i] = i;
	cr_assert_eq(crc32c_add(&crc, 0, bytes, 32), 0x46dd794e);
	for (i = 0; i < 32; i++)
		bytes[i] = 31 - i;
	cr_assert_eq(crc32c_add(&crc, 0, bytes, 32), 0x113fdb5c);
	cr_assert_eq(crc32c_add(&crc, 0, "123456789", 9), 0xe3069283);
	cr_assert_eq(crc32c_add(&crc, 0, "", 0), 0);
}

Test(record_crc32c, known_sums)
{
	check_known_sums();
}

Test(record_crc32c, known_sums_from_tables, .init = fill_tables)
{
	check_known_sums();
}

/* The definition, bit by bit. */
static __u32 slow(const unsigned char *bytes, size_t length)
{
	__u32 sum = ~0u;
	int bit;

	while (length--) {
		sum ^= *bytes++;
		for (bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
	}
	return ~sum;
}

static void check_every_length_place_and_cut(void)
{
	unsigned char bytes[128];
	size_t length, start, cut;

	srand(3);
	for (length = 0; length < sizeof(bytes); length++)
		bytes[length] = rand();
	for (start = 0; start < 9; start++)
		for (length = 0; length < 100; length++) {
			__u32 expected = slow(bytes + start, length);

			cr_assert_eq(crc32c_add(&crc, 0, bytes + start, length), expected);
			for (cut = 0; cut <= length; cut += 7) {
				__u32 sum = crc32c_add(&crc, 0, bytes + start, cut);

				cr_assert_eq(crc32c_add(&crc, sum, bytes + start + cut, length - cut), expected);
			}
		}
}

Test(record_crc32c, every_length_place_and_cut)
{
	check_every_length_place_and_cut();
}

Test(record_crc32c, every_length_place_and_cut_from_tables, .init = fill_tables)
{
	check_every_length_place_and_cut();
}

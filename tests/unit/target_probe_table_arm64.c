/* SPDX-License-Identifier: BSD-2-Clause */
/* Words as an assembler makes them of the text beside. */
#include "target_support.h"

#include "target/probe/table_decoder.h"

#define AT 0x10000ull

static const struct table_candidate *decode(const __u32 *words, size_t count, struct table_candidates *candidates)
{
	memset(candidates, 0, sizeof(*candidates));
	table_decode_arm64((const unsigned char *)words, 4 * count, AT, candidates);
	for (size_t i = 0; i < candidates->count; i++)
		if (candidates->list[i].returned)
			return &candidates->list[i];
	return NULL;
}

#define DECODE(words) decode(words, sizeof(words) / sizeof(*(words)), &candidates)

Test(target_probe_table_arm64, direct)
{
	static const __u32 words[] = {
		0xd503245f, /* bti c */
		0xd0000000, /* adrp x0, two pages on */
		0x910de000, /* add x0, x0, #888 */
		0xd65f03c0, /* ret */
	};
	struct table_candidates candidates;
	const struct table_candidate *returned = DECODE(words);

	cr_assert_not_null(returned);
	cr_expect_eq(returned->address, AT + 0x2000 + 888);
	cr_expect_not(returned->loaded);
}

Test(target_probe_table_arm64, loaded)
{
	static const __u32 words[] = {
		0xd0000000, /* adrp x0, two pages on */
		0xf9400800, /* ldr x0, [x0, #16] */
		0xd65f03c0, /* ret */
	};
	struct table_candidates candidates;
	const struct table_candidate *returned = DECODE(words);

	cr_assert_not_null(returned);
	cr_expect_eq(returned->address, AT + 0x2000 + 16);
	cr_expect(returned->loaded);
}

Test(target_probe_table_arm64, version_check)
{
	static const __u32 branching[] = {
		0x51000401, /* sub w1, w0, #1 */
		0x7100783f, /* cmp w1, #30 */
		0x54000082, /* b.hs, four on */
		0xf0000000, /* adrp x0, three pages on */
		0x91010000, /* add x0, x0, #64 */
		0xd65f03c0, /* ret */
		0xd2800000, /* mov x0, #0 */
		0xd65f03c0, /* ret */
	};
	static const __u32 selecting[] = {
		0xf0000008, /* adrp x8, three pages on */
		0x91010108, /* add x8, x8, #64 */
		0x7100783f, /* cmp w1, #30 */
		0x9a9f3100, /* csel x0, x8, xzr, lo */
		0xd65f03c0, /* ret */
	};
	struct table_candidates candidates;
	const struct table_candidate *returned = DECODE(branching);

	cr_assert_not_null(returned);
	cr_expect_eq(returned->address, AT + 0x3000 + 64);
	returned = DECODE(selecting);
	cr_assert_not_null(returned);
	cr_expect_eq(returned->address, AT + 0x3000 + 64);
}

Test(target_probe_table_arm64, calls)
{
	static const __u32 kept[] = {
		0x10000113, /* adr x19, #32 */
		0x94000040, /* bl */
		0xaa1303e0, /* mov x0, x19 */
		0xd65f03c0, /* ret */
	};
	static const __u32 lost[] = {
		0x10000080, /* adr x0, #16 */
		0x94000040, /* bl */
		0xd65f03c0, /* ret */
	};
	struct table_candidates candidates;
	const struct table_candidate *returned = DECODE(kept);

	cr_assert_not_null(returned);
	cr_expect_eq(returned->address, AT + 32);
	cr_expect_null(DECODE(lost));
}

Test(target_probe_table_arm64, jumps_on)
{
	static const __u32 words[] = { 0x14000400 }; /* b #4096 */
	struct table_candidates candidates;

	cr_expect_null(DECODE(words));
	cr_expect_eq(candidates.tail, AT + 4096);
}

Test(target_probe_table_arm64, any_words)
{
	unsigned int seed = 7;

	for (unsigned int i = 0; i < 50000; i++) {
		struct table_candidates candidates = { 0 };
		unsigned char code[64];

		for (size_t j = 0; j < sizeof(code); j++)
			code[j] = (unsigned char)rand_r(&seed);
		table_decode_arm64(code, (size_t)rand_r(&seed) % sizeof(code), AT, &candidates);
		cr_assert_leq(candidates.count, TABLE_CANDIDATE_MAX);
	}
}

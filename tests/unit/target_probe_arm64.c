/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/probe/decoder.h"
#include "target_support.h"

/* Words as an assembler makes them of the text beside. */

#define SITE_AT 0x10000ull

static const struct {
	__u32 word;
	enum site_flow flow;
	bool emulated, refused, transparent;
	__u64 target;
} instructions[] = {
	{ 0xd503201f, SITE_FLOW_NEXT, true, false, true, 0 },		    /* nop */
	{ 0xd503241f, SITE_FLOW_NEXT, false, false, true, 0 },		    /* bti */
	{ 0xd503245f, SITE_FLOW_NEXT, false, false, true, 0 },		    /* bti c */
	{ 0xd50324df, SITE_FLOW_NEXT, false, false, true, 0 },		    /* bti jc */
	{ 0xd503233f, SITE_FLOW_NEXT, false, false, false, 0 },		    /* paciasp: signs the return address */
	{ 0xd50323bf, SITE_FLOW_NEXT, false, true, false, 0 },		    /* autiasp */
	{ 0xd50320ff, SITE_FLOW_NEXT, false, false, false, 0 },		    /* xpaclri */
	{ 0xd503203f, SITE_FLOW_NEXT, false, true, false, 0 },		    /* yield */
	{ 0xd503251f, SITE_FLOW_NEXT, false, true, false, 0 },		    /* hint #40 */
	{ 0xd5033fbf, SITE_FLOW_NEXT, false, false, false, 0 },		    /* dmb sy: no hint */
	{ 0x10000080, SITE_FLOW_NEXT, true, false, false, 0 },		    /* adr x0, #16 */
	{ 0xb0000001, SITE_FLOW_NEXT, true, false, false, 0 },		    /* adrp x1, #4096 */
	{ 0x58000042, SITE_FLOW_NEXT, false, true, false, 0 },		    /* ldr x2, #8 */
	{ 0x18000042, SITE_FLOW_NEXT, false, true, false, 0 },		    /* ldr w2, #8 */
	{ 0x98000042, SITE_FLOW_NEXT, false, true, false, 0 },		    /* ldrsw x2, #8 */
	{ 0x5c000042, SITE_FLOW_NEXT, false, true, false, 0 },		    /* ldr d2, #8 */
	{ 0x9c000042, SITE_FLOW_NEXT, false, true, false, 0 },		    /* ldr q2, #8 */
	{ 0xd8000042, SITE_FLOW_NEXT, false, true, false, 0 },		    /* prfm pldl2keep, #8 */
	{ 0x19010440, SITE_FLOW_NEXT, false, true, false, 0 },		    /* cpyfp [x0]!, [x1]!, x2! */
	{ 0x14000010, SITE_FLOW_JUMP, true, false, false, SITE_AT + 64 },   /* b #64 */
	{ 0x17fffff0, SITE_FLOW_JUMP, true, false, false, SITE_AT - 64 },   /* b #-64 */
	{ 0x94000010, SITE_FLOW_STOP, true, false, false, 0 },		    /* bl #64 */
	{ 0x54ffffc1, SITE_FLOW_BRANCH, true, false, false, SITE_AT - 8 },  /* b.ne #-8 */
	{ 0x54ffffd1, SITE_FLOW_BRANCH, false, true, false, SITE_AT - 8 },  /* bc.ne #-8 */
	{ 0xb4000060, SITE_FLOW_BRANCH, true, false, false, SITE_AT + 12 }, /* cbz x0, #12 */
	{ 0x35ffffe3, SITE_FLOW_BRANCH, true, false, false, SITE_AT - 4 },  /* cbnz w3, #-4 */
	{ 0x362800a1, SITE_FLOW_BRANCH, true, false, false, SITE_AT + 20 }, /* tbz w1, #5, #20 */
	{ 0xb747ff61, SITE_FLOW_BRANCH, true, false, false, SITE_AT - 20 }, /* tbnz x1, #40, #-20 */
	{ 0xd61f0060, SITE_FLOW_SWITCH, true, false, false, 0 },	    /* br x3 */
	{ 0xd63f0080, SITE_FLOW_STOP, true, false, false, 0 },		    /* blr x4 */
	{ 0xd65f03c0, SITE_FLOW_STOP, true, false, false, 0 },		    /* ret */
	{ 0xd61f083f, SITE_FLOW_SWITCH, false, true, false, 0 },	    /* braaz x1 */
	{ 0xd71f0822, SITE_FLOW_SWITCH, false, true, false, 0 },	    /* braa x1, x2 */
	{ 0xd65f0bff, SITE_FLOW_STOP, false, true, false, 0 },		    /* retaa */
	{ 0xd4000001, SITE_FLOW_STOP, false, true, false, 0 },		    /* svc #0 */
	{ 0xd4200000, SITE_FLOW_STOP, false, true, false, 0 },		    /* brk #0 */
	{ 0xd69f03e0, SITE_FLOW_STOP, false, true, false, 0 },		    /* eret */
	{ 0xd69f0bff, SITE_FLOW_STOP, false, true, false, 0 },		    /* eretaa */
	{ 0xd53b4220, SITE_FLOW_NEXT, false, true, false, 0 },		    /* mrs x0, daif */
	{ 0xd51bd040, SITE_FLOW_NEXT, false, true, false, 0 },		    /* msr tpidr_el0, x0 */
	{ 0xd53bd040, SITE_FLOW_NEXT, false, false, false, 0 },		    /* mrs x0, tpidr_el0 */
	{ 0xc85f7c20, SITE_FLOW_NEXT, false, true, false, 0 },		    /* ldxr x0, [x1] */
	{ 0xc8dffc20, SITE_FLOW_NEXT, false, false, false, 0 },		    /* ldar x0, [x1] */
	{ 0xa9bf7bfd, SITE_FLOW_NEXT, false, false, false, 0 },		    /* stp x29, x30, [sp, #-16]! */
	{ 0xd10043ff, SITE_FLOW_NEXT, false, false, false, 0 },		    /* sub sp, sp, #16 */
	{ 0xaa0103e0, SITE_FLOW_NEXT, false, false, false, 0 },		    /* mov x0, x1 */
	{ 0x00000000, SITE_FLOW_STOP, false, true, false, 0 },		    /* udf #0 */
};

Test(target_probe_arm64, what_instructions_do)
{
	for (size_t i = 0; i < sizeof(instructions) / sizeof(*instructions); i++) {
		struct site_instruction got;
		unsigned char bytes[4];

		memcpy(bytes, &instructions[i].word, 4);
		cr_assert_eq(site_decode_arm64(bytes, 4, SITE_AT, &got), 0);
		cr_expect_eq(got.length, 4);
		cr_expect_eq(got.flow, instructions[i].flow, "%08x: flow %d", instructions[i].word, got.flow);
		cr_expect_eq(got.emulated, instructions[i].emulated, "%08x", instructions[i].word);
		cr_expect_eq(got.refused, instructions[i].refused, "%08x", instructions[i].word);
		cr_expect_eq(got.transparent, instructions[i].transparent, "%08x", instructions[i].word);
		cr_expect_eq(got.target, instructions[i].target, "%08x: %llx", instructions[i].word, got.target);
		cr_expect_not(got.optimised || got.push);
	}
}

Test(target_probe_arm64, stack_pointer)
{
	static const struct {
		__u32 word;
		bool moves;
	} words[] = {
		{ 0xa9bf7bfd, true },  /* stp x29, x30, [sp, #-16]! */
		{ 0xa8c17bfd, true },  /* ldp x29, x30, [sp], #16 */
		{ 0xa9017bfd, false }, /* stp x29, x30, [sp, #16] */
		{ 0xa9bf0001, false }, /* stp x1, x0, [x0, #-16]! */
		{ 0xd10043ff, true },  /* sub sp, sp, #16 */
		{ 0x910043ff, true },  /* add sp, sp, #16 */
		{ 0x910003bf, true },  /* mov sp, x29 */
		{ 0x910043e0, false }, /* add x0, sp, #16 */
		{ 0xf10043ff, false }, /* cmp sp, #16: written to the zero register */
		{ 0xcb2063ff, true },  /* sub sp, sp, x0 */
		{ 0xf81f0fe0, true },  /* str x0, [sp, #-16]! */
		{ 0xf84107e0, true },  /* ldr x0, [sp], #16 */
		{ 0xf94003e0, false }, /* ldr x0, [sp] */
		{ 0xf85f03e0, false }, /* ldur x0, [sp, #-16] */
		{ 0xf86063e0, false }, /* ldr x0, [sp, x0] */
		{ 0xaa0103e0, false }, /* mov x0, x1 */
		{ 0x927ced3f, true },  /* and sp, x9, #-16 */
		{ 0xb27c013f, true },  /* orr sp, x9, #16 */
		{ 0xd27c013f, true },  /* eor sp, x9, #16 */
		{ 0xf27ced3f, false }, /* tst x9, #-16 */
		{ 0x043f57df, true },  /* addvl sp, sp, #-2 */
		{ 0x4c9f70e0, false }, /* st1 {v0.16b}, [x7], #16 */
		{ 0x4cdf73e0, true },  /* ld1 {v0.16b}, [sp], #16 */
		{ 0x4c4073e0, false }, /* ld1 {v0.16b}, [sp] */
		{ 0xd93ff7ff, true },  /* stg sp, [sp], #-16 */
		{ 0xd93fffff, true },  /* stg sp, [sp, #-16]! */
		{ 0xd93ffbe0, false }, /* stg x0, [sp, #-16] */
		{ 0x918103ff, true },  /* addg sp, sp, #16, #0 */
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct site_instruction got;
		unsigned char bytes[4];

		memcpy(bytes, &words[i].word, 4);
		cr_assert_eq(site_decode_arm64(bytes, 4, SITE_AT, &got), 0);
		cr_expect_eq(got.stack, words[i].moves, "%08x", words[i].word);
	}
}

Test(target_probe_arm64, incomplete)
{
	static const unsigned char bytes[4] = { 0x1f, 0x20, 0x03, 0xd5 };
	struct site_instruction instruction;

	cr_expect_eq(site_decode_arm64(bytes, 3, SITE_AT, &instruction), -ENOEXEC);
	cr_expect_eq(site_decode_arm64(bytes, 4, SITE_AT + 2, &instruction), -ENOEXEC, "not on a word");
}

/* Words as an assembler makes them of the text beside. */

#define TABLE_AT 0x10000ull

static const struct table_candidate *decode(const __u32 *words, size_t count, struct table_candidates *candidates)
{
	memset(candidates, 0, sizeof(*candidates));
	table_decode_arm64((const unsigned char *)words, 4 * count, TABLE_AT, candidates);
	for (size_t i = 0; i < candidates->count; i++)
		if (candidates->list[i].returned)
			return &candidates->list[i];
	return NULL;
}

#define DECODE(words) decode(words, sizeof(words) / sizeof(*(words)), &candidates)

Test(target_probe_arm64, direct)
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
	cr_expect_eq(returned->address, TABLE_AT + 0x2000 + 888);
	cr_expect_not(returned->loaded);
}

Test(target_probe_arm64, loaded)
{
	static const __u32 words[] = {
		0xd0000000, /* adrp x0, two pages on */
		0xf9400800, /* ldr x0, [x0, #16] */
		0xd65f03c0, /* ret */
	};
	struct table_candidates candidates;
	const struct table_candidate *returned = DECODE(words);

	cr_assert_not_null(returned);
	cr_expect_eq(returned->address, TABLE_AT + 0x2000 + 16);
	cr_expect(returned->loaded);
}

Test(target_probe_arm64, version_check)
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
	cr_expect_eq(returned->address, TABLE_AT + 0x3000 + 64);
	returned = DECODE(selecting);
	cr_assert_not_null(returned);
	cr_expect_eq(returned->address, TABLE_AT + 0x3000 + 64);
}

Test(target_probe_arm64, calls)
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
	cr_expect_eq(returned->address, TABLE_AT + 32);
	cr_expect_null(DECODE(lost));
}

Test(target_probe_arm64, jumps_on)
{
	static const __u32 words[] = { 0x14000400 }; /* b #4096 */
	struct table_candidates candidates;

	cr_expect_null(DECODE(words));
	cr_expect_eq(candidates.tail, TABLE_AT + 4096);
}

Test(target_probe_arm64, any_words)
{
	unsigned int seed = 7;

	for (unsigned int i = 0; i < 50000; i++) {
		struct table_candidates candidates = { 0 };
		unsigned char code[64];

		for (size_t j = 0; j < sizeof(code); j++)
			code[j] = (unsigned char)rand_r(&seed);
		table_decode_arm64(code, (size_t)rand_r(&seed) % sizeof(code), TABLE_AT, &candidates);
		cr_assert_leq(candidates.count, TABLE_CANDIDATE_MAX);
	}
}

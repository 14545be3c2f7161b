/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>

#include "target/probe/table_decoder.h"

static const struct table_candidate *find(const struct table_candidates *candidates, __u64 address)
{
	for (size_t i = 0; i < candidates->count; i++)
		if (candidates->list[i].address == address)
			return &candidates->list[i];
	return NULL;
}

/* if (bad) { log(); x = 0; } else x = table; return x; the way of NULL must not hide the other. */
Test(target_probe_table_walk, ways_join)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x100, &candidates);
	table_walk_arrive(&walk, 0x1000);
	table_walk_branch(&walk, 0x1020);
	table_walk_compute(&walk, 0, 0x5000, false);
	table_walk_jump(&walk, 0x1030);
	table_walk_arrive(&walk, 0x1020);
	cr_expect_not(walk.now.registers[0].known, "the branch was taken before");
	table_walk_forget(&walk, 0);
	table_walk_arrive(&walk, 0x1030);
	table_walk_return(&walk, 0);
	cr_assert_not_null(find(&candidates, 0x5000));
	cr_expect(find(&candidates, 0x5000)->returned);
	cr_expect_eq(candidates.count, 1);
	cr_expect_eq(candidates.tail, 0);
}

Test(target_probe_table_walk, nothing_survives_a_return)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x100, &candidates);
	table_walk_set(&walk, 3, 0x5000, true);
	table_walk_copy(&walk, 0, 3);
	table_walk_return(&walk, 0);
	table_walk_arrive(&walk, 0x1010);
	table_walk_return(&walk, 3);
	cr_assert_eq(candidates.count, 1);
	cr_expect(candidates.list[0].loaded);
	cr_expect(candidates.list[0].returned);
}

Test(target_probe_table_walk, leaves_the_function)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x100, &candidates);
	table_walk_jump(&walk, 0x4000);
	table_walk_jump(&walk, 0x5000);
	cr_expect_eq(candidates.tail, 0x4000);
}

/* More branches and addresses than there is room for are let go. */
Test(target_probe_table_walk, bounded)
{
	struct table_candidates candidates = { 0 };
	struct table_walk walk;

	table_walk_begin(&walk, 0x1000, 0x1000, &candidates);
	for (__u64 i = 0; i < 100; i++) {
		table_walk_compute(&walk, 0, 0x5000 + 8 * (i % 50), false);
		table_walk_branch(&walk, 0x1004 + i);
	}
	cr_expect_eq(candidates.count, TABLE_CANDIDATE_MAX);
	cr_expect_eq(walk.pending_count, TABLE_MERGE_MAX);
}

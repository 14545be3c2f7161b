/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/hashmap.h"

#include <criterion/criterion.h>
#include <stdlib.h>

#define NODES 5000

Test(base_core_hashmap, finds_what_was_added_and_not_removed)
{
	struct map_node *nodes = calloc(NODES, sizeof(*nodes));
	struct map map = {};
	__u64 i;

	cr_assert_null(map_find(&map, 0, 0));
	for (i = 0; i < NODES; i++)
		cr_assert_eq(map_add(&map, &nodes[i], i % 7, 0x7f0000000000ULL + i * 4096), 0);
	cr_assert_eq(map.count, NODES);
	for (i = 0; i < NODES; i += 2)
		map_remove(&map, &nodes[i]);
	for (i = 0; i < NODES; i++)
		cr_assert_eq(map_find(&map, i % 7, 0x7f0000000000ULL + i * 4096), i % 2 ? &nodes[i] : NULL);
	cr_assert_null(map_find(&map, 9, 0x7f0000000000ULL));
	for (i = 1; i < NODES; i += 2)
		map_remove(&map, &nodes[i]);
	cr_assert_eq(map.count, 0);
	map_free(&map);
	free(nodes);
}

/* Generations and nested regions rely on it. */
Test(base_core_hashmap, equal_keys_come_newest_first_also_after_growing)
{
	struct map_node same[10], *others = calloc(NODES, sizeof(*others)), *node;
	struct map map = {};
	int i;

	for (i = 0; i < 10; i++)
		map_add(&map, &same[i], 1, 2);
	for (i = 0; i < NODES; i++)
		map_add(&map, &others[i], 3, (__u64)i);
	node = map_find(&map, 1, 2);
	for (i = 9; i >= 0; i--, node = map_next(node))
		cr_assert_eq(node, &same[i]);
	cr_assert_null(node);
	map_remove(&map, &same[9]);
	map_remove(&map, &same[4]);
	cr_assert_eq(map_find(&map, 1, 2), &same[8]);
	cr_assert_eq(map_next(&same[5]), &same[3]);
	map_free(&map);
	free(others);
}

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

/* ---- keyed tables ---- */

struct entry {
	struct keyed keyed;
};

static void release(void *context, struct keyed *keyed)
{
	++*(unsigned int *)context;
	free(container_of(keyed, struct entry, keyed));
}

static struct keyed *add(struct keyed_table *table, __u64 owner, __u64 a, __u64 b)
{
	struct entry *entry = calloc(1, sizeof(*entry));

	cr_assert_eq(keyed_add(table, &entry->keyed, owner, a, b), 0);
	return &entry->keyed;
}

Test(base_core_hashmap, oldest_makes_room)
{
	unsigned int released = 0;
	struct keyed_table table;
	struct keyed *first, *taken;

	keyed_init(&table, 3, release, &released);
	first = add(&table, 1, 1, 1);
	add(&table, 1, 1, 2);
	taken = add(&table, 2, 2, 1);
	cr_assert(keyed_full(&table));
	keyed_renew(&table, first);
	add(&table, 2, 2, 2);
	cr_assert_eq(released, 1);
	cr_assert_null(keyed_find(&table, 1, 2));
	cr_assert_eq(keyed_find(&table, 1, 1), first);
	keyed_remove(&table, taken);
	cr_assert_eq(released, 1);
	cr_assert_null(keyed_find(&table, 2, 1));
	cr_assert_not(keyed_full(&table));
	release(&released, taken);
	keyed_free(&table);
	cr_assert_eq(released, 4);
}

Test(base_core_hashmap, owner_takes_its_entries_along)
{
	unsigned int released = 0;
	struct keyed_table table;
	struct keyed *newest;

	keyed_init(&table, 10000, release, &released);
	for (__u64 i = 0; i < 3000; i++)
		add(&table, i % 3, i, 5);
	add(&table, 0, 4, 5);
	newest = keyed_find(&table, 4, 5);
	cr_assert_not_null(keyed_next(newest), "the same key twice");
	keyed_drop_owner(&table, 0);
	keyed_drop_owner(&table, 0);
	cr_assert_eq(released, 1001);
	cr_assert_null(keyed_find(&table, 3, 5));
	cr_assert_not_null(keyed_find(&table, 4, 5));
	cr_assert_null(keyed_next(keyed_find(&table, 4, 5)));
	keyed_drop_owner(&table, 7);
	keyed_drop_owner(&table, 1);
	keyed_drop_owner(&table, 2);
	cr_assert_eq(released, 3001);
	cr_assert_eq(table.owners.count, 0);
	keyed_free(&table);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/hashmap.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define MAP_FIRST_BITS 4
#define MAP_LAST_BITS 28

/*
 * Multiplying and folding spreads keys that are addresses or small numbers. The map's own address is mixed in, so that
 * a target cannot choose handles that all fall into one bucket.
 */
static size_t map_bucket(const struct map *map, __u64 a, __u64 b)
{
	__u64 hash = (a ^ (__u64)(uintptr_t)map) * 0x9e3779b97f4a7c15ULL;

	hash = (hash ^ (hash >> 32) ^ b) * 0xd6e8feb86659fd93ULL;
	hash = (hash ^ (hash >> 32)) * 0xd6e8feb86659fd93ULL;
	return (size_t)(hash >> (64 - map->bits));
}

void map_free(struct map *map)
{
	free(map->buckets);
	*map = (struct map){};
}

struct map_node *map_find(const struct map *map, __u64 a, __u64 b)
{
	struct map_node *node;

	if (!map->count)
		return NULL;
	for (node = map->buckets[map_bucket(map, a, b)]; node; node = node->next)
		if (node->a == a && node->b == b)
			return node;
	return NULL;
}

struct map_node *map_next(const struct map_node *node)
{
	struct map_node *next;

	for (next = node->next; next; next = next->next)
		if (next->a == node->a && next->b == node->b)
			return next;
	return NULL;
}

/* Entries of one bucket keep their order, newest first: the old chains are walked and appended. */
static int map_resize(struct map *map, unsigned int bits)
{
	struct map_node **buckets = calloc((size_t)1 << bits, sizeof(*buckets));
	struct map_node ***ends = calloc((size_t)1 << bits, sizeof(*ends));
	size_t old = map->buckets ? (size_t)1 << map->bits : 0;
	struct map_node *node, *next;
	size_t i, bucket;

	if (!buckets || !ends) {
		free(buckets);
		free(ends);
		return -ENOMEM;
	}
	map->bits = bits;
	for (i = 0; i < (size_t)1 << bits; i++)
		ends[i] = &buckets[i];
	for (i = 0; i < old; i++) {
		for (node = map->buckets[i]; node; node = next) {
			next = node->next;
			bucket = map_bucket(map, node->a, node->b);
			node->next = NULL;
			*ends[bucket] = node;
			ends[bucket] = &node->next;
		}
	}
	free(ends);
	free(map->buckets);
	map->buckets = buckets;
	return 0;
}

int map_add(struct map *map, struct map_node *node, __u64 a, __u64 b)
{
	struct map_node **bucket;

	if (!map->buckets) {
		if (map_resize(map, MAP_FIRST_BITS))
			return -ENOMEM;
	} else if (map->count >> map->bits && map->bits < MAP_LAST_BITS) {
		/* Without memory for more buckets the chains grow longer; nothing else is lost. */
		map_resize(map, map->bits + 1);
	}
	bucket = &map->buckets[map_bucket(map, a, b)];
	node->a = a;
	node->b = b;
	node->next = *bucket;
	*bucket = node;
	map->count++;
	return 0;
}

void map_remove(struct map *map, struct map_node *node)
{
	struct map_node **link = &map->buckets[map_bucket(map, node->a, node->b)];

	while (*link != node)
		link = &(*link)->next;
	*link = node->next;
	node->next = NULL;
	map->count--;
}

/* ---- keyed tables ---- */

struct keyed_owner {
	struct map_node node;
	struct link entries;
};

void keyed_init(struct keyed_table *table, size_t most, void (*release)(void *context, struct keyed *entry),
		void *context)
{
	*table = (struct keyed_table){ .most = most, .release = release, .context = context };
	link_init(&table->all);
}

void keyed_free(struct keyed_table *table)
{
	while (!link_alone(&table->all))
		keyed_drop(table, keyed_oldest(table));
	map_free(&table->map);
	map_free(&table->owners);
}

struct keyed *keyed_find(const struct keyed_table *table, __u64 a, __u64 b)
{
	struct map_node *node = map_find(&table->map, a, b);

	return node ? container_of(node, struct keyed, node) : NULL;
}

struct keyed *keyed_next(const struct keyed *entry)
{
	struct map_node *node = map_next(&entry->node);

	return node ? container_of(node, struct keyed, node) : NULL;
}

static void owner_settle(struct keyed_table *table, struct keyed_owner *owner)
{
	if (!link_alone(&owner->entries))
		return;
	map_remove(&table->owners, &owner->node);
	free(owner);
}

static struct keyed_owner *owner_get(struct keyed_table *table, __u64 number)
{
	struct map_node *node = map_find(&table->owners, number, 0);
	struct keyed_owner *owner;

	if (node)
		return container_of(node, struct keyed_owner, node);
	owner = malloc(sizeof(*owner));
	if (!owner || map_add(&table->owners, &owner->node, number, 0)) {
		free(owner);
		return NULL;
	}
	link_init(&owner->entries);
	return owner;
}

int keyed_add(struct keyed_table *table, struct keyed *entry, __u64 owner, __u64 a, __u64 b)
{
	if (keyed_full(table))
		keyed_drop(table, keyed_oldest(table));
	entry->owner = owner_get(table, owner);
	if (!entry->owner)
		return -ENOMEM;
	if (map_add(&table->map, &entry->node, a, b)) {
		owner_settle(table, entry->owner);
		return -ENOMEM;
	}
	link_append(&table->all, &entry->age);
	link_append(&entry->owner->entries, &entry->of_owner);
	return 0;
}

void keyed_renew(struct keyed_table *table, struct keyed *entry)
{
	link_remove(&entry->age);
	link_append(&table->all, &entry->age);
}

void keyed_remove(struct keyed_table *table, struct keyed *entry)
{
	map_remove(&table->map, &entry->node);
	link_remove(&entry->age);
	link_remove(&entry->of_owner);
	owner_settle(table, entry->owner);
}

void keyed_drop(struct keyed_table *table, struct keyed *entry)
{
	keyed_remove(table, entry);
	if (table->release)
		table->release(table->context, entry);
	else
		free(entry);
}

void keyed_drop_owner(struct keyed_table *table, __u64 owner)
{
	struct map_node *node;

	/* The owner is freed with the last of its entries. */
	while ((node = map_find(&table->owners, owner, 0)))
		keyed_drop(table, container_of(container_of(node, struct keyed_owner, node)->entries.next, struct keyed,
					       of_owner));
}

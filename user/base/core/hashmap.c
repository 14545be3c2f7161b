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

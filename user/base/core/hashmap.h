/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash map from two numbers to a structure that holds its own node: no allocation for an entry. */
#ifndef XPT_BASE_CORE_HASHMAP_H
#define XPT_BASE_CORE_HASHMAP_H

#include <linux/types.h>
#include <stddef.h>

struct map_node {
	struct map_node *next;
	__u64 a, b;
};

/* Zero it to begin with. */
struct map {
	struct map_node **buckets;
	unsigned int bits; /* of the number of buckets */
	size_t count;
};

/* Frees the buckets; the entries are their owner's. */
void map_free(struct map *map);
struct map_node *map_find(const struct map *map, __u64 a, __u64 b); /* NULL: none */
/* The next node with the key of this one, when keys were added more than once. */
struct map_node *map_next(const struct map_node *node);
/* The same key may be added again: the newest is found first. -ENOMEM. */
int map_add(struct map *map, struct map_node *node, __u64 a, __u64 b);
void map_remove(struct map *map, struct map_node *node); /* the node must be in the map */

#endif

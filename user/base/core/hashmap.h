/* SPDX-License-Identifier: BSD-2-Clause */
/* Hash map from two numbers to a structure that holds its own node: no allocation for an entry. */
#ifndef XPT_BASE_CORE_HASHMAP_H
#define XPT_BASE_CORE_HASHMAP_H

#include <linux/types.h>
#include <stddef.h>
#include <string.h>

#include "base/core/link.h"

/* FNV-1a: a hash of the bytes, that of what is before them given. */
#define HASH_BEGIN 0xcbf29ce484222325ull
static inline __u64 hash_bytes(__u64 hash, const void *bytes, size_t length)
{
	const unsigned char *at = (const unsigned char *)bytes;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ at[i]) * 0x100000001b3ull;
	return hash;
}
/* Of a terminated string. */
static inline __u64 text_hash(const char *text)
{
	return hash_bytes(HASH_BEGIN, text, strlen(text));
}

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

/* ---- keyed tables ---- */

/*
 * A bounded set of entries that are found by two numbers, such as what is known of the threads of all processes. Each
 * entry has an owner: the entries of an owner are dropped together when it ends. When the table is full, the oldest
 * entry is evicted.
 */
/* A member of each entry. node.a and node.b are the key. */
struct keyed {
	struct map_node node;
	struct link age;
	struct link of_owner;
	struct keyed_owner *owner;
};

struct keyed_table {
	struct map map;
	struct map owners;
	struct link all; /* oldest first */
	size_t most;
	/* Frees an entry, which is in no table any more. NULL: free(), as the entries begin with struct keyed. */
	void (*release)(void *context, struct keyed *entry);
	void *context;
};

void keyed_init(struct keyed_table *table, size_t most, void (*release)(void *context, struct keyed *entry),
		void *context);
void keyed_free(struct keyed_table *table); /* releases all entries */

struct keyed *keyed_find(const struct keyed_table *table, __u64 a, __u64 b); /* NULL: none */
/* The next one with the key of this one, when it was added more than once: the newest is found first. */
struct keyed *keyed_next(const struct keyed *entry);
/* Releases the oldest when there is no room. -ENOMEM: the entry is the caller's still. */
int keyed_add(struct keyed_table *table, struct keyed *entry, __u64 owner, __u64 a, __u64 b);
/* It is the youngest from now on. */
void keyed_renew(struct keyed_table *table, struct keyed *entry);
/* Takes it out; it is the caller's again. */
void keyed_remove(struct keyed_table *table, struct keyed *entry);
void keyed_drop(struct keyed_table *table, struct keyed *entry);
/* Drops all that the owner has. */
void keyed_drop_owner(struct keyed_table *table, __u64 owner);

static inline bool keyed_full(const struct keyed_table *table)
{
	return table->map.count >= table->most;
}

/* The oldest entry; there must be one. */
static inline struct keyed *keyed_oldest(const struct keyed_table *table)
{
	return container_of(table->all.next, struct keyed, age);
}

#endif

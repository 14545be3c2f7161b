/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A bounded set of entries that are found by two numbers, such as what is known of the threads of all processes. Each
 * entry has an owner: the entries of an owner are dropped together when it ends. When the table is full, the oldest
 * entry is evicted.
 */
#ifndef XPT_BASE_CORE_KEYED_TABLE_H
#define XPT_BASE_CORE_KEYED_TABLE_H

#include "base/core/hashmap.h"
#include "base/core/link.h"

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
	/* Frees an entry, which is in no table any more. */
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

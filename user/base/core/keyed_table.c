/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/keyed_table.h"

#include <errno.h>
#include <stdlib.h>

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
	table->release(table->context, entry);
}

void keyed_drop_owner(struct keyed_table *table, __u64 owner)
{
	struct map_node *node;

	/* The owner is freed with the last of its entries. */
	while ((node = map_find(&table->owners, owner, 0)))
		keyed_drop(table, container_of(container_of(node, struct keyed_owner, node)->entries.next, struct keyed,
					       of_owner));
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/region_names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct region_name {
	struct map_node node;	    /* in by_number or by_handle */
	struct map_node of_process; /* in by_process */
	struct link link;
	struct map *map;
	bool truncated;
	char text[];
};

void region_names_init(struct region_names *names)
{
	link_init(&names->all);
}

static void drop(struct region_names *names, struct region_name *name)
{
	map_remove(name->map, &name->node);
	map_remove(&names->by_process, &name->of_process);
	link_remove(&name->link);
	names->count--;
	free(name);
}

void region_names_free(struct region_names *names)
{
	struct link *link, *following;

	link_each(link, following, &names->all) drop(names, container_of(link, struct region_name, link));
	map_free(&names->by_number);
	map_free(&names->by_handle);
	map_free(&names->by_process);
}

static struct region_name *find(const struct map *map, __u32 tgid, __u64 key)
{
	struct map_node *node = map_find(map, tgid, key);

	return node ? container_of(node, struct region_name, node) : NULL;
}

static int add(struct region_names *names, struct map *map, __u32 tgid, __u64 key, const char *text, size_t length,
	       bool truncated)
{
	struct region_name *name = find(map, tgid, key);

	if (name && !strncmp(name->text, text, length) && !name->text[length])
		return 0;
	if (name)
		drop(names, name);
	else if (names->count >= REGION_NAMES_MAX)
		drop(names, container_of(names->all.next, struct region_name, link));
	name = calloc(1, sizeof(*name) + length + 1);
	if (!name)
		return -ENOMEM;
	memcpy(name->text, text, length);
	name->map = map;
	name->truncated = truncated;
	if (map_add(map, &name->node, tgid, key)) {
		free(name);
		return -ENOMEM;
	}
	if (map_add(&names->by_process, &name->of_process, tgid, 0)) {
		map_remove(map, &name->node);
		free(name);
		return -ENOMEM;
	}
	link_append(&names->all, &name->link);
	names->count++;
	return 0;
}

int region_names_add(struct region_names *names, __u32 tgid, __u64 number, const char *text, size_t length,
		     bool truncated)
{
	return add(names, &names->by_number, tgid, number, text, length, truncated);
}

int region_names_add_handle(struct region_names *names, __u32 tgid, __u64 handle, const char *text, size_t length,
			    bool truncated)
{
	return add(names, &names->by_handle, tgid, handle, text, length, truncated);
}

void region_names_drop_handle(struct region_names *names, __u32 tgid, __u64 handle)
{
	struct region_name *name = find(&names->by_handle, tgid, handle);

	if (name)
		drop(names, name);
}

void region_names_drop_process(struct region_names *names, __u32 tgid)
{
	struct map_node *node;

	while ((node = map_find(&names->by_process, tgid, 0)))
		drop(names, container_of(node, struct region_name, of_process));
}

const char *region_names_find(const struct region_names *names, __u32 tgid, __u64 handle, __u64 number, bool *truncated)
{
	const struct region_name *name = handle ? find(&names->by_handle, tgid, handle) : NULL;

	if (!name && number)
		name = find(&names->by_number, tgid, number);
	*truncated = name && name->truncated;
	return name ? name->text : NULL;
}

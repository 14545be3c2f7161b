/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/link.h"

struct given_name {
	struct map_node node;
	struct given_name *next;
	char *text;
};

void names_free(struct names *names)
{
	struct given_name *name;

	while (names->all) {
		name = names->all;
		names->all = name->next;
		free(name->text);
		free(name);
	}
	map_free(&names->map);
}

int names_give(struct names *names, __u32 tgid, __u64 handle, const char *text, size_t length)
{
	struct map_node *node = map_find(&names->map, tgid, handle);
	char *copy = strndup(text, length);
	struct given_name *name;

	if (!copy)
		return -ENOMEM;
	if (node) {
		name = container_of(node, struct given_name, node);
		free(name->text);
		name->text = copy;
		return 0;
	}
	name = names->map.count < NAMES_MAX ? malloc(sizeof(*name)) : NULL;
	if (!name || map_add(&names->map, &name->node, tgid, handle)) {
		free(name);
		free(copy);
		return names->map.count < NAMES_MAX ? -ENOMEM : -ENOSPC;
	}
	name->text = copy;
	name->next = names->all;
	names->all = name;
	return 0;
}

const char *names_find(const struct names *names, __u32 tgid, __u64 handle)
{
	struct map_node *node = map_find(&names->map, tgid, handle);

	if (!node)
		node = map_find(&names->map, 0, handle);
	return node ? container_of(node, struct given_name, node)->text : NULL;
}

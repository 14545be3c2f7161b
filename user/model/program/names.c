/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/program/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/link.h"

struct given_name {
	struct map_node node;
	struct given_name *next;
	char *text;
	bool used;
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
	name->used = false;
	name->next = NULL;
	if (names->newest)
		names->newest->next = name;
	else
		names->all = name;
	names->newest = name;
	return 0;
}

const char *names_find(const struct names *names, __u32 tgid, __u64 handle)
{
	struct map_node *node = map_find(&names->map, tgid, handle);
	struct given_name *name;

	if (!node)
		node = map_find(&names->map, 0, handle);
	if (!node)
		return NULL;
	name = container_of(node, struct given_name, node);
	name->used = true;
	return name->text;
}

void names_unused(const struct names *names, bool fingerprint,
		  void (*visit)(void *context, __u64 handle, bool fingerprint, const char *name), void *context)
{
	for (const struct given_name *name = names->all; name; name = name->next)
		if (!name->used)
			visit(context, name->node.b, fingerprint, name->text);
}

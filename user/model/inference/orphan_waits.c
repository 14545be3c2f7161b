/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/inference/orphan_waits.h"

#include <errno.h>
#include <stdlib.h>

struct early_wait {
	struct map_node node;
	struct link link;
	struct wait_end end;
};

void early_init(struct early *early, size_t most)
{
	*early = (struct early){ .most = most };
	link_init(&early->waits);
}

static void early_remove(struct early *early, struct early_wait *wait)
{
	map_remove(&early->map, &wait->node);
	link_remove(&wait->link);
	free(wait);
}

void early_free(struct early *early)
{
	struct link *link, *following;

	link_each(link, following, &early->waits) early_remove(early, container_of(link, struct early_wait, link));
	map_free(&early->map);
}

static struct early_wait *early_find(const struct early *early, unsigned int queue, __u64 key)
{
	struct map_node *node = map_find(&early->map, queue, key);

	return node ? container_of(node, struct early_wait, node) : NULL;
}

int early_add(struct early *early, unsigned int queue, __u64 key, const struct wait_end *end)
{
	struct early_wait *wait = early_find(early, queue, key);

	if (wait) {
		link_remove(&wait->link);
	} else {
		if (early->map.count >= early->most)
			early_remove(early, container_of(early->waits.next, struct early_wait, link));
		wait = malloc(sizeof(*wait));
		if (!wait)
			return -ENOMEM;
		if (map_add(&early->map, &wait->node, queue, key)) {
			free(wait);
			return -ENOMEM;
		}
	}
	wait->end = *end;
	link_append(&early->waits, &wait->link);
	return 0;
}

bool early_take(struct early *early, unsigned int queue, __u64 key, struct wait_end *end)
{
	struct early_wait *wait = early_find(early, queue, key);

	if (!wait)
		return false;
	*end = wait->end;
	early_remove(early, wait);
	return true;
}

void early_drop(struct early *early, unsigned int queue)
{
	struct link *link, *following;
	struct early_wait *wait;

	link_each(link, following, &early->waits)
	{
		wait = container_of(link, struct early_wait, link);
		if (wait->node.a == queue)
			early_remove(early, wait);
	}
}

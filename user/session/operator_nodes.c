/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/operator_nodes.h"

#include <stdlib.h>

#include "session/describe_records.h"
#include "target/operator_node.h"

#define ROOM_FIRST 256

void operator_nodes_free(struct operator_nodes *nodes)
{
	free(nodes->seen);
	*nodes = (struct operator_nodes){ 0 };
}

/* Where the object is, or would be. */
static struct seen_object *place_of(struct seen_object *seen, size_t room, pid_t tgid, __u64 object, __u64 class)
{
	__u64 hash = (object ^ class * 0x9e3779b97f4a7c15 ^ (__u64)tgid << 40) * 0xff51afd7ed558ccd;
	size_t at = (hash >> 32) & (room - 1);

	while (seen[at].tgid && (seen[at].tgid != tgid || seen[at].object != object || seen[at].class != class))
		at = (at + 1) & (room - 1);
	return &seen[at];
}

/* Moves what is there into a table of that room, but for those of one process. */
static bool rebuild(struct operator_nodes *nodes, size_t room, pid_t without)
{
	struct seen_object *seen = calloc(room, sizeof(*seen));
	size_t count = 0;

	if (!seen)
		return false;
	for (size_t i = 0; i < nodes->room; i++) {
		const struct seen_object *from = &nodes->seen[i];

		if (!from->tgid || from->tgid == without)
			continue;
		*place_of(seen, room, from->tgid, from->object, from->class) = *from;
		count++;
	}
	free(nodes->seen);
	*nodes = (struct operator_nodes){ seen, count, room };
	return true;
}

/* False: it was there, or there is no room. */
static bool add(struct operator_nodes *nodes, pid_t tgid, __u64 object, __u64 class)
{
	struct seen_object *place;

	if (nodes->room) {
		place = place_of(nodes->seen, nodes->room, tgid, object, class);
		if (place->tgid || nodes->count >= OPERATOR_NODES_MAX)
			return false;
	}
	if (2 * (nodes->count + 1) > nodes->room && !rebuild(nodes, nodes->room ? 2 * nodes->room : ROOM_FIRST, 0))
		return false;
	place = place_of(nodes->seen, nodes->room, tgid, object, class);
	*place = (struct seen_object){ tgid, object, class };
	nodes->count++;
	return true;
}

struct xpt_record_text *operator_nodes_look(struct operator_nodes *nodes, const struct attacher *attacher, pid_t tgid,
					    __u64 time, __u64 object, __u64 class)
{
	const struct node_layout *layout;
	struct operator_node node;

	if (!add(nodes, tgid, object, class))
		return NULL;
	layout = attacher_node_layout(attacher, tgid, class);
	if (!layout || operator_node_read(layout, tgid, object, class, &node))
		return NULL;
	return record_node(&node, tgid, time, object, class);
}

void operator_nodes_drop(struct operator_nodes *nodes, pid_t tgid)
{
	if (nodes->count && !rebuild(nodes, nodes->room, tgid))
		operator_nodes_free(nodes);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/operator_nodes.h"

#include "session/describe_records.h"
#include "target/operator_node.h"

void operator_nodes_free(struct operator_nodes *nodes)
{
	seen_free(&nodes->seen);
}

struct xpt_record_text *operator_nodes_look(struct operator_nodes *nodes, const struct attacher *attacher, pid_t tgid,
					    __u64 time, __u64 object, __u64 class)
{
	const struct node_layout *layout;
	struct operator_node node;

	if (!seen_add(&nodes->seen, OPERATOR_NODES_MAX, tgid, object, class))
		return NULL;
	layout = attacher_node_layout(attacher, tgid, class);
	if (!layout || operator_node_read(layout, tgid, object, class, &node))
		return NULL;
	return record_node(&node, tgid, time, object, class);
}

void operator_nodes_drop(struct operator_nodes *nodes, pid_t tgid)
{
	seen_drop(&nodes->seen, tgid);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <xputrace/device.h>

#include "counter/machine/nodes.h"

int xpt_device_list(int (*visit)(void *context, const struct xpt_device_info *device), void *context)
{
	struct nodes nodes;
	int result = nodes_find("/sys", &nodes);

	if (result)
		return result;
	for (size_t i = 0; !result && i < nodes.count; i++) {
		const struct node *node = &nodes.items[i];
		struct xpt_device_info device = {
			.size = sizeof(device),
			.index = (int)i,
			.address = node->address,
			.driver = node->driver,
			.node = node->path,
			.title = node->title,
		};

		result = visit(context, &device);
	}
	nodes_free(&nodes);
	return result;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>

#include "counter/core/counter.h"

#define SYSFS "/sys"

void counter_place_close(struct counter_place *place, struct pmus *pmus, struct nodes *nodes)
{
	pmus_free(pmus);
	nodes_free(nodes);
	cpus_free(&place->online);
}

int counter_place_open(const struct log *log, int cpu, int gpu, pid_t pid, struct pmus *pmus, struct nodes *nodes,
		       struct counter_place *place)
{
	int error = nodes_find(SYSFS, nodes);

	*place = (struct counter_place){
		.pmus = pmus,
		.nodes = nodes,
		.cpu = cpu,
		.log = log,
		.polled = { .sysfs = SYSFS, .proc = "/proc", .nodes = nodes, .pid = pid, .log = log },
	};
	if (!error)
		error = pmus_read(SYSFS, pmus);
	/* Without perf events the others can be read. */
	if (error == -ENOENT)
		error = 0;
	if (!error)
		error = cpus_online(SYSFS, &place->online);
	if (!error && gpu >= 0 && (size_t)gpu >= nodes->count) {
		log_error(log, "there is no device %d: %s", gpu,
			  nodes->count ? "see xputrace list devices" : "this machine has no DRM render or accel node");
		error = -ENODEV;
	}
	if (!error && gpu >= 0)
		place->node = place->polled.node = &nodes->items[gpu];
	return error;
}

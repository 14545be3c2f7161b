/* SPDX-License-Identifier: BSD-2-Clause */
/* Perf events that the kernel's side reads around inferences. */
#include <errno.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "kern/private.h"

/* The map refers to the events from then on: who has opened them may close them. */
static int fill(int map, const struct kern_options *options)
{
	__u32 count = options->slots * options->slot_cpus;
	int error = 0;

	for (__u32 i = 0; i < count && !error; i++)
		if (options->slot_events[i] >= 0)
			error = bpf_map_update_elem(map, &i, &options->slot_events[i], BPF_ANY);
	return error;
}

int counts_create(struct kern *kern, const struct kern_options *options)
{
	/* The events stay in it until no program can use it any more, not only until its descriptor is closed. */
	LIBBPF_OPTS(bpf_map_create_opts, map_options, .map_flags = BPF_F_PRESERVE_ELEMS);
	__u32 zero = 0;
	int map, error;

	if (!options->slots)
		return 0;
	map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "counter_events", sizeof(__u32), sizeof(__u32),
			     options->slots * options->slot_cpus, &map_options);
	if (map < 0)
		return map;
	error = fill(map, options);
	if (!error)
		error = bpf_map_update_elem(bpf_map__fd(kern->main->maps.counter_sets), &zero, &map, BPF_ANY);
	close(map);
	return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings and loss counters: what comes back from the kernel by itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/core/clock.h"
#include "kern/private.h"

#define RING_MIN (64 * 1024)

/* The ring's own checks have passed; the header must agree with them. */
static int on_record(void *context, void *data, size_t size)
{
	struct kern *kern = context;
	const struct xpt_record_header *record = data;

	if (size < sizeof(*record) || record->size < sizeof(*record) || record->size > size) {
		kern->malformed++;
		return 0;
	}
	kern->visited++;
	return kern->visit(kern->visit_context, record);
}

static size_t ring_bytes(size_t total, unsigned int rings)
{
	size_t bytes = RING_MIN;

	while (bytes * 2 * rings <= total)
		bytes *= 2;
	return bytes;
}

/* After each change of a map of maps the kernel waits for a grace period: one for all, where it can. */
static int rings_publish(struct kern *kern)
{
	int map = bpf_map__fd(kern->main->maps.data_rings), error;
	__u32 keys[RINGS_MAX], count = kern->ring_count;

	for (__u32 i = 0; i < count; i++)
		keys[i] = i;
	error = bpf_map_update_batch(map, keys, kern->ring, &count, NULL);
	for (__u32 i = error ? 0 : kern->ring_count; i < kern->ring_count; i++) {
		error = bpf_map_update_elem(map, &i, &kern->ring[i], BPF_ANY);
		if (error)
			return error;
	}
	return 0;
}

/* Rings are emptied in the order in which they are added: a code object comes before the call that gave it. */
static int reader_create(struct kern *kern)
{
	int control = bpf_map__fd(kern->main->maps.control_ring);
	int first = kern->codes ? bpf_map__fd(kern->codes->maps.code_ring) : control;

	kern->reader = ring_buffer__new(first, on_record, kern, NULL);
	if (!kern->reader)
		return -errno;
	return kern->codes ? ring_buffer__add(kern->reader, control, on_record, kern) : 0;
}

int rings_create(struct kern *kern, size_t bytes)
{
	int cpus = libbpf_num_possible_cpus();
	size_t each;
	int error;

	if (cpus < 1)
		return -EINVAL;
	kern->ring_count = cpus < RINGS_MAX ? cpus : RINGS_MAX;
	each = ring_bytes(bytes, kern->ring_count);
	error = reader_create(kern);
	if (error)
		return error;
	for (__u32 i = 0; i < kern->ring_count; i++) {
		kern->ring[i] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "data_ring", 0, 0, each, NULL);
		if (kern->ring[i] < 0)
			return -errno;
		error = ring_buffer__add(kern->reader, kern->ring[i], on_record, kern);
		if (error)
			return error;
	}
	return rings_publish(kern);
}

void rings_free(struct kern *kern)
{
	ring_buffer__free(kern->reader);
	kern->reader = NULL;
	for (unsigned int i = 0; i < RINGS_MAX; i++) {
		if (kern->ring[i] >= 0)
			close(kern->ring[i]);
		kern->ring[i] = -1;
	}
}

int kern_ring_descriptor(const struct kern *kern)
{
	return ring_buffer__epoll_fd(kern->reader);
}

int kern_drain(struct kern *kern, kern_record_fn visit, void *context)
{
	struct xpt_record_header pass = { .kind = XPT_RECORD_PASS, .size = sizeof(pass) };
	int error;

	pass.time = clock_monotonic();
	error = visit(context, &pass);
	if (error)
		return error;
	kern->visit = visit;
	kern->visit_context = context;
	kern->visited = 0;
	error = ring_buffer__consume(kern->reader);
	return error < 0 ? error : kern->visited;
}

int kern_losses(struct kern *kern, __u64 losses[XPT_LOSS_MAX])
{
	int cpus = libbpf_num_possible_cpus();
	__u64 *values;

	if (cpus < 1)
		return -EINVAL;
	values = calloc(cpus, sizeof(*values));
	if (!values)
		return -ENOMEM;
	for (__u32 cause = 0; cause < XPT_LOSS_MAX; cause++) {
		losses[cause] = 0;
		if (bpf_map_lookup_elem(bpf_map__fd(kern->main->maps.losses), &cause, values))
			continue;
		for (int cpu = 0; cpu < cpus; cpu++)
			losses[cause] += values[cpu];
	}
	losses[XPT_LOSS_RING_FULL] += kern->malformed;
	losses[XPT_LOSS_NESTED] += events_missed(kern);
	free(values);
	return 0;
}

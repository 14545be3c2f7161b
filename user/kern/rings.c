/* SPDX-License-Identifier: BSD-2-Clause */
/* Rings and loss counters: what comes back from the kernel by itself. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/core/clock.h"
#include "kern/private.h"

#define RING_MIN (64 * 1024)
#define LATE_MAX 1000000000ull /* ns that a record may be late, if others are to be ordered by it */

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
	__u32 keys[XPT_RINGS_MAX], count = kern->ring_count;

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

static int position_add(struct kern *kern, int ring)
{
	const long page = sysconf(_SC_PAGESIZE);
	void *pages = mmap(NULL, 2 * page, PROT_READ, MAP_SHARED, ring, 0);

	if (pages == MAP_FAILED)
		return -errno;
	kern->positions[kern->position_count++] = (struct ring_position){ .reader = pages, .writers = pages + page };
	return 0;
}

/*
 * Whether all that had a place in a ring at the latest PASS record has been read. A thread that the kernel preempts while it
 * writes its record keeps the reader from what others have written behind it.
 */
static bool all_read(const struct kern *kern)
{
	for (unsigned int i = 0; i < kern->position_count; i++) {
		const struct ring_position *position = &kern->positions[i];

		if (__atomic_load_n(position->reader, __ATOMIC_ACQUIRE) < position->reserved)
			return false;
	}
	return true;
}

/* Rings are emptied in the order in which they are added. */
static int reader_add(struct kern *kern, struct ring_buffer **reader, int ring)
{
	int error = reader == &kern->stack_reader ? 0 : position_add(kern, ring);

	if (error)
		return error;
	if (*reader)
		return ring_buffer__add(*reader, ring, on_record, kern);
	*reader = ring_buffer__new(ring, on_record, kern, NULL);
	return *reader ? 0 : -errno;
}

int rings_create(struct kern *kern, size_t bytes)
{
	int cpus = libbpf_num_possible_cpus(), error = 0;
	size_t each;

	if (cpus < 1)
		return -EINVAL;
	kern->ring_count = cpus < XPT_RINGS_MAX ? cpus : XPT_RINGS_MAX;
	each = ring_bytes(bytes, kern->ring_count);
	if (kern->codes) /* a code object comes before the call that gave it */
		error = reader_add(kern, &kern->control_reader, bpf_map__fd(kern->codes->maps.code_ring));
	if (!error)
		error = reader_add(kern, &kern->control_reader, bpf_map__fd(kern->main->maps.control_ring));
	/* Of maps that are not created, libbpf 1.4 and later have descriptors, too. */
	if (!error && bpf_map__autocreate(kern->main->maps.stack_ring))
		error = reader_add(kern, &kern->stack_reader, bpf_map__fd(kern->main->maps.stack_ring));
	if (error)
		return error;
	for (__u32 i = 0; i < kern->ring_count; i++) {
		kern->ring[i] = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "data_ring", 0, 0, each, NULL);
		if (kern->ring[i] < 0)
			return -errno;
		error = reader_add(kern, &kern->data_reader, kern->ring[i]);
		if (error)
			return error;
	}
	return rings_publish(kern);
}

void rings_free(struct kern *kern)
{
	ring_buffer__free(kern->control_reader);
	ring_buffer__free(kern->data_reader);
	ring_buffer__free(kern->stack_reader);
	kern->control_reader = kern->data_reader = kern->stack_reader = NULL;
	while (kern->position_count)
		munmap((void *)kern->positions[--kern->position_count].reader, 2 * sysconf(_SC_PAGESIZE));
	for (unsigned int i = 0; i < XPT_RINGS_MAX; i++) {
		if (kern->ring[i] >= 0)
			close(kern->ring[i]);
		kern->ring[i] = -1;
	}
}

int kern_control_descriptor(const struct kern *kern)
{
	return ring_buffer__epoll_fd(kern->control_reader);
}

int kern_data_descriptor(const struct kern *kern)
{
	return ring_buffer__epoll_fd(kern->data_reader);
}

static int drain(struct kern *kern, struct ring_buffer *reader, kern_record_fn visit, void *context)
{
	int error;

	kern->visit = visit;
	kern->visit_context = context;
	kern->visited = 0;
	error = ring_buffer__consume(reader);
	return error < 0 ? error : kern->visited;
}

int kern_drain_control(struct kern *kern, kern_record_fn visit, void *context)
{
	const struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, clock_monotonic() };
	int error = 0;

	/* What follows may be older than what has been read from other rings: it is not complete yet. */
	if (all_read(kern) || pass.time - kern->passed > LATE_MAX) {
		kern->passed = pass.time;
		for (unsigned int i = 0; i < kern->position_count; i++)
			kern->positions[i].reserved = __atomic_load_n(kern->positions[i].writers, __ATOMIC_ACQUIRE);
		error = visit(context, &pass);
	}
	return error ?: drain(kern, kern->control_reader, visit, context);
}

int kern_drain_data(struct kern *kern, kern_record_fn visit, void *context)
{
	return drain(kern, kern->data_reader, visit, context);
}

int kern_drain_stacks(struct kern *kern, kern_record_fn visit, void *context)
{
	return kern->stack_reader ? drain(kern, kern->stack_reader, visit, context) : 0;
}

void kern_set_python(struct kern *kern, pid_t tgid, const struct xpt_python *python)
{
	int map = bpf_map__fd(kern->main->maps.pythons);
	__u32 key = (__u32)tgid;

	if (!bpf_map__autocreate(kern->main->maps.pythons))
		return;
	if (python)
		bpf_map_update_elem(map, &key, python, BPF_ANY);
	else
		bpf_map_delete_elem(map, &key);
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

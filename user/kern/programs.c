/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's table of programs: exact counts, and the sampling rate of each. */
#include <errno.h>
#include <stdlib.h>

#include <bpf/bpf.h>

#include "kern/private.h"

#define BATCH 1024 /* entries fetched by one system call; a bucket of the table must fit */

struct entries {
	struct xpt_program_key *keys;
	struct xpt_program_entry *values;
	size_t count, room;
};

static void entries_free(struct entries *entries)
{
	free(entries->keys);
	free(entries->values);
}

static int entries_grow(struct entries *entries)
{
	size_t room = entries->room ? entries->room * 2 : 2 * BATCH;
	struct xpt_program_key *keys = realloc(entries->keys, room * sizeof(*keys));
	struct xpt_program_entry *values;

	if (!keys)
		return -ENOMEM;
	entries->keys = keys;
	values = realloc(entries->values, room * sizeof(*values));
	if (!values)
		return -ENOMEM;
	entries->values = values;
	entries->room = room;
	return 0;
}

/* The table as it is while it is being walked: buckets are read one after the other. */
static int entries_read(int map, struct entries *entries)
{
	__u32 position, *from = NULL, count;
	int error = 0, more = 0;

	while (!more) {
		if (entries->room - entries->count < BATCH) {
			error = entries_grow(entries);
			if (error)
				return error;
		}
		count = BATCH;
		more = bpf_map_lookup_batch(map, from, &position, entries->keys + entries->count,
					    entries->values + entries->count, &count, NULL);
		if (more && more != -ENOENT)
			return more;
		entries->count += count;
		from = &position;
	}
	return 0;
}

int kern_counts(struct kern *kern, kern_count_fn visit, void *context)
{
	struct entries entries = {};
	int error = entries_read(bpf_map__fd(kern->main->maps.programs), &entries);

	for (size_t i = 0; i < entries.count && !error; i++)
		error = visit(context, &entries.keys[i], &entries.values[i]);
	entries_free(&entries);
	return error;
}

int kern_take_counts(struct kern *kern, pid_t tgid, kern_count_fn visit, void *context)
{
	int map = bpf_map__fd(kern->main->maps.programs), error;
	struct entries entries = {};

	error = entries_read(map, &entries);
	for (size_t i = 0; i < entries.count && !error; i++) {
		if (tgid && entries.keys[i].tgid != (__u32)tgid)
			continue;
		if (bpf_map_lookup_elem(map, &entries.keys[i], &entries.values[i]))
			continue;
		error = visit(context, &entries.keys[i], &entries.values[i]);
		bpf_map_delete_elem(map, &entries.keys[i]);
	}
	entries_free(&entries);
	return error;
}

static int settings_write(struct kern *kern)
{
	__u32 zero = 0;

	return bpf_map_update_elem(bpf_map__fd(kern->main->maps.settings), &zero, &kern->settings, BPF_ANY);
}

int kern_set_defaults(struct kern *kern, __u32 sample_every, __u32 roles)
{
	kern->settings.sample_every = sample_every;
	kern->settings.roles = roles;
	return settings_write(kern);
}

int kern_set_capture(struct kern *kern, enum xpt_capture capture)
{
	kern->settings.capture = capture;
	return settings_write(kern);
}

int kern_family_adopt(struct kern *kern)
{
	kern->settings.family = 1;
	return settings_write(kern);
}

int kern_set_sampling(struct kern *kern, const struct xpt_program_key *key, __u32 sample_every, __u64 seen)
{
	struct xpt_sampling sampling = { .key = *key, .seen = seen, .sample_every = sample_every };
	LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &sampling, .ctx_size_in = sizeof(sampling));
	int error = bpf_prog_test_run_opts(bpf_program__fd(kern->main->progs.set_sampling), &options);

	if (error)
		return error;
	return options.retval ? -ESTALE : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the maps of the kernel side hold: settings, specs, followed processes, counts; and the memory that is shared. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/file/file.h"
#include "kern/private.h"

#define KERNEL_MINOR_BITS 20 /* of a device number inside the kernel */

static int map_set(const struct bpf_map *map, __u32 key, const void *value)
{
	return bpf_map_update_elem(bpf_map__fd(map), &key, value, BPF_ANY);
}

/* ---- settings ---- */

int settings_write(struct kern *kern, const struct xpt_config *settings)
{
	return map_set(kern->main->maps.settings, 0, settings);
}

int kern_set_defaults(struct kern *kern, __u32 sample_every, __u32 roles)
{
	kern->settings.sample_every = sample_every;
	kern->settings.roles = roles;
	return settings_write(kern, &kern->settings);
}

int kern_set_capture(struct kern *kern, enum xpt_capture capture)
{
	kern->settings.capture = capture;
	return settings_write(kern, &kern->settings);
}

int kern_set_idle(struct kern *kern, bool idle)
{
	kern->settings.wakeup_bytes = idle ? 0 : kern->wakeup_bytes;
	return settings_write(kern, &kern->settings);
}

void kern_set_patient(struct kern *kern, bool patient)
{
	__atomic_store_n(&kern->shared->wake_new, patient, __ATOMIC_RELAXED);
}

int kern_family_complete(struct kern *kern)
{
	kern->settings.family = 1;
	return settings_write(kern, &kern->settings);
}

/* ---- specs ---- */

int kern_set_spec(struct kern *kern, const struct xpt_spec *spec)
{
	return map_set(kern->main->maps.specs, spec->index, spec);
}

int kern_set_code(struct kern *kern, const struct xpt_code_spec *spec)
{
	return kern->codes ? map_set(kern->codes->maps.code_specs, spec->index, spec) : -EPERM;
}

int kern_set_event(struct kern *kern, const struct xpt_event_spec *spec)
{
	return kern->drivers ? map_set(kern->drivers->maps.event_specs, spec->index, spec) : -EPERM;
}

int kern_set_node(struct kern *kern, dev_t device, __u16 index)
{
	__u32 key = major(device) << KERNEL_MINOR_BITS | minor(device);
	struct xpt_node node = { .index = index };

	return kern->drivers ? map_set(kern->drivers->maps.nodes, key, &node) : -EPERM;
}

/* The map refers to the perf events from then on: who has opened them may close them. */
static int slots_fill(int map, const struct kern_options *options)
{
	__u32 count = options->slots * options->slot_cpus;
	int error = 0;

	for (__u32 i = 0; i < count && !error; i++)
		if (options->slot_events[i] >= 0)
			error = bpf_map_update_elem(map, &i, &options->slot_events[i], BPF_ANY);
	return error;
}

int slots_create(struct kern *kern, const struct kern_options *options)
{
	/* The events stay in it until no program can use it any more, not only until its descriptor is closed. */
	LIBBPF_OPTS(bpf_map_create_opts, map_options, .map_flags = BPF_F_PRESERVE_ELEMS);
	int map, error;

	if (!options->slots)
		return 0;
	map = bpf_map_create(BPF_MAP_TYPE_PERF_EVENT_ARRAY, "counter_events", sizeof(__u32), sizeof(__u32),
			     options->slots * options->slot_cpus, &map_options);
	if (map < 0)
		return map;
	kern->slots = map;
	error = slots_fill(map, options);
	return error ?: map_set(kern->main->maps.counter_sets, 0, &map);
}

int slots_renew(struct kern *kern, unsigned int cpu, const int *events)
{
	const struct xpt_config *settings = &kern->settings;
	int error = 0;

	for (__u32 slot = 0; slot < settings->slots && cpu < settings->slot_cpus && !error; slot++) {
		__u32 key = slot * settings->slot_cpus + cpu;

		if (events[slot] >= 0)
			error = bpf_map_update_elem(kern->slots, &key, &events[slot], BPF_ANY);
	}
	return error;
}

/* ---- programs: exact counts, and the sampling rate of each ---- */

/* The entry as it is now, unless no program has it or another one has got it meanwhile. */
static bool entry_copy(const struct xpt_program_entry *entry, struct xpt_program_entry *copy)
{
	copy->key = entry->key;
	if (!copy->key.tgid)
		return false;
	copy->since = __atomic_load_n(&entry->since, __ATOMIC_ACQUIRE);
	copy->count.calls = __atomic_load_n(&entry->count.calls, __ATOMIC_ACQUIRE);
	copy->count.left_out = __atomic_load_n(&entry->count.left_out, __ATOMIC_ACQUIRE);
	copy->count.lost = __atomic_load_n(&entry->count.lost, __ATOMIC_ACQUIRE);
	copy->count.layers = __atomic_load_n(&entry->count.layers, __ATOMIC_ACQUIRE);
	copy->rate = __atomic_load_n(&entry->rate, __ATOMIC_ACQUIRE);
	copy->next = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE);
	return !memcmp((const void *)&entry->key, &copy->key, sizeof(copy->key));
}

/* Entries up to this may be in use. */
static __u32 entries_used(const struct kern *kern)
{
	__u64 used = __atomic_load_n(&kern->shared->used_entries, __ATOMIC_ACQUIRE);

	return used < XPT_PROGRAMS_MAX ? used : XPT_PROGRAMS_MAX;
}

int kern_counts(struct kern *kern, kern_count_fn visit, void *context)
{
	__u32 used = entries_used(kern);
	struct xpt_program_entry entry;
	int error = 0;

	for (__u32 i = 1; i <= used && !error; i++)
		if (entry_copy(&kern->entries[i], &entry))
			error = visit(context, &entry);
	return error;
}

/* The entry becomes free. As entry_release() in bpf/programs.bpf.h. */
static void entry_release(struct kern *kern, __u32 index)
{
	__u64 *list = &kern->shared->free_entries, before = __atomic_load_n(list, __ATOMIC_ACQUIRE);
	struct xpt_program_entry *entry = &kern->entries[index];

	__atomic_store_n(&entry->key.tgid, 0, __ATOMIC_RELEASE);
	do
		__atomic_store_n(&entry->next, (__u32)before, __ATOMIC_RELEASE);
	while (!__atomic_compare_exchange_n(list, &before, ((before >> 32) + 1) << 32 | index, false, __ATOMIC_ACQ_REL,
					    __ATOMIC_ACQUIRE));
}

int kern_take_counts(struct kern *kern, pid_t tgid, kern_count_fn visit, void *context)
{
	int map = bpf_map__fd(kern->main->maps.programs), error = 0;
	__u32 used = entries_used(kern);
	struct xpt_program_entry entry;

	for (__u32 i = 1; i <= used && !error; i++) {
		if (!entry_copy(&kern->entries[i], &entry) || (tgid && entry.key.tgid != (__u32)tgid))
			continue;
		error = visit(context, &entry);
		if (!bpf_map_delete_elem(map, &entry.key))
			entry_release(kern, i);
	}
	return error;
}

int kern_set_sampling(struct kern *kern, const struct xpt_program_key *key, __u32 sample_every, __u64 seen)
{
	struct xpt_program_entry *entry;
	__u32 index, before;

	if (bpf_map_lookup_elem(bpf_map__fd(kern->main->maps.programs), key, &index))
		return -ESTALE;
	entry = &kern->entries[index];
	before = __atomic_load_n(&entry->rate, __ATOMIC_ACQUIRE);
	/* Another program that gets the entry from here on has changed it when it has the key. */
	if (memcmp((const void *)&entry->key, key, sizeof(*key)) ||
	    __atomic_load_n(&entry->since, __ATOMIC_ACQUIRE) > seen ||
	    !__atomic_compare_exchange_n(&entry->rate, &before,
					 (before & ~XPT_RATE_MASK) | (sample_every & XPT_RATE_MASK), false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return -ESTALE;
	return 0;
}

int kern_set_factor(struct kern *kern, const struct xpt_program_key *key, __u32 factor)
{
	struct xpt_program_entry *entry;
	__u32 index, before;

	if (bpf_map_lookup_elem(bpf_map__fd(kern->main->maps.programs), key, &index))
		return -ESTALE;
	entry = &kern->entries[index];
	before = __atomic_load_n(&entry->next, __ATOMIC_ACQUIRE);
	if (memcmp((const void *)&entry->key, key, sizeof(*key)))
		return -ESTALE;
	/* Only the kernel side changes it meanwhile: it has taken the next one, or released the entry. */
	if (!__atomic_compare_exchange_n(&entry->next, &before, factor | XPT_TAKE_NEXT, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return -ESTALE;
	return 0;
}

__u64 kern_ended_time(const struct kern *kern)
{
	return __atomic_load_n(&kern->shared->ended_ns, __ATOMIC_RELAXED);
}

__u64 kern_hits(const struct kern *kern, __u32 counter)
{
	__u64 hits = 0;

	for (__u32 shard = 0; shard < kern->hit_shards; shard++)
		hits += __atomic_load_n(&kern->hits[(size_t)shard * XPT_HITS_MAX + counter], __ATOMIC_RELAXED);
	return hits;
}

/* ---- processes ---- */

void kern_forget_callers(struct kern *kern, pid_t tgid)
{
	int map = bpf_map__fd(kern->main->maps.callers);
	struct caller {
		__u32 tgid, callback;
		__u64 address;
	} key, next;
	bool more = !bpf_map_get_next_key(map, NULL, &next);

	while (more) {
		key = next;
		more = !bpf_map_get_next_key(map, &key, &next);
		if (key.tgid == (__u32)tgid)
			bpf_map_delete_elem(map, &key);
	}
}

bool kern_follows(const struct kern *kern, pid_t tgid)
{
	__u32 key = tgid, one;

	return kern_family_has(kern, tgid) || !bpf_map_lookup_elem(bpf_map__fd(kern->main->maps.processes), &key, &one);
}

int kern_follow(struct kern *kern, pid_t tgid)
{
	__u32 one = 1;

	return map_set(kern->main->maps.processes, tgid, &one);
}

void kern_unfollow(struct kern *kern, pid_t tgid)
{
	__u32 key = tgid;

	bpf_map_delete_elem(bpf_map__fd(kern->main->maps.processes), &key);
}

/*
 * How often the kernel has not run the program, as it was running already on that CPU: in what an interrupt had taken over, or,
 * since Linux 7.0, what another thread had.
 */
static __u64 runs_missed(const struct bpf_program *program)
{
	struct bpf_prog_info info = {};
	__u32 size = sizeof(info);

	return bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) ? 0 : info.recursion_misses;
}

__u64 events_missed(const struct kern *kern)
{
	__u64 missed = runs_missed(kern->main->progs.process_fork) + runs_missed(kern->main->progs.process_exec);

	return missed + (kern->drivers ? runs_missed(kern->drivers->progs.driver_event) : 0);
}

__u64 kern_tasks_missed(const struct kern *kern)
{
	return runs_missed(kern->main->progs.process_fork) + runs_missed(kern->main->progs.process_exec) +
	       runs_missed(kern->main->progs.process_exit);
}

/* ---- shared memory: answers to waiting threads, and the members of the family ---- */

static size_t map_bytes(const struct bpf_map *map)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t bytes = (size_t)bpf_map__max_entries(map) * XPT_ALIGN8(bpf_map__value_size(map));

	return (bytes + page - 1) / page * page;
}

static int map_memory(const struct bpf_map *map, void **memory)
{
	void *address = mmap(NULL, map_bytes(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (address == MAP_FAILED)
		return -errno;
	*memory = address;
	return 0;
}

int shared_map(struct kern *kern)
{
	int error = map_memory(kern->main->maps.shared_state, (void **)&kern->shared);

	if (!error)
		error = map_memory(kern->main->maps.wait_answers, (void **)&kern->answers);
	if (!error)
		error = map_memory(kern->main->maps.program_entries, (void **)&kern->entries);
	if (!error && kern->hit_shards)
		error = map_memory(kern->main->maps.site_hits, (void **)&kern->hits);
	return error ?: map_memory(kern->main->maps.family, (void **)&kern->family);
}

void shared_unmap(struct kern *kern)
{
	if (kern->shared)
		munmap(kern->shared, map_bytes(kern->main->maps.shared_state));
	if (kern->answers)
		munmap(kern->answers, map_bytes(kern->main->maps.wait_answers));
	if (kern->family)
		munmap(kern->family, map_bytes(kern->main->maps.family));
	if (kern->entries)
		munmap(kern->entries, map_bytes(kern->main->maps.program_entries));
	if (kern->hits)
		munmap(kern->hits, map_bytes(kern->main->maps.site_hits));
	kern->shared = NULL;
	kern->answers = NULL;
	kern->entries = NULL;
	kern->hits = NULL;
	kern->family = NULL;
}

bool kern_waits(const struct kern *kern, __u64 ticket)
{
	return (__s64)(__atomic_load_n(&kern->answers[ticket % XPT_WAIT_SLOTS], __ATOMIC_ACQUIRE) - 2 * ticket) < 0;
}

bool kern_answer(struct kern *kern, __u64 ticket)
{
	__u64 *slot = &kern->answers[ticket % XPT_WAIT_SLOTS], before = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

	/* The value of a slot never decreases: a later ticket with the same one answers this one, too. */
	while ((__s64)(before - 2 * ticket) < 0) {
		if (__atomic_compare_exchange_n(slot, &before, 2 * ticket, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			return true;
	}
	return false;
}

void kern_note_cpu(struct kern *kern)
{
	int cpu = sched_getcpu();

	if (kern->shared)
		__atomic_store_n(&kern->shared->cpu, cpu < 0 ? 0 : cpu + 1, __ATOMIC_RELAXED);
}

static struct xpt_family *family_word(const struct kern *kern, pid_t tgid)
{
	return &kern->family[tgid / 64 % XPT_FAMILY_WORDS];
}

static __u64 family_bit(pid_t tgid)
{
	return 1ull << (tgid % 64);
}

void kern_family_add(struct kern *kern, pid_t tgid)
{
	__u64 bit = family_bit(tgid);

	if (!(__atomic_fetch_or(&family_word(kern, tgid)->member, bit, __ATOMIC_ACQ_REL) & bit))
		__atomic_fetch_add(&kern->shared->members, 1, __ATOMIC_ACQ_REL);
}

void kern_family_own(struct kern *kern, pid_t tgid)
{
	__atomic_fetch_or(&family_word(kern, tgid)->own, family_bit(tgid), __ATOMIC_ACQ_REL);
}

void kern_family_private(struct kern *kern, pid_t tgid)
{
	kern_family_own(kern, tgid);
	__atomic_fetch_or(&family_word(kern, tgid)->private, family_bit(tgid), __ATOMIC_ACQ_REL);
}

void kern_family_remove(struct kern *kern, pid_t tgid)
{
	struct xpt_family *word = family_word(kern, tgid);
	__u64 bit = family_bit(tgid);

	__atomic_fetch_and(&word->own, ~bit, __ATOMIC_ACQ_REL);
	__atomic_fetch_and(&word->private, ~bit, __ATOMIC_ACQ_REL);
	__atomic_fetch_and(&word->reported, ~bit, __ATOMIC_ACQ_REL);
	__atomic_fetch_and(&word->active, ~bit, __ATOMIC_ACQ_REL);
	if (__atomic_fetch_and(&word->member, ~bit, __ATOMIC_ACQ_REL) & bit)
		__atomic_fetch_sub(&kern->shared->members, 1, __ATOMIC_ACQ_REL);
}

bool kern_family_has(const struct kern *kern, pid_t tgid)
{
	return __atomic_load_n(&family_word(kern, tgid)->member, __ATOMIC_ACQUIRE) & family_bit(tgid);
}

pid_t kern_family_next(const struct kern *kern, pid_t after)
{
	size_t first = ((size_t)after + 1) / 64;

	for (size_t i = first; i < XPT_FAMILY_WORDS; i++) {
		__u64 members = __atomic_load_n(&kern->family[i].member, __ATOMIC_ACQUIRE);

		if (i == first)
			members &= ~0ull << ((after + 1) % 64);
		if (members)
			return (pid_t)(64 * i) + __builtin_ctzll(members);
	}
	return 0;
}

__u64 kern_family_members(const struct kern *kern)
{
	return __atomic_load_n(&kern->shared->members, __ATOMIC_ACQUIRE);
}

/* ---- mappings ---- */

static int find_mapping(int mappings, __u64 start, struct xpt_mapping *mapping)
{
	size_t done;
	int error;

	do
		error = file_read(mappings, mapping, sizeof(*mapping), &done);
	while (!error && done == sizeof(*mapping) && mapping->start != start);
	return error ?: done == sizeof(*mapping) && mapping->device ? 0 : -ENOENT;
}

int kern_mapping(const struct kern *kern, pid_t tgid, __u64 start, dev_t *device, bool *is_fuse)
{
	union {
		union bpf_iter_link_info kernel;
		__u32 words[4]; /* distributions' headers may be too old for it: thread, process, pidfd */
	} which = { .words = { 0, tgid } };
	LIBBPF_OPTS(bpf_iter_attach_opts, options, .link_info = &which.kernel, .link_info_len = sizeof(which));
	struct bpf_link *link = bpf_program__attach_iter(kern->main->progs.process_mappings, &options);
	struct xpt_mapping mapping;
	int mappings, error;

	if (!link)
		return -errno;
	mappings = bpf_iter_create(bpf_link__fd(link));
	error = mappings < 0 ? mappings : find_mapping(mappings, start, &mapping);
	if (mappings >= 0)
		close(mappings);
	bpf_link__destroy(link);
	if (error)
		return error;
	*device = makedev(mapping.device >> KERNEL_MINOR_BITS, mapping.device & ((1u << KERNEL_MINOR_BITS) - 1));
	*is_fuse = mapping.is_fuse;
	return 0;
}

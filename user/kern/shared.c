/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the kernel side and user space share: answers to threads that wait, and who is of the family. */
#include <errno.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kern/private.h"

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
	kern->shared = NULL;
	kern->answers = NULL;
	kern->family = NULL;
}

bool kern_answer(struct kern *kern, __u64 ticket)
{
	__u64 *slot = &kern->answers[ticket % XPT_WAIT_SLOTS], before = __atomic_load_n(slot, __ATOMIC_ACQUIRE);

	/* A slot never goes back: a later ticket with the same one answers this one, too. */
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

static __u64 *family_members(const struct kern *kern, pid_t tgid)
{
	return &kern->family[tgid / 64 % XPT_FAMILY_WORDS].member;
}

void kern_family_add(struct kern *kern, pid_t tgid)
{
	__u64 bit = 1ull << (tgid % 64);

	if (!(__atomic_fetch_or(family_members(kern, tgid), bit, __ATOMIC_ACQ_REL) & bit))
		__atomic_fetch_add(&kern->shared->members, 1, __ATOMIC_ACQ_REL);
}

void kern_family_remove(struct kern *kern, pid_t tgid)
{
	__u64 bit = 1ull << (tgid % 64);

	if (__atomic_fetch_and(family_members(kern, tgid), ~bit, __ATOMIC_ACQ_REL) & bit)
		__atomic_fetch_sub(&kern->shared->members, 1, __ATOMIC_ACQ_REL);
}

bool kern_family_has(const struct kern *kern, pid_t tgid)
{
	return __atomic_load_n(family_members(kern, tgid), __ATOMIC_ACQUIRE) >> (tgid % 64) & 1;
}

__u64 kern_family_members(const struct kern *kern)
{
	return __atomic_load_n(&kern->shared->members, __ATOMIC_ACQUIRE);
}

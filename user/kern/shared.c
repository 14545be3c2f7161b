/* SPDX-License-Identifier: BSD-2-Clause */
/* Memory that the kernel side and user space share: answers to waiting threads, and the members of the family. */
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

void kern_family_remove(struct kern *kern, pid_t tgid)
{
	struct xpt_family *word = family_word(kern, tgid);
	__u64 bit = family_bit(tgid);

	__atomic_fetch_and(&word->own, ~bit, __ATOMIC_ACQ_REL);
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

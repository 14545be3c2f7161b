/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/memory.h"

#include <errno.h>
#include <stdlib.h>

struct memory_pool {
	struct keyed keyed; /* by process and runtime */
	unsigned int index;
	__u32 tgid;
	const char *runtime;
	__u64 bytes;
};

struct allocation {
	struct keyed keyed; /* by pool and address */
	__u64 size;
	__u64 since; /* the call that made it returned */
};

static void allocation_release(void *context, struct keyed *entry)
{
	(void)context;
	free(container_of(entry, struct allocation, keyed));
}

static void pool_emit(struct memory *memory, const struct memory_pool *pool, __u64 time)
{
	const struct event event = { .kind = EVENT_COUNTER,
				     .counter = { .tgid = pool->tgid,
						  .time = time,
						  .runtime = pool->runtime,
						  .name = "device memory",
						  .value = (__s64)pool->bytes } };

	event_dispatch_emit(memory->events, &event);
}

static void pool_release(void *context, struct keyed *entry)
{
	struct memory_pool *pool = container_of(entry, struct memory_pool, keyed);
	struct memory *memory = context;
	const bool held = pool->bytes;

	keyed_drop_owner(&memory->allocations, pool->index);
	pool->bytes = 0;
	if (held)
		pool_emit(memory, pool, memory->ended);
	free(pool);
}

void memory_init(struct memory *memory, struct event_dispatch *events)
{
	*memory = (struct memory){ .events = events, .next_pool = 1 };
	keyed_init(&memory->pools, MEMORY_POOLS_MAX, pool_release, memory);
	keyed_init(&memory->allocations, MEMORY_ALLOCATIONS_MAX, allocation_release, NULL);
}

static struct memory_pool *pool_find(const struct memory *memory, const struct process *process, unsigned int runtime)
{
	struct keyed *entry = keyed_find(&memory->pools, process->view.sort_index, runtime);

	return entry ? container_of(entry, struct memory_pool, keyed) : NULL;
}

static struct memory_pool *pool_add(struct memory *memory, const struct process *process,
				    const struct model_function *function)
{
	const unsigned int index = process->view.sort_index;
	struct memory_pool *pool = calloc(1, sizeof(*pool));

	if (!pool || keyed_add(&memory->pools, &pool->keyed, index, index, function->runtime_index)) {
		free(pool);
		return NULL;
	}
	pool->index = memory->next_pool++;
	pool->tgid = process->view.tgid;
	pool->runtime = function->runtime;
	return pool;
}

static struct allocation *allocation_find(const struct memory *memory, const struct memory_pool *pool, __u64 address)
{
	struct keyed *entry = keyed_find(&memory->allocations, pool->index, address);

	return entry ? container_of(entry, struct allocation, keyed) : NULL;
}

static void allocation_remove(struct memory *memory, struct memory_pool *pool, struct allocation *allocation)
{
	pool->bytes -= allocation->size;
	keyed_drop(&memory->allocations, &allocation->keyed);
}

static bool call_moved_memory(const struct event_call *call)
{
	return call_has(call, XPT_MEANING_ADDRESS) && call->outcome != OUTCOME_FAILED &&
	       call->outcome != OUTCOME_PENDING;
}

int memory_take(struct memory *memory, const struct process *process, const struct event_call *call)
{
	struct memory_pool *pool = pool_find(memory, process, call->function->runtime_index);
	struct allocation *allocation;

	if (!call_moved_memory(call) || !call->address || !call_has(call, XPT_MEANING_SIZE))
		return 0;
	/* The same address again: giving it back was not seen. */
	allocation = pool ? allocation_find(memory, pool, call->address) : NULL;
	if (allocation)
		allocation_remove(memory, pool, allocation);
	if (keyed_full(&memory->allocations) || (!pool && keyed_full(&memory->pools))) {
		event_dispatch_lose(memory->events, XPT_LOSS_NAMES, 1, call->end);
		return 0;
	}
	if (!pool)
		pool = pool_add(memory, process, call->function);
	if (!pool)
		return -ENOMEM;
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation ||
	    keyed_add(&memory->allocations, &allocation->keyed, pool->index, pool->index, call->address)) {
		free(allocation);
		return -ENOMEM;
	}
	allocation->size = call->size;
	allocation->since = call->end;
	pool->bytes += call->size;
	pool_emit(memory, pool, call->end);
	return 0;
}

void memory_give(struct memory *memory, const struct process *process, const struct event_call *call)
{
	struct memory_pool *pool = pool_find(memory, process, call->function->runtime_index);
	struct allocation *allocation;

	if (!pool || !call_moved_memory(call))
		return;
	allocation = allocation_find(memory, pool, call->address);
	/* Taken again by another thread before this call had returned: what it freed is removed already. */
	if (!allocation || allocation->since > call->start)
		return;
	allocation_remove(memory, pool, allocation);
	pool_emit(memory, pool, call->end);
}

void memory_drop_process(struct memory *memory, const struct process *process, __u64 time)
{
	memory->ended = time;
	keyed_drop_owner(&memory->pools, process->view.sort_index);
}

void memory_free(struct memory *memory)
{
	struct event_dispatch silent = {};

	memory->events = &silent;
	keyed_free(&memory->pools);
	keyed_free(&memory->allocations);
}

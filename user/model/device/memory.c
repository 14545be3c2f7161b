/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/memory.h"

#include <errno.h>
#include <stdlib.h>

struct memory_pool {
	struct map_node node;
	struct link link; /* of all */
	struct link allocations;
	unsigned int index;
	unsigned int process_index;
	__u32 tgid;
	const char *runtime;
	__u64 bytes;
};

struct allocation {
	struct map_node node;
	struct link link; /* of the pool */
	__u64 size;
	__u64 since; /* the call that made it returned */
};

void memory_init(struct memory *memory, struct event_dispatch *events)
{
	*memory = (struct memory){ .events = events, .next_pool = 1 };
	link_init(&memory->all_pools);
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

static struct memory_pool *pool_find(const struct memory *memory, const struct process *process, unsigned int runtime)
{
	struct map_node *node = map_find(&memory->pools, process->view.sort_index, runtime);

	return node ? container_of(node, struct memory_pool, node) : NULL;
}

static struct memory_pool *pool_add(struct memory *memory, const struct process *process,
				    const struct model_function *function)
{
	struct memory_pool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return NULL;
	if (map_add(&memory->pools, &pool->node, process->view.sort_index, function->runtime_index)) {
		free(pool);
		return NULL;
	}
	pool->index = memory->next_pool++;
	pool->process_index = process->view.sort_index;
	pool->tgid = process->view.tgid;
	pool->runtime = function->runtime;
	link_init(&pool->allocations);
	link_append(&memory->all_pools, &pool->link);
	return pool;
}

static struct allocation *allocation_find(const struct memory *memory, const struct memory_pool *pool, __u64 address)
{
	struct map_node *node = map_find(&memory->allocations, pool->index, address);

	return node ? container_of(node, struct allocation, node) : NULL;
}

static void allocation_remove(struct memory *memory, struct memory_pool *pool, struct allocation *allocation)
{
	pool->bytes -= allocation->size;
	map_remove(&memory->allocations, &allocation->node);
	link_remove(&allocation->link);
	free(allocation);
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
	if (memory->allocations.count >= MEMORY_ALLOCATIONS_MAX || (!pool && memory->pools.count >= MEMORY_POOLS_MAX)) {
		event_dispatch_lose(memory->events, XPT_LOSS_NAMES, 1, call->end);
		return 0;
	}
	if (!pool)
		pool = pool_add(memory, process, call->function);
	if (!pool)
		return -ENOMEM;
	allocation = calloc(1, sizeof(*allocation));
	if (!allocation)
		return -ENOMEM;
	if (map_add(&memory->allocations, &allocation->node, pool->index, call->address)) {
		free(allocation);
		return -ENOMEM;
	}
	allocation->size = call->size;
	allocation->since = call->end;
	link_append(&pool->allocations, &allocation->link);
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

static void pool_drop(struct memory *memory, struct memory_pool *pool)
{
	struct link *link, *following;

	link_each(link, following, &pool->allocations)
		allocation_remove(memory, pool, container_of(link, struct allocation, link));
	map_remove(&memory->pools, &pool->node);
	link_remove(&pool->link);
}

void memory_drop_process(struct memory *memory, const struct process *process, __u64 time)
{
	struct link *link, *following;
	struct memory_pool *pool;
	bool held;

	link_each(link, following, &memory->all_pools)
	{
		pool = container_of(link, struct memory_pool, link);
		if (pool->process_index != process->view.sort_index)
			continue;
		held = pool->bytes;
		pool_drop(memory, pool);
		if (held)
			pool_emit(memory, pool, time);
		free(pool);
	}
}

void memory_free(struct memory *memory)
{
	struct link *link, *following;
	struct memory_pool *pool;

	link_each(link, following, &memory->all_pools)
	{
		pool = container_of(link, struct memory_pool, link);
		pool_drop(memory, pool);
		free(pool);
	}
	map_free(&memory->pools);
	map_free(&memory->allocations);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/counters.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"

/* ---- counters that are read ---- */

void counter_samples_init(struct counter_samples *samples, struct event_dispatch *events)
{
	*samples = (struct counter_samples){ .events = events };
}

static void sampled_counter_free(struct sampled_counter *counted)
{
	if (!counted)
		return;
	free((char *)counted->view.name);
	free((char *)counted->view.unit);
	free((char *)counted->view.description);
	free((char *)counted->view.source);
	free((char *)counted->view.of);
	free(counted);
}

void counter_samples_free(struct counter_samples *samples)
{
	for (size_t i = 0; i < samples->count; i++)
		sampled_counter_free(samples->all[i]);
	samples->count = 0;
}

/* Missing: "". */
static int text_get(const cJSON *object, const char *key, const char **result)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));

	*result = strdup(text ? text : "");
	return *result ? 0 : -ENOMEM;
}

static const char *const kinds[] = {
	[MODEL_COUNTER_SUM] = "sum",
	[MODEL_COUNTER_MEAN] = "mean",
	[MODEL_COUNTER_LEVEL] = "level",
};

const char *model_counter_kind_name(enum model_counter_kind kind)
{
	return kinds[kind];
}

static int kind_get(const cJSON *object, enum model_counter_kind *kind)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "kind"));

	for (unsigned int i = 0; text && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i], text))
			continue;
		*kind = (enum model_counter_kind)i;
		return 0;
	}
	return -EBADMSG;
}

/* Missing: it is not read around inferences. */
static int slots_get(const cJSON *object, const struct counter_samples *samples, struct sampled_counter *counted)
{
	const cJSON *slots = cJSON_GetObjectItemCaseSensitive(object, "slots");
	__s64 number = 0;

	if (!slots)
		return 0;
	if (json_integer_get(object, "slots", 0, XPT_SLOT_MAX - samples->slots, &number))
		return -EBADMSG;
	counted->view.slots = (unsigned int)number;
	counted->scale = cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, "scale"));
	counted->each_cpu = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(object, "each_cpu"));
	return isfinite(counted->scale) ? 0 : -EBADMSG;
}

static int sampled_counter_parse(const cJSON *object, struct model_counter *view)
{
	return json_string_get(object, "name", (char **)&view->name)	   ?:
		       kind_get(object, &view->kind)			   ?:
		       text_get(object, "unit", &view->unit)		   ?:
		       text_get(object, "description", &view->description) ?:
		       text_get(object, "source", &view->source)	   ?:
									     text_get(object, "of", &view->of);
}

int counter_samples_add(struct counter_samples *samples, __u64 index, const cJSON *object)
{
	struct sampled_counter *counted;
	int error;

	if (index != samples->count || index >= XPT_COUNTER_MAX)
		return -EBADMSG;
	counted = calloc(1, sizeof(*counted));
	if (!counted)
		return -ENOMEM;
	counted->view.index = (unsigned int)index;
	error = sampled_counter_parse(object, &counted->view) ?: slots_get(object, samples, counted);
	if (error) {
		sampled_counter_free(counted);
		return error;
	}
	samples->all[samples->count++] = counted;
	if (counted->view.slots)
		samples->slotted[samples->slotted_count++] = &counted->view;
	samples->slots += counted->view.slots;
	return 0;
}

/* NaN: not known. */
static double grown_between(const struct sampled_counter *counted, unsigned int first, const struct xpt_counts *begin,
			    const struct xpt_counts *end, bool same_thread)
{
	double sum = 0;

	if ((counted->each_cpu && begin->cpu != end->cpu) || (!same_thread && !strcmp(counted->view.of, "thread")))
		return NAN;
	for (unsigned int slot = first; slot < first + counted->view.slots; slot++) {
		if (!(begin->valid & end->valid & 1u << slot) || end->value[slot] < begin->value[slot])
			return NAN;
		sum += (double)(end->value[slot] - begin->value[slot]);
	}
	return sum * counted->scale;
}

void counter_samples_between(const struct counter_samples *samples, const struct xpt_counts *begin,
			     const struct xpt_counts *end, bool same_thread, __u64 elapsed, struct model_counts *result)
{
	unsigned int slot = 0;

	*result = (struct model_counts){ 0 };
	if (!begin || !end)
		return;
	result->counters = samples->slotted;
	result->count = samples->slotted_count;
	for (unsigned int i = 0; i < result->count; i++) {
		const struct sampled_counter *counted = samples->all[samples->slotted[i]->index];
		double grown = grown_between(counted, slot, begin, end, same_thread);

		/* Of several instances a mean is that of one of them. */
		if (counted->view.kind == MODEL_COUNTER_MEAN)
			grown = elapsed ? grown * 1e9 / (double)elapsed / counted->view.slots : NAN;
		result->value[i] = grown;
		slot += counted->view.slots;
	}
}

static void reading_emit(struct counter_samples *samples, struct sampled_counter *counted, __u64 since, __u64 time,
			 double value)
{
	struct model_counter *view = &counted->view;
	double weight = view->kind == MODEL_COUNTER_LEVEL ? 1 : (double)(time - since);
	const struct event event = { .kind = EVENT_READING,
				     .reading = { .counter = view, .since = since, .time = time, .value = value } };

	if (!view->emitted || value < view->least)
		view->least = value;
	if (!view->emitted || value > view->most)
		view->most = value;
	view->emitted++;
	counted->sum += value * weight;
	counted->weight += weight;
	view->mean = counted->sum / counted->weight;
	event_dispatch_emit(samples->events, &event);
}

static void reading_deliver(struct counter_samples *samples, struct sampled_counter *counted, __u64 time, double value)
{
	bool follows = counted->known && time > counted->time;
	double grown = value - counted->before;

	switch (counted->view.kind) {
	case MODEL_COUNTER_SUM:
		/* A sum that falls has begun anew. */
		if (!follows || grown < 0)
			break;
		counted->view.total += grown;
		reading_emit(samples, counted, counted->time, time, grown * 1e9 / (double)(time - counted->time));
		break;
	case MODEL_COUNTER_MEAN:
		if (follows)
			reading_emit(samples, counted, counted->time, time, value);
		break;
	case MODEL_COUNTER_LEVEL:
		reading_emit(samples, counted, time, time, value);
		break;
	}
	counted->before = value;
	counted->time = time;
	counted->known = true;
}

void counter_samples_deliver(struct counter_samples *samples, const struct xpt_record_reading *record)
{
	double value;

	for (size_t i = 0; i < record->values; i++) {
		memcpy(&value, &record->value[i], sizeof(value));
		if (isfinite(value))
			reading_deliver(samples, samples->all[i], record->header.time, value);
		else
			samples->all[i]->known = false;
	}
}

/* ---- device memory ---- */

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
	keyed_init(&memory->allocations, MEMORY_ALLOCATIONS_MAX, NULL, NULL);
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

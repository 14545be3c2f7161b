/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/operator_hold.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/vec.h"

static __u64 thread_key(__u32 tgid, __u32 tid)
{
	return (__u64)tgid << 32 | tid;
}

/* Of the memory that an inference takes; arrays may have up to as much again in reserve. */
static size_t held_bytes(const struct held_operators *held)
{
	return sizeof(*held) + held->count * sizeof(*held->op) + held->labels.length;
}

void held_operators_free(struct held_operators *held)
{
	if (!held)
		return;
	text_free(&held->labels);
	free(held->op);
	free(held);
}

static void evicted(void *context, struct keyed *entry)
{
	struct held_operators *held = container_of(entry, struct held_operators, keyed);
	struct operator_hold *hold = context;

	hold->dropped += held->count;
	hold->bytes -= held_bytes(held);
	held_operators_free(held);
}

void operator_hold_init(struct operator_hold *hold)
{
	*hold = (struct operator_hold){ 0 };
	keyed_init(&hold->inferences, OPERATOR_HOLD_INFERENCES, evicted, hold);
}

static struct held_operators *find(const struct operator_hold *hold, __u64 thread, __u64 start)
{
	struct keyed *entry = keyed_find(&hold->inferences, thread, start);

	return entry ? container_of(entry, struct held_operators, keyed) : NULL;
}

static struct held_operators *create(struct operator_hold *hold, __u64 thread, __u64 start)
{
	struct held_operators *held = calloc(1, sizeof(*held));

	if (!held || keyed_add(&hold->inferences, &held->keyed, thread, thread, start)) {
		free(held);
		return NULL;
	}
	hold->bytes += held_bytes(held);
	return held;
}

int operator_hold_add(struct operator_hold *hold, const struct event_call *call, const char *label)
{
	const __u64 thread = thread_key(call->tgid, call->tid);
	struct held_operators *held;
	size_t before;

	while (hold->bytes > OPERATOR_HOLD_BYTES)
		keyed_drop(&hold->inferences, keyed_oldest(&hold->inferences));
	held = find(hold, thread, call->inference) ?: create(hold, thread, call->inference);
	if (!held || vec_reserve(held->op, held->count))
		return -ENOMEM;
	before = held_bytes(held);
	held->op[held->count] = (struct held_operator){ call->start, call->end, held->labels.length };
	text_bytes(&held->labels, label, strlen(label) + 1);
	held->count += !held->labels.error;
	hold->bytes += held_bytes(held) - before;
	return held->labels.error;
}

/* Of those that begin together the outer one ends last. */
static int compare(const void *a, const void *b)
{
	const struct held_operator *first = a, *second = b;

	if (first->start != second->start)
		return first->start < second->start ? -1 : 1;
	if (first->end != second->end)
		return first->end > second->end ? -1 : 1;
	return first->label < second->label ? -1 : first->label > second->label;
}

struct held_operators *operator_hold_take(struct operator_hold *hold, __u32 tgid, __u32 tid, __u64 start)
{
	struct held_operators *held = find(hold, thread_key(tgid, tid), start);

	if (!held)
		return NULL;
	hold->bytes -= held_bytes(held);
	keyed_remove(&hold->inferences, &held->keyed);
	if (held->count)
		qsort(held->op, held->count, sizeof(*held->op), compare);
	return held;
}

void operator_hold_free(struct operator_hold *hold)
{
	keyed_free(&hold->inferences);
}

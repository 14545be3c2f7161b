/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/chrome/operator_hold.h"

#include <errno.h>
#include <stdlib.h>

void operator_hold_init(struct operator_hold *hold)
{
	*hold = (struct operator_hold){ 0 };
	link_init(&hold->ages);
}

static __u64 thread_key(__u32 tgid, __u32 tid)
{
	return (__u64)tgid << 32 | tid;
}

/* Of the memory that an inference takes; text may have up to as much again in reserve. */
static size_t held_bytes(const struct held_operators *held)
{
	return sizeof(*held) + held->room * sizeof(*held->op) + held->labels.length;
}

void held_operators_free(struct held_operators *held)
{
	if (!held)
		return;
	text_free(&held->labels);
	free(held->op);
	free(held);
}

static void take_out(struct operator_hold *hold, struct held_operators *held)
{
	map_remove(&hold->inferences, &held->node);
	link_remove(&held->link);
	hold->bytes -= held_bytes(held);
}

static void drop_oldest(struct operator_hold *hold)
{
	struct held_operators *held = container_of(hold->ages.next, struct held_operators, link);

	hold->dropped += held->count;
	take_out(hold, held);
	held_operators_free(held);
}

static struct held_operators *find(const struct operator_hold *hold, __u64 thread, __u64 start)
{
	struct map_node *node = map_find(&hold->inferences, thread, start);

	return node ? container_of(node, struct held_operators, node) : NULL;
}

static struct held_operators *create(struct operator_hold *hold, __u64 thread, __u64 start)
{
	struct held_operators *held = calloc(1, sizeof(*held));

	if (!held || map_add(&hold->inferences, &held->node, thread, start)) {
		free(held);
		return NULL;
	}
	link_append(&hold->ages, &held->link);
	hold->bytes += held_bytes(held);
	return held;
}

static int append(struct held_operators *held, const struct event_call *call, const char *label)
{
	const size_t room = held->room ? 2 * held->room : 16;
	struct held_operator *more;

	if (held->count == held->room) {
		more = reallocarray(held->op, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		held->op = more;
		held->room = room;
	}
	held->op[held->count] = (struct held_operator){ call->start, call->end, held->labels.length };
	text_bytes(&held->labels, label, strlen(label) + 1);
	held->count += !held->labels.error;
	return held->labels.error;
}

int operator_hold_add(struct operator_hold *hold, const struct event_call *call, const char *label)
{
	const __u64 thread = thread_key(call->tgid, call->tid);
	struct held_operators *held;
	size_t before;
	int error;

	while (hold->bytes > OPERATOR_HOLD_BYTES)
		drop_oldest(hold);
	held = find(hold, thread, call->inference);
	if (!held && hold->inferences.count >= OPERATOR_HOLD_INFERENCES)
		drop_oldest(hold);
	held = held ?: create(hold, thread, call->inference);
	if (!held)
		return -ENOMEM;
	before = held_bytes(held);
	error = append(held, call, label);
	hold->bytes += held_bytes(held) - before;
	return error;
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
	take_out(hold, held);
	qsort(held->op, held->count, sizeof(*held->op), compare);
	return held;
}

void operator_hold_free(struct operator_hold *hold)
{
	while (!link_alone(&hold->ages))
		drop_oldest(hold);
	map_free(&hold->inferences);
}

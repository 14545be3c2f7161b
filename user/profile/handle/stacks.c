/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks of the programs in a report: samples with the same stack are one. */
#include <errno.h>
#include <stdlib.h>

#include "base/core/vec.h"
#include "profile/handle/state.h"
#include "report/flame/flame.h"

#define SUMS_MAX 4096 /* different stacks of a row; further ones are together */

static const enum xpt_report_stack_kind kinds[] = {
	[XPT_STACK_CALL] = XPT_REPORT_STACK_CALL,
	[XPT_STACK_OFF_CPU] = XPT_REPORT_STACK_OFF_CPU,
	[XPT_STACK_ON_CPU] = XPT_REPORT_STACK_CPU,
};

#define KINDS (XPT_REPORT_STACK_CPU + 1)

struct sum {
	struct map_node node; /* by stack and kind */
	const struct model_stack *stack;
	enum xpt_report_stack_kind kind;
	__u64 count, time;
};

struct row_stacks {
	struct map by_stack;
	struct sum **sums;
	size_t count;
	struct sum others[KINDS]; /* by kind: what has no room */
	/* What they became: */
	struct xpt_report_stack *view;
	size_t view_count;
	const char **frames;
	struct text names;
};

void row_stacks_free(struct row_stacks *stacks)
{
	if (!stacks)
		return;
	for (size_t i = 0; i < stacks->count; i++)
		free(stacks->sums[i]);
	free(stacks->sums);
	map_free(&stacks->by_stack);
	free(stacks->view);
	free(stacks->frames);
	text_free(&stacks->names);
	free(stacks);
}

/* What the sample weighs, and for how many; false: it is of no inference of its own. */
static bool weigh(const struct event_stack *stack, __u64 *count, __u64 *time)
{
	*count = 1;
	*time = stack->weight;
	if (stack->reason != XPT_STACK_CALL)
		return true;
	*count = stack->weight;
	if (__builtin_mul_overflow(stack->duration, stack->weight, time))
		*time = UINT64_MAX;
	return stack_is_inference(stack) && !stack->inside;
}

/* NULL: no room or no memory. */
static struct sum *sum_add(struct row_stacks *stacks, const struct event_stack *stack, enum xpt_report_stack_kind kind,
			   bool room)
{
	struct sum *sum = room && stacks->count < SUMS_MAX ? calloc(1, sizeof(*sum)) : NULL;

	if (!sum)
		return NULL;
	sum->stack = stack->stack;
	sum->kind = kind;
	if (vec_push(stacks->sums, stacks->count, sum)) {
		free(sum);
		return NULL;
	}
	if (map_add(&stacks->by_stack, &sum->node, (__u64)(uintptr_t)stack->stack, kind)) {
		stacks->count--;
		free(sum);
		return NULL;
	}
	return sum;
}

size_t row_stacks_add(struct row_stacks **of_row, const struct event_stack *stack, bool room)
{
	const enum xpt_report_stack_kind kind = kinds[stack->reason];
	struct row_stacks *stacks = *of_row;
	struct map_node *found;
	struct sum *sum;
	size_t before;
	__u64 count, time;

	if (!weigh(stack, &count, &time))
		return 0;
	if (!stacks)
		stacks = *of_row = calloc(1, sizeof(*stacks));
	if (!stacks)
		return 0;
	before = stacks->count;
	found = map_find(&stacks->by_stack, (__u64)(uintptr_t)stack->stack, kind);
	sum = found ? container_of(found, struct sum, node) : sum_add(stacks, stack, kind, room);
	sum = sum ?: &stacks->others[kind];
	sum->kind = kind;
	sum->count += count;
	if (__builtin_add_overflow(sum->time, time, &sum->time))
		sum->time = UINT64_MAX;
	return stacks->count > before ? sizeof(*sum) + sizeof(struct xpt_report_stack) : 0;
}

static int by_weight(const void *left, const void *right)
{
	const struct sum *a = *(const struct sum *const *)left, *b = *(const struct sum *const *)right;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->time != b->time)
		return a->time > b->time ? -1 : 1;
	return (a->count < b->count) - (a->count > b->count);
}

/* Those with the lowest weights of each kind are together; the first in sums[] stay. How many frames these have. */
static size_t keep_heaviest(struct row_stacks *stacks)
{
	size_t kept = 0, frames = 0, of_kind[KINDS] = {};

	if (stacks->count)
		qsort(stacks->sums, stacks->count, sizeof(struct sum *), by_weight);
	for (size_t i = 0; i < stacks->count; i++) {
		struct sum *sum = stacks->sums[i], *others = &stacks->others[sum->kind];

		if (of_kind[sum->kind]++ < XPT_REPORT_STACKS_MAX) {
			stacks->sums[kept++] = sum;
			frames += sum->stack->count ?: 1;
			continue;
		}
		others->kind = sum->kind;
		others->count += sum->count;
		if (__builtin_add_overflow(others->time, sum->time, &others->time))
			others->time = UINT64_MAX;
		free(sum);
	}
	stacks->count = kept;
	return frames;
}

/* Names of all frames, terminated, one after the other. */
static void name_frames(struct row_stacks *stacks)
{
	for (size_t i = 0; i < stacks->count; i++) {
		const struct model_stack *stack = stacks->sums[i]->stack;

		for (size_t each = 0; each < stack->count; each++) {
			flame_frame_name(&stacks->names, stack->frames[each]);
			text_bytes(&stacks->names, "", 1);
		}
		if (!stack->count)
			text_bytes(&stacks->names, "[unknown]", sizeof("[unknown]"));
	}
}

static void add_others(struct row_stacks *stacks, enum xpt_report_stack_kind kind)
{
	const struct sum *others = &stacks->others[kind];

	if (others->count)
		stacks->view[stacks->view_count++] = (struct xpt_report_stack){ .kind = kind,
										.count = others->count,
										.time = others->time };
}

int row_stacks_finish(struct row_stacks *stacks, struct xpt_program_report *program)
{
	const size_t frame_count = keep_heaviest(stacks);
	enum xpt_report_stack_kind kind = XPT_REPORT_STACK_CALL;
	const char **frame;
	const char *name;

	name_frames(stacks);
	stacks->view = calloc(stacks->count + KINDS, sizeof(*stacks->view));
	stacks->frames = calloc(frame_count ?: 1, sizeof(*stacks->frames));
	if (!stacks->view || !stacks->frames || stacks->names.error)
		return -ENOMEM;
	frame = stacks->frames;
	name = stacks->names.data;
	for (size_t i = 0; i < stacks->count; i++) {
		const struct sum *sum = stacks->sums[i];
		struct xpt_report_stack *view;

		for (; kind < sum->kind; kind++)
			add_others(stacks, kind);
		view = &stacks->view[stacks->view_count++];
		*view = (struct xpt_report_stack){ .kind = sum->kind,
						   .partial = sum->stack->partial,
						   .frames = frame,
						   .frame_count = sum->stack->count ?: 1,
						   .count = sum->count,
						   .time = sum->time };
		for (size_t each = 0; each < view->frame_count; each++) {
			*frame++ = name;
			name += strlen(name) + 1;
		}
	}
	for (; kind < KINDS; kind++)
		add_others(stacks, kind);
	program->stacks = stacks->view;
	program->stack_count = stacks->view_count;
	return 0;
}

size_t row_stacks_bytes(const struct row_stacks *stacks)
{
	return stacks ? stacks->names.capacity : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/coverage.h"

#include <errno.h>
#include <stdlib.h>

#define STRETCHES_MAX 65536 /* kept apart of one inference */
#define ENDED_MAX 8192	    /* operators of one thread kept apart that are in none that has ended */

/* A stretch of time. */
struct stretch {
	__u64 start, end;
};

/* The stretches with an operator of an inference that has not ended: in order, apart from each other. */
struct open_inference {
	struct map_node node; /* by process and begin */
	struct link link;
	__u32 tid; /* of its thread; 0: not known yet */
	struct stretch *stretches;
	size_t count, room;
	__u64 settled; /* ns of earlier stretches, which nothing can reach back to */
};

/* An operator that may be inside one that has not ended. */
struct ended {
	__u64 end, took; /* ns */
};

/*
 * A thread that executes operators. What has ended since an operator began is inside it; what ended before and is still here
 * may be inside of one around it, or was inside of one that has no end.
 */
struct active_thread {
	struct map_node node; /* by process and number */
	struct link link;
	struct ended *ended; /* in order of their ends, none inside another one */
	size_t count, room;
};

void coverage_init(struct coverage *coverage)
{
	link_init(&coverage->open);
	link_init(&coverage->active);
}

static void inference_free(struct coverage *coverage, struct open_inference *inference)
{
	map_remove(&coverage->inferences, &inference->node);
	link_remove(&inference->link);
	coverage->open_count--;
	free(inference->stretches);
	free(inference);
}

static void thread_free(struct coverage *coverage, struct active_thread *thread)
{
	map_remove(&coverage->threads, &thread->node);
	link_remove(&thread->link);
	coverage->active_count--;
	free(thread->ended);
	free(thread);
}

void coverage_free(struct coverage *coverage)
{
	struct link *link, *following;

	link_each(link, following, &coverage->open)
		inference_free(coverage, container_of(link, struct open_inference, link));
	link_each(link, following, &coverage->active)
		thread_free(coverage, container_of(link, struct active_thread, link));
	map_free(&coverage->inferences);
	map_free(&coverage->threads);
}

/*
 * Several threads may begin an inference in the same ns. tid 0: the operator is on another thread, which is known of the only
 * inference that its process had at that time.
 */
static struct open_inference *inference_find(struct coverage *coverage, unsigned int process, __u64 begin, __u32 tid)
{
	for (struct map_node *node = map_find(&coverage->inferences, process, begin); node; node = map_next(node)) {
		struct open_inference *inference = container_of(node, struct open_inference, node);

		if (inference->tid && tid && inference->tid != tid)
			continue;
		inference->tid = inference->tid ?: tid;
		return inference;
	}
	return NULL;
}

static struct open_inference *inference_get(struct coverage *coverage, unsigned int process, __u64 begin, __u32 tid)
{
	struct open_inference *inference = inference_find(coverage, process, begin, tid);

	if (inference)
		return inference;
	if (coverage->open_count >= COVERAGES_MAX)
		inference_free(coverage, container_of(coverage->open.next, struct open_inference, link));
	inference = calloc(1, sizeof(*inference));
	if (!inference || map_add(&coverage->inferences, &inference->node, process, begin)) {
		free(inference);
		return NULL;
	}
	inference->tid = tid;
	link_append(&coverage->open, &inference->link);
	coverage->open_count++;
	return inference;
}

static struct active_thread *thread_get(struct coverage *coverage, const struct coverage_place *place)
{
	struct map_node *node = map_find(&coverage->threads, place->process, place->tid);
	struct active_thread *thread;

	if (node)
		return container_of(node, struct active_thread, node);
	if (coverage->active_count >= COVERAGES_MAX)
		thread_free(coverage, container_of(coverage->active.next, struct active_thread, link));
	thread = calloc(1, sizeof(*thread));
	if (!thread || map_add(&coverage->threads, &thread->node, place->process, place->tid)) {
		free(thread);
		return NULL;
	}
	link_append(&coverage->active, &thread->link);
	coverage->active_count++;
	return thread;
}

/* The older half is added up: operators are much shorter than so many of them. */
static void settle(struct open_inference *inference)
{
	const size_t half = inference->count / 2;

	for (size_t i = 0; i < half; i++)
		inference->settled += inference->stretches[i].end - inference->stretches[i].start;
	for (size_t i = half; i < inference->count; i++)
		inference->stretches[i - half] = inference->stretches[i];
	inference->count -= half;
}

static int make_room(struct open_inference *inference)
{
	struct stretch *more;

	if (inference->count < inference->room)
		return 0;
	if (inference->count >= STRETCHES_MAX) {
		settle(inference);
		return 0;
	}
	more = reallocarray(inference->stretches, inference->room ? 2 * inference->room : 16, sizeof(*more));
	if (!more)
		return -ENOMEM;
	inference->stretches = more;
	inference->room = inference->room ? 2 * inference->room : 16;
	return 0;
}

/* Ends come in order: only the last stretches can touch the new one. */
static int cover(struct open_inference *inference, __u64 start, __u64 end)
{
	int error = make_room(inference);

	if (error)
		return error;
	while (inference->count && inference->stretches[inference->count - 1].end >= start) {
		const struct stretch *last = &inference->stretches[--inference->count];

		start = last->start < start ? last->start : start;
		end = last->end > end ? last->end : end;
	}
	inference->stretches[inference->count++] = (struct stretch){ start, end };
	return 0;
}

/* Takes off what has ended inside the call that began at start. */
static __u64 take_inside(struct active_thread *thread, __u64 start)
{
	__u64 inside = 0;

	while (thread->count && thread->ended[thread->count - 1].end > start)
		inside += thread->ended[--thread->count].took;
	return inside;
}

/* The older half becomes one: where so many are inside one operator, it began before them. */
static void fold(struct active_thread *thread)
{
	const size_t half = thread->count / 2;

	for (size_t i = 1; i < half; i++) {
		thread->ended[0].took += thread->ended[i].took;
		thread->ended[0].end = thread->ended[i].end;
	}
	for (size_t i = half; i < thread->count; i++)
		thread->ended[i - half + 1] = thread->ended[i];
	thread->count -= half - 1;
}

static int note_ended(struct active_thread *thread, __u64 start, __u64 end)
{
	const size_t room = thread->room ? 2 * thread->room : 16;
	struct ended *more;

	if (thread->count >= ENDED_MAX)
		fold(thread);
	if (thread->count == thread->room) {
		more = reallocarray(thread->ended, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		thread->ended = more;
		thread->room = room;
	}
	thread->ended[thread->count++] = (struct ended){ end, end - start };
	return 0;
}

int coverage_operator(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 start,
		      __u64 end, __u64 *self)
{
	const __u32 tid = place->apart ? 0 : place->tid;
	struct open_inference *open = inference ? inference_get(coverage, place->process, inference, tid) : NULL;
	struct active_thread *thread = thread_get(coverage, place);
	__u64 inside;

	*self = end - start;
	if (!thread || (inference && !open))
		return -ENOMEM;
	inside = take_inside(thread, start);
	*self = inside < *self ? *self - inside : 0;
	if (!place->depth)
		thread->count = 0; /* nothing is around it */
	else if (note_ended(thread, start, end))
		return -ENOMEM;
	return open ? cover(open, start, end) : 0;
}

bool coverage_end(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 *covered)
{
	struct map_node *node = map_find(&coverage->threads, place->process, place->tid);
	struct open_inference *open;

	if (node)
		take_inside(container_of(node, struct active_thread, node), inference);
	open = inference_find(coverage, place->process, inference, place->tid);
	if (!open)
		return false;
	*covered = open->settled;
	for (size_t i = 0; i < open->count; i++)
		*covered += open->stretches[i].end - open->stretches[i].start;
	inference_free(coverage, open);
	return true;
}

void coverage_drop(struct coverage *coverage, unsigned int process)
{
	struct link *link, *following;

	link_each(link, following, &coverage->open)
	{
		struct open_inference *inference = container_of(link, struct open_inference, link);

		if (inference->node.a == process)
			inference_free(coverage, inference);
	}
	link_each(link, following, &coverage->active)
	{
		struct active_thread *thread = container_of(link, struct active_thread, link);

		if (thread->node.a == process)
			thread_free(coverage, thread);
	}
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/coverage.h"

#include <errno.h>
#include <stdlib.h>

#define STRETCHES_MAX 65536 /* kept apart of one inference */

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

void coverage_init(struct coverage *coverage)
{
	link_init(&coverage->open);
	nesting_init(&coverage->operators);
}

static void inference_free(struct coverage *coverage, struct open_inference *inference)
{
	map_remove(&coverage->inferences, &inference->node);
	link_remove(&inference->link);
	coverage->open_count--;
	free(inference->stretches);
	free(inference);
}

void coverage_free(struct coverage *coverage)
{
	struct link *link, *following;

	link_each(link, following, &coverage->open)
		inference_free(coverage, container_of(link, struct open_inference, link));
	map_free(&coverage->inferences);
	nesting_free(&coverage->operators);
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

/* The older half is added up: operators are much shorter than so many of them. */
static void stretches_settle(struct open_inference *inference)
{
	const size_t half = inference->count / 2;

	for (size_t i = 0; i < half; i++)
		inference->settled += inference->stretches[i].end - inference->stretches[i].start;
	for (size_t i = half; i < inference->count; i++)
		inference->stretches[i - half] = inference->stretches[i];
	inference->count -= half;
}

static int stretch_reserve(struct open_inference *inference)
{
	struct stretch *more;

	if (inference->count < inference->room)
		return 0;
	if (inference->count >= STRETCHES_MAX) {
		stretches_settle(inference);
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
static int stretch_add(struct open_inference *inference, __u64 start, __u64 end)
{
	int error = stretch_reserve(inference);

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

int coverage_operator(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 start,
		      __u64 end, __u64 *self)
{
	const __u32 tid = place->apart ? 0 : place->tid;
	struct open_inference *open = inference ? inference_get(coverage, place->process, inference, tid) : NULL;
	struct nesting_thread *thread = nesting_find(&coverage->operators, place->process, place->tid, true);
	__u64 inside;

	*self = end - start;
	if (!thread || (inference && !open))
		return -ENOMEM;
	inside = nesting_take(thread, start).first;
	*self = inside < *self ? *self - inside : 0;
	if (nesting_add(thread, !place->depth, end, (struct nested){ end - start, 0 }))
		return -ENOMEM;
	return open ? stretch_add(open, start, end) : 0;
}

bool coverage_end(struct coverage *coverage, const struct coverage_place *place, __u64 inference, __u64 *covered)
{
	struct nesting_thread *thread = nesting_find(&coverage->operators, place->process, place->tid, false);
	struct open_inference *open;

	if (thread)
		nesting_take(thread, inference);
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
	nesting_drop(&coverage->operators, process);
}

#define ENDED_MAX 8192 /* calls of one thread kept apart that are in none that has ended */

struct ended {
	__u64 end;
	struct nested sum;
};

struct nesting_thread {
	struct map_node node; /* by process and number */
	struct link link;
	struct ended *ended; /* in order of their ends, none inside another one */
	size_t count, room;
};

void nesting_init(struct nesting *nesting)
{
	*nesting = (struct nesting){ 0 };
	link_init(&nesting->active);
}

static void thread_free(struct nesting *nesting, struct nesting_thread *thread)
{
	map_remove(&nesting->threads, &thread->node);
	link_remove(&thread->link);
	free(thread->ended);
	free(thread);
}

void nesting_free(struct nesting *nesting)
{
	struct link *link, *following;

	link_each(link, following, &nesting->active)
		thread_free(nesting, container_of(link, struct nesting_thread, link));
	map_free(&nesting->threads);
}

struct nesting_thread *nesting_find(struct nesting *nesting, unsigned int process, __u32 tid, bool make)
{
	struct map_node *node = map_find(&nesting->threads, process, tid);
	struct nesting_thread *thread;

	if (node)
		return container_of(node, struct nesting_thread, node);
	if (!make)
		return NULL;
	if (nesting->threads.count >= NESTING_THREADS_MAX)
		thread_free(nesting, container_of(nesting->active.next, struct nesting_thread, link));
	thread = calloc(1, sizeof(*thread));
	if (!thread || map_add(&nesting->threads, &thread->node, process, tid)) {
		free(thread);
		return NULL;
	}
	link_append(&nesting->active, &thread->link);
	return thread;
}

static struct nested sum_of(struct nested a, struct nested b)
{
	return (struct nested){ a.first + b.first, a.second + b.second };
}

struct nested nesting_take(struct nesting_thread *thread, __u64 start)
{
	struct nested inside = { 0, 0 };

	while (thread->count && thread->ended[thread->count - 1].end > start)
		inside = sum_of(inside, thread->ended[--thread->count].sum);
	return inside;
}

/* The older half becomes one: where so many are inside one call, it began before them. */
static void ended_fold(struct nesting_thread *thread)
{
	const size_t half = thread->count / 2;

	for (size_t i = 1; i < half; i++) {
		thread->ended[0].sum = sum_of(thread->ended[0].sum, thread->ended[i].sum);
		thread->ended[0].end = thread->ended[i].end;
	}
	for (size_t i = half; i < thread->count; i++)
		thread->ended[i - half + 1] = thread->ended[i];
	thread->count -= half - 1;
}

int nesting_add(struct nesting_thread *thread, bool outermost, __u64 end, struct nested sum)
{
	const size_t room = thread->room ? 2 * thread->room : 16;
	struct ended *more;

	if (outermost) {
		thread->count = 0;
		return 0;
	}
	if (thread->count >= ENDED_MAX)
		ended_fold(thread);
	if (thread->count == thread->room) {
		more = reallocarray(thread->ended, room, sizeof(*more));
		if (!more)
			return -ENOMEM;
		thread->ended = more;
		thread->room = room;
	}
	thread->ended[thread->count++] = (struct ended){ end, sum };
	return 0;
}

void nesting_drop(struct nesting *nesting, unsigned int process)
{
	struct link *link, *following;

	link_each(link, following, &nesting->active)
	{
		struct nesting_thread *thread = container_of(link, struct nesting_thread, link);

		if (thread->node.a == process)
			thread_free(nesting, thread);
	}
}

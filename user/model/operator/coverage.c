/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/coverage.h"

#include <errno.h>
#include <stdlib.h>

#include "base/core/vec.h"

#define STRETCHES_MAX 65536 /* kept apart of one inference */

/* A stretch of time. */
struct stretch {
	__u64 start, end;
};

/* The stretches with an operator of an inference that has not ended: in order, apart from each other. */
struct open_inference {
	struct keyed keyed;
	__u32 tid; /* of its thread; 0: not known yet */
	struct stretch *stretches;
	size_t count;
	__u64 settled; /* ns of earlier stretches, which nothing can reach back to */
};

static void inference_release(void *context, struct keyed *entry)
{
	struct open_inference *inference = container_of(entry, struct open_inference, keyed);

	(void)context;
	free(inference->stretches);
	free(inference);
}

void coverage_init(struct coverage *coverage)
{
	keyed_init(&coverage->open, COVERAGES_MAX, inference_release, NULL);
	nesting_init(&coverage->operators);
}

void coverage_free(struct coverage *coverage)
{
	keyed_free(&coverage->open);
	nesting_free(&coverage->operators);
}

/*
 * Several threads may begin an inference in the same ns. tid 0: the operator is on another thread, which is known of the only
 * inference that its process had at that time.
 */
static struct open_inference *inference_find(struct coverage *coverage, unsigned int process, __u64 begin, __u32 tid)
{
	for (struct keyed *entry = keyed_find(&coverage->open, process, begin); entry; entry = keyed_next(entry)) {
		struct open_inference *inference = container_of(entry, struct open_inference, keyed);

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
	inference = calloc(1, sizeof(*inference));
	if (!inference || keyed_add(&coverage->open, &inference->keyed, process, process, begin)) {
		free(inference);
		return NULL;
	}
	inference->tid = tid;
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

/* Ends come in order: only the last stretches can touch the new one. */
static int stretch_add(struct open_inference *inference, __u64 start, __u64 end)
{
	if (inference->count >= STRETCHES_MAX)
		stretches_settle(inference);
	while (inference->count && inference->stretches[inference->count - 1].end >= start) {
		const struct stretch *last = &inference->stretches[--inference->count];

		start = last->start < start ? last->start : start;
		end = last->end > end ? last->end : end;
	}
	return vec_push(inference->stretches, inference->count, (struct stretch){ start, end });
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
	keyed_drop(&coverage->open, &open->keyed);
	return true;
}

void coverage_drop(struct coverage *coverage, unsigned int process)
{
	keyed_drop_owner(&coverage->open, process);
	nesting_drop(&coverage->operators, process);
}

/* ---- what lies inside calls of one thread ---- */

#define ENDED_MAX 8192 /* calls of one thread kept apart that are in none that has ended */

struct ended {
	__u64 end;
	struct nested sum;
};

struct nesting_thread {
	struct keyed keyed;
	struct ended *ended; /* in order of their ends, none inside another one */
	size_t count;
};

static void thread_release(void *context, struct keyed *entry)
{
	struct nesting_thread *thread = container_of(entry, struct nesting_thread, keyed);

	(void)context;
	free(thread->ended);
	free(thread);
}

void nesting_init(struct nesting *nesting)
{
	keyed_init(&nesting->threads, NESTING_THREADS_MAX, thread_release, NULL);
}

void nesting_free(struct nesting *nesting)
{
	keyed_free(&nesting->threads);
}

struct nesting_thread *nesting_find(struct nesting *nesting, unsigned int process, __u32 tid, bool make)
{
	struct keyed *entry = keyed_find(&nesting->threads, process, tid);
	struct nesting_thread *thread;

	if (entry)
		return container_of(entry, struct nesting_thread, keyed);
	if (!make)
		return NULL;
	thread = calloc(1, sizeof(*thread));
	if (!thread || keyed_add(&nesting->threads, &thread->keyed, process, process, tid)) {
		free(thread);
		return NULL;
	}
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
	if (outermost) {
		thread->count = 0;
		return 0;
	}
	if (thread->count >= ENDED_MAX)
		ended_fold(thread);
	return vec_push(thread->ended, thread->count, (struct ended){ end, sum });
}

void nesting_drop(struct nesting *nesting, unsigned int process)
{
	keyed_drop_owner(&nesting->threads, process);
}

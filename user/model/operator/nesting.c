/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/nesting.h"

#include <errno.h>
#include <stdlib.h>

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
static void fold(struct nesting_thread *thread)
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
		fold(thread);
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

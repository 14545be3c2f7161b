/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <errno.h>

#define SHIFT_MAX 16 /* a late job is put in its place if it is not further away */

void submitters_init(struct submitters *submitters)
{
	*submitters = (struct submitters){};
	link_init(&submitters->all);
	link_init(&submitters->submits);
	pool_init(&submitters->pool, sizeof(struct submitter));
	pool_init(&submitters->submit_pool, sizeof(struct submit));
}

static void submit_remove(struct submitters *submitters, struct submit *submit)
{
	link_remove(&submit->link);
	link_remove(&submit->of_thread);
	submitters->submit_count--;
	pool_give(&submitters->submit_pool, submit);
}

void submitter_clear(struct submitters *submitters, struct submitter *submitter)
{
	submitter_drop_submits(submitters, submitter, ~(__u64)0);
	submitter->missing = 0;
}

void submitters_free(struct submitters *submitters)
{
	struct link *link, *following;

	link_each(link, following, &submitters->all)
	{
		submitter_clear(submitters, container_of(link, struct submitter, link));
		submitter_settle(submitters, container_of(link, struct submitter, link));
	}
	map_free(&submitters->by_thread);
	pool_free(&submitters->pool);
	pool_free(&submitters->submit_pool);
}

struct submitter *submitters_find(struct submitters *submitters, const struct process *process, __u32 tid)
{
	struct map_node *node = map_find(&submitters->by_thread, process->view.sort_index, tid);
	struct submitter *submitter;

	if (!node)
		return NULL;
	submitter = container_of(node, struct submitter, node);
	link_remove(&submitter->link);
	link_append(&submitters->all, &submitter->link);
	return submitter;
}

struct submitter *submitters_get(struct submitters *submitters, const struct process *process, __u32 tid)
{
	struct submitter *submitter = submitters_find(submitters, process, tid);

	if (submitter)
		return submitter;
	submitter = pool_take(&submitters->pool);
	if (!submitter)
		return NULL;
	if (map_add(&submitters->by_thread, &submitter->node, process->view.sort_index, tid)) {
		pool_give(&submitters->pool, submitter);
		return NULL;
	}
	link_init(&submitter->jobs);
	link_init(&submitter->submits);
	link_append(&submitters->all, &submitter->link);
	return submitter;
}

void submitter_settle(struct submitters *submitters, struct submitter *submitter)
{
	if (!link_alone(&submitter->jobs) || !link_alone(&submitter->submits) || submitter->missing)
		return;
	map_remove(&submitters->by_thread, &submitter->node);
	link_remove(&submitter->link);
	pool_give(&submitters->pool, submitter);
}

void submitter_add_job(struct submitter *submitter, struct job *job)
{
	struct link *place = &submitter->jobs;
	unsigned int i;

	for (i = 0; i < SHIFT_MAX && place->previous != &submitter->jobs; i++) {
		if (container_of(place->previous, struct job, of_thread)->submitted <= job->submitted)
			break;
		place = place->previous;
	}
	job->submitter = submitter;
	link_append(place, &job->of_thread); /* before what stands at the place */
}

void submitter_remove_job(struct job *job)
{
	link_remove(&job->of_thread);
	job->submitter = NULL;
}

void submitter_miss(struct submitter *submitter, __u64 time)
{
	submitter->missing++;
	if (time > submitter->missing_until)
		submitter->missing_until = time;
}

static void submits_make_room(struct submitters *submitters, const struct submitter *except)
{
	struct submit *submit = container_of(submitters->submits.next, struct submit, link);
	struct submitter *submitter = submit->submitter;

	submitter_miss(submitter, submit->end);
	submit_remove(submitters, submit);
	if (submitter != except)
		submitter_settle(submitters, submitter);
}

int submitter_add_submit(struct submitters *submitters, struct submitter *submitter, __u64 start, __u64 end)
{
	struct submit *submit;

	if (submitters->submit_count >= SUBMITS_MAX)
		submits_make_room(submitters, submitter);
	submit = pool_take(&submitters->submit_pool);
	if (!submit)
		return -ENOMEM;
	submit->submitter = submitter;
	submit->start = start;
	submit->end = end;
	link_append(&submitters->submits, &submit->link);
	link_append(&submitter->submits, &submit->of_thread);
	submitters->submit_count++;
	return 0;
}

const struct submit *submitter_merge_submits(struct submitters *submitters, struct submitter *submitter, __u64 start,
					     __u64 end)
{
	struct link *link, *previous;
	struct submit *submit, *merged = NULL;

	for (link = submitter->submits.previous; link != &submitter->submits; link = previous) {
		previous = link->previous;
		submit = container_of(link, struct submit, of_thread);
		if (submit->end > end)
			continue;
		if (submit->start < start)
			break;
		if (!merged) {
			merged = submit;
			continue;
		}
		if (submit->start < merged->start)
			merged->start = submit->start;
		if (submit->end > merged->end)
			merged->end = submit->end;
		submit_remove(submitters, submit);
	}
	return merged;
}

void submitter_drop_submits(struct submitters *submitters, struct submitter *submitter, __u64 time)
{
	struct link *link, *following;
	struct submit *submit;

	link_each(link, following, &submitter->submits)
	{
		submit = container_of(link, struct submit, of_thread);
		if (submit->end <= time)
			submit_remove(submitters, submit);
	}
}

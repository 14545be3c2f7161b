/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trace/calls.h"

#include <errno.h>
#include <stdlib.h>

struct shown {
	struct map_node node; /* thread, start */
	struct link link;
	__u64 document;
};

static __u64 thread_key(__u32 tgid, __u32 tid)
{
	return (__u64)tgid << 32 | tid;
}

static void drop(struct trace_calls *calls, struct shown *shown)
{
	map_remove(&calls->map, &shown->node);
	link_remove(&shown->link);
	free(shown);
}

void trace_calls_init(struct trace_calls *calls)
{
	*calls = (struct trace_calls){ 0 };
	link_init(&calls->list);
}

void trace_calls_free(struct trace_calls *calls)
{
	struct link *link, *following;

	link_each(link, following, &calls->list) drop(calls, container_of(link, struct shown, link));
	map_free(&calls->map);
}

int trace_calls_add(struct trace_calls *calls, const struct event_call *call, __u64 document)
{
	struct shown *shown;

	if (calls->map.count >= TRACE_CALLS_MAX)
		drop(calls, container_of(calls->list.next, struct shown, link));
	shown = malloc(sizeof(*shown));
	if (!shown)
		return -ENOMEM;
	if (map_add(&calls->map, &shown->node, thread_key(call->tgid, call->tid), call->start)) {
		free(shown);
		return -ENOMEM;
	}
	link_append(&calls->list, &shown->link);
	shown->document = document;
	return 0;
}

__u64 trace_calls_find(const struct trace_calls *calls, const struct event_job *job)
{
	struct map_node *node = map_find(&calls->map, thread_key(job->tgid, job->tid), job->call_start);

	return node ? container_of(node, struct shown, node)->document : 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/operator/operators.h"

#include <errno.h>

/* A thread that has launches held. */
struct launching {
	struct map_node node; /* by process and number */
	struct link launches; /* in the order of the calls */
};

struct launch {
	struct link link; /* of all */
	struct link of_thread;
	struct launching *thread;
	struct program *program; /* of view.program; held; NULL: none */
	struct event_launch view;
};

void launches_init(struct launches *launches, struct event_dispatch *events)
{
	*launches = (struct launches){ .events = events };
	link_init(&launches->all);
	pool_init(&launches->pool, sizeof(struct launch));
	pool_init(&launches->threads, sizeof(struct launching));
}

static void launch_write(struct launches *launches, const struct event_launch *launch, struct op *op)
{
	struct event event = { .kind = EVENT_LAUNCH, .launch = *launch };

	if (op) {
		op->view.launches++;
		event.launch.op = &op->view;
	}
	event_dispatch_emit(launches->events, &event);
}

static void launch_emit(struct launches *launches, struct launch *launch, struct op *op)
{
	launch_write(launches, &launch->view, op);
	if (launch->program)
		launch->program->open--;
	link_remove(&launch->link);
	link_remove(&launch->of_thread);
	launches->count--;
	pool_give(&launches->pool, launch);
}

static void thread_settle(struct launches *launches, struct launching *thread)
{
	if (!link_alone(&thread->launches))
		return;
	map_remove(&launches->by_thread, &thread->node);
	pool_give(&launches->threads, thread);
}

static struct launching *thread_find(const struct launches *launches, const struct process *process, __u32 tid)
{
	struct map_node *node = map_find(&launches->by_thread, process->view.sort_index, tid);

	return node ? container_of(node, struct launching, node) : NULL;
}

static struct launching *thread_get(struct launches *launches, const struct process *process, __u32 tid)
{
	struct launching *thread = thread_find(launches, process, tid);

	if (thread)
		return thread;
	thread = pool_take(&launches->threads);
	if (!thread)
		return NULL;
	if (map_add(&launches->by_thread, &thread->node, process->view.sort_index, tid)) {
		pool_give(&launches->threads, thread);
		return NULL;
	}
	link_init(&thread->launches);
	return thread;
}

static void drop_oldest(struct launches *launches)
{
	struct launch *launch = container_of(launches->all.next, struct launch, link);
	struct launching *thread = launch->thread;

	launch_emit(launches, launch, NULL);
	thread_settle(launches, thread);
}

static struct event_launch launch_made(const struct event_call *call)
{
	return (struct event_launch){
		.function = call->function,
		.program = call->program,
		.start = call->start,
		.end = call->end,
		.tgid = call->tgid,
		.tid = call->tid,
	};
}

static int launch_hold(struct launches *launches, const struct process *process, struct program *program,
		       const struct event_call *call)
{
	const struct event_launch made = launch_made(call);
	struct launching *thread;
	struct launch *launch;

	if (launches->count >= LAUNCHES_MAX)
		drop_oldest(launches);
	thread = thread_get(launches, process, call->tid);
	launch = thread ? pool_take(&launches->pool) : NULL;
	if (!launch) {
		if (thread)
			thread_settle(launches, thread);
		launch_write(launches, &made, NULL);
		return -ENOMEM;
	}
	launch->view = made;
	launch->thread = thread;
	launch->program = program;
	if (program)
		program->open++;
	link_append(&launches->all, &launch->link);
	link_append(&thread->launches, &launch->of_thread);
	launches->count++;
	return 0;
}

/* In the order of the calls, from the first that began at since on. */
static void launches_emit_from(struct launches *launches, struct launching *thread, __u64 since, struct op *op)
{
	struct link *before = thread->launches.previous;

	while (before != &thread->launches && container_of(before, struct launch, of_thread)->view.start >= since)
		before = before->previous;
	while (before->next != &thread->launches)
		launch_emit(launches, container_of(before->next, struct launch, of_thread), op);
}

int launches_call(struct launches *launches, const struct process *process, struct program *program, struct op *op,
		  const struct event_call *call)
{
	const enum xpt_role role = call->function->role;
	struct launching *thread;
	int error = 0;

	if (call->no_end || call->layer)
		return 0;
	if (role == XPT_ROLE_LAUNCH)
		error = launch_hold(launches, process, program, call);
	thread = thread_find(launches, process, call->tid);
	if (!thread)
		return error;
	if (role == XPT_ROLE_OPERATOR)
		launches_emit_from(launches, thread, call->start, op);
	if (!call->depth)
		launches_emit_from(launches, thread, 0, NULL);
	thread_settle(launches, thread);
	return error;
}

void launches_drop_process(struct launches *launches, const struct process *process)
{
	struct link *link, *following;
	struct launching *thread;
	struct launch *launch;

	link_each(link, following, &launches->all)
	{
		launch = container_of(link, struct launch, link);
		thread = launch->thread;
		if (thread->node.a != process->view.sort_index)
			continue;
		launch_emit(launches, launch, NULL);
		thread_settle(launches, thread);
	}
}

void launches_drop_all(struct launches *launches)
{
	while (!link_alone(&launches->all))
		drop_oldest(launches);
}

void launches_free(struct launches *launches)
{
	struct event_dispatch silent = {};

	launches->events = &silent;
	launches_drop_all(launches);
	map_free(&launches->by_thread);
	pool_free(&launches->pool);
	pool_free(&launches->threads);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which events go into a document. Events come in the order of their ends, so what is nested comes before the call around
 * it, and a wait before the inferences that it has ended: both are held as copies until it is known whether they are
 * wanted. A call at depth 0 settles everything that its thread has held before, unless regions around it may be wanted: then
 * the oldest make room.
 */
#include "profile/trace/trace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "profile/trace/calls.h"
#include "profile/trace/held.h"
#include "profile/trace/text.h"

/* Ends of threads are not reported. The least recently used thread is evicted, with what it has held. */
#define THREADS_MAX 4096
/* Held of a thread that has made no call yet: perhaps it never will, and then nothing ever settles it. */
#define IDLE_HELD_MAX 256

struct thread {
	struct map_node node; /* tgid, tid */
	struct link recent;
	struct link held; /* in the order of their ends */
	size_t held_count;
	bool has_calls; /* one has been seen since the thread is known */
	bool has_wanted;
	__u64 wanted_start; /* of the latest wanted call: a region that began before is around it */
	/* Of those held since the last call at depth 0, the oldest had to go: */
	__u64 dropped;
	__u64 dropped_start; /* of the last of them */
};

enum wait_state {
	WAIT_NONE,
	WAIT_HELD,  /* trace->wait is a wait that is not known to be wanted yet */
	WAIT_SHOWN, /* ... that is in the document */
};

struct trace {
	trace_wanted_fn wanted;
	void *context;
	bool regions; /* may be wanted: nothing settles what a thread has held */
	struct map threads;
	struct link recent; /* threads, least recently used first */
	struct link all;    /* held events, oldest first */
	size_t held_count;
	struct trace_calls shown;
	struct held *wait; /* used again and again; NULL: not yet */
	enum wait_state wait_state;
};

struct trace *trace_create(trace_wanted_fn wanted, void *context, bool regions)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->wanted = wanted;
	trace->context = context;
	trace->regions = regions;
	link_init(&trace->recent);
	link_init(&trace->all);
	trace_calls_init(&trace->shown);
	return trace;
}

/* Puts a call, region or ioctl into the document. */
static int show(struct trace *trace, const struct event *event, struct trace_text *into)
{
	if (trace_text_add(into, event))
		return -ENOMEM;
	if (event->kind != EVENT_CALL || !event->call.device.jobs)
		return 0;
	return trace_calls_add(&trace->shown, &event->call, trace_text_number(into));
}

/* ---- threads and what they hold ---- */

static void held_release(struct trace *trace, struct held *held)
{
	link_remove(&held->of_thread);
	link_remove(&held->of_all);
	held->thread->held_count--;
	trace->held_count--;
	free(held);
}

/* Returns how many of those that go might have been wanted: a region alone is nothing of which a part is missing. */
static __u64 thread_drop(struct trace *trace, struct thread *thread)
{
	struct link *link, *following;
	__u64 calls = thread->dropped;
	struct held *held;

	link_each(link, following, &thread->held)
	{
		held = container_of(link, struct held, of_thread);
		calls += held->event.kind == EVENT_CALL;
		held_release(trace, held);
	}
	map_remove(&trace->threads, &thread->node);
	link_remove(&thread->recent);
	free(thread);
	return calls;
}

void trace_free(struct trace *trace)
{
	struct link *link, *following;

	if (!trace)
		return;
	link_each(link, following, &trace->recent) thread_drop(trace, container_of(link, struct thread, recent));
	map_free(&trace->threads);
	trace_calls_free(&trace->shown);
	free(trace->wait);
	free(trace);
}

static struct thread *thread_find(struct trace *trace, __u32 tgid, __u32 tid)
{
	struct map_node *node = map_find(&trace->threads, tgid, tid);
	struct thread *thread = node ? container_of(node, struct thread, node) : NULL;

	if (thread) {
		link_remove(&thread->recent);
		link_append(&trace->recent, &thread->recent);
	}
	return thread;
}

static struct thread *thread_get(struct trace *trace, __u32 tgid, __u32 tid, __u64 *lost)
{
	struct thread *thread = thread_find(trace, tgid, tid);

	if (thread)
		return thread;
	if (trace->threads.count >= THREADS_MAX)
		*lost += thread_drop(trace, container_of(trace->recent.next, struct thread, recent));
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	if (map_add(&trace->threads, &thread->node, tgid, tid)) {
		free(thread);
		return NULL;
	}
	link_init(&thread->held);
	link_append(&trace->recent, &thread->recent);
	return thread;
}

/*
 * Whether something that was wanted is missing is known when the call around it comes. It may never come: calls that
 * sampling leaves out do not, while what is nested in them does.
 */
static void make_room(struct trace *trace, struct held *oldest)
{
	oldest->thread->dropped++;
	oldest->thread->dropped_start = held_start(&oldest->event);
	held_release(trace, oldest);
}

/* Takes held over. */
static int hold(struct trace *trace, struct held *held, __u32 tgid, __u32 tid, __u64 *lost)
{
	struct thread *thread = held ? thread_get(trace, tgid, tid, lost) : NULL;

	if (!thread) {
		free(held);
		++*lost;
		return -ENOMEM;
	}
	if (held->event.kind == EVENT_CALL)
		thread->has_calls = true;
	if (!thread->has_calls && thread->held_count >= IDLE_HELD_MAX && !link_alone(&thread->held))
		make_room(trace, container_of(thread->held.next, struct held, of_thread));
	if (trace->held_count >= TRACE_HELD_MAX)
		make_room(trace, container_of(trace->all.next, struct held, of_all));
	held->thread = thread;
	thread->held_count++;
	link_append(&thread->held, &held->of_thread);
	link_append(&trace->all, &held->of_all);
	trace->held_count++;
	return 0;
}

static void drop_process(struct trace *trace, __u32 tgid)
{
	struct link *link, *following;
	struct thread *thread;

	link_each(link, following, &trace->recent)
	{
		thread = container_of(link, struct thread, recent);
		if (thread->node.a == tgid)
			thread_drop(trace, thread);
	}
}

/* ---- calls ---- */

/* What is wanted, and may have something inside. */
struct around {
	__u64 start, end;
	bool call;	    /* else a region */
	unsigned int depth; /* of a call */
};

static bool lies_in(const struct event *event, const struct around *around)
{
	return held_start(event) >= around->start && held_end(event) <= around->end &&
	       (event->kind != EVENT_CALL || !around->call || event->call.depth > around->depth);
}

/* The first that had not ended when the call began, found from the end: nothing is walked over in vain. */
static struct link *first_since(struct thread *thread, __u64 start)
{
	struct link *link = thread->held.previous;

	while (link != &thread->held && held_end(&container_of(link, struct held, of_thread)->event) >= start)
		link = link->previous;
	return link->next;
}

/* What the thread has held is emitted with what is wanted. */
static int show_nested(struct trace *trace, struct thread *thread, const struct around *around, struct trace_text *into,
		       __u64 *lost)
{
	struct link *link = first_since(thread, around->start), *following;
	struct held *held;
	int error = 0;

	if (thread->dropped && thread->dropped_start >= around->start) {
		*lost += thread->dropped;
		thread->dropped = 0;
	}
	for (; link != &thread->held; link = following) {
		following = link->next;
		held = container_of(link, struct held, of_thread);
		if (!lies_in(&held->event, around))
			continue;
		if (show(trace, &held->event, into))
			error = -ENOMEM;
		held_release(trace, held);
	}
	return error;
}

/* No call that is still open on the thread is around what it has held up to this time. */
static void forget_nested(struct trace *trace, struct thread *thread, __u64 time)
{
	struct link *link, *following;
	struct held *held;

	link_each(link, following, &thread->held)
	{
		held = container_of(link, struct held, of_thread);
		if (held_end(&held->event) > time)
			break;
		held_release(trace, held);
	}
	thread->dropped = 0;
}

static int show_call(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost)
{
	const struct event_call *call = &event->call;
	const struct around around = { call->start, call->end, true, call->depth };
	struct thread *thread = thread_get(trace, call->tgid, call->tid, lost);
	int error = thread ? show_nested(trace, thread, &around, into, lost) : -ENOMEM;

	if (thread) {
		thread->has_calls = thread->has_wanted = true;
		thread->wanted_start = call->start;
		if (!call->depth && !trace->regions)
			forget_nested(trace, thread, call->end);
	}
	if (show(trace, event, into))
		error = -ENOMEM;
	return error;
}

/* copy: the call's own, which is taken over; NULL: there is none yet. */
static int pass_over_call(struct trace *trace, const struct event *event, struct held *copy, __u64 *lost)
{
	const struct event_call *call = &event->call;
	struct thread *thread;

	if (call->depth || trace->regions)
		return hold(trace, copy ? copy : held_call(NULL, event), call->tgid, call->tid, lost);
	thread = thread_find(trace, call->tgid, call->tid);
	if (thread) {
		thread->has_calls = true;
		forget_nested(trace, thread, call->end);
	}
	return 0;
}

static bool is_asked_for(const struct event_call *call)
{
	if (!call->program || call->layer)
		return false;
	switch (call->function->role) {
	case XPT_ROLE_EXECUTE:
	case XPT_ROLE_ENQUEUE:
	case XPT_ROLE_LAUNCH:
	case XPT_ROLE_PROGRAM_LOAD:
	case XPT_ROLE_PROGRAM_READY:
	case XPT_ROLE_PROGRAM_NAME:
	case XPT_ROLE_PROGRAM_UNLOAD:
		return true;
	default:
		return false;
	}
}

/* ---- waits and inferences ---- */

/* The inferences that a wait has ended follow it at once: something else means that none of them was wanted. */
static int settle_wait(struct trace *trace, __u64 *lost)
{
	struct held *wait = trace->wait;
	bool held = trace->wait_state == WAIT_HELD;

	trace->wait_state = WAIT_NONE;
	if (!held)
		return 0;
	if (wait->event.call.depth)
		trace->wait = NULL;
	return pass_over_call(trace, &wait->event, wait, lost);
}

static int take_call(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost)
{
	const struct event_call *call = &event->call;
	int error = settle_wait(trace, lost);
	struct held *copy;

	if (into && call->function->role == XPT_ROLE_WAIT && call->flow_in) {
		copy = held_call(trace->wait, event);
		if (!copy)
			return -ENOMEM;
		trace->wait = copy;
		trace->wait_state = WAIT_HELD;
	} else if (into && is_asked_for(call) && trace->wanted(trace->context, event)) {
		if (show_call(trace, event, into, lost))
			error = -ENOMEM;
	} else if (pass_over_call(trace, event, NULL, lost)) {
		error = -ENOMEM;
	}
	return error;
}

static bool wait_ended(const struct trace *trace, const struct event_inference *inference)
{
	const struct event_call *wait;

	if (!trace->wait || trace->wait_state == WAIT_NONE)
		return false;
	wait = &trace->wait->event.call;
	return wait->tgid == inference->tgid && wait->tid == inference->wait_tid && wait->end == inference->end;
}

static int take_inference(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost)
{
	struct event copy = *event;
	int error = 0;

	if (!into || !event_has_span(event->inference.function, event->inference.have) ||
	    !trace->wanted(trace->context, event))
		return 0;
	if (!wait_ended(trace, &event->inference)) {
		copy.inference.wait_tid = 0; /* an arrow to a wait that is not in the document would hang in the air */
	} else if (trace->wait_state == WAIT_HELD) {
		error = show_call(trace, &trace->wait->event, into, lost);
		trace->wait_state = WAIT_SHOWN;
	}
	return trace_text_add(into, &copy) ? -ENOMEM : error;
}

/* ---- the others ---- */

static int show_region(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost)
{
	const struct event_region *region = &event->region;
	const struct around around = { .start = region->start, .end = region->end };
	struct thread *thread = thread_get(trace, region->tgid, region->tid, lost);
	int error = thread ? show_nested(trace, thread, &around, into, lost) : -ENOMEM;

	if (thread) {
		thread->has_wanted = true;
		thread->wanted_start = region->start;
	}
	return show(trace, event, into) ? -ENOMEM : error;
}

static int take_region(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost)
{
	const struct event_region *region = &event->region;
	int error = settle_wait(trace, lost);
	const struct thread *thread = thread_find(trace, region->tgid, region->tid);

	if (into && trace->regions && trace->wanted(trace->context, event))
		return show_region(trace, event, into, lost) ? -ENOMEM : error;
	if (thread && thread->has_wanted && thread->wanted_start >= region->start) {
		if (into && trace_text_add(into, event))
			error = -ENOMEM;
	} else if (hold(trace, held_region(event), region->tgid, region->tid, lost)) {
		error = -ENOMEM;
	}
	return error;
}

/* In the call that is known to be wanted only later, as it ends later. */
static int take_ioctl(struct trace *trace, const struct event *event, __u64 *lost)
{
	const struct event_ioctl *ioctl = &event->ioctl;
	int error = settle_wait(trace, lost);

	return hold(trace, held_ioctl(event), ioctl->tgid, ioctl->tid, lost) ? -ENOMEM : error;
}

/* Calls come before their jobs. One that is in an earlier document has no end of an arrow in this one. */
static int take_job(struct trace *trace, const struct event *event, struct trace_text *into)
{
	const struct event_job *job = &event->job;
	__u64 document = job->call_start ? trace_calls_find(&trace->shown, job) : 0;
	struct event copy = *event;

	if (!into || !document)
		return 0;
	if (document != trace_text_number(into))
		copy.job.call_start = 0;
	return trace_text_add(into, &copy);
}

/* What the device's memory does is nobody's in particular, and far too much. */
static int take_device(const struct event *event, struct trace_text *into)
{
	const struct event_device *device = &event->device;
	bool wanted;

	if (!into || device->role == XPT_EVENT_MEMORY)
		return 0;
	wanted = device->queue ? trace_text_has_queue(into, device->queue->id) :
				 trace_text_has_device(into, device->driver, device->device);
	return wanted ? trace_text_add(into, event) : 0;
}

static int take_task(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost)
{
	const struct event_task *task = &event->task;
	int error = settle_wait(trace, lost);

	if (into && trace_text_has(into, task->tgid) && trace_text_add(into, event))
		error = -ENOMEM;
	/* Calls that were open then never return. */
	if (task->what == XPT_TASK_EXIT || task->what == XPT_TASK_EXEC)
		drop_process(trace, task->tgid);
	return error;
}

/* What belongs to a process as a whole; a loss belongs to all. */
static int take_other(const struct event *event, struct trace_text *into, __u32 tgid)
{
	return into && trace_text_has(into, tgid) ? trace_text_add(into, event) : 0;
}

int trace_event(struct trace *trace, const struct event *event, struct trace_text *into, __u64 *lost)
{
	switch (event->kind) {
	case EVENT_CALL:
		return take_call(trace, event, into, lost);
	case EVENT_INFERENCE:
		return take_inference(trace, event, into, lost);
	case EVENT_REGION:
		return take_region(trace, event, into, lost);
	case EVENT_TASK:
		return take_task(trace, event, into, lost);
	case EVENT_COUNTER:
		return take_other(event, into, event->counter.tgid);
	case EVENT_WAITED:
		return take_other(event, into, event->waited.tgid);
	case EVENT_CODE:
		return take_other(event, into, event->code.tgid);
	case EVENT_LOST:
		return take_other(event, into, 0);
	case EVENT_PROGRAM:
		return into && trace->wanted(trace->context, event) ? trace_text_add(into, event) : 0;
	case EVENT_IOCTL:
		return take_ioctl(trace, event, lost);
	case EVENT_JOB:
		return take_job(trace, event, into);
	case EVENT_QUEUE:
		return into && trace_text_has_queue(into, event->queue.queue->id) ? trace_text_add(into, event) : 0;
	case EVENT_DEVICE:
		return take_device(event, into);
	case EVENT_PROCESS:
	case EVENT_THREAD:
	case EVENT_READING: /* sessions read none */
	case EVENT_UNPAIRED:
	case EVENT_COUNT:
	case EVENT_LAUNCH: /* the call has been taken */
		return 0;  /* names come at the end of a document (trace_names), counts in its metadata */
	}
	return 0;
}

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

/* Ends of threads are not reported. The least recently used thread is evicted, with what it has held. */
#define THREADS_MAX 4096
/* Held of a thread that has made no call yet: perhaps it never will, and then nothing ever settles it. */
#define IDLE_HELD_MAX 256
#define CALLS_MAX 16384 /* the oldest is evicted */

/* A call that is in a document: its jobs belong to the same one. */
struct shown {
	struct keyed keyed; /* thread, start */
	__u64 document;	    /* its number */
};

struct thread {
	struct keyed keyed; /* tgid, tid; of its process */
	struct link held;   /* in the order of their ends */
	size_t held_count;
	bool has_calls; /* one has been seen since the thread is known */
	bool has_wanted;
	__u64 wanted_start; /* of the latest wanted call: a region that began before is around it */
	/* Of those held since the last call at depth 0, the oldest had to go: */
	__u64 dropped;
	__u64 dropped_start; /* of the last of them */
};

/* A copy of a call, region or ioctl, with its strings, that may be added to a document later. */
struct held {
	struct link of_thread, of_all;
	struct thread *thread;
	size_t room; /* bytes of strings[] */
	struct event event;
	struct model_program program; /* just id and name */
	char strings[];
};

enum wait_state {
	WAIT_NONE,
	WAIT_HELD,  /* trace->wait is a wait that is not known to be wanted yet */
	WAIT_SHOWN, /* ... that is in the document */
};

struct trace {
	trace_wanted_fn wanted;
	void *context;
	bool regions;		    /* may be wanted: nothing settles what a thread has held */
	struct keyed_table threads; /* least recently used first */
	__u64 evicted;		    /* what threads that had to go had held: see thread_release() */
	struct link all;	    /* held events, oldest first */
	size_t held_count;
	struct keyed_table shown;
	struct held *wait; /* used again and again; NULL: not yet */
	enum wait_state wait_state;
};

/* ---- copies of events ---- */

static __u64 held_start(const struct event *event)
{
	if (event->kind == EVENT_IOCTL)
		return event->ioctl.start;
	return event->kind == EVENT_REGION ? event->region.start : event->call.start;
}

static __u64 held_end(const struct event *event)
{
	if (event->kind == EVENT_IOCTL)
		return event->ioctl.end;
	return event->kind == EVENT_REGION ? event->region.end : event->call.end;
}

/* Where an event has strings. program: the call's. Returns their number. */
static size_t strings_of(struct event *event, struct model_program *program, const char **strings[3])
{
	switch (event->kind) {
	case EVENT_CALL:
		strings[0] = &event->call.name;
		strings[1] = &event->call.status_name;
		strings[2] = &program->name;
		return 3;
	case EVENT_REGION:
		strings[0] = &event->region.name;
		return 1;
	default:
		strings[0] = &event->ioctl.driver;
		strings[1] = &event->ioctl.node;
		strings[2] = &event->ioctl.name;
		return 3;
	}
}

static size_t length_of(const struct event *event, const char *string)
{
	if (!string)
		return 0;
	return event->kind == EVENT_CALL && string == event->call.name ? event->call.name_length : strlen(string);
}

/*
 * Freed with free(). NULL: no memory. into is used again when it is large enough, else freed; without memory it is still
 * there.
 */
static struct held *held_copy(struct held *into, const struct event *event)
{
	const struct model_program *from = event->kind == EVENT_CALL ? event->call.program : NULL;
	struct model_program program = { .id = from ? from->id : 0, .name = from ? from->name : NULL };
	size_t lengths[3], count, room = 0;
	const char **strings[3];
	struct held *held = into;
	char *end;

	count = strings_of((struct event *)event, &program, strings);
	for (size_t i = 0; i < count; i++) {
		lengths[i] = length_of(event, *strings[i]);
		room += lengths[i] + 1;
	}
	if (!into || into->room < room) {
		held = malloc(sizeof(*held) + room);
		if (!held)
			return NULL;
		free(into);
		held->room = room;
	}
	held->event = *event;
	held->program = program;
	strings_of(&held->event, &held->program, strings);
	end = held->strings;
	for (size_t i = 0; i < count; i++) {
		if (!*strings[i])
			continue;
		*strings[i] = memcpy(end, *strings[i], lengths[i]);
		end += lengths[i];
		*end++ = '\0';
	}
	if (from)
		held->event.call.program = &held->program;
	return held;
}

static void held_release(struct trace *trace, struct held *held)
{
	link_remove(&held->of_thread);
	link_remove(&held->of_all);
	held->thread->held_count--;
	trace->held_count--;
	free(held);
}

/* ---- threads and what they hold ---- */

/* Counts how many of those that go might have been wanted: a region alone is nothing of which a part is missing. */
static void thread_release(void *context, struct keyed *keyed)
{
	struct thread *thread = container_of(keyed, struct thread, keyed);
	struct trace *trace = context;
	struct held *held, *following;

	trace->evicted += thread->dropped;
	link_for_each_safe(held, following, &thread->held, of_thread) {
		trace->evicted += held->event.kind == EVENT_CALL;
		held_release(trace, held);
	}
	free(thread);
}

struct trace *trace_create(trace_wanted_fn wanted, void *context, bool regions)
{
	struct trace *trace = calloc(1, sizeof(*trace));

	if (!trace)
		return NULL;
	trace->wanted = wanted;
	trace->context = context;
	trace->regions = regions;
	link_init(&trace->all);
	keyed_init(&trace->threads, THREADS_MAX, thread_release, trace);
	keyed_init(&trace->shown, CALLS_MAX, NULL, NULL);
	return trace;
}

void trace_free(struct trace *trace)
{
	if (!trace)
		return;
	keyed_free(&trace->threads);
	keyed_free(&trace->shown);
	free(trace->wait);
	free(trace);
}

static __u64 thread_key(__u32 tgid, __u32 tid)
{
	return (__u64)tgid << 32 | tid;
}

/* Puts a call, region or ioctl into the document. */
static int show(struct trace *trace, const struct event *event, struct trace_text *into)
{
	const struct event_call *call = &event->call;
	struct shown *shown;

	if (trace_text_add(into, event))
		return -ENOMEM;
	if (event->kind != EVENT_CALL || !call->device.jobs)
		return 0;
	shown = malloc(sizeof(*shown));
	if (!shown || keyed_add(&trace->shown, &shown->keyed, 0, thread_key(call->tgid, call->tid), call->start)) {
		free(shown);
		return -ENOMEM;
	}
	shown->document = trace_text_number(into);
	return 0;
}

/* Number of the document in which the call of the job is; 0: in none. */
static __u64 document_of(const struct trace *trace, const struct event_job *job)
{
	const struct keyed *keyed = keyed_find(&trace->shown, thread_key(job->tgid, job->tid), job->call_start);

	return keyed ? container_of(keyed, const struct shown, keyed)->document : 0;
}

static struct thread *thread_find(struct trace *trace, __u32 tgid, __u32 tid)
{
	struct keyed *keyed = keyed_find(&trace->threads, tgid, tid);

	if (!keyed)
		return NULL;
	keyed_renew(&trace->threads, keyed);
	return container_of(keyed, struct thread, keyed);
}

static struct thread *thread_get(struct trace *trace, __u32 tgid, __u32 tid, __u64 *lost)
{
	struct thread *thread = thread_find(trace, tgid, tid);

	if (thread)
		return thread;
	thread = calloc(1, sizeof(*thread));
	if (!thread)
		return NULL;
	link_init(&thread->held);
	trace->evicted = 0;
	if (keyed_add(&trace->threads, &thread->keyed, tgid, tgid, tid)) {
		free(thread);
		thread = NULL;
	}
	*lost += trace->evicted;
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

/* ---- calls ---- */

/* What is chosen, and may have something inside. */
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

/* What the thread has held is emitted with what is chosen. */
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
	struct held *held, *following;

	link_for_each_safe(held, following, &thread->held, of_thread) {
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
		return hold(trace, copy ? copy : held_copy(NULL, event), call->tgid, call->tid, lost);
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
		copy = held_copy(trace->wait, event);
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
	} else if (hold(trace, held_copy(NULL, event), region->tgid, region->tid, lost)) {
		error = -ENOMEM;
	}
	return error;
}

/* In the call that is known to be wanted only later, as it ends later. */
static int take_ioctl(struct trace *trace, const struct event *event, __u64 *lost)
{
	const struct event_ioctl *ioctl = &event->ioctl;
	int error = settle_wait(trace, lost);

	return hold(trace, held_copy(NULL, event), ioctl->tgid, ioctl->tid, lost) ? -ENOMEM : error;
}

/* Calls come before their jobs. One that is in an earlier document has no end of an arrow in this one. */
static int take_job(struct trace *trace, const struct event *event, struct trace_text *into)
{
	const struct event_job *job = &event->job;
	__u64 document = job->call_start ? document_of(trace, job) : 0;
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
		keyed_drop_owner(&trace->threads, task->tgid);
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
	case EVENT_OFF_CPU: /* in recordings only */
	case EVENT_READING: /* sessions read none */
	case EVENT_UNPAIRED:
	case EVENT_COUNT:
	case EVENT_LAUNCH: /* the call has been taken */
	case EVENT_BUDGET:
	case EVENT_STACK: /* nor were they asked for */
		return 0; /* names come at the end of a document (trace_names), counts in its metadata */
	}
	return 0;
}

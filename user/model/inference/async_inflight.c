/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/inference/async_inflight.h"

#include <errno.h>
#include <stdlib.h>

/* All that one process has under way in one runtime, or in those that share its streams. */
struct queue {
	struct keyed keyed; /* by process and the runtime that the streams are of */
	struct link busy;   /* streams that are not empty */
	unsigned int index;
	__u32 tgid;
	const char *runtime;
	__u64 depth, emitted; /* emitted: depth in the last event */
	__u64 enqueued;	      /* of the depth: enqueues */
};

/* A wait that ended nothing. */
struct orphan_wait {
	struct keyed keyed; /* by queue and key */
	struct wait_end end;
};

struct stream {
	struct keyed keyed; /* by queue and stream */
	struct link busy;   /* in queue->busy while not empty */
	struct link opens;  /* in the order of the calls */
	struct queue *queue;
	bool ordered; /* they run in that order */
};

struct open_inference {
	struct map_node node; /* by key, when it has one */
	struct link link;     /* of all, then of those ended */
	struct link of_stream;
	struct link proved;	 /* in async->followed */
	struct link followers;	 /* entries of other streams that run after it */
	struct link of_followed; /* of such an entry, which is a mark without a key */
	struct open_inference *follows;
	struct stream *stream;
	struct program *program;   /* NULL: unknown */
	struct activity *activity; /* NULL: inference.device is final */
	struct event_inference inference;
	bool keyed;
	bool mark;     /* stands for the launches before it in the stream; inference has only times and the function */
	bool replaced; /* its key has become that of a later one */
	bool counted;
	struct xpt_counts counts; /* when the enqueue began */
};

static struct queue *queue_find(const struct async_inflight *async, const struct process *process, unsigned int runtime)
{
	struct keyed *entry = keyed_find(&async->queues, process->view.sort_index, runtime);

	return entry ? container_of(entry, struct queue, keyed) : NULL;
}

/* *result is NULL beyond the limit. */
static int queue_get(struct async_inflight *async, const struct process *process, const struct event_call *call,
		     struct queue **result)
{
	const unsigned int index = process->view.sort_index;
	struct queue *queue = queue_find(async, process, call->function->streams);

	*result = queue;
	if (queue)
		return 0;
	if (keyed_full(&async->queues)) {
		event_dispatch_lose(async->events, XPT_LOSS_NAMES, 1, call->start);
		return 0;
	}
	queue = calloc(1, sizeof(*queue));
	if (!queue || keyed_add(&async->queues, &queue->keyed, index, index, call->function->streams)) {
		free(queue);
		return -ENOMEM;
	}
	queue->index = async->next_queue++;
	queue->tgid = process->view.tgid;
	queue->runtime = call->function->runtime;
	link_init(&queue->busy);
	*result = queue;
	return 0;
}

static bool is_enqueue(const struct open_inference *open)
{
	return open->inference.function->role == XPT_ROLE_ENQUEUE;
}

static struct open_inference *open_create(struct stream *stream)
{
	struct open_inference *open = calloc(1, sizeof(*open));

	if (!open)
		return NULL;
	open->stream = stream;
	link_init(&open->link);
	link_init(&open->of_stream);
	link_init(&open->proved);
	link_init(&open->followers);
	link_init(&open->of_followed);
	return open;
}

/* Takes it out of everything but its own link, which then is in no list. Those that follow it prove nothing any more. */
static void open_detach(struct async_inflight *async, struct open_inference *open)
{
	struct open_inference *follower, *following;

	link_for_each_safe(follower, following, &open->followers, of_followed) {
		open_detach(async, follower);
		free(follower);
	}
	if (open->keyed)
		map_remove(&async->by_key, &open->node);
	link_remove(&open->of_followed);
	link_remove(&open->proved);
	link_remove(&open->of_stream);
	link_remove(&open->link);
	open->stream->queue->depth -= !open->mark;
	open->stream->queue->enqueued -= is_enqueue(open);
	async->open_count--;
	if (open->program)
		open->program->open--;
}

/* What the device has done for it by now. */
static void open_see_device(struct open_inference *open)
{
	if (open->activity)
		open->inference.device = device_times_shown(&open->activity->times);
}

static void open_free(struct async_inflight *async, struct open_inference *open)
{
	activity_release(async->observers, open->activity);
	free(open);
}

static void stream_settle(struct stream *stream)
{
	if (link_alone(&stream->opens) && !link_alone(&stream->busy))
		link_remove(&stream->busy);
}

/* When the work was complete: a launch is when its jobs have ended, which is before a wait for it returns. */
static void open_complete(struct open_inference *open)
{
	struct event_inference *inference = &open->inference;
	__u64 done = is_enqueue(open) ? 0 : inference->device.done;

	inference->completed = inference->end;
	if (done > inference->start && (done < inference->end || !inference->end))
		inference->completed = done;
}

static int open_write(struct async_inflight *async, struct open_inference *open)
{
	const struct event event = { .kind = EVENT_INFERENCE, .inference = open->inference };
	bool failed = open->inference.outcome == OUTCOME_FAILED;
	int error = 0;

	if (open->program && is_enqueue(open))
		states_add(&open->program->view.states, &open->inference.states);
	if (open->program)
		error = program_ended(open->program, open->inference.start, open->inference.completed, failed);
	event_dispatch_emit(async->events, &event);
	return error;
}

/*
 * No wait was seen for it. A launch that nobody waits for may be complete by its jobs; where it has none it is no loss, as
 * programs need not wait for each, but its completion is unknown.
 */
static void open_drop(struct async_inflight *async, struct open_inference *open, __u64 time)
{
	struct event event = { .kind = EVENT_UNPAIRED };
	struct stream *stream = open->stream;

	open_detach(async, open);
	stream_settle(stream);
	if (open->mark) {
		free(open);
		return;
	}
	open_see_device(open);
	open_complete(open);
	if (open->inference.completed) {
		open->inference.end = open->inference.completed;
		open_write(async, open);
	} else {
		if (is_enqueue(open))
			event_dispatch_lose(async->events, XPT_LOSS_UNPAIRED, 1, time);
		else if (open->replaced)
			event_dispatch_lose(async->events, XPT_LOSS_REPLACED, 1, time);
		if (open->program && !is_enqueue(open))
			open->program->view.unended++;
		event.inference = open->inference;
		event_dispatch_emit(async->events, &event);
	}
	open_free(async, open);
}

static struct wait_end wait_end(const struct event_call *call)
{
	return (struct wait_end){
		.time = call->end,
		.tid = call->tid,
		.outcome = call->outcome,
		.has_status = call_has(call, XPT_MEANING_STATUS),
		.status = call->status,
		.status_name = call->status_name,
		.counted = call->end_counts,
		.counts = call->end_counts ? *call->end_counts : (struct xpt_counts){ 0 },
		.states = call->states,
	};
}

static void open_end(struct async_inflight *async, struct open_inference *open, const struct wait_end *end)
{
	struct event_inference *inference = &open->inference;

	open_detach(async, open);
	if (open->mark) {
		if (open->follows && link_alone(&open->follows->proved))
			link_append(&async->followed, &open->follows->proved);
		free(open);
		return;
	}
	inference->end = end->time;
	inference->wait_tid = end->tid;
	if (end->outcome != OUTCOME_NONE)
		inference->outcome = end->outcome;
	if (end->has_status) {
		inference->have |= 1u << XPT_MEANING_STATUS;
		inference->status = end->status;
		inference->status_name = end->status_name;
	}
	counter_samples_between(async->samples, open->counted ? &open->counts : NULL,
				end->counted ? &end->counts : NULL, inference->tid == end->tid,
				inference->end - inference->start, &inference->counts);
	if (is_enqueue(open) && inference->states.calls && end->states.calls)
		states_add(&inference->states, &end->states);
	else if (is_enqueue(open))
		inference->states = (struct model_states){ 0 };
	link_append(&async->ended, &open->link);
}

static void stream_release(void *context, struct keyed *entry)
{
	struct stream *stream = container_of(entry, struct stream, keyed);
	struct async_inflight *async = context;
	struct open_inference *open, *following;

	link_for_each_safe(open, following, &stream->opens, of_stream)
		open_drop(async, open, async->dropped);
	link_remove(&stream->busy);
	free(stream);
}

/* NULL: it is not known. Calls without a stream share one. */
static struct stream *stream_find(const struct async_inflight *async, const struct queue *queue,
				  const struct event_call *call)
{
	struct keyed *entry = keyed_find(&async->streams, (__u64)queue->index << 1 | call_has(call, XPT_MEANING_STREAM),
					 call->stream);

	return entry ? container_of(entry, struct stream, keyed) : NULL;
}

static struct stream *stream_get(struct async_inflight *async, struct queue *queue, const struct event_call *call)
{
	struct stream *stream = stream_find(async, queue, call);

	if (stream) {
		keyed_renew(&async->streams, &stream->keyed);
		return stream;
	}
	async->dropped = call->start;
	stream = calloc(1, sizeof(*stream));
	if (!stream || keyed_add(&async->streams, &stream->keyed, queue->index,
				 (__u64)queue->index << 1 | call_has(call, XPT_MEANING_STREAM), call->stream)) {
		free(stream);
		return NULL;
	}
	stream->queue = queue;
	stream->ordered = call->function->in_order;
	link_init(&stream->busy);
	link_init(&stream->opens);
	return stream;
}

/* The stream of a call, made if need be. *result NULL with 0: there are too many queues, which is counted. */
static int stream_of(struct async_inflight *async, const struct process *process, const struct event_call *call,
		     struct stream **result)
{
	struct queue *queue;
	int error = queue_get(async, process, call, &queue);

	*result = error || !queue ? NULL : stream_get(async, queue, call);
	return error || !queue || *result ? error : -ENOMEM;
}

int orphan_wait_add(struct keyed_table *waits, unsigned int queue, __u64 key, const struct wait_end *end)
{
	struct keyed *entry = keyed_find(waits, queue, key);
	struct orphan_wait *wait;

	if (entry) {
		container_of(entry, struct orphan_wait, keyed)->end = *end;
		keyed_renew(waits, entry);
		return 0;
	}
	wait = malloc(sizeof(*wait));
	if (!wait || keyed_add(waits, &wait->keyed, queue, queue, key)) {
		free(wait);
		return -ENOMEM;
	}
	wait->end = *end;
	return 0;
}

bool orphan_wait_take(struct keyed_table *waits, unsigned int queue, __u64 key, struct wait_end *end)
{
	struct keyed *entry = keyed_find(waits, queue, key);

	if (!entry)
		return false;
	*end = container_of(entry, struct orphan_wait, keyed)->end;
	keyed_drop(waits, entry);
	return true;
}

static struct open_inference *open_find(const struct async_inflight *async, const struct queue *queue, __u64 key)
{
	struct map_node *node = map_find(&async->by_key, queue->index, key);

	return node ? container_of(node, struct open_inference, node) : NULL;
}

static struct event_inference inference_begun(const struct event_call *call, const struct program *program,
					      const struct queue *queue)
{
	const __u32 shown = 1u << XPT_MEANING_SIZE | 1u << XPT_MEANING_CORE | 1u << XPT_MEANING_STATUS |
			    1u << XPT_MEANING_KEY;

	return (struct event_inference){
		.program = program ? &program->view : NULL,
		.function = call->function,
		.id = call->flow_out,
		.start = call->start,
		.tgid = call->tgid,
		.tid = call->tid,
		.key = call->key,
		.stream = call->stream,
		.outcome = call->outcome,
		.enqueued = call->end,
		.sample = call->sample,
		.numbered = call->numbered,
		.number = call->number,
		.have = call->have & shown,
		.size = call->size,
		.core = call->core,
		.status = call->status,
		.status_name = call->status_name,
		.in_queue = queue->enqueued,
		.device = call->device,
		.states = call->states,
	};
}

static int open_add(struct async_inflight *async, struct stream *stream, struct program *program,
		    struct activity *activity, struct event_call *call)
{
	struct open_inference *open = open_create(stream);

	if (!open)
		return -ENOMEM;
	open->keyed = call_has(call, XPT_MEANING_KEY);
	if (open->keyed && map_add(&async->by_key, &open->node, stream->queue->index, call->key)) {
		free(open);
		return -ENOMEM;
	}
	call->flow_out = async->next_id++;
	open->program = program;
	open->activity = activity_hold(activity);
	open->inference = inference_begun(call, program, stream->queue);
	open->counted = call->begin_counts;
	if (open->counted)
		open->counts = *call->begin_counts;
	link_append(&async->opens, &open->link);
	link_append(&stream->opens, &open->of_stream);
	async->open_count++;
	if (program)
		program->open++;
	return 0;
}

/* Another one has its key: a launch may still be ended by a wait for its stream. */
static void open_replace(struct async_inflight *async, struct open_inference *open, __u64 time)
{
	if (is_enqueue(open) || (open->mark && link_alone(&open->followers))) {
		open_drop(async, open, time);
		return;
	}
	map_remove(&async->by_key, &open->node);
	open->keyed = false;
	open->replaced = !open->mark;
}

/* What was launched before it on its stream has ended, too. call: the wait that shows it; NULL: there is none. */
static void end_before(struct async_inflight *async, struct open_inference *until, const struct wait_end *end,
		       struct event_call *call)
{
	struct open_inference *open, *following;

	link_for_each_safe(open, following, &until->stream->opens, of_stream) {
		if (open == until)
			break;
		if (is_enqueue(open) || open->inference.enqueued > until->inference.start)
			continue;
		if (call && !open->mark)
			call->flow_in = open->inference.id;
		open_end(async, open, end);
	}
}

/* Ends it, and where its stream runs in order what was launched there before. call: the wait that shows it; NULL: there is none. */
static void open_end_in_order(struct async_inflight *async, struct open_inference *open, const struct wait_end *end,
			      struct event_call *call)
{
	struct stream *stream = open->stream;

	if (open->mark || (stream->ordered && !is_enqueue(open)))
		end_before(async, open, end, call);
	if (call && !open->mark)
		call->flow_in = open->inference.id;
	open_end(async, open, end);
	stream_settle(stream);
}

/* What was launched on other streams before the marks that what has ended follows. */
static void followed_end(struct async_inflight *async, const struct wait_end *end, struct event_call *call)
{
	while (!link_alone(&async->followed))
		open_end_in_order(async, link_first(&async->followed, struct open_inference, proved), end, call);
}

/* Ends what has just been added, when a wait for it has been seen already: a callback may be called before the call returns. */
static void orphan_waits_use(struct async_inflight *async, struct open_inference *open, const struct event_call *call,
			     struct event_call *wait)
{
	struct wait_end end;

	if (!orphan_wait_take(&async->orphan_waits, open->stream->queue->index, call->key, &end) ||
	    end.time <= call->start)
		return;
	open_end_in_order(async, open, &end, wait);
	followed_end(async, &end, wait);
}

/* For one more: the oldest is dropped. */
static void make_room(struct async_inflight *async, __u64 time)
{
	if (async->open_count >= MODEL_PENDING_MAX)
		open_drop(async, link_first(&async->opens, struct open_inference, link), time);
}

static int open_begin(struct async_inflight *async, struct stream *stream, struct program *program,
		      struct activity *activity, struct event_call *call)
{
	bool keyed = call_has(call, XPT_MEANING_KEY);
	struct open_inference *before = keyed ? open_find(async, stream->queue, call->key) : NULL;
	int error;

	if (before)
		open_replace(async, before, call->start);
	make_room(async, call->start);
	error = open_add(async, stream, program, activity, call);
	if (error)
		return error;
	stream->queue->depth++;
	stream->queue->enqueued += call->function->role == XPT_ROLE_ENQUEUE;
	if (keyed)
		orphan_waits_use(async, open_find(async, stream->queue, call->key), call, NULL);
	return 0;
}

int async_begin(struct async_inflight *async, struct process *process, struct program *program,
		struct activity *activity, struct event_call *call)
{
	struct stream *stream;
	int error;

	if (call->outcome == OUTCOME_FAILED || call->outcome == OUTCOME_PENDING)
		return 0;
	if (call->function->role == XPT_ROLE_LAUNCH && !call->key)
		call->have &= ~(1u << XPT_MEANING_KEY); /* no event was given */
	/* Nothing that a wait could name: it would stay open for ever. */
	if (call->function->role == XPT_ROLE_LAUNCH && !call_has(call, XPT_MEANING_KEY) &&
	    !call_has(call, XPT_MEANING_STREAM))
		return 0;
	error = stream_of(async, process, call, &stream);
	if (error || !stream)
		return error;
	error = open_begin(async, stream, program, activity, call);
	stream_settle(stream);
	if (!link_alone(&stream->opens) && link_alone(&stream->busy))
		link_append(&stream->queue->busy, &stream->busy);
	return error;
}

static void stream_end(struct async_inflight *async, struct stream *stream, struct event_call *call)
{
	const struct wait_end end = wait_end(call);
	struct open_inference *open, *following;

	link_for_each_safe(open, following, &stream->opens, of_stream) {
		/* Its own wait has not begun when this one returned; a launch has to be there when the wait begins. */
		if (open->inference.start >= call->end || (!is_enqueue(open) && open->inference.enqueued > call->start))
			continue;
		if (!open->mark)
			call->flow_in = open->inference.id;
		open_end(async, open, &end);
	}
	stream_settle(stream);
}

static int key_end(struct async_inflight *async, struct queue *queue, struct event_call *call, __u64 key)
{
	const struct wait_end end = wait_end(call);
	struct open_inference *open = open_find(async, queue, key);

	if (!open)
		return orphan_wait_add(&async->orphan_waits, queue->index, key, &end);
	if (open->inference.start >= call->end)
		return 0;
	open_end_in_order(async, open, &end, call);
	return 0;
}

/* NULL: no memory. Without a key as yet. */
static struct open_inference *mark_create(struct async_inflight *async, struct stream *stream,
					  const struct event_call *call)
{
	struct open_inference *open = open_create(stream);

	if (!open)
		return NULL;
	open->mark = true;
	open->inference.function = call->function;
	open->inference.start = call->start;
	open->inference.enqueued = call->end;
	link_append(&async->opens, &open->link);
	link_append(&stream->opens, &open->of_stream);
	async->open_count++;
	return open;
}

static int mark_add(struct async_inflight *async, struct stream *stream, struct event_call *call)
{
	struct open_inference *before = open_find(async, stream->queue, call->key), *open;

	if (before)
		open_replace(async, before, call->start);
	if (link_alone(&stream->opens))
		return 0;
	make_room(async, call->start);
	open = mark_create(async, stream, call);
	if (!open)
		return -ENOMEM;
	if (map_add(&async->by_key, &open->node, stream->queue->index, call->key)) {
		open_drop(async, open, call->start);
		return -ENOMEM;
	}
	open->keyed = true;
	orphan_waits_use(async, open, call, call);
	return 0;
}

int async_mark(struct async_inflight *async, struct process *process, struct event_call *call)
{
	struct stream *stream;
	struct wait_end end;
	struct queue *queue;

	if (call->layer || call->outcome == OUTCOME_FAILED || call->outcome == OUTCOME_PENDING ||
	    !call_has(call, XPT_MEANING_STREAM))
		return 0;
	queue = queue_find(async, process, call->function->streams);
	stream = queue ? stream_find(async, queue, call) : NULL;
	if (!stream || (call->function->role == XPT_ROLE_COPY && !stream->ordered))
		return 0;
	if (call->blocking) {
		stream_end(async, stream, call);
		end = wait_end(call);
		followed_end(async, &end, call);
		return 0;
	}
	/* One that follows others than those before it on the stream proves nothing about these. */
	if (!call->key || (call->function->role == XPT_ROLE_MARK && call_has(call, XPT_MEANING_COUNT) && call->count))
		return 0;
	return mark_add(async, stream, call);
}

int async_follow(struct async_inflight *async, struct process *process, const struct event_call *call)
{
	struct open_inference *open, *followed;
	struct stream *stream;
	struct queue *queue;

	if (call->layer || call->outcome == OUTCOME_FAILED || call->outcome == OUTCOME_PENDING || !call->key ||
	    !call_has(call, XPT_MEANING_STREAM))
		return 0;
	queue = queue_find(async, process, call->function->streams);
	followed = queue ? open_find(async, queue, call->key) : NULL;
	stream = followed && !is_enqueue(followed) ? stream_get(async, queue, call) : NULL;
	if (!stream)
		return followed && !is_enqueue(followed) ? -ENOMEM : 0;
	/* Making room for the stream, or for this one, may have dropped it. */
	make_room(async, call->start);
	followed = open_find(async, queue, call->key);
	if (!followed || followed->stream == stream || !stream->ordered)
		return 0;
	open = mark_create(async, stream, call);
	if (!open)
		return -ENOMEM;
	open->follows = followed;
	link_append(&followed->followers, &open->of_followed);
	return 0;
}

int async_stream(struct async_inflight *async, struct process *process, const struct event_call *call)
{
	struct stream *stream;
	int error;

	if (call->layer || call->outcome == OUTCOME_FAILED || !call_has(call, XPT_MEANING_STREAM))
		return 0;
	error = stream_of(async, process, call, &stream);
	if (error || !stream)
		return error;
	stream->ordered = call_has(call, XPT_MEANING_ORDERED) ? call->ordered : call->function->in_order;
	return 0;
}

static int wait_use(struct async_inflight *async, struct process *process, struct event_call *call)
{
	struct stream *stream, *following;
	struct queue *queue;
	size_t i;
	int error;

	if (call->outcome == OUTCOME_PENDING || (call_has(call, XPT_MEANING_COUNT) && !call->count) ||
	    (call_has(call, XPT_MEANING_WHEN) && !call->when))
		return 0;
	/* The wait around it is for the same streams. */
	if (call->layer && call->function->shares_streams)
		return 0;
	if (call_has(call, XPT_MEANING_KEY) || call->keys) {
		error = queue_get(async, process, call, &queue);
		if (error || !queue)
			return error;
		if (!call->keys)
			return key_end(async, queue, call, call->key);
		for (i = 0; !error && i < call->key_count; i++)
			error = key_end(async, queue, call, call->keys[i]);
		return error;
	}
	queue = queue_find(async, process, call->function->streams);
	if (!queue)
		return 0;
	if (call_has(call, XPT_MEANING_STREAM)) {
		stream = stream_find(async, queue, call);
		if (stream)
			stream_end(async, stream, call);
		return 0;
	}
	link_for_each_safe(stream, following, &queue->busy, busy)
		stream_end(async, stream, call);
	return 0;
}

int async_wait(struct async_inflight *async, struct process *process, struct event_call *call)
{
	const struct wait_end end = wait_end(call);
	int error = wait_use(async, process, call);

	followed_end(async, &end, call);
	return error;
}

static void depth_emit(struct async_inflight *async, struct queue *queue, __u64 time)
{
	const struct event event = { .kind = EVENT_COUNTER,
				     .counter = { .tgid = queue->tgid,
						  .time = time,
						  .runtime = queue->runtime,
						  .name = "queue depth",
						  .value = (__s64)queue->depth } };

	if (queue->depth == queue->emitted)
		return;
	queue->emitted = queue->depth;
	event_dispatch_emit(async->events, &event);
}

int async_emit(struct async_inflight *async, const struct process *process, const struct event_call *call)
{
	struct queue *queue = queue_find(async, process, call->function->streams);
	struct open_inference *open, *following;
	int error = 0;

	link_for_each_safe(open, following, &async->ended, link) {
		open_see_device(open);
		open_complete(open);
		if (open_write(async, open))
			error = -ENOMEM;
		link_remove(&open->link);
		open_free(async, open);
	}
	if (queue)
		depth_emit(async, queue, call->end);
	return error;
}

static void queue_release(void *context, struct keyed *entry)
{
	struct queue *queue = container_of(entry, struct queue, keyed);
	struct async_inflight *async = context;

	keyed_drop_owner(&async->streams, queue->index);
	keyed_drop_owner(&async->orphan_waits, queue->index);
	depth_emit(async, queue, async->dropped);
	free(queue);
}

void async_init(struct async_inflight *async, struct event_dispatch *events, struct job_observers *observers,
		const struct counter_samples *samples)
{
	*async = (struct async_inflight){
		.events = events, .observers = observers, .samples = samples, .next_queue = 1, .next_id = 1
	};
	keyed_init(&async->queues, ASYNC_QUEUES_MAX, queue_release, async);
	keyed_init(&async->streams, ASYNC_STREAMS_MAX, stream_release, async);
	keyed_init(&async->orphan_waits, ASYNC_ORPHANS_MAX, NULL, NULL);
	link_init(&async->opens);
	link_init(&async->ended);
	link_init(&async->followed);
}

void async_drop_process(struct async_inflight *async, const struct process *process, __u64 time)
{
	async->dropped = time;
	keyed_drop_owner(&async->queues, process->view.sort_index);
}

void async_drop_all(struct async_inflight *async, __u64 time)
{
	async->dropped = time;
	while (!link_alone(&async->queues.all))
		keyed_drop(&async->queues, keyed_oldest(&async->queues));
}

void async_free(struct async_inflight *async)
{
	struct event_dispatch silent = {};

	async->events = &silent;
	keyed_free(&async->queues);
	keyed_free(&async->streams);
	keyed_free(&async->orphan_waits);
	map_free(&async->by_key);
}

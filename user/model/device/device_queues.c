/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/device/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define SHARE_BITS 32

void device_queues_init(struct device_queues *queues, struct event_dispatch *events)
{
	*queues = (struct device_queues){ .events = events };
	keyed_init(&queues->users, MODEL_QUEUE_USES_MAX, NULL, NULL);
}

static void queue_free(struct device_queue *queue)
{
	if (!queue)
		return;
	free((char *)queue->view.device);
	free((char *)queue->view.engine);
	free(queue);
}

void device_queues_free(struct device_queues *queues)
{
	size_t i;

	for (i = 0; i < queues->count; i++)
		queue_free(queues->all[i]);
	free(queues->all);
	map_free(&queues->by_name);
	keyed_free(&queues->users);
}

/* Driver names are the same where they are the same driver's, and kept once. */
static __u64 name_key(const char *driver, const char *device)
{
	return text_hash(device) * 31 + (__u64)(size_t)driver;
}

struct device_queue *device_queues_find(const struct device_queues *queues, const char *driver, const char *device,
					const char *engine)
{
	struct map_node *node = map_find(&queues->by_name, name_key(driver, device), text_hash(engine));
	struct device_queue *queue;

	for (; node; node = map_next(node)) {
		queue = container_of(node, struct device_queue, node);
		if (queue->view.driver == driver && !strcmp(queue->view.device, device) &&
		    !strcmp(queue->view.engine, engine))
			return queue;
	}
	return NULL;
}

static int queue_append(struct device_queues *queues, struct device_queue *queue)
{
	int error = vec_push(queues->all, queues->count, queue);

	if (!error)
		queue->view.id = (unsigned int)queues->count;
	return error;
}

static struct device_queue *queue_create(struct device_queues *queues, const char *driver, const char *device,
					 const char *engine)
{
	struct device_queue *queue = calloc(1, sizeof(*queue));

	if (!queue)
		return NULL;
	queue->view.driver = driver;
	queue->view.device = strdup(device);
	queue->view.engine = strdup(engine);
	if (!queue->view.device || !queue->view.engine || queue_append(queues, queue)) {
		queue_free(queue);
		return NULL;
	}
	return queue;
}

static struct device_queue *queues_others(struct device_queues *queues)
{
	if (!queues->others) {
		queues->others = queue_create(queues, "", "", "(others)");
		if (queues->others)
			queues->others->others = true;
	}
	return queues->others;
}

struct device_queue *device_queues_get(struct device_queues *queues, const char *driver, const char *device,
				       const char *engine)
{
	struct device_queue *queue = device_queues_find(queues, driver, device, engine);

	if (queue)
		return queue;
	if (queues->by_name.count >= MODEL_QUEUES_MAX)
		return queues_others(queues);
	queue = queue_create(queues, driver, device, engine);
	if (!queue)
		return NULL;
	if (map_add(&queues->by_name, &queue->node, name_key(driver, device), text_hash(engine))) {
		queues->count--;
		queue_free(queue);
		return NULL;
	}
	return queue;
}

/* What each of the running ones has of the time; what cannot be divided is kept for the next. */
static queue_share time_divide(struct device_queue *queue, __u64 elapsed)
{
	queue_share whole, each;

	if (elapsed >> 32) {
		whole = ((queue_share)elapsed << SHARE_BITS) + queue->undivided;
		each = whole / queue->running;
		queue->undivided = (__u64)(whole - each * queue->running);
		return each;
	}
	elapsed = (elapsed << SHARE_BITS) + queue->undivided;
	queue->undivided = elapsed % queue->running;
	return elapsed / queue->running;
}

/* Times of different processors may decrease a little: the queue's do not. */
static void queue_advance(struct device_queue *queue, __u64 time)
{
	struct model_queue *view = &queue->view;
	__u64 elapsed = time > queue->clock ? time - queue->clock : 0;
	queue_share each;

	if (!queue->seen || time < view->first)
		view->first = time;
	queue->seen = true;
	if (time > view->last)
		view->last = time;
	if (!elapsed)
		return;
	queue->clock = time;
	if (!queue->running)
		return;
	each = time_divide(queue, elapsed);
	queue->each += each;
	queue->targets += each * queue->running_targets;
	view->busy_time += elapsed;
	view->target_time = (__u64)(queue->targets >> SHARE_BITS);
}

static void queue_emit(const struct device_queues *queues, const struct device_queue *queue)
{
	const struct event event = { .kind = EVENT_QUEUE,
				     .queue = { .queue = &queue->view,
						.time = queue->clock,
						.waiting = queue->waiting,
						.running = queue->running,
						.busy_time = queue->view.busy_time } };

	event_dispatch_emit(queues->events, &event);
}

/* ---- processes ---- */

static void user_settle(struct queue_user *user)
{
	const struct device_queue *queue = user->queue;

	user->share += (queue->each - user->since) * user->running;
	user->queue_time += (queue->clock - user->clock) * user->waiting;
	user->since = queue->each;
	user->clock = queue->clock;
}

/* The oldest user without jobs leaves; false: all have some. */
static bool users_make_room(struct keyed_table *users)
{
	for (struct link *link = users->all.next; link != &users->all; link = link->next) {
		struct queue_user *user = container_of(container_of(link, struct keyed, age), struct queue_user, keyed);

		if (user->waiting || user->running)
			continue;
		keyed_drop(users, &user->keyed);
		return true;
	}
	return false;
}

/* NULL: no memory, or no room. */
static struct queue_user *user_get(struct device_queues *queues, struct device_queue *queue, __u32 tgid)
{
	struct keyed *found = keyed_find(&queues->users, queue->view.id, tgid);
	struct queue_user *user;

	if (found) {
		keyed_renew(&queues->users, found);
		return container_of(found, struct queue_user, keyed);
	}
	if (keyed_full(&queues->users) && !users_make_room(&queues->users))
		return NULL;
	user = calloc(1, sizeof(*user));
	if (!user)
		return NULL;
	user->queue = queue;
	user->tgid = tgid;
	if (keyed_add(&queues->users, &user->keyed, queue->view.id, queue->view.id, tgid)) {
		free(user);
		return NULL;
	}
	return user;
}

/* The queue is advanced. one: 1 a job comes, -1 it leaves. */
static void user_count(struct queue_stay *stay, int one)
{
	struct queue_user *user = stay->user;

	if (!user)
		return;
	user_settle(user);
	*(stay->running ? &user->running : &user->waiting) += (unsigned int)one;
}

void queue_stay_submit(struct device_queues *queues, struct queue_stay *stay, __u32 tgid, __u64 time)
{
	if (stay->tgid == tgid)
		return;
	stay->tgid = tgid;
	if (!stay->queue)
		return;
	queue_advance(stay->queue, time);
	user_count(stay, -1);
	stay->user = user_get(queues, stay->queue, tgid);
	user_count(stay, 1);
}

void queue_user_view(const struct queue_user *user, __u64 time, struct model_queue_use *use)
{
	const struct device_queue *queue = user->queue;
	struct queue_user now = *user;
	queue_share each = queue->each;
	__u64 later = time > queue->clock ? time - queue->clock : 0;

	if (queue->running)
		each += ((queue_share)later << SHARE_BITS) / queue->running;
	now.share += (each - now.since) * now.running;
	now.queue_time += (queue->clock + later - now.clock) * now.waiting;
	*use = (struct model_queue_use){
		.queue = &queue->view,
		.tgid = user->tgid,
		.jobs = user->jobs,
		.queue_time = now.queue_time,
		.device_time = (__u64)(now.share >> SHARE_BITS),
		.busy_time = queue->view.busy_time + (queue->running ? later : 0),
	};
}

/* ---- jobs ---- */

static void stay_leave(struct queue_stay *stay, __u64 time)
{
	struct device_queue *queue = stay->queue;

	queue_advance(queue, time);
	user_count(stay, -1);
	stay->user = NULL;
	if (stay->running) {
		queue->running--;
		queue->running_targets -= stay->target;
		stay->share += queue->each - stay->since;
	} else {
		queue->waiting--;
	}
	stay->queue = NULL;
}

static void stay_enter(struct device_queues *queues, struct queue_stay *stay, struct device_queue *queue, bool running,
		       __u64 time)
{
	queue_advance(queue, time);
	if (running) {
		queue->running++;
		queue->running_targets += stay->target;
		stay->since = queue->each;
	} else {
		queue->waiting++;
	}
	stay->queue = queue;
	stay->running = running;
	stay->user = user_get(queues, queue, stay->tgid);
	user_count(stay, 1);
}

void queue_stay_move(struct device_queues *queues, struct queue_stay *stay, struct device_queue *queue, bool running,
		     __u64 time)
{
	struct device_queue *before = stay->queue;

	if (before == queue && (!queue || stay->running == running))
		return;
	if (before)
		stay_leave(stay, time);
	if (queue)
		stay_enter(queues, stay, queue, running, time);
	if (before && before != queue)
		queue_emit(queues, before);
	if (queue)
		queue_emit(queues, queue);
}

void queue_stay_pass(struct device_queues *queues, struct queue_stay *stay, __u64 time)
{
	stay->passed = stay->queue;
	queue_stay_move(queues, stay, NULL, false, time);
}

void queue_stay_return(struct device_queues *queues, struct queue_stay *stay, __u64 time)
{
	struct device_queue *queue = stay->passed;

	stay->passed = NULL;
	queue_stay_move(queues, stay, queue, false, time);
}

void queue_stay_end(struct device_queues *queues, struct queue_stay *stay, __u64 time)
{
	struct queue_user *user = stay->passed ? user_get(queues, stay->passed, stay->tgid) : stay->user;

	if (user)
		user->jobs++;
	queue_stay_move(queues, stay, NULL, false, time);
}

void queue_stay_claim(struct queue_stay *stay, __u64 time)
{
	if (stay->target)
		return;
	stay->target = true;
	if (!stay->queue || !stay->running)
		return;
	queue_advance(stay->queue, time);
	stay->queue->running_targets++;
}

__u64 queue_stay_share(const struct queue_stay *stay, struct device_queue *queue)
{
	queue_share share = stay->share + queue->unreported;

	queue->unreported = (__u64)share & 0xffffffff;
	return (__u64)(share >> SHARE_BITS);
}

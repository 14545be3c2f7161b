/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What threads have done last: operators, and times at which they did not run, which are of inferences that have not ended yet. What
 * lies in an inference on its thread has ended before it, and is kept until a call ends that is nested in no other one.
 */
#include "analysis/study_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define THREADS_MAX 16384
#define ITEMS_MAX 524288 /* operators and slices of all threads; the thread that was least recently seen makes room */
#define THREAD_KEPT 1024 /* of a thread: memory for more is freed when they have gone */
#define KNOWN_MAX 262144 /* operators */

struct thread *thread_get(struct study_build *build, __u32 tgid, __u32 tid)
{
	struct keyed *keyed = keyed_find(&build->threads, tgid, tid);
	struct thread *thread = keyed ? container_of(keyed, struct thread, keyed) : calloc(1, sizeof(*thread));

	if (keyed) {
		keyed_renew(&build->threads, keyed);
	} else if (!thread || keyed_add(&build->threads, &thread->keyed, 0, tgid, tid)) {
		free(thread);
		build->error = -ENOMEM;
		return NULL;
	}
	return thread;
}

void thread_clear(struct study_build *build, struct thread *thread)
{
	for (size_t i = 0; i < thread->node_count; i++) {
		if (!thread->nodes[i].counted)
			cohorts_uncounted(build, &thread->nodes[i]);
	}
	build->item_total -= thread->node_count + thread->slice_count + thread->wait_count;
	if (thread->node_count > THREAD_KEPT) {
		free(thread->nodes);
		thread->nodes = NULL;
	}
	if (thread->slice_count > THREAD_KEPT) {
		free(thread->slices);
		thread->slices = NULL;
	}
	thread->node_count = thread->slice_count = thread->wait_count = 0;
}

static void make_room(struct study_build *build)
{
	while (build->item_total >= ITEMS_MAX) {
		struct keyed *oldest = keyed_oldest(&build->threads);

		keyed_renew(&build->threads, oldest);
		thread_clear(build, container_of(oldest, struct thread, keyed));
	}
}

static void thread_release(void *context, struct keyed *keyed)
{
	struct thread *thread = container_of(keyed, struct thread, keyed);

	thread_clear(context, thread);
	free(thread->nodes);
	free(thread->slices);
	free(thread->waits);
	free(thread);
}

static void known_free(struct known_operator *known)
{
	free(known->label);
	free(known->type);
	free(known->provider);
	free(known);
}

/* With the names that the model had for it at the end of the first time. NULL: too many, or no memory. */
static const struct known_operator *known_get(struct study_build *build, const struct model_operator *op)
{
	struct map_node *node = map_find(&build->known, build->input, op->id);
	const struct model *first = build->first[build->input].model;
	const size_t count = model_operator_count(first);
	struct known_operator *known;
	size_t at;

	if (node || build->known.count >= KNOWN_MAX)
		return node ? container_of(node, struct known_operator, node) : NULL;
	at = vec_first(count, i, model_operator(first, i)->id < op->id);
	if (at < count && model_operator(first, at)->id == op->id)
		op = model_operator(first, at);
	known = calloc(1, sizeof(*known));
	if (!known) {
		build->error = -ENOMEM;
		return NULL;
	}
	known->label = strdup(op->label);
	known->type = strdup(op->type);
	known->provider = op->provider ? strdup(op->provider) : NULL;
	known->index = op->index;
	known->program = op->program ? op->program->id : 0;
	if (known->label && known->type && (known->provider || !op->provider) &&
	    !map_add(&build->known, &known->node, build->input, op->id))
		return known;
	known_free(known);
	build->error = -ENOMEM;
	return NULL;
}

void thread_add_operator(struct study_build *build, struct thread *thread, const struct event_call *call)
{
	const struct model_states *states = &call->states;
	struct node node = { .op = call->op ? known_get(build, call->op) : NULL,
			     .id = call->op ? call->op->id : 0,
			     .subtree = 1,
			     .start = moment(build, call->start),
			     .end = moment(build, call->end),
			     .self = call->end - call->start,
			     .whole_cpu = (double)states->cpu,
			     .whole_waited = (double)states->waited,
			     .whole_blocked = (double)states->blocked,
			     .whole_faults = (double)(states->minor_faults + states->major_faults) };

	thread_leave_out(build, thread, node.start, node.end, &node.whole_cpu, &node.whole_waited);
	node.cpu = node.whole_cpu;
	node.waited = node.whole_waited;
	node.blocked = node.whole_blocked;
	node.faults = node.whole_faults;
	make_room(build);
	for (size_t at = thread->node_count; at && thread->nodes[at - 1].start >= node.start;) {
		const struct node *inner = &thread->nodes[at - 1];

		node.self -= inner->end - inner->start < node.self ? inner->end - inner->start : node.self;
		node.cpu -= inner->whole_cpu;
		node.waited -= inner->whole_waited;
		node.blocked -= inner->whole_blocked;
		node.faults -= inner->whole_faults;
		node.subtree += inner->subtree;
		at -= inner->subtree < at ? inner->subtree : at;
	}
	if (vec_push(thread->nodes, thread->node_count, node))
		build->error = -ENOMEM;
	else
		build->item_total++;
}

void threads_add_slice(struct study_build *build, const struct event_off_cpu *off)
{
	struct thread *thread = thread_get(build, off->tgid, off->tid);
	struct slice slice = { .start = moment(build, off->start),
			       .woken = moment(build, off->woken),
			       .end = moment(build, off->end),
			       .next_tgid = off->next_tgid,
			       .waker_tgid = off->waker_tgid,
			       .reason = off->reason,
			       .interrupt = off->interrupt };

	if (!thread)
		return;
	strncpy(slice.next, off->next, sizeof(slice.next) - 1);
	strncpy(slice.waker, off->waker, sizeof(slice.waker) - 1);
	make_room(build);
	if (vec_push(thread->slices, thread->slice_count, slice))
		build->error = -ENOMEM;
	else
		build->item_total++;
}

void threads_add_wait(struct study_build *build, const struct event_waited *waited)
{
	struct thread *thread = waited->tid ? thread_get(build, waited->tgid, waited->tid) : NULL;
	const struct probe_wait wait = { moment(build, waited->start), moment(build, waited->end) };

	if (!thread)
		return;
	make_room(build);
	if (vec_push(thread->waits, thread->wait_count, wait))
		build->error = -ENOMEM;
	else
		build->item_total++;
}

static double overlap(__u64 start, __u64 end, __u64 from, __u64 to)
{
	start = start > from ? start : from;
	end = end < to ? end : to;
	return start < end ? (double)(end - start) : 0;
}

double thread_leave_out(const struct study_build *build, const struct thread *thread, __u64 start, __u64 end,
			double *cpu, double *waited)
{
	double sum = 0, off = 0, ready = 0, ran;

	for (size_t i = 0; i < thread->wait_count; i++) {
		const __u64 from = thread->waits[i].start > start ? thread->waits[i].start : start;
		const __u64 to = thread->waits[i].end < end ? thread->waits[i].end : end;

		sum += overlap(from, to, start, end);
		for (size_t each = 0; from < to && each < thread->slice_count; each++) {
			const struct slice *slice = &thread->slices[each];

			off += overlap(slice->start, slice->end, from, to);
			ready += overlap(slice->reason == XPT_OFF_CPU_PREEMPTED ? slice->start : slice->woken,
					 slice->end, from, to);
		}
	}
	ran = fmin(fmax(sum - off, 0), fmax(*cpu, 0));
	if (!build->view.has_reasons) /* what it did not run of that is not known */
		ready = sum - ran;
	ready = fmin(ready, fmax(*waited, 0));
	*cpu -= ran;
	*waited -= ready;
	return ran + ready;
}

void threads_begin(struct study_build *build)
{
	keyed_init(&build->threads, THREADS_MAX, thread_release, build);
	build->slow_room = STUDY_SLOWEST_TOTAL;
}

void threads_input_end(struct study_build *build)
{
	keyed_free(&build->threads);
	keyed_init(&build->threads, THREADS_MAX, thread_release, build);
}

void threads_free(struct study_build *build)
{
	struct map_node *node, *next;

	keyed_free(&build->threads);
	for (size_t i = 0; build->known.buckets && i < (size_t)1 << build->known.bits; i++) {
		for (node = build->known.buckets[i]; node; node = next) {
			next = node->next;
			known_free(container_of(node, struct known_operator, node));
		}
	}
	map_free(&build->known);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Inferences that are kept in full. Which ones is known from the first time. */
#include "analysis/study_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"

#define UNKNOWN_OPERATOR (~0u)

/* Of one that is kept. Counts are in the detail. */
struct wanted {
	struct builder *builder;
	struct study_detail *detail;
	unsigned int input;
	__u32 tgid, tid;
	__u64 start, end;
	__u64 covered; /* latest end of those of its thread that begin up to here */
	struct map_node by_start;
	struct study_node *nodes;
	struct study_slice *slices;
	struct study_job *jobs;
	struct study_call *calls;
};

/* Sorted by input, thread and begin. */
struct detail_index {
	struct wanted *all;
	size_t count;
	struct map by_start; /* by process with input, and begin */
};

/* ---- choice ---- */

static void want(struct detail_index *index, struct builder *builder, struct study_detail *detail,
		 const struct pick *pick)
{
	index->all[index->count++] = (struct wanted){ .builder = builder,
						      .detail = detail,
						      .input = pick->input,
						      .tgid = pick->tgid,
						      .tid = pick->tid,
						      .start = pick->start,
						      .end = pick->start + pick->duration };
}

static bool is_slowest(const struct source *leader, const struct pick *pick)
{
	for (size_t i = 0; i < leader->slowest_count; i++) {
		const struct pick *slow = &leader->slowest[i];

		if (slow->start == pick->start && slow->tid == pick->tid && slow->tgid == pick->tgid)
			return true;
	}
	return false;
}

/* From the median on outwards; picks are sorted by duration. */
static size_t find_middle(const struct source *leader, const struct pick **middle)
{
	size_t count = 0, high = leader->pick_count / 2, low = high;

	while (count < STUDY_TYPICAL_KEPT && (low || high < leader->pick_count)) {
		const __u64 median = leader->picks[leader->pick_count / 2].duration;
		const bool up = !low || (high < leader->pick_count && leader->picks[high].duration - median <=
									      median - leader->picks[low - 1].duration);
		const struct pick *pick = &leader->picks[up ? high++ : --low];

		if (!is_slowest(leader, pick))
			middle[count++] = pick;
	}
	return count;
}

static int choose_of(struct detail_index *index, struct builder *builder)
{
	const struct source *leader = builder->leader;
	const struct pick *middle[STUDY_TYPICAL_KEPT];
	const size_t typical = find_middle(leader, middle), slowest = leader->slowest_count;

	builder->details = calloc(slowest + typical ?: 1, sizeof(*builder->details));
	if (!builder->details)
		return -ENOMEM;
	builder->detail_count = slowest + typical;
	builder->view->slowest = builder->details;
	builder->view->slowest_count = slowest;
	builder->view->middle = builder->details + slowest;
	builder->view->middle_count = typical;
	for (size_t i = 0; i < slowest; i++)
		want(index, builder, &builder->details[i], &leader->slowest[i]);
	for (size_t i = 0; i < typical; i++)
		want(index, builder, &builder->details[slowest + i], middle[i]);
	return 0;
}

static int compare_threads(const struct wanted *a, unsigned int input, __u32 tgid, __u32 tid)
{
	if (a->input != input)
		return a->input < input ? -1 : 1;
	if (a->tgid != tgid)
		return a->tgid < tgid ? -1 : 1;
	return (int)(a->tid > tid) - (int)(a->tid < tid);
}

static int by_thread(const void *left, const void *right)
{
	const struct wanted *a = left, *b = right;
	int order = compare_threads(a, b->input, b->tgid, b->tid);

	if (order)
		return order;
	return a->start != b->start ? (a->start < b->start ? -1 : 1) : (int)(a->end < b->end) - (int)(a->end > b->end);
}

static __u64 process_key(unsigned int input, __u32 tgid)
{
	return (__u64)input << 32 | tgid;
}

int details_choose(struct study_build *build)
{
	struct detail_index *index = calloc(1, sizeof(*index));
	int error = 0;

	build->details = index;
	if (!index)
		return -ENOMEM;
	if (!build->options->details)
		return 0;
	index->all = calloc(STUDY_DETAILS_MAX, sizeof(*index->all));
	if (!index->all)
		return -ENOMEM;
	for (size_t i = 0; i < build->view.program_count && !error; i++) {
		if (!build->programs[i].duration || build->programs[i].others)
			continue;
		if (index->count + STUDY_SLOWEST_KEPT + STUDY_TYPICAL_KEPT > STUDY_DETAILS_MAX)
			break;
		error = choose_of(index, &build->builders[i]);
	}
	qsort(index->all, index->count, sizeof(*index->all), by_thread);
	for (size_t i = 0; i < index->count && !error; i++) {
		struct wanted *wanted = &index->all[i], *before = i ? wanted - 1 : NULL;

		wanted->covered = wanted->end;
		if (before && before->covered > wanted->end &&
		    !compare_threads(before, wanted->input, wanted->tgid, wanted->tid))
			wanted->covered = before->covered;
		error = map_add(&index->by_start, &wanted->by_start, process_key(wanted->input, wanted->tgid),
				wanted->start);
	}
	return error;
}

/* ---- events ---- */

/* What an event adds to those that it lies in. 0; -ENOSPC: there are STUDY_DETAIL_ITEMS_MAX; -ENOMEM. */
typedef int add_fn(struct study_build *build, struct wanted *wanted, const struct event *event);

static void add_to(struct study_build *build, struct wanted *wanted, add_fn *add, const struct event *event)
{
	int error = add(build, wanted, event);

	if (error == -ENOSPC)
		wanted->detail->cut = true;
	else if (error)
		build->error = error;
}

/* All those of the thread around this time. */
static void add_inside(struct study_build *build, __u32 tgid, __u32 tid, __u64 start, __u64 end, add_fn *add,
		       const struct event *event)
{
	struct detail_index *index = build->details;
	size_t at = vec_first(index->count, i,
			      (compare_threads(&index->all[i], build->input, tgid, tid) ?:
				       index->all[i].start > start) <= 0);

	while (at) {
		struct wanted *wanted = &index->all[--at];

		if (compare_threads(wanted, build->input, tgid, tid) || wanted->covered < end)
			break;
		if (wanted->end >= end)
			add_to(build, wanted, add, event);
	}
}

static int add_node(struct study_build *build, struct wanted *wanted, const struct event *event)
{
	const struct event_call *call = &event->call;
	const struct study_node node = { .operator= call->op ? call->op->id : UNKNOWN_OPERATOR,
					 .tid = call->tid,
					 .start = moment(build, call->start),
					 .end = moment(build, call->end) };

	if (wanted->detail->node_count >= STUDY_DETAIL_ITEMS_MAX)
		return -ENOSPC;
	return vec_push(wanted->nodes, wanted->detail->node_count, node);
}

static int add_call(struct study_build *build, struct wanted *wanted, const struct event *event)
{
	const struct event_call *call = &event->call;
	const struct study_call made = { .name = call->function->name,
					 .runtime = call->function->runtime,
					 .role = call->function->role,
					 .depth = call->depth,
					 .tid = call->tid,
					 .start = moment(build, call->start),
					 .end = moment(build, call->end),
					 .failed = call->outcome == OUTCOME_FAILED };

	if (wanted->detail->call_count >= STUDY_DETAIL_ITEMS_MAX)
		return -ENOSPC;
	return vec_push(wanted->calls, wanted->detail->call_count, made);
}

static int add_slice(struct study_build *build, struct wanted *wanted, const struct event *event)
{
	const struct event_off_cpu *off = &event->off_cpu;
	struct study_slice slice = { .reason = off->reason,
				     .start = moment(build, off->start),
				     .woken = moment(build, off->woken),
				     .end = moment(build, off->end),
				     .syscall = off->syscall,
				     .interrupt = off->interrupt,
				     .next_tgid = off->next_tgid,
				     .waker_tgid = off->waker_tgid,
				     .operator= off->op ? off->op->id : UNKNOWN_OPERATOR };

	strncpy(slice.next, off->next, sizeof(slice.next) - 1);
	strncpy(slice.waker, off->waker, sizeof(slice.waker) - 1);
	if (wanted->detail->slice_count >= STUDY_DETAIL_ITEMS_MAX)
		return -ENOSPC;
	return vec_push(wanted->slices, wanted->detail->slice_count, slice);
}

static int add_job(struct study_build *build, struct wanted *wanted, const struct event *event)
{
	const struct event_job *from = &event->job;
	struct study_job job = { .queue = from->queue,
				 .queued = moment(build, from->queued),
				 .runs = moment(build, from->runs),
				 .done = moment(build, from->done),
				 .failed = from->failed };

	if (wanted->detail->job_count >= STUDY_DETAIL_ITEMS_MAX)
		return -ENOSPC;
	job.name = strdup(from->name);
	if (job.name && !vec_push(wanted->jobs, wanted->detail->job_count, job))
		return 0;
	free((char *)job.name);
	return -ENOMEM;
}

/* An operator on another thread than its inference. */
static void add_apart(struct study_build *build, const struct event *event)
{
	struct map_node *node = map_find(&build->details->by_start, process_key(build->input, event->call.tgid),
					 moment(build, event->call.inference));

	if (node)
		add_to(build, container_of(node, struct wanted, by_start), add_node, event);
}

int details_event(void *context, const struct event *event)
{
	const struct event_off_cpu *off = &event->off_cpu;
	const struct event_call *call = &event->call;
	const struct event_job *job = &event->job;
	struct study_build *build = context;
	const bool steps = event->kind == EVENT_CALL && call->function->role == XPT_ROLE_OPERATOR;
	__u64 time;

	if (!build->details->count)
		return 0;
	if (event->kind == EVENT_CALL && !call->no_end && call->apart && steps) {
		add_apart(build, event);
	} else if (event->kind == EVENT_CALL && !call->no_end) {
		add_inside(build, call->tgid, call->tid, moment(build, call->start), moment(build, call->end),
			   steps ? add_node : add_call, event);
	} else if (event->kind == EVENT_OFF_CPU) {
		add_inside(build, off->tgid, off->tid, moment(build, off->start), moment(build, off->end), add_slice,
			   event);
	} else if (event->kind == EVENT_JOB && (job->call_start || job->queued)) {
		time = moment(build, job->call_start ?: job->queued);
		add_inside(build, job->tgid, job->tid, time, time, add_job, event);
	}
	return build->error;
}

void details_sample(struct study_build *build, struct builder *builder, const struct study_sample *sample)
{
	struct map_node *node = map_find(&build->details->by_start, process_key(build->input, sample->tgid),
					 sample->start);

	for (; node; node = map_next(node)) {
		struct wanted *wanted = container_of(node, struct wanted, by_start);

		if (wanted->builder != builder || wanted->tid != sample->tid ||
		    wanted->end - wanted->start != sample->duration)
			continue;
		wanted->detail->sample = *sample;
		wanted->detail->sample.weight = 1;
	}
}

/* ---- the end ---- */

static int by_times(__u64 start, __u64 end, __u64 other_start, __u64 other_end)
{
	if (start != other_start)
		return start < other_start ? -1 : 1;
	return (int)(end < other_end) - (int)(end > other_end);
}

static int nodes_by_start(const void *left, const void *right)
{
	const struct study_node *a = left, *b = right;

	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	return by_times(a->start, a->end, b->start, b->end);
}

static int slices_by_start(const void *left, const void *right)
{
	const struct study_slice *a = left, *b = right;

	return by_times(a->start, a->end, b->start, b->end);
}

static int jobs_by_start(const void *left, const void *right)
{
	const struct study_job *a = left, *b = right;

	return by_times(a->queued ?: a->runs, a->done, b->queued ?: b->runs, b->done);
}

static int calls_by_start(const void *left, const void *right)
{
	const struct study_call *a = left, *b = right;

	return by_times(a->start, a->end, b->start, b->end);
}

/* From the model's id to the place in the program's operators. */
static __u32 operator_place(const struct study_build *build, const struct wanted *wanted, __u32 id)
{
	const __u32 index = id == UNKNOWN_OPERATOR ? id : cohorts_operator(build, wanted->builder, id);

	return index == UNKNOWN_OPERATOR ? index : wanted->builder->order[index];
}

/* Nodes of a thread lie in one another or apart. */
static void nest_nodes(struct wanted *wanted)
{
	size_t open[64], depth = 0;

	for (size_t i = 0; i < wanted->detail->node_count; i++) {
		struct study_node *node = &wanted->nodes[i];

		while (depth && (wanted->nodes[open[depth - 1]].tid != node->tid ||
				 wanted->nodes[open[depth - 1]].end <= node->start))
			depth--;
		node->depth = (unsigned int)depth;
		node->self = node->end - node->start;
		if (depth) {
			struct study_node *outer = &wanted->nodes[open[depth - 1]];

			outer->self -= node->self < outer->self ? node->self : outer->self;
		}
		if (depth < sizeof(open) / sizeof(open[0]))
			open[depth++] = i;
	}
}

#define SORT(array, count, compare)                                     \
	do {                                                            \
		if (count)                                              \
			qsort(array, count, sizeof(*(array)), compare); \
	} while (0)

void details_end(struct study_build *build)
{
	for (size_t i = 0; i < build->details->count; i++) {
		struct wanted *wanted = &build->details->all[i];
		struct study_detail *detail = wanted->detail;

		build->input = wanted->input;
		SORT(wanted->nodes, detail->node_count, nodes_by_start);
		SORT(wanted->slices, detail->slice_count, slices_by_start);
		SORT(wanted->jobs, detail->job_count, jobs_by_start);
		SORT(wanted->calls, detail->call_count, calls_by_start);
		for (size_t j = 0; j < detail->node_count; j++)
			wanted->nodes[j].operator= operator_place(build, wanted, wanted->nodes[j].operator);
		for (size_t j = 0; j < detail->slice_count; j++)
			wanted->slices[j].operator= operator_place(build, wanted, wanted->slices[j].operator);
		nest_nodes(wanted);
		detail->nodes = wanted->nodes;
		detail->slices = wanted->slices;
		detail->jobs = wanted->jobs;
		detail->calls = wanted->calls;
	}
}

void details_free(struct study_build *build)
{
	struct detail_index *index = build->details;

	if (!index)
		return;
	for (size_t i = 0; i < index->count; i++) {
		struct wanted *wanted = &index->all[i];

		for (size_t j = 0; wanted->jobs && j < wanted->detail->job_count; j++)
			free((char *)wanted->jobs[j].name);
		free(wanted->nodes);
		free(wanted->slices);
		free(wanted->jobs);
		free(wanted->calls);
	}
	for (size_t i = 0; i < build->view.program_count; i++)
		free(build->builders[i].details);
	map_free(&index->by_start);
	free(index->all);
	free(index);
}

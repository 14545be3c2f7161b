/* SPDX-License-Identifier: BSD-2-Clause */
/* The second time through a recording: where the time of each inference went, as samples and as sums over cohorts. */
#include "analysis/study_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "model/stats/statistics.h"

const char *study_component_name(enum study_component component)
{
	static const char *const names[STUDY_COMPONENTS] = {
		[COMPONENT_CPU] = "cpu",	 [COMPONENT_WAITED] = "waited",	  [COMPONENT_FUTEX] = "futex",
		[COMPONENT_POLL] = "poll",	 [COMPONENT_IO] = "io",		  [COMPONENT_IOCTL] = "ioctl",
		[COMPONENT_FAULT] = "fault",	 [COMPONENT_SLEEP] = "sleep",	  [COMPONENT_OTHER] = "other",
		[COMPONENT_BLOCKED] = "blocked", [COMPONENT_UNKNOWN] = "unknown",
	};

	return names[component];
}

/* ---- operators of a program ---- */

static bool same(const char *text, const char *other)
{
	return text == other || (text && other && !strcmp(text, other));
}

/* By its names; a new one if there is none. ~0: no memory. */
static __u32 operator_named(struct builder *builder, const struct known_operator *op, bool apart)
{
	static const struct known_operator others = { .label = (char *)"(others)", .type = (char *)"", .index = -1 };
	struct operator_sum sum;

	if (builder->operator_count + 1 >= STUDY_OPERATORS_MAX)
		op = &others;
	for (size_t i = 0; i < builder->operator_count; i++) {
		const struct study_operator *view = &builder->operators[i].view;

		if (view->apart == apart && same(view->label, op->label) && same(view->type, op->type) &&
		    same(view->provider, op->provider))
			return (__u32)i;
	}
	if (builder->operator_count >= STUDY_OPERATORS_MAX)
		return STUDY_OPERATORS_MAX - 1;
	sum = (struct operator_sum){ .view = { op->label, op->type, op->provider, op->index, .apart = apart },
				     .duration = statistics_create() };
	sum.view.duration = sum.duration;
	if (sum.duration && !vec_push(builder->operators, builder->operator_count, sum))
		return (__u32)builder->operator_count - 1;
	statistics_free(sum.duration);
	return ~0u;
}

static __u64 operator_id(const struct study_build *build, unsigned int id, bool apart)
{
	return (__u64)build->input << 33 | (__u64)apart << 32 | id;
}

__u32 cohorts_operator(const struct study_build *build, const struct builder *builder, unsigned int id)
{
	struct map_node *node = map_find(&build->operators, (uintptr_t)builder, operator_id(build, id, false));

	return node ? container_of(node, struct operator_key, node)->index : ~0u;
}

static __u32 operator_get(struct study_build *build, struct builder *builder, const struct node *node, bool apart)
{
	const __u64 id = operator_id(build, node->id, apart);
	struct map_node *found = map_find(&build->operators, (uintptr_t)builder, id);
	struct operator_key *key;
	__u32 index;

	if (found)
		return container_of(found, struct operator_key, node)->index;
	key = calloc(1, sizeof(*key));
	index = key ? operator_named(builder, node->op, apart) : ~0u;
	if (index == ~0u || map_add(&build->operators, &key->node, (uintptr_t)builder, id)) {
		free(key);
		build->error = -ENOMEM;
		return ~0u;
	}
	return key->index = index;
}

static struct operator_sum *operator_add(struct study_build *build, struct builder *builder, const struct node *node,
					 bool apart)
{
	const __u32 index = node->op ? operator_get(build, builder, node, apart) : ~0u;
	struct operator_sum *sum;

	if (index == ~0u)
		return NULL;
	sum = &builder->operators[index];
	sum->view.count++;
	sum->view.self += (double)node->self;
	sum->view.total += (double)(node->end - node->start);
	if (statistics_add(sum->duration, node->end - node->start))
		build->error = -ENOMEM;
	return sum;
}

void cohorts_uncounted(struct study_build *build, const struct node *node)
{
	struct map_node *found = node->op ? map_find(&build->sources, build->input, node->op->program) : NULL;
	struct source *source = found ? container_of(found, struct source, node) : NULL;

	if (source && source->builder)
		operator_add(build, source->builder, node, true);
}

/* ---- parties ---- */

static int add_party(struct cohort_sum *cohort, const struct study_party *party)
{
	const char *name = cohort->party_count + 1 < STUDY_PARTIES_MAX ? party->name : "(others)";
	struct study_party *known = cohort->parties;

	for (size_t i = 0; i < cohort->party_count; i++, known++) {
		if (known->reason != party->reason || known->interrupt != party->interrupt ||
		    (strcmp(known->name, party->name) && i + 1 < STUDY_PARTIES_MAX))
			continue;
		known->tgid = known->tgid == party->tgid ? known->tgid : 0;
		known->times += party->times;
		known->time += party->time;
		return 0;
	}
	if (cohort->party_count >= STUDY_PARTIES_MAX || vec_push(cohort->parties, cohort->party_count, *party))
		return cohort->party_count >= STUDY_PARTIES_MAX ? 0 : -ENOMEM;
	if (name != party->name)
		strcpy(cohort->parties[cohort->party_count - 1].name, name);
	return 0;
}

/* Of the inference, what lies in it. */
static void add_parties(struct study_build *build, const struct thread *thread, const struct study_sample *sample,
			struct cohort_sum *cohort)
{
	const __u64 end = sample->start + sample->duration;

	for (size_t i = 0; i < thread->slice_count; i++) {
		const struct slice *slice = &thread->slices[i];
		const bool preempted = slice->reason == XPT_OFF_CPU_PREEMPTED;
		struct study_party party = { .reason = slice->reason,
					     .interrupt = !preempted && slice->interrupt,
					     .tgid = preempted ? slice->next_tgid : slice->waker_tgid,
					     .times = 1,
					     .time = preempted ? slice->end - slice->start :
								 slice->woken - slice->start };

		if (slice->start < sample->start || slice->end > end)
			continue;
		if (!party.interrupt)
			memcpy(party.name, preempted ? slice->next : slice->waker, sizeof(party.name));
		else
			party.tgid = 0;
		if (add_party(cohort, &party))
			build->error = -ENOMEM;
	}
}

/* ---- one inference ---- */

/* What is known of it beside the sample. */
struct whole {
	const struct event *event;
	struct thread *thread;
	size_t first; /* of the thread's nodes, the first one in it */
	double operators, operators_cpu;
	bool has_operators;
};

static void read_components(const struct model_states *states, struct study_sample *sample)
{
	__u64 left = sample->duration, reasons = 0, blocked;

	if (!states->calls) {
		sample->component[COMPONENT_UNKNOWN] = left;
		return;
	}
	sample->flags |= STUDY_STATES;
	/* Where clocks differ, or a launch is complete before its call returns, what was measured is longer than the whole. */
	blocked = states->blocked < left ? states->blocked : left;
	left -= blocked;
	sample->component[COMPONENT_WAITED] = states->waited < left ? states->waited : left;
	left -= sample->component[COMPONENT_WAITED];
	sample->component[COMPONENT_CPU] = states->cpu < left ? states->cpu : left;
	sample->component[COMPONENT_UNKNOWN] = left - sample->component[COMPONENT_CPU];
	for (unsigned int i = XPT_OFF_CPU_FUTEX; i <= XPT_OFF_CPU_OTHER; i++) {
		__u64 part = states->blocked_by[i] < blocked - reasons ? states->blocked_by[i] : blocked - reasons;

		sample->component[COMPONENT_FUTEX + i - XPT_OFF_CPU_FUTEX] = part;
		reasons += part;
	}
	sample->component[COMPONENT_BLOCKED] = blocked - reasons;
}

/* What a thread does while it waits for probes is not the program's. */
static void leave_out_probes(const struct study_build *build, const struct thread *thread, struct study_sample *sample)
{
	double cpu = (double)sample->component[COMPONENT_CPU], waited = (double)sample->component[COMPONENT_WAITED];

	if (sample->flags & STUDY_ASYNC || !thread->wait_count)
		return;
	thread_leave_out(build, thread, sample->start, sample->start + sample->duration, &cpu, &waited);
	sample->probes = sample->component[COMPONENT_CPU] - (__u64)cpu + sample->component[COMPONENT_WAITED] -
			 (__u64)waited;
	sample->component[COMPONENT_CPU] = (__u64)cpu;
	sample->component[COMPONENT_WAITED] = (__u64)waited;
	sample->component[COMPONENT_UNKNOWN] += sample->probes;
}

static void read_sample(const struct study_build *build, const struct event *event, const struct inference *inference,
			struct study_sample *sample)
{
	static const struct model_states none;
	const struct model_states *states = event->kind == EVENT_CALL	   ? &event->call.states :
					    event->kind == EVENT_INFERENCE ? &event->inference.states :
									     &none;
	const struct xpt_sample *from = &inference->sample;
	const __u64 tokens = from->prefill_tokens + from->decode_tokens;

	*sample = (struct study_sample){
		.start = moment(build, inference->start),
		.duration = inference->end - inference->start,
		.queue = from->queue_time,
		.device = from->device_time,
		.tracing = event->kind == EVENT_CALL ? event->call.tracing + event->call.tracing_inside : 0,
		.number = from->number,
		.bytes = from->bytes,
		.tokens = tokens < UINT32_MAX ? (__u32)tokens : UINT32_MAX,
		.tgid = event->kind == EVENT_CALL   ? event->call.tgid :
			event->kind == EVENT_REGION ? event->region.tgid :
						      event->inference.tgid,
		.tid = from->tid,
		.jobs = from->jobs,
		.minor_faults = from->minor_faults < UINT32_MAX ? (__u32)from->minor_faults : UINT32_MAX,
		.major_faults = from->major_faults,
		.voluntary = from->voluntary_switches,
		.involuntary = from->involuntary_switches,
		.input = (__u16)build->input,
		.flags = (from->failed ? STUDY_FAILED : 0) | (event->kind == EVENT_INFERENCE ? STUDY_ASYNC : 0) |
			 (inference->numbered ? STUDY_NUMBERED : 0),
	};
	read_components(states, sample);
}

/* The operators in it, the innermost first; not those of an asynchronous one, which may be of others. */
static void find_operators(struct whole *whole, struct study_sample *sample)
{
	const struct thread *thread = whole->thread;
	size_t at = thread->node_count;

	whole->first = at;
	if (sample->flags & STUDY_ASYNC)
		return;
	while (at && thread->nodes[at - 1].start >= sample->start &&
	       thread->nodes[at - 1].end <= sample->start + sample->duration) {
		const struct node *node = &thread->nodes[at - 1];

		whole->has_operators = true;
		whole->operators += (double)(node->end - node->start);
		whole->operators_cpu += node->whole_cpu;
		at -= node->subtree < at ? node->subtree : at;
		whole->first = at;
	}
	sample->operators = (__u64)whole->operators;
}

static void add_share(struct study_share *share, const struct node *node)
{
	share->times++;
	share->self += (double)node->self;
	share->cpu += node->cpu;
	share->waited += node->waited;
	share->blocked += node->blocked;
	share->faults += node->faults;
}

static int add_vector(struct builder *builder, __u32 index, const struct node *node)
{
	struct vector_item *items = builder->items;
	const __u32 vector = (__u32)builder->vector_count;

	for (size_t i = builder->item_count; i && items[i - 1].sample == vector; i--) {
		if (items[i - 1].operator!= index)
			continue;
		items[i - 1].self += (float)node->self;
		return 0;
	}
	return vec_push(builder->items, builder->item_count, (struct vector_item){ vector, index, (float)node->self });
}

static void add_operators(struct study_build *build, struct builder *builder, const struct whole *whole,
			  const struct study_sample *sample, bool vector)
{
	struct thread *thread = whole->thread;

	for (size_t i = whole->first; i < thread->node_count; i++) {
		struct operator_sum *sum = operator_add(build, builder, &thread->nodes[i], false);

		thread->nodes[i].counted = true;
		if (!sum)
			continue;
		if (sample->flags & STUDY_TYPICAL)
			add_share(&sum->view.typical, &thread->nodes[i]);
		if (sample->flags & STUDY_SLOW)
			add_share(&sum->view.slow, &thread->nodes[i]);
		if (vector && add_vector(builder, (__u32)(sum - builder->operators), &thread->nodes[i]))
			build->error = -ENOMEM;
	}
}

static void add_measures(struct cohort_sum *cohort, const struct study_sample *sample, const struct whole *whole)
{
	struct study_measures *sum = &cohort->sum;

	if (!cohort->count++ || sample->duration < cohort->least)
		cohort->least = sample->duration;
	if (sample->duration > cohort->most)
		cohort->most = sample->duration;
	cohort->failed += sample->flags & STUDY_FAILED;
	cohort->states += (sample->flags & STUDY_STATES) != 0;
	cohort->operators += whole->has_operators;
	sum->duration += (double)sample->duration;
	for (size_t i = 0; i < STUDY_COMPONENTS; i++)
		sum->component[i] += (double)sample->component[i];
	sum->queue += (double)sample->queue;
	sum->device += (double)sample->device;
	sum->tracing += (double)sample->tracing;
	sum->probes += (double)sample->probes;
	sum->operators += whole->operators;
	sum->outside += (double)sample->duration - whole->operators;
	sum->outside_cpu += (double)sample->component[COMPONENT_CPU] - whole->operators_cpu;
	sum->jobs += sample->jobs;
	sum->minor_faults += sample->minor_faults;
	sum->major_faults += sample->major_faults;
	sum->voluntary += sample->voluntary;
	sum->involuntary += sample->involuntary;
}

static void add_fit(struct builder *builder, const struct study_sample *sample, const struct whole *whole)
{
	const double cpu = ((double)sample->component[COMPONENT_CPU] - whole->operators_cpu) / 1000;
	const double faults = sample->minor_faults;

	if (!(sample->flags & STUDY_STATES))
		return;
	builder->fit.count++;
	builder->fit.faults += faults;
	builder->fit.cpu += cpu;
	builder->fit.faults_squared += faults * faults;
	builder->fit.cpu_squared += cpu * cpu;
	builder->fit.product += faults * cpu;
}

/* Whether it becomes a sample: *vector: with the self times of its operators. */
static bool is_kept(struct study_build *build, struct builder *builder, struct study_sample *sample, bool *vector)
{
	const unsigned int level = chance_level(study_chance(build, sample->tgid, sample->tid, sample->start));
	const bool drawn = level >= builder->level;
	const bool slow = sample->flags & STUDY_SLOW && level >= builder->slow_level && build->slow_room;

	builder->slow_seen += (sample->flags & STUDY_SLOW) != 0;
	*vector = drawn && level >= builder->vector_level;
	if (drawn)
		sample->flags |= STUDY_DRAWN;
	if (slow && !drawn)
		build->slow_room--;
	if (slow || (drawn && sample->flags & STUDY_SLOW))
		builder->slow_kept++;
	else if (drawn)
		builder->drawn_fast++;
	return drawn || slow;
}

static void add_inference(struct study_build *build, struct builder *builder, struct whole *whole,
			  struct study_sample *sample)
{
	bool vector, kept;

	if (sample->duration >= builder->cut)
		sample->flags |= STUDY_SLOW;
	if (sample->duration >= builder->low && sample->duration <= builder->high)
		sample->flags |= STUDY_TYPICAL;
	find_operators(whole, sample);
	kept = is_kept(build, builder, sample, &vector);
	vector = vector && whole->has_operators;
	add_operators(build, builder, whole, sample, vector);
	add_measures(&builder->all, sample, whole);
	if (sample->flags & STUDY_TYPICAL) {
		add_measures(&builder->typical, sample, whole);
		add_parties(build, whole->thread, sample, &builder->typical);
	}
	if (sample->flags & STUDY_SLOW) {
		add_measures(&builder->slow, sample, whole);
		add_parties(build, whole->thread, sample, &builder->slow);
	}
	add_fit(builder, sample, whole);
	builder->view->has_states |= (sample->flags & STUDY_STATES) != 0;
	builder->view->has_operators |= whole->has_operators;
	builder->view->has_jobs |= sample->jobs != 0;
	details_sample(build, builder, sample);
	timeline_sample(build, builder, sample);
	if (vector && (vec_reserve(builder->vector_samples, builder->vector_count) ||
		       (builder->vector_samples[builder->vector_count++] = (__u32)builder->sample_count, 0)))
		build->error = -ENOMEM;
	if (kept && vec_push(builder->samples, builder->sample_count, *sample))
		build->error = -ENOMEM;
}

/* ---- events ---- */

/* What ended on the thread before a call that is nested in no other one is of no inference any more. */
static void on_call(struct study_build *build, const struct event_call *call)
{
	struct thread *thread = call->no_end ? NULL : thread_get(build, call->tgid, call->tid);

	if (!thread)
		return;
	if (call->function->role == XPT_ROLE_OPERATOR)
		thread_add_operator(build, thread, call);
	if (!call->depth && !build->regions)
		thread_clear(build, thread);
}

int cohorts_event(void *context, const struct event *event)
{
	struct study_build *build = context;
	struct inference inference;
	struct study_sample sample;
	struct source *source;

	if (event->kind == EVENT_OFF_CPU) {
		build->view.has_reasons = true;
		threads_add_slice(build, &event->off_cpu);
		return build->error;
	}
	if (event->kind == EVENT_WAITED)
		threads_add_wait(build, &event->waited);
	if (study_inference(build, event, &inference) && !inference.unended && inference.end >= inference.start) {
		source = source_find(build, inference.program);
		if (source && source->builder && source->builder->view->duration) {
			struct whole whole = { .event = event };

			read_sample(build, event, &inference, &sample);
			whole.thread = thread_get(build, sample.tgid, sample.tid);
			if (whole.thread) {
				leave_out_probes(build, whole.thread, &sample);
				add_inference(build, source->builder, &whole, &sample);
			}
		}
	}
	if (event->kind == EVENT_CALL)
		on_call(build, &event->call);
	return build->error;
}

void cohorts_free(struct study_build *build)
{
	struct map_node *node, *next;

	for (size_t i = 0; build->operators.buckets && i < (size_t)1 << build->operators.bits; i++) {
		for (node = build->operators.buckets[i]; node; node = next) {
			next = node->next;
			free(container_of(node, struct operator_key, node));
		}
	}
	map_free(&build->operators);
}

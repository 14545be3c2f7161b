/* SPDX-License-Identifier: BSD-2-Clause */
/* The first time through a recording: which programs there are, and how long their inferences took. */
#include "analysis/study_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "model/stats/statistics.h"

/* ---- sources ---- */

static bool same_text(const char *text, const char *other)
{
	return text && !strcmp(text, other);
}

/* Takes over what has changed. -ENOMEM: it has the name that it had. */
static int source_name(struct source *source, const struct model_program *program)
{
	const char *texts[] = { program->name, program->runtime, program->process->name };
	char **own[] = { &source->name, &source->runtime, &source->process };
	char *copy;

	for (size_t i = 0; i < 3; i++) {
		if (same_text(*own[i], texts[i]))
			continue;
		copy = strdup(texts[i]);
		if (!copy)
			return -ENOMEM;
		free(*own[i]);
		*own[i] = copy;
	}
	source->tgid = program->process->tgid;
	source->fingerprint = program->fingerprint;
	source->role = program->role;
	return 0;
}

struct source *source_find(const struct study_build *build, const struct model_program *program)
{
	struct map_node *node = map_find(&build->sources, build->input, program->id);

	return node ? container_of(node, struct source, node) : build->others;
}

/* NULL: no memory. */
static struct source *source_make(struct study_build *build, const struct model_program *program)
{
	const bool others = build->source_count + 1 >= STUDY_PROGRAMS_MAX;
	struct source *source = calloc(1, sizeof(*source));

	if (!source || vec_push(build->all, build->source_count, source)) {
		free(source);
		return NULL;
	}
	build->others = others ? source : NULL;
	source->input = build->input;
	source->id = program->id;
	source->others = others || program_is_others(program);
	if (source_name(source, program) ||
	    (!others && map_add(&build->sources, &source->node, build->input, program->id)))
		build->error = -ENOMEM;
	return source;
}

static struct source *source_get(struct study_build *build, const struct model_program *program)
{
	return source_find(build, program) ?: source_make(build, program);
}

void source_free(struct source *source)
{
	statistics_free(source->duration);
	free(source->picks);
	free(source->name);
	free(source->runtime);
	free(source->process);
	free(source);
}

/* ---- picks ---- */

__u64 study_chance(const struct study_build *build, __u32 tgid, __u32 tid, __u64 start)
{
	__u64 bits = build->options->seed * 0x9e3779b97f4a7c15 ^ start ^ ((__u64)tgid << 32 | tid) * 0xd6e8feb86659fd93;

	bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9;
	bits = (bits ^ bits >> 27) * 0x94d049bb133111eb;
	return bits ^ bits >> 31;
}

/* One of two goes. */
static void source_thin(struct study_build *build, struct source *source)
{
	const size_t before = source->pick_count;

	source->pick_count = 0;
	source->level++;
	for (size_t i = 0; i < before; i++) {
		if (chance_level(source->picks[i].chance) >= source->level)
			source->picks[source->pick_count++] = source->picks[i];
	}
	build->pick_total -= before - source->pick_count;
}

static void thin_largest(struct study_build *build)
{
	struct source *largest = build->all[0];

	for (size_t i = 1; i < build->source_count; i++) {
		if (build->all[i]->pick_count > largest->pick_count)
			largest = build->all[i];
	}
	source_thin(build, largest);
}

/* -ENOMEM. */
static int source_pick(struct study_build *build, struct source *source, const struct pick *pick)
{
	if (chance_level(pick->chance) < source->level)
		return 0;
	if (vec_push(source->picks, source->pick_count, *pick))
		return -ENOMEM;
	build->pick_total++;
	if (source->pick_count > STUDY_SAMPLES_MAX)
		source_thin(build, source);
	if (build->pick_total > STUDY_SAMPLES_TOTAL)
		thin_largest(build);
	return 0;
}

static void keep_slowest(struct pick *slowest, size_t *count, const struct pick *pick)
{
	struct pick fastest;
	size_t at = 0;

	if (*count < STUDY_SLOWEST_KEPT)
		slowest[at = (*count)++] = *pick;
	else if (pick->duration > slowest[0].duration)
		slowest[0] = *pick;
	else
		return;
	for (size_t i = 0; i < *count; i++) {
		if (slowest[i].duration < slowest[at].duration)
			at = i;
	}
	fastest = slowest[at];
	slowest[at] = slowest[0];
	slowest[0] = fastest;
}

/* ---- events ---- */

static bool has_process(const struct study_options *options, __u32 tgid)
{
	for (size_t i = 0; i < options->pid_count; i++) {
		if ((__u32)options->pids[i] == tgid)
			return true;
	}
	return !options->pid_count;
}

static __u32 process_of(const struct event *event)
{
	if (event->kind == EVENT_CALL)
		return event->call.tgid;
	return event->kind == EVENT_REGION ? event->region.tgid : event->inference.tgid;
}

bool study_inference(struct study_build *build, const struct event *event, struct inference *inference)
{
	const struct study_options *options = build->options;
	const __u64 origin = build->inputs[build->input].origin;
	__u64 since;

	if (event->kind == EVENT_REGION && !build->choosers[build->input])
		return false;
	if (!inference_read(event, inference) || inference->unpaired || !has_process(options, process_of(event)))
		return false;
	/* What was cut out of a longer recording may have begun before its origin. */
	since = moment(build, inference->start);
	since = since > origin ? since - origin : 0;
	return since >= options->from && (!options->to || since < options->to);
}

static int add_inference(struct study_build *build, struct source *source, const struct event *event,
			 const struct inference *inference)
{
	struct pick pick = { .start = moment(build, inference->start),
			     .duration = inference->end - inference->start,
			     .tgid = process_of(event),
			     .tid = inference->sample.tid,
			     .wait_tid = event->kind == EVENT_INFERENCE ? event->inference.wait_tid : 0,
			     .input = build->input };

	source->recorded++;
	source->failed += inference->sample.failed;
	if (!source->first_start || pick.start < source->first_start)
		source->first_start = pick.start;
	if (inference->unended || inference->end < inference->start) {
		source->unended++;
		return 0;
	}
	if (pick.start + pick.duration > source->last_end)
		source->last_end = pick.start + pick.duration;
	if (!source->duration)
		source->duration = statistics_create();
	if (!source->duration || statistics_add(source->duration, pick.duration))
		return -ENOMEM;
	keep_slowest(source->slowest, &source->slowest_count, &pick);
	pick.chance = study_chance(build, pick.tgid, pick.tid, pick.start);
	return source_pick(build, source, &pick);
}

int survey_event(void *context, const struct event *event)
{
	struct study_build *build = context;
	struct chooser *chooser = build->choosers[build->input];
	struct inference inference;
	struct source *source;

	if (event->kind == EVENT_COUNT) {
		source = source_get(build, event->count.program);
		if (!source)
			return -ENOMEM;
		source->count.calls += event->count.delta.calls;
		source->count.left_out += event->count.delta.left_out;
		source->count.lost += event->count.delta.lost;
		source->known |= !event->count.reading;
	} else if (event->kind == EVENT_PROGRAM) {
		source = source_find(build, event->program.program);
		return source && !source->others ? source_name(source, event->program.program) : 0;
	} else if (study_inference(build, event, &inference)) {
		source = source_get(build, inference.program);
		if (!source)
			return -ENOMEM;
		source->region = event->kind == EVENT_REGION;
		source->wanted = !chooser || chooser_wants(chooser, inference.program);
		return source->wanted ? add_inference(build, source, event, &inference) : 0;
	}
	return build->error;
}

int survey_end(struct study_build *build, const struct model *model)
{
	struct chooser *chooser = build->choosers[build->input];
	const struct model_program *program;
	struct source *source;

	for (size_t i = 0; i < model_program_count(model); i++) {
		program = model_program(model, i);
		source = source_find(build, program);
		if (!source || source->others)
			continue;
		source->known |= program->total_known;
		if (!source->recorded)
			source->wanted = !chooser || chooser_wants(chooser, program);
		if (source_name(source, program))
			return -ENOMEM;
	}
	return 0;
}

/* ---- programs ---- */

static int compare_keys(const struct source *a, const struct source *b)
{
	int order = (int)a->others - (int)b->others ?: (int)a->region - (int)b->region;

	order = order ?: strcmp(a->runtime, b->runtime);
	order = order ?: strcmp(a->process, b->process);
	return order ?: strcmp(a->name, b->name);
}

static int by_key(const void *left, const void *right)
{
	const struct source *a = *(struct source *const *)left, *b = *(struct source *const *)right;
	int order = (int)b->wanted - (int)a->wanted ?: compare_keys(a, b);

	if (order)
		return order;
	return a->input != b->input ? (a->input < b->input ? -1 : 1) : (int)(a->id > b->id) - (int)(a->id < b->id);
}

/* Sources with one key: count of them from first on. */
struct group {
	struct source **first;
	size_t count;
	double total;
};

static int by_total(const void *left, const void *right)
{
	const struct group *a = left, *b = right;

	if (a->total != b->total)
		return a->total > b->total ? -1 : 1;
	return compare_keys(*a->first, *b->first);
}

static int by_duration(const void *left, const void *right)
{
	const struct pick *a = left, *b = right;

	if (a->duration != b->duration)
		return a->duration < b->duration ? -1 : 1;
	return (int)(a->start > b->start) - (int)(a->start < b->start);
}

/* Where the cohorts begin and end; picks are sorted. */
static void set_cuts(struct builder *builder, const struct pick *picks, size_t count)
{
	const double last = (double)count - 1;
	const size_t slow = count / 100 ?: 1;
	size_t low = (size_t)(0.4 * last + 0.999999), high = (size_t)(0.6 * last);

	if (low > high)
		low = high = (count - 1) / 2;
	builder->low = picks[low].duration;
	builder->high = picks[high].duration;
	builder->cut = picks[count - slow].duration;
}

/* How many of count picks have at least the level, for the smallest one with at most most. */
static unsigned int level_for(const struct pick *picks, size_t count, unsigned int level, size_t most)
{
	size_t left;

	for (;; level++) {
		left = 0;
		for (size_t i = 0; i < count; i++)
			left += chance_level(picks[i].chance) >= level;
		if (left <= most)
			return level;
	}
}

static int by_slowness(const void *left, const void *right)
{
	return by_duration(right, left);
}

/* Of the first source of the group, which gets the picks of all: those drawn, sorted by duration. */
static int group_picks(struct builder *builder, const struct group *group)
{
	struct source *first = group->first[0];
	struct pick *all = NULL;
	size_t count = 0;

	for (size_t i = 0; i < group->count; i++) {
		count += group->first[i]->pick_count;
		if (group->first[i]->level > builder->level)
			builder->level = group->first[i]->level;
		for (size_t j = 0; i && j < group->first[i]->slowest_count; j++)
			keep_slowest(first->slowest, &first->slowest_count, &group->first[i]->slowest[j]);
	}
	all = calloc(count ?: 1, sizeof(*all));
	if (!all)
		return -ENOMEM;
	count = 0;
	for (size_t i = 0; i < group->count; i++) {
		struct source *source = group->first[i];

		if (source->pick_count)
			memcpy(all + count, source->picks, source->pick_count * sizeof(*all));
		count += source->pick_count;
		free(source->picks);
		source->picks = NULL;
		source->pick_count = 0;
	}
	builder->level = level_for(all, count, builder->level, STUDY_SAMPLES_MAX);
	first->picks = all;
	for (size_t i = 0; i < count; i++) {
		if (chance_level(all[i].chance) >= builder->level)
			all[first->pick_count++] = all[i];
	}
	builder->vector_level = level_for(all, first->pick_count, builder->level, STUDY_VECTORS_MAX);
	qsort(all, first->pick_count, sizeof(*all), by_duration);
	qsort(first->slowest, first->slowest_count, sizeof(first->slowest[0]), by_slowness);
	return 0;
}

static int add_process(struct study_program *program, const struct source *source)
{
	struct study_process *processes = (struct study_process *)program->processes;

	for (size_t i = 0; i < program->process_count; i++) {
		if (processes[i].tgid == source->tgid && processes[i].input == source->input)
			return 0;
	}
	if (vec_push(processes, program->process_count,
		     (struct study_process){ source->process, source->tgid, source->input }))
		return -ENOMEM;
	program->processes = processes;
	return 0;
}

/* Adds the source to its program. */
static int join(struct study_build *build, struct builder *builder, struct source *source)
{
	struct study_program *view = builder->view;
	struct statistics *duration = (struct statistics *)view->duration;
	const bool selects = build->options->from || build->options->to;

	source->builder = builder;
	view->exact = view->exact && source->known && !source->region && !selects;
	view->counted += selects || source->region || !source->known ? source->recorded : source->count.calls;
	view->left_out += selects ? 0 : source->count.left_out;
	view->lost += selects ? 0 : source->count.lost;
	view->recorded += source->recorded;
	view->failed += source->failed;
	view->unended += source->unended;
	if (source->fingerprint != view->fingerprint)
		view->fingerprint = 0;
	if (source->first_start && (!view->first_start || source->first_start < view->first_start))
		view->first_start = source->first_start;
	if (source->last_end > view->last_end)
		view->last_end = source->last_end;
	if (source->duration && duration && statistics_merge(duration, source->duration))
		return -ENOMEM;
	if (!duration) {
		view->duration = source->duration;
		source->duration = NULL;
	}
	return add_process(view, source);
}

static int make_program(struct study_build *build, struct builder *builder, const struct group *group)
{
	struct source *source = group->first[0];
	struct study_program *view = builder->view;
	int error = group_picks(builder, group);

	builder->leader = source;
	view->name = source->others ? "(others)" : source->name;
	view->runtime = source->runtime;
	view->process = source->process;
	view->role = source->role;
	view->region = source->region;
	view->others = source->others;
	view->fingerprint = source->fingerprint;
	view->exact = true;
	for (size_t i = 0; i < group->count && !error; i++)
		error = join(build, builder, group->first[i]);
	if (error || !view->duration)
		return error;
	view->total = statistics_sum(view->duration);
	set_cuts(builder, source->picks, source->pick_count);
	while (statistics_count(view->duration) / 100 >> builder->slow_level > STUDY_SAMPLES_MAX)
		builder->slow_level++;
	return 0;
}

/* Sorted by key: those that are studied. */
static size_t make_groups(struct study_build *build, struct group *groups)
{
	size_t count = 0;

	qsort(build->all, build->source_count, sizeof(struct source *), by_key);
	for (size_t i = 0; i < build->source_count; i++) {
		struct source *source = build->all[i];
		struct group *last = count ? &groups[count - 1] : NULL;

		if (last && last->first + last->count == &build->all[i] && !compare_keys(last->first[0], source) &&
		    source->wanted) {
			last->count++;
		} else if (source->wanted && (source->recorded || source->count.calls)) {
			last = &groups[count++];
			*last = (struct group){ &build->all[i], 1, 0 };
		} else {
			continue;
		}
		last->total += source->duration ? statistics_sum(source->duration) : 0;
	}
	qsort(groups, count, sizeof(*groups), by_total);
	return count;
}

int survey_programs(struct study_build *build)
{
	struct group *groups = calloc(build->source_count ?: 1, sizeof(*groups));
	size_t count;
	int error = 0;

	if (!groups)
		return -ENOMEM;
	count = build->source_count ? make_groups(build, groups) : 0;
	build->builders = calloc(count ?: 1, sizeof(*build->builders));
	build->programs = calloc(count ?: 1, sizeof(*build->programs));
	build->view.programs = build->programs;
	if (!build->builders || !build->programs)
		error = -ENOMEM;
	for (size_t i = 0; i < count && !error; i++) {
		struct study_program *program = &build->programs[i];

		build->builders[i].view = program;
		build->view.program_count = i + 1;
		error = make_program(build, &build->builders[i], &groups[i]);
		build->regions |= program->region;
		if (program->first_start && (!build->view.start || program->first_start < build->view.start))
			build->view.start = program->first_start;
		if (program->last_end > build->view.end)
			build->view.end = program->last_end;
	}
	free(groups);
	return error;
}

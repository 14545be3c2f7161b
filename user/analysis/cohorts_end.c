/* SPDX-License-Identifier: BSD-2-Clause */
/* Sums become means, and everything is put in its order. */
#include "analysis/study_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "model/stats/statistics.h"

#define VECTOR_CELLS_MAX (4u << 20) /* of a program: its operators times its vectors */
#define VECTOR_CELLS_TOTAL (16u << 20)

static int by_party_time(const void *left, const void *right)
{
	const struct study_party *a = left, *b = right;

	if (a->time != b->time)
		return a->time > b->time ? -1 : 1;
	return strcmp(a->name, b->name);
}

static void end_cohort(struct cohort_sum *sum, struct study_cohort *view)
{
	/* The measures are doubles only. */
	double *values = (double *)&sum->sum;

	for (size_t i = 0; sum->count && i < sizeof(sum->sum) / sizeof(double); i++)
		values[i] /= (double)sum->count;
	if (sum->party_count)
		qsort(sum->parties, sum->party_count, sizeof(*sum->parties), by_party_time);
	*view = (struct study_cohort){ .count = sum->count,
				       .failed = sum->failed,
				       .least = sum->least,
				       .most = sum->most,
				       .mean = sum->sum,
				       .states = sum->states,
				       .operators = sum->operators,
				       .parties = sum->parties,
				       .party_count = sum->party_count };
}

static void end_share(struct study_share *share, __u64 count)
{
	double *values = (double *)share;

	for (size_t i = 0; count && i < sizeof(*share) / sizeof(double); i++)
		values[i] /= (double)count;
}

static int by_self(const void *left, const void *right, void *context)
{
	const struct operator_sum *all = context;
	const struct study_operator *a = &all[*(const __u32 *)left].view, *b = &all[*(const __u32 *)right].view;

	if (a->apart != b->apart)
		return a->apart ? 1 : -1;
	if (a->self != b->self)
		return a->self > b->self ? -1 : 1;
	return strcmp(a->label, b->label);
}

static int end_operators(struct builder *builder)
{
	const size_t count = builder->operator_count;
	struct study_operator *views = calloc(count ?: 1, sizeof(*views));
	__u32 *sorted = calloc(count ?: 1, sizeof(*sorted));

	builder->order = calloc(count ?: 1, sizeof(*builder->order));
	builder->view->operators = views;
	if (!views || !sorted || !builder->order) {
		free(sorted);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++) {
		end_share(&builder->operators[i].view.typical, builder->typical.count);
		end_share(&builder->operators[i].view.slow, builder->slow.count);
		sorted[i] = (__u32)i;
	}
	qsort_r(sorted, count, sizeof(*sorted), by_self, builder->operators);
	for (size_t i = 0; i < count; i++) {
		views[i] = builder->operators[sorted[i]].view;
		builder->order[sorted[i]] = (__u32)i;
	}
	builder->view->operator_count = count;
	free(sorted);
	return 0;
}

static int by_start(const void *left, const void *right, void *context)
{
	const struct study_sample *all = context;
	const struct study_sample *a = &all[*(const __u32 *)left], *b = &all[*(const __u32 *)right];

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return *(const __u32 *)left < *(const __u32 *)right ? -1 : 1;
}

/* Each stands for those that were not kept: all the slow ones, or all others. */
static void weigh(struct builder *builder, struct study_sample *sample)
{
	const __u64 fast = builder->all.count - builder->slow_seen;

	if (sample->flags & STUDY_SLOW)
		sample->weight = (float)((double)builder->slow_seen / (double)builder->slow_kept);
	else
		sample->weight = (float)((double)fast / (double)builder->drawn_fast);
}

static int end_samples(struct builder *builder)
{
	const size_t count = builder->sample_count;
	struct study_sample *samples = calloc(count ?: 1, sizeof(*samples));
	__u32 *sorted = calloc(count ?: 1, sizeof(*sorted)), *places = calloc(count ?: 1, sizeof(*places));
	int error = samples && sorted && places ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < count; i++)
		sorted[i] = (__u32)i;
	if (!error)
		qsort_r(sorted, count, sizeof(*sorted), by_start, builder->samples);
	for (size_t i = 0; !error && i < count; i++) {
		samples[i] = builder->samples[sorted[i]];
		weigh(builder, &samples[i]);
		places[sorted[i]] = (__u32)i;
	}
	for (size_t i = 0; !error && i < builder->vector_count; i++)
		builder->vector_samples[i] = places[builder->vector_samples[i]];
	free(sorted);
	free(places);
	free(builder->samples);
	builder->samples = samples;
	builder->view->samples = samples;
	builder->view->sample_count = error ? 0 : count;
	return error;
}

/* From a list to a matrix. */
static int end_vectors(struct builder *builder, size_t *room)
{
	const size_t operators = builder->operator_count ?: 1;
	size_t most = *room < VECTOR_CELLS_MAX ? *room : VECTOR_CELLS_MAX;
	size_t count = builder->vector_count;

	if (count > most / operators)
		count = most / operators;
	*room -= count * operators;
	builder->vectors = calloc(count * operators ?: 1, sizeof(*builder->vectors));
	if (!builder->vectors)
		return -ENOMEM;
	for (size_t i = 0; i < builder->item_count; i++) {
		const struct vector_item *item = &builder->items[i];

		if (item->sample < count)
			builder->vectors[item->sample * operators + builder->order[item->operator]] = item->self;
	}
	free(builder->items);
	builder->items = NULL;
	builder->view->vectors = builder->vectors;
	builder->view->vector_samples = builder->vector_samples;
	builder->view->vector_count = count;
	return 0;
}

/* How CPU time outside of operators follows page faults: a line through all inferences. */
static void end_fit(struct builder *builder)
{
	const double n = builder->fit.count;
	const double faults = n * builder->fit.faults_squared - builder->fit.faults * builder->fit.faults;
	const double cpu = n * builder->fit.cpu_squared - builder->fit.cpu * builder->fit.cpu;
	const double both = n * builder->fit.product - builder->fit.faults * builder->fit.cpu;

	if (n < 3 || faults <= 0 || cpu <= 0 || both <= 0)
		return;
	builder->view->faults_cost = both / faults * 1000;
	builder->view->faults_fit = both / faults * (both / cpu);
}

int cohorts_end(struct study_build *build)
{
	size_t cells = VECTOR_CELLS_TOTAL;
	int error = 0;

	for (size_t i = 0; i < build->view.program_count && !error; i++) {
		struct builder *builder = &build->builders[i];
		struct study_program *view = builder->view;

		end_cohort(&builder->typical, &view->typical);
		end_cohort(&builder->slow, &view->slow);
		end_cohort(&builder->all, &view->all);
		end_fit(builder);
		view->has_reasons = build->view.has_reasons;
		build->view.has_states |= view->has_states;
		build->view.has_operators |= view->has_operators;
		build->view.has_jobs |= view->has_jobs;
		error = end_operators(builder);
		error = error ?: end_samples(builder);
		error = error ?: end_vectors(builder, &cells);
	}
	return error;
}

void builder_free(struct builder *builder)
{
	struct study_program *view = builder->view;

	for (size_t i = 0; i < builder->operator_count; i++)
		statistics_free(builder->operators[i].duration);
	free(builder->operators);
	free(builder->order);
	free(builder->items);
	free(builder->vector_samples);
	free(builder->vectors);
	free(builder->samples);
	free(builder->typical.parties);
	free(builder->slow.parties);
	if (!view)
		return;
	statistics_free((struct statistics *)view->duration);
	free((void *)view->operators);
	free((void *)view->processes);
}

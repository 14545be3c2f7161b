/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the change of a duration consists of. The time of an inference is divided into what its thread waited, was blocked by
 * reason, and ran; what it ran into its operators and the rest. How much of an operator's time the thread did not run is known of the
 * slow and the typical inferences only: the share that it has there is taken off.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_private.h"
#include "base/core/vec.h"

#define PART_LEAST 0.01 /* of the change: smaller parts are in the rest */
#define PARTS_MAX 12
#define VECTORS_LEAST 5

struct builder {
	const struct diff_side *side; /* [2] */
	struct diff_window window[2];
	bool slow; /* off-CPU shares are of the slow cohort */
	struct xpt_diff_part *parts;
	size_t count;
};

/* The time off the CPU, without what is not known. */
static double off_cpu(const struct diff_window *window)
{
	double sum = 0;

	for (int c = COMPONENT_WAITED; c < COMPONENT_UNKNOWN; c++)
		sum += window->component[c];
	return sum;
}

/* ns that the thread ran in each operator, instead of their self times. */
static void take_off_cpu(struct builder *builder, int s, int ran)
{
	const struct study_program *program = builder->side[s].program;
	const struct study_cohort *cohort = builder->slow ? &program->slow : &program->typical;
	struct diff_window *window = &builder->window[s];
	const double all = off_cpu(window);
	double off = 0, sum = 0;

	for (int c = COMPONENT_WAITED; c < COMPONENT_UNKNOWN; c++)
		off += cohort->mean.component[c];
	for (size_t i = 0; i < program->operator_count; i++) {
		const struct study_operator *operator= & program->operators[i];
		const struct study_share *share = builder->slow ? &operator->slow : & operator->typical;

		if (off > 0)
			window->operators[i] = fmax(0, window->operators[i] -
							       fmin(1, (share->waited + share->blocked) / off) * all);
		sum += window->operators[i];
	}
	/* They cannot have run longer than the thread. */
	for (size_t i = 0; i < program->operator_count && sum > window->component[ran]; i++)
		window->operators[i] *= window->component[ran] / sum;
}

static int add_part(struct builder *builder, enum xpt_diff_kind kind, const char *name, double before, double after)
{
	if (before == after)
		return 0;
	return vec_push(builder->parts, builder->count,
			(struct xpt_diff_part){ kind, name, before, after, after - before });
}

/* What is left of the time that the thread ran is outside all of them. */
static int add_operators(struct builder *builder, int ran)
{
	const struct study_program *before = builder->side[0].program, *after = builder->side[1].program;
	double outside[2] = { builder->window[0].component[ran], builder->window[1].component[ran] };
	const double *self[2] = { builder->window[0].operators, builder->window[1].operators };
	int error = 0;

	take_off_cpu(builder, 0, ran);
	take_off_cpu(builder, 1, ran);

	for (size_t i = 0; i < after->operator_count && !error; i++) {
		const size_t other = diff_find_operator(before, &after->operators[i]);
		const double old = other == ~0ul ? 0 : self[0][other], new = self[1][i];

		outside[0] -= old;
		outside[1] -= new;
		error = add_part(builder, XPT_DIFF_OPERATOR, after->operators[i].label, old, new);
	}
	for (size_t i = 0; i < before->operator_count && !error; i++) {
		const double old = self[0][i];

		if (diff_find_operator(after, &before->operators[i]) != ~0ul)
			continue;
		outside[0] -= old;
		error = add_part(builder, XPT_DIFF_OPERATOR, before->operators[i].label, old, 0);
	}
	return error ?: add_part(builder, XPT_DIFF_OUTSIDE, "outside operators", outside[0], outside[1]);
}

static int compare_parts(const void *left, const void *right)
{
	const double a = fabs(((const struct xpt_diff_part *)left)->change),
		     b = fabs(((const struct xpt_diff_part *)right)->change);

	return a > b ? -1 : a < b;
}

static int add_parts(struct builder *builder)
{
	const struct diff_window *window = builder->window;
	const bool states = builder->side[0].program->has_states && builder->side[1].program->has_states;
	const int ran = states ? COMPONENT_CPU : COMPONENT_UNKNOWN;
	int error = 0;

	for (int c = 0; c < STUDY_COMPONENTS && !error; c++)
		if (c != ran)
			error = add_part(builder, XPT_DIFF_STATE, study_component_name(c), window[0].component[c],
					 window[1].component[c]);
	if (error)
		return error;
	if (window[0].vectors >= VECTORS_LEAST && window[1].vectors >= VECTORS_LEAST)
		return add_operators(builder, ran);
	return add_part(builder, XPT_DIFF_STATE, study_component_name(ran), window[0].component[ran],
			window[1].component[ran]);
}

static int fill_cause(struct diff_pair *pair, const struct xpt_diff_row *row, struct xpt_diff_cause *cause)
{
	double quantile = 0.5, reach = diff_quantile_reach(row->name, &quantile) ?: 0.5;
	struct builder builder = { .side = pair->side, .slow = quantile != 0.5 || reach == 0.5 };
	int error = 0;

	for (int s = 0; s < 2 && !error; s++) {
		builder.window[s].operators = calloc(pair->side[s].program->operator_count ?: 1, sizeof(double));
		error = builder.window[s].operators ? 0 : -ENOMEM;
		error = error ?: diff_window(pair, &pair->side[s], quantile, reach, &builder.window[s]);
	}
	error = error ?: add_parts(&builder);
	free(builder.window[0].operators);
	free(builder.window[1].operators);
	if (builder.count)
		qsort(builder.parts, builder.count, sizeof(*builder.parts), compare_parts);
	*cause = (struct xpt_diff_cause){
		row->name, row->change, builder.parts, 0, sizeof(*builder.parts), row->change
	};
	while (cause->part_count < builder.count && cause->part_count < PARTS_MAX &&
	       fabs(builder.parts[cause->part_count].change) >= PART_LEAST * fabs(row->change))
		cause->rest -= builder.parts[cause->part_count++].change;
	return error;
}

int diff_causes(struct diff_pair *pair, const struct xpt_diff_row *rows, size_t row_count,
		struct xpt_diff_cause **causes, size_t *count)
{
	int error = 0;

	for (size_t i = 0; i < row_count && !error; i++) {
		if (rows[i].kind != XPT_DIFF_DURATION || !strcmp(rows[i].name, "p90"))
			continue;
		error = vec_reserve(*causes, *count);
		if (!error)
			error = fill_cause(pair, &rows[i], &(*causes)[(*count)++]);
	}
	return error;
}

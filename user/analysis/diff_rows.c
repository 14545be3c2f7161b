/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a comparison: figures of both sides, and whether they differ. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_private.h"
#include "base/core/vec.h"
#include "model/stats/statistics.h"

#define STATE_LEAST 0.001 /* of the mean duration */
#define MIDDLE_REACH 0.25 /* around the median: inferences that operators are compared in */
#define TAIL_LEAST 5	  /* inferences beyond a quantile that is tested by blocks */

/* ---- figures of a side ---- */

/* Of a sample: a component, or one of these. */
enum {
	MEASURE_DURATION = STUDY_COMPONENTS,
	MEASURE_QUEUE,
	MEASURE_DEVICE,
	MEASURE_FAILED,
};

static double sample_measure(const struct study_sample *sample, int measure)
{
	switch (measure) {
	case MEASURE_DURATION:
		return sample->duration;
	case MEASURE_QUEUE:
		return sample->queue;
	case MEASURE_DEVICE:
		return sample->device;
	case MEASURE_FAILED:
		return study_has(sample, STUDY_FAILED);
	default:
		return sample->component[measure];
	}
}

/* A figure of one side: one value a recording, or one with an estimate. */
struct figure {
	double *values;		  /* [groups]; NaN: not known */
	struct estimate estimate; /* of blocks; dof 0: there are too few */
	double value;
};

static int figure_begin(struct figure *figure, const struct diff_pair *pair, const struct diff_side *side)
{
	*figure = (struct figure){ .values = calloc(diff_groups(pair, side) ?: 1, sizeof(double)) };
	return figure->values ? 0 : -ENOMEM;
}

/* The mean of the groups' values; values that are not known are removed. Returns their number. */
static size_t figure_value(struct figure *figure, size_t groups)
{
	size_t known = 0;

	figure->value = 0;
	for (size_t i = 0; i < groups; i++)
		if (!isnan(figure->values[i]))
			figure->values[known++] = figure->values[i];
	for (size_t i = 0; i < known; i++)
		figure->value += figure->values[i] / known;
	if (!known)
		figure->value = NAN;
	return known;
}

void diff_add_noise(struct estimate *estimate, double share, double value, double waited)
{
	const double own = share * fmax(0, value - waited), wait = share > 0 ? fmin(waited, value) : 0;
	const double variance = estimate->variance + own * own + wait * wait;

	if (estimate->dof > 0 && estimate->variance > 0)
		estimate->dof *= variance / estimate->variance * (variance / estimate->variance);
	else if (estimate->dof > 0 && variance > 0)
		estimate->dof = INFINITY;
	estimate->variance = variance;
}

/* sums, weights: [units], whose ratio is the figure; with those of samples of no unit beside. */
struct ratio {
	double *sums, *weights;
	double rest_sum, rest_weight;
};

static int ratio_begin(struct ratio *ratio, const struct diff_side *side)
{
	*ratio = (struct ratio){ .sums = calloc(side->units ?: 1, sizeof(double)),
				 .weights = calloc(side->units ?: 1, sizeof(double)) };
	return ratio->sums && ratio->weights ? 0 : -ENOMEM;
}

static void ratio_add(struct ratio *ratio, unsigned int unit, double sum, double weight)
{
	*(unit == ~0u ? &ratio->rest_sum : &ratio->sums[unit]) += sum;
	*(unit == ~0u ? &ratio->rest_weight : &ratio->weights[unit]) += weight;
}

/* Frees it. */
static void ratio_figure(struct ratio *ratio, const struct diff_pair *pair, const struct diff_side *side,
			 struct figure *figure)
{
	double sum = ratio->rest_sum, weight = ratio->rest_weight;

	for (unsigned int i = 0; i < side->units; i++) {
		if (pair->by_recording)
			figure->values[i] = ratio->weights[i] > 0 ? ratio->sums[i] / ratio->weights[i] : NAN;
		sum += ratio->sums[i];
		weight += ratio->weights[i];
	}
	if (!pair->by_recording) {
		figure->values[0] = weight > 0 ? sum / weight : NAN;
		if (side->units >= UNITS_LEAST)
			figure->estimate = block_mean(ratio->sums, ratio->weights, side->units);
		figure->estimate.value = figure->values[0];
	}
	free(ratio->sums);
	free(ratio->weights);
}

/* The model knows more than the samples: the figures of all inferences, quantiles within 1 %. */
static bool has_all(const struct diff_pair *pair, const struct diff_side *side)
{
	const struct statistics *duration = side->program->duration;

	return !pair->by_recording && duration && statistics_count(duration) > side->program->sample_count;
}

static int mean_figure(const struct diff_pair *pair, const struct diff_side *side, int measure, struct figure *figure)
{
	const struct study_program *program = side->program;
	struct ratio ratio;
	int error = ratio_begin(&ratio, side);

	for (size_t i = 0; !error && i < program->sample_count; i++) {
		const struct study_sample *sample = &program->samples[i];

		ratio_add(&ratio, side->unit[i], sample->weight * sample_measure(sample, measure), sample->weight);
	}
	ratio_figure(&ratio, pair, side, figure);
	if (!error && measure == MEASURE_DURATION && has_all(pair, side))
		figure->values[0] = figure->estimate.value = statistics_mean(program->duration);
	return error;
}

/* ---- rows ---- */

void diff_fill_row(struct xpt_diff_row *row, double before, double after, const struct difference *difference)
{
	row->before = before;
	row->after = after;
	row->change = after - before;
	row->percent = before > 0 ? 100 * row->change / before : NAN;
	row->low = difference->low;
	row->high = difference->high;
	row->p = row->adjusted = difference->p;
}

struct builder {
	struct diff_pair *pair;
	struct xpt_diff_row **rows;
	size_t *count;
	double waited[2]; /* share of the durations */
	double duration;  /* ns, the larger mean; 0: not known yet */
};

/* Takes the figures and frees them. waited: how much of each is. */
static int add_row(struct builder *builder, struct xpt_diff_row row, struct figure figures[2], const double waited[2])
{
	const struct diff_pair *pair = builder->pair;
	const double level = pair->options->level;
	size_t known[2];
	struct difference difference;

	for (int s = 0; s < 2; s++) {
		known[s] = figure_value(&figures[s], diff_groups(pair, &pair->side[s]));
		if (!pair->by_recording)
			diff_add_noise(&figures[s].estimate, pair->options->run_noise, figures[s].value, waited[s]);
	}
	difference = pair->by_recording ?
			     group_difference(figures[0].values, known[0], figures[1].values, known[1], level) :
			     welch_difference(&figures[0].estimate, &figures[1].estimate, level);
	diff_fill_row(&row, figures[0].value, figures[1].value, &difference);
	free(figures[0].values);
	free(figures[1].values);
	if (row.kind == XPT_DIFF_DURATION)
		builder->duration = builder->duration ?: fmax(row.before, row.after); /* of the first row, the mean */
	/* What takes next to nothing is no row, which all others would be adjusted for. */
	if ((row.before == 0 && row.after == 0) ||
	    (row.kind == XPT_DIFF_STATE && fmax(row.before, row.after) < STATE_LEAST * builder->duration))
		return 0;
	return vec_push(*builder->rows, *builder->count, row);
}

static int add_mean(struct builder *builder, enum xpt_diff_kind kind, const char *name, const char *unit, int measure)
{
	struct diff_pair *pair = builder->pair;
	struct figure figures[2] = {};
	double waited[2];
	int error = 0;

	for (int s = 0; s < 2 && !error; s++) {
		error = figure_begin(&figures[s], pair, &pair->side[s]);
		error = error ?: mean_figure(pair, &pair->side[s], measure, &figures[s]);
		waited[s] = measure == MEASURE_DURATION ? builder->waited[s] * figures[s].estimate.value :
			    measure == COMPONENT_WAITED || measure == MEASURE_QUEUE ? figures[s].estimate.value :
										      0;
	}
	if (!error)
		return add_row(builder, (struct xpt_diff_row){ .kind = kind, .name = name, .unit = unit }, figures,
			       waited);
	free(figures[0].values);
	free(figures[1].values);
	return error;
}

/* ---- quantiles ---- */

static const struct {
	const char *name;
	double quantile, reach; /* inferences so much around it are alike to those at it */
} quantiles[] = { { "p50", 0.5, 0.05 }, { "p90", 0.9, 0.02 }, { "p99", 0.99, 0.005 } };
#define QUANTILES (sizeof(quantiles) / sizeof(quantiles[0]))

double diff_quantile_reach(const char *name, double *quantile)
{
	for (size_t q = 0; q < QUANTILES; q++) {
		if (!strcmp(quantiles[q].name, name)) {
			*quantile = quantiles[q].quantile;
			return quantiles[q].reach;
		}
	}
	return 0;
}

static int quantile_values(const struct diff_pair *pair, const struct diff_side *side, struct figure *figures)
{
	for (unsigned int group = 0; group < diff_groups(pair, side); group++) {
		size_t count;
		struct weighted *sorted = diff_sort(side, pair->by_recording ? group : ~1u, &count);

		if (!sorted)
			return -ENOMEM;
		for (size_t q = 0; q < QUANTILES; q++) {
			const double quantile = quantiles[q].quantile;

			figures[q].values[group] = !count ? NAN :
						   has_all(pair, side) ?
							    (double)statistics_quantile(side->program->duration,
											quantile) :
							    weighted_quantile(sorted, count, quantile);
		}
		free(sorted);
	}
	return 0;
}

static int quantile_blocks(const struct diff_pair *pair, const struct diff_side *side, struct figure *figures)
{
	double wanted[QUANTILES], all = 0;
	struct estimate estimates[QUANTILES];
	size_t count;
	struct weighted *sorted = diff_sort(side, ~0u, &count);
	int error;

	if (!sorted)
		return -ENOMEM;
	for (size_t q = 0; q < QUANTILES; q++)
		wanted[q] = quantiles[q].quantile;
	for (size_t i = 0; i < count; i++)
		all += sorted[i].weight;
	error = side->units < UNITS_LEAST ?
			0 :
			block_quantiles(sorted, count, side->units, wanted, QUANTILES, pair->options->seed, estimates);
	for (size_t q = 0; !error && side->units >= UNITS_LEAST && q < QUANTILES; q++) {
		figures[q].estimate = estimates[q];
		figures[q].estimate.value = figures[q].values[0];
		if (all * (1 - quantiles[q].quantile) < TAIL_LEAST)
			figures[q].estimate.dof = 0;
	}
	free(sorted);
	return error;
}

static int add_quantiles(struct builder *builder)
{
	struct diff_pair *pair = builder->pair;
	struct figure figures[2][QUANTILES] = {};
	double waited[2];
	int error = 0;

	for (int s = 0; s < 2; s++) {
		for (size_t q = 0; q < QUANTILES; q++)
			error = error ?: figure_begin(&figures[s][q], pair, &pair->side[s]);
		error = error ?: quantile_values(pair, &pair->side[s], figures[s]);
		if (!error && !pair->by_recording)
			error = quantile_blocks(pair, &pair->side[s], figures[s]);
	}
	for (size_t q = 0; q < QUANTILES; q++) {
		struct figure both[2] = { figures[0][q], figures[1][q] };
		struct xpt_diff_row row = { .kind = XPT_DIFF_DURATION, .name = quantiles[q].name, .unit = "ns" };

		for (int s = 0; s < 2 && !error; s++) {
			struct diff_window window = {};

			error = diff_window(pair, &pair->side[s], quantiles[q].quantile, quantiles[q].reach, &window);
			waited[s] = window.component[COMPONENT_WAITED];
		}
		if (!error) {
			error = add_row(builder, row, both, waited);
			continue;
		}
		free(both[0].values);
		free(both[1].values);
	}
	return error;
}

/* ---- throughput ---- */

/* Inferences and the time from the first one's begin, up to that of the next block. */
static int throughput_figure(const struct diff_pair *pair, const struct diff_side *side, struct figure *figure)
{
	const struct study_program *program = side->program;
	const double scale = program->exact && program->recorded ? (double)program->counted / program->recorded : 1;
	struct ratio ratio;
	__u64 *first = calloc(side->study->input_count ?: 1, sizeof(*first));
	size_t *newest = calloc(side->study->input_count ?: 1, sizeof(*newest));
	int error = ratio_begin(&ratio, side);

	if (error || !first || !newest) {
		error = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < program->sample_count; i++) {
		const struct study_sample *sample = &program->samples[i];
		const unsigned int input = sample->input;

		/* The time since the sample before belongs to that one's unit. */
		if (first[input])
			ratio_add(&ratio, side->unit[newest[input]], 0,
				  (sample->start - program->samples[newest[input]].start) / 1e9);
		first[input] = first[input] ?: sample->start ?: 1;
		newest[input] = i;
		ratio_add(&ratio, side->unit[i], sample->weight * scale, 0);
	}
	for (size_t i = 0; i < side->study->input_count; i++)
		if (first[i])
			ratio_add(&ratio, side->unit[newest[i]], 0, program->samples[newest[i]].duration / 1e9);
out:
	free(first);
	free(newest);
	ratio_figure(&ratio, pair, side, figure);
	return error;
}

static int add_throughput(struct builder *builder)
{
	struct diff_pair *pair = builder->pair;
	struct figure figures[2] = {};
	struct xpt_diff_row row = { .kind = XPT_DIFF_THROUGHPUT, .name = "throughput", .unit = "1/s" };
	double waited[2];
	int error = 0;

	for (int s = 0; s < 2 && !error; s++) {
		error = figure_begin(&figures[s], pair, &pair->side[s]);
		error = error ?: throughput_figure(pair, &pair->side[s], &figures[s]);
		waited[s] = builder->waited[s] * figures[s].estimate.value;
	}
	if (!error)
		return add_row(builder, row, figures, waited);
	free(figures[0].values);
	free(figures[1].values);
	return error;
}

/* ---- operators ---- */

size_t diff_find_operator(const struct study_program *program, const struct study_operator *like)
{
	size_t found = ~0ul;

	for (size_t i = 0; i < program->operator_count; i++) {
		const struct study_operator *operator= & program->operators[i];

		if (strcmp(operator->label, like->label) || strcmp(operator->type, like->type))
			continue;
		if (!strcmp(operator->provider ?: "", like->provider ?: ""))
			return i;
		found = found == ~0ul ? i : found;
	}
	return found;
}

/* The durations between which the middle inferences of each group are: of the slow ones, waiting would hide what operators do. */
struct middle {
	double *low, *high; /* [groups] */
	double waited;	    /* share of their time */
};

static int find_middle(const struct diff_pair *pair, const struct diff_side *side, struct middle *middle)
{
	struct diff_window window = {};
	const size_t groups = diff_groups(pair, side);
	double duration = 0;
	int error = diff_window(pair, side, 0.5, MIDDLE_REACH, &window);

	middle->low = calloc(groups ?: 1, sizeof(double));
	middle->high = calloc(groups ?: 1, sizeof(double));
	if (!middle->low || !middle->high)
		return -ENOMEM;
	for (unsigned int group = 0; group < groups && !error; group++) {
		size_t count;
		struct weighted *sorted = diff_sort(side, pair->by_recording ? group : ~1u, &count);

		if (!sorted)
			return -ENOMEM;
		middle->low[group] = weighted_quantile(sorted, count, 0.5 - MIDDLE_REACH);
		middle->high[group] = weighted_quantile(sorted, count, 0.5 + MIDDLE_REACH);
		free(sorted);
	}
	for (int c = 0; c < STUDY_COMPONENTS; c++)
		duration += window.component[c];
	middle->waited = duration > 0 ? window.component[COMPONENT_WAITED] / duration : 0;
	return error;
}

static int operator_figure(const struct diff_pair *pair, const struct diff_side *side, const struct middle *middle,
			   size_t which, struct figure *figure)
{
	const struct study_program *program = side->program;
	struct ratio ratio;
	int error = ratio_begin(&ratio, side);

	for (size_t i = 0; !error && i < program->vector_count; i++) {
		const __u32 sample = program->vector_samples[i];
		const __u64 duration = program->samples[sample].duration;
		const unsigned int group = pair->by_recording ? side->unit[sample] : 0;

		if (duration >= middle->low[group] && duration <= middle->high[group])
			ratio_add(&ratio, side->unit[sample],
				  which == ~0ul ? 0 : program->vectors[i * program->operator_count + which], 1);
	}
	ratio_figure(&ratio, pair, side, figure);
	return error;
}

static int add_operator(struct builder *builder, const struct middle middle[2], const struct study_operator *operator,
			const size_t which[2])
{
	struct diff_pair *pair = builder->pair;
	struct figure figures[2] = {};
	struct xpt_diff_row row = { .kind = XPT_DIFF_OPERATOR, .name = operator->label, .unit = "ns" };
	const size_t count = *builder->count;
	double waited[2];
	int error = 0;

	for (int s = 0; s < 2 && !error; s++) {
		error = figure_begin(&figures[s], pair, &pair->side[s]);
		error = error ?: operator_figure(pair, &pair->side[s], &middle[s], which[s], &figures[s]);
		waited[s] = middle[s].waited * figures[s].estimate.value;
	}
	error = error ?: add_row(builder, row, figures, waited);
	if (!error && *builder->count > count) {
		struct xpt_diff_row *added = &(*builder->rows)[count];

		if (which[0] == ~0ul)
			added->before = added->percent = NAN;
		if (which[1] == ~0ul)
			added->after = added->percent = NAN;
	}
	return error;
}

static int add_operators(struct builder *builder)
{
	const struct study_program *before = builder->pair->side[0].program, *after = builder->pair->side[1].program;
	struct middle middle[2] = {};
	int error = 0;

	if (!before->vector_count || !after->vector_count)
		return 0;
	for (int s = 0; s < 2; s++)
		error = error ?: find_middle(builder->pair, &builder->pair->side[s], &middle[s]);
	for (size_t i = 0; i < after->operator_count && i < DIFF_ROWS_MAX && !error; i++) {
		const size_t which[2] = { diff_find_operator(before, &after->operators[i]), i };

		if (!after->operators[i].apart)
			error = add_operator(builder, middle, &after->operators[i], which);
	}
	for (size_t i = 0; i < before->operator_count && i < DIFF_ROWS_MAX && !error; i++) {
		const size_t which[2] = { i, ~0ul };

		if (!before->operators[i].apart && diff_find_operator(after, &before->operators[i]) == ~0ul)
			error = add_operator(builder, middle, &before->operators[i], which);
	}
	for (int s = 0; s < 2; s++) {
		free(middle[s].low);
		free(middle[s].high);
	}
	return error;
}

/* ---- all of a program ---- */

static double waited_share(const struct diff_side *side)
{
	const struct study_program *program = side->program;
	double waited = 0, duration = 0;

	for (size_t i = 0; i < program->sample_count; i++) {
		waited += program->samples[i].weight * program->samples[i].component[COMPONENT_WAITED];
		duration += program->samples[i].weight * program->samples[i].duration;
	}
	return duration > 0 ? waited / duration : 0;
}

int diff_rows(struct diff_pair *pair, struct xpt_diff_row **rows, size_t *count)
{
	const struct study_program *before = pair->side[0].program, *after = pair->side[1].program;
	struct builder builder = {
		pair, rows, count, { waited_share(&pair->side[0]), waited_share(&pair->side[1]) }, 0
	};
	int error = add_mean(&builder, XPT_DIFF_DURATION, "mean", "ns", MEASURE_DURATION);

	error = error ?: add_quantiles(&builder);
	error = error ?: add_throughput(&builder);
	error = error ?: add_mean(&builder, XPT_DIFF_ERRORS, "errors", "", MEASURE_FAILED);
	for (int i = 0; i < COMPONENT_UNKNOWN && before->has_states && after->has_states; i++)
		error = error ?: add_mean(&builder, XPT_DIFF_STATE, study_component_name(i), "ns", i);
	if (before->has_jobs || after->has_jobs) {
		error = error ?: add_mean(&builder, XPT_DIFF_DEVICE, "device", "ns", MEASURE_DEVICE);
		error = error ?: add_mean(&builder, XPT_DIFF_DEVICE, "queue", "ns", MEASURE_QUEUE);
	}
	return error ?: add_operators(&builder);
}

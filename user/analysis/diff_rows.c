/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of a comparison: figures of both sides, and whether they differ. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_private.h"
#include "base/core/vec.h"

#define RECORDINGS_LEAST 4    /* of both sides together, */
#define RECORDINGS_ONE_SIDE 3 /* and of one of them: each is one value then */
#define UNITS_LEAST 4	      /* blocks */
#define TAIL_LEAST 5	      /* inferences beyond a quantile that is tested by blocks */

/* ---- units ---- */

/* Whether each recording is one value. */
static bool is_by_recording(size_t before, size_t after)
{
	return before + after >= RECORDINGS_LEAST && (before > after ? before : after) >= RECORDINGS_ONE_SIDE;
}

/* How many samples each recording has, and which of those with any it is: index[input]. */
static unsigned int count_recordings(const struct diff_side *side, size_t *counts, unsigned int *index)
{
	const struct study_program *program = side->program;
	unsigned int recordings = 0;

	for (size_t i = 0; i < program->sample_count; i++)
		counts[program->samples[i].input]++;
	for (size_t i = 0; i < side->study->input_count; i++)
		index[i] = counts[i] ? recordings++ : ~0u;
	return recordings;
}

/* Blocks of equal numbers of samples in order of time; a recording with few has fewer, or none. */
static unsigned int assign_blocks(struct diff_side *side, const size_t *counts)
{
	const struct study_program *program = side->program;
	const size_t inputs = side->study->input_count;
	unsigned int *first = calloc(inputs, sizeof(*first)), units = 0;
	size_t *seen = calloc(inputs, sizeof(*seen)), *blocks = calloc(inputs, sizeof(*blocks));

	if (!first || !seen || !blocks) {
		units = ~0u;
		goto out;
	}
	for (size_t i = 0; i < inputs; i++) {
		blocks[i] = counts[i] / BLOCK_LEAST >= BLOCKS ? BLOCKS : counts[i] / BLOCK_LEAST & ~1ul;
		if (blocks[i] < UNITS_LEAST || units + blocks[i] > BLOCKS_MAX)
			blocks[i] = 0;
		first[i] = units;
		units += blocks[i];
	}
	for (size_t i = 0; i < program->sample_count; i++) {
		const unsigned int input = program->samples[i].input;

		side->unit[i] = blocks[input] ? first[input] + seen[input]++ * blocks[input] / counts[input] : ~0u;
	}
out:
	free(first);
	free(seen);
	free(blocks);
	return units;
}

int diff_pair_create(struct diff_pair *pair)
{
	size_t *counts[2] = {};
	unsigned int *index[2] = {};
	int error = 0;

	for (int s = 0; s < 2; s++) {
		struct diff_side *side = &pair->side[s];

		side->unit = calloc(side->program->sample_count ?: 1, sizeof(*side->unit));
		counts[s] = calloc(side->study->input_count ?: 1, sizeof(*counts[s]));
		index[s] = calloc(side->study->input_count ?: 1, sizeof(*index[s]));
		if (!side->unit || !counts[s] || !index[s]) {
			error = -ENOMEM;
			goto out;
		}
		side->recordings = count_recordings(side, counts[s], index[s]);
	}
	pair->by_recording = is_by_recording(pair->side[0].recordings, pair->side[1].recordings);
	for (int s = 0; s < 2; s++) {
		struct diff_side *side = &pair->side[s];

		side->units = pair->by_recording ? side->recordings : assign_blocks(side, counts[s]);
		if (side->units == ~0u)
			error = -ENOMEM;
		for (size_t i = 0; pair->by_recording && i < side->program->sample_count; i++)
			side->unit[i] = index[s][side->program->samples[i].input];
	}
out:
	for (int s = 0; s < 2; s++) {
		free(counts[s]);
		free(index[s]);
	}
	return error;
}

void diff_pair_free(struct diff_pair *pair)
{
	free(pair->side[0].unit);
	free(pair->side[1].unit);
}

/* ---- figures of a side ---- */

static size_t group_count(const struct diff_pair *pair, const struct diff_side *side)
{
	return pair->by_recording ? side->recordings : 1;
}

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
	*figure = (struct figure){ .values = calloc(group_count(pair, side) ?: 1, sizeof(double)) };
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

/* What recordings differ by without being seen to: of a figure of which so much is waiting for a CPU. */
static void add_noise(struct estimate *estimate, double share, double value, double waited)
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
	return error;
}

/* ---- rows ---- */

static void fill_row(struct xpt_diff_row *row, double before, double after, const struct difference *difference)
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
};

/* Takes the figures and frees them. waited: how much of each is. */
static int add_row(struct builder *builder, struct xpt_diff_row row, struct figure figures[2], const double waited[2])
{
	const struct diff_pair *pair = builder->pair;
	const double level = pair->options->level;
	size_t known[2];
	struct difference difference;

	for (int s = 0; s < 2; s++) {
		known[s] = figure_value(&figures[s], group_count(pair, &pair->side[s]));
		if (!pair->by_recording)
			add_noise(&figures[s].estimate, pair->options->run_noise, figures[s].value, waited[s]);
	}
	difference = pair->by_recording ?
			     group_difference(figures[0].values, known[0], figures[1].values, known[1], level) :
			     welch_difference(&figures[0].estimate, &figures[1].estimate, level);
	fill_row(&row, figures[0].value, figures[1].value, &difference);
	free(figures[0].values);
	free(figures[1].values);
	if (row.before == 0 && row.after == 0)
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

/* The samples of a group, or with ~0 those of any unit, or with ~1 all, by duration. NULL: no memory. */
static struct weighted *sort_samples(const struct diff_side *side, unsigned int group, size_t *count)
{
	const struct study_program *program = side->program;
	struct weighted *sorted = calloc(program->sample_count ?: 1, sizeof(*sorted));

	*count = 0;
	for (size_t i = 0; sorted && i < program->sample_count; i++) {
		const struct study_sample *sample = &program->samples[i];

		if (group == ~1u || side->unit[i] == group || (group == ~0u && side->unit[i] != ~0u))
			sorted[(*count)++] = (struct weighted){ sample->duration, sample->weight, side->unit[i] };
	}
	if (sorted)
		weighted_sort(sorted, *count);
	return sorted;
}

static int quantile_values(const struct diff_pair *pair, const struct diff_side *side, struct figure *figures)
{
	for (unsigned int group = 0; group < group_count(pair, side); group++) {
		size_t count;
		struct weighted *sorted = sort_samples(side, pair->by_recording ? group : ~1u, &count);

		if (!sorted)
			return -ENOMEM;
		for (size_t q = 0; q < QUANTILES; q++)
			figures[q].values[group] = count ? weighted_quantile(sorted, count, quantiles[q].quantile) :
							   NAN;
		free(sorted);
	}
	return 0;
}

static int quantile_blocks(const struct diff_pair *pair, const struct diff_side *side, struct figure *figures)
{
	double wanted[QUANTILES], all = 0;
	struct estimate estimates[QUANTILES];
	size_t count;
	struct weighted *sorted = sort_samples(side, ~0u, &count);
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

/* Adds means over the samples of a group whose duration is from low to high. */
static void add_window(const struct diff_pair *pair, const struct diff_side *side, unsigned int group, double low,
		       double high, struct diff_window *window)
{
	const struct study_program *program = side->program;
	double sums[STUDY_COMPONENTS] = {}, weight = 0;

	for (size_t i = 0; i < program->sample_count; i++) {
		const struct study_sample *sample = &program->samples[i];

		if ((pair->by_recording && side->unit[i] != group) || sample->duration < low || sample->duration > high)
			continue;
		for (int c = 0; c < STUDY_COMPONENTS; c++)
			sums[c] += sample->weight * (double)sample->component[c];
		weight += sample->weight;
	}
	for (int c = 0; c < STUDY_COMPONENTS && weight > 0; c++)
		window->component[c] += sums[c] / weight;
	window->groups += weight > 0;
	for (size_t i = 0; i < program->vector_count && window->operators; i++) {
		const __u32 which = program->vector_samples[i];
		const __u64 duration = program->samples[which].duration;

		if ((pair->by_recording && side->unit[which] != group) || duration < low || duration > high)
			continue;
		for (size_t o = 0; o < program->operator_count; o++)
			window->operators[o] += program->vectors[i * program->operator_count + o];
		window->vectors++;
	}
}

int diff_window(const struct diff_pair *pair, const struct diff_side *side, double quantile, double reach,
		struct diff_window *window)
{
	for (unsigned int group = 0; group < group_count(pair, side); group++) {
		size_t count;
		struct weighted *sorted = sort_samples(side, pair->by_recording ? group : ~1u, &count);

		if (!sorted)
			return -ENOMEM;
		add_window(pair, side, group, weighted_quantile(sorted, count, quantile - reach),
			   weighted_quantile(sorted, count, quantile + reach), window);
		free(sorted);
	}
	for (int c = 0; c < STUDY_COMPONENTS && window->groups; c++)
		window->component[c] /= window->groups;
	for (size_t o = 0; window->vectors && o < side->program->operator_count; o++)
		window->operators[o] /= window->vectors;
	return 0;
}

/* ---- throughput ---- */

/* Inferences and the time from the first one's begin, up to that of the next block. */
static int throughput_figure(const struct diff_pair *pair, const struct diff_side *side, struct figure *figure)
{
	const struct study_program *program = side->program;
	const double scale = program->exact && program->recorded ? (double)program->counted / program->recorded : 1;
	struct ratio ratio;
	__u64 *first = calloc(side->study->input_count, sizeof(*first));
	size_t *newest = calloc(side->study->input_count, sizeof(*newest));
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

static int operator_figure(const struct diff_pair *pair, const struct diff_side *side, size_t which,
			   struct figure *figure)
{
	const struct study_program *program = side->program;
	struct ratio ratio;
	int error = ratio_begin(&ratio, side);

	for (size_t i = 0; !error && i < program->vector_count; i++)
		ratio_add(&ratio, side->unit[program->vector_samples[i]],
			  which == ~0ul ? 0 : program->vectors[i * program->operator_count + which], 1);
	ratio_figure(&ratio, pair, side, figure);
	/* Of one recording it is known exactly. */
	if (!pair->by_recording && which != ~0ul && program->all.operators)
		figure->values[0] = figure->estimate.value = program->operators[which].self / program->all.operators;
	return error;
}

static int add_operator(struct builder *builder, const struct study_operator *operator, const size_t which[2])
{
	struct diff_pair *pair = builder->pair;
	struct figure figures[2] = {};
	struct xpt_diff_row row = { .kind = XPT_DIFF_OPERATOR, .name = operator->label, .unit = "ns" };
	double waited[2];
	int error = 0;

	for (int s = 0; s < 2 && !error; s++) {
		error = figure_begin(&figures[s], pair, &pair->side[s]);
		error = error ?: operator_figure(pair, &pair->side[s], which[s], &figures[s]);
		waited[s] = builder->waited[s] * figures[s].estimate.value;
	}
	error = error ?: add_row(builder, row, figures, waited);
	if (!error && *builder->count) {
		struct xpt_diff_row *added = &(*builder->rows)[*builder->count - 1];

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
	int error = 0;

	if (!before->vector_count || !after->vector_count)
		return 0;
	for (size_t i = 0; i < after->operator_count && i < DIFF_ROWS_MAX && !error; i++) {
		const size_t which[2] = { diff_find_operator(before, &after->operators[i]), i };

		if (!after->operators[i].apart)
			error = add_operator(builder, &after->operators[i], which);
	}
	for (size_t i = 0; i < before->operator_count && i < DIFF_ROWS_MAX && !error; i++) {
		const size_t which[2] = { i, ~0ul };

		if (!before->operators[i].apart && diff_find_operator(after, &before->operators[i]) == ~0ul)
			error = add_operator(builder, &before->operators[i], which);
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
	struct builder builder = { pair, rows, count, { waited_share(&pair->side[0]), waited_share(&pair->side[1]) } };
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

/* ---- counters ---- */

/* Means of blocks of bins. */
static struct estimate counter_estimate(const struct study *study, const struct study_counter *counter)
{
	double sums[BLOCKS] = {}, weights[BLOCKS] = {};
	struct estimate estimate;
	unsigned int with = 0;

	for (unsigned int i = 0; i < study->bins; i++) {
		if (isnan(counter->mean[i]))
			continue;
		sums[i * BLOCKS / study->bins] += counter->mean[i];
		weights[i * BLOCKS / study->bins]++;
	}
	for (unsigned int i = 0; i < BLOCKS; i++)
		with += weights[i] > 0;
	estimate = block_mean(sums, weights, BLOCKS);
	if (with < BLOCKS / 2)
		estimate.dof = 0;
	estimate.value = counter->counter->mean;
	return estimate;
}

/* Values of the recordings that have a counter of this name; *estimate is of the last one. NULL: no memory. */
static double *counter_values(const struct study *study, const char *name, size_t *count, struct estimate *estimate)
{
	double *values = calloc(study->counter_count ?: 1, sizeof(*values));

	for (size_t i = 0; values && i < study->counter_count; i++) {
		const struct model_counter *counter = study->counters[i].counter;

		if (strcmp(counter->name, name) || !counter->emitted)
			continue;
		values[(*count)++] = counter->mean;
		*estimate = counter_estimate(study, &study->counters[i]);
	}
	return values;
}

static int add_counter(const struct diff_options *options, const struct study *before, const struct study *after,
		       const struct model_counter *counter, struct xpt_diff_row **rows, size_t *count)
{
	struct estimate estimates[2] = {};
	size_t known[2] = {};
	double *values[2] = { counter_values(before, counter->name, &known[0], &estimates[0]),
			      counter_values(after, counter->name, &known[1], &estimates[1]) };
	struct xpt_diff_row row = { .kind = XPT_DIFF_COUNTER, .name = counter->name, .unit = counter->unit };
	struct difference difference;
	int error = values[0] && values[1] ? 0 : -ENOMEM;

	if (!error && known[0]) {
		for (int s = 0; s < 2; s++)
			add_noise(&estimates[s], options->run_noise, fabs(estimates[s].value), 0);
		difference = is_by_recording(known[0], known[1]) ?
				     group_difference(values[0], known[0], values[1], known[1], options->level) :
				     welch_difference(&estimates[0], &estimates[1], options->level);
		fill_row(&row, mean_estimate(values[0], known[0]).value, mean_estimate(values[1], known[1]).value,
			 &difference);
		error = vec_push(*rows, *count, row);
	}
	free(values[0]);
	free(values[1]);
	return error;
}

int diff_counter_rows(const struct diff_options *options, const struct study *before, const struct study *after,
		      struct xpt_diff_row **rows, size_t *count)
{
	int error = 0;

	for (size_t i = 0; i < after->counter_count && *count < DIFF_ROWS_MAX && !error; i++) {
		const struct model_counter *counter = after->counters[i].counter;
		bool seen = false;

		for (size_t k = 0; k < i; k++)
			seen = seen || !strcmp(after->counters[k].counter->name, counter->name);
		if (counter->emitted && !seen)
			error = add_counter(options, before, after, counter, rows, count);
	}
	return error;
}

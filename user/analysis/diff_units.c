/* SPDX-License-Identifier: BSD-2-Clause */
/* What a figure is measured in: recordings, or blocks of them; and the inferences around a quantile. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/diff_private.h"

#define RECORDINGS_LEAST 4    /* of both sides together, */
#define RECORDINGS_ONE_SIDE 3 /* and of one of them: each is one value then */

/* ---- units ---- */

bool diff_by_recording(size_t before, size_t after)
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
	unsigned int *first = calloc(inputs ?: 1, sizeof(*first)), units = 0;
	size_t *seen = calloc(inputs ?: 1, sizeof(*seen)), *blocks = calloc(inputs ?: 1, sizeof(*blocks));

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
	pair->by_recording = diff_by_recording(pair->side[0].recordings, pair->side[1].recordings);
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

size_t diff_groups(const struct diff_pair *pair, const struct diff_side *side)
{
	return pair->by_recording ? side->recordings : 1;
}

/* ---- quantiles ---- */

struct weighted *diff_sort(const struct diff_side *side, unsigned int group, size_t *count)
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
	for (unsigned int group = 0; group < diff_groups(pair, side); group++) {
		size_t count;
		struct weighted *sorted = diff_sort(side, pair->by_recording ? group : ~1u, &count);

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

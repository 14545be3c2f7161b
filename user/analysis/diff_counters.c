/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters of the machine in a comparison. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/diff_private.h"
#include "base/core/vec.h"

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
			diff_add_noise(&estimates[s], options->run_noise, fabs(estimates[s].value), 0);
		difference = diff_by_recording(known[0], known[1]) ?
				     group_difference(values[0], known[0], values[1], known[1], options->level) :
				     welch_difference(&estimates[0], &estimates[1], options->level);
		diff_fill_row(&row, mean_estimate(values[0], known[0]).value, mean_estimate(values[1], known[1]).value,
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

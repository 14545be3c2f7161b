/* SPDX-License-Identifier: BSD-2-Clause */
/* What happened over time: durations of the programs with most time, queues of devices, counters. */
#include "analysis/study_private.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/core/vec.h"
#include "model/stats/statistics.h"

#define SERIES_MAX 1024 /* queues, and counters; further ones are left out */

struct queue_series {
	const struct model_queue *queue;
	unsigned int input;
	__u64 time, busy_time; /* of the event before */
	unsigned int waiting;
	float *busy, *mean; /* ns, and jobs * ns, until the end */
};

struct counter_series {
	const struct model_counter *counter;
	unsigned int input;
	float *min, *max;
	double *sum;
	__u32 *values;
	float *mean; /* at the end */
};

struct timeline {
	struct queue_series *queues;
	size_t queue_count;
	struct counter_series *counters;
	size_t counter_count;
	struct study_queue *queue_views;
	struct study_counter *counter_views;
};

static int create_history(struct study_build *build, struct builder *builder)
{
	const struct statistics *duration = builder->view->duration;
	struct study_history *history = &builder->history;
	const double low = (double)(statistics_min(duration) ?: 1);
	const double octaves = log2(((double)statistics_max(duration) + 1) / low);

	history->low = low;
	history->step = octaves * 8 < STUDY_ROWS ? 1.0 / 8 : octaves / (STUDY_ROWS - 1);
	history->rows = (unsigned int)(octaves / history->step) + 1;
	history->counts = calloc((size_t)build->view.bins * history->rows, sizeof(*history->counts));
	history->failed = calloc(build->view.bins, sizeof(*history->failed));
	history->time = calloc(build->view.bins, sizeof(*history->time));
	builder->view->history = history;
	return history->counts && history->failed && history->time ? 0 : -ENOMEM;
}

int timeline_create(struct study_build *build)
{
	int error = 0;

	build->view.bins = STUDY_BINS;
	build->view.bin = ((double)(build->view.end - build->view.start) + 1) / STUDY_BINS;
	build->timeline = calloc(1, sizeof(*build->timeline));
	if (!build->timeline)
		return -ENOMEM;
	for (size_t i = 0; i < build->view.program_count && i < STUDY_HISTORIES_MAX && !error; i++) {
		if (build->options->details && build->programs[i].duration)
			error = create_history(build, &build->builders[i]);
	}
	return error;
}

static unsigned int bin_of(const struct study_build *build, __u64 time)
{
	const double at = (double)(time - build->view.start) / build->view.bin;

	return at < build->view.bins ? (unsigned int)at : build->view.bins - 1;
}

void timeline_sample(struct study_build *build, struct builder *builder, const struct study_sample *sample)
{
	struct study_history *history = &builder->history;
	const unsigned int bin = bin_of(build, sample->start);
	double row;

	if (!history->rows)
		return;
	row = log2((double)(sample->duration ?: 1) / history->low) / history->step;
	row = row < 0 ? 0 : row < history->rows ? row : history->rows - 1;
	((__u32 *)history->counts)[(size_t)bin * history->rows + (unsigned int)row]++;
	((__u32 *)history->failed)[bin] += sample->flags & STUDY_FAILED;
	((double *)history->time)[bin] += (double)sample->duration;
}

/* Spreads a sum over the time in which it came together; what lies outside of the study's is left out. */
static void spread(const struct study_build *build, float *bins, __u64 from, __u64 to, double sum)
{
	const double length = (double)(to - from);
	const __u64 begin = from > build->view.start ? from : build->view.start;
	const __u64 end = to < build->view.end ? to : build->view.end;

	if (to <= from || end <= begin)
		return;
	for (unsigned int bin = bin_of(build, begin); bin <= bin_of(build, end); bin++) {
		const double low = (double)build->view.start + bin * build->view.bin, high = low + build->view.bin;
		const double overlap = fmin(high, (double)end) - fmax(low, (double)begin);

		if (overlap > 0)
			bins[bin] += (float)(sum * overlap / length);
	}
}

static struct queue_series *queue_find(struct study_build *build, const struct event_queue *event)
{
	struct timeline *timeline = build->timeline;
	struct queue_series series = { .queue = event->queue, .input = build->input };

	for (size_t i = 0; i < timeline->queue_count; i++) {
		if (timeline->queues[i].queue == event->queue)
			return &timeline->queues[i];
	}
	if (timeline->queue_count >= SERIES_MAX)
		return NULL;
	series.busy = calloc(build->view.bins, sizeof(*series.busy));
	series.mean = calloc(build->view.bins, sizeof(*series.mean));
	if (series.busy && series.mean && !vec_push(timeline->queues, timeline->queue_count, series))
		return &timeline->queues[timeline->queue_count - 1];
	free(series.busy);
	free(series.mean);
	build->error = -ENOMEM;
	return NULL;
}

static void on_queue(struct study_build *build, const struct event_queue *event)
{
	struct queue_series *series = queue_find(build, event);
	const __u64 time = moment(build, event->time);

	if (!series)
		return;
	if (series->time && time > series->time) {
		spread(build, series->busy, series->time, time, (double)(event->busy_time - series->busy_time));
		spread(build, series->mean, series->time, time,
		       (double)series->waiting * (double)(time - series->time));
	}
	series->time = time;
	series->busy_time = event->busy_time;
	series->waiting = event->waiting;
}

static void counter_series_free(struct counter_series *series)
{
	free(series->min);
	free(series->max);
	free(series->sum);
	free(series->values);
	free(series->mean);
}

static struct counter_series *counter_find(struct study_build *build, const struct model_counter *counter)
{
	struct timeline *timeline = build->timeline;
	struct counter_series series = { .counter = counter, .input = build->input };

	for (size_t i = 0; i < timeline->counter_count; i++) {
		if (timeline->counters[i].counter == counter)
			return &timeline->counters[i];
	}
	if (timeline->counter_count >= SERIES_MAX)
		return NULL;
	series.min = calloc(build->view.bins, sizeof(*series.min));
	series.max = calloc(build->view.bins, sizeof(*series.max));
	series.mean = calloc(build->view.bins, sizeof(*series.mean));
	series.sum = calloc(build->view.bins, sizeof(*series.sum));
	series.values = calloc(build->view.bins, sizeof(*series.values));
	if (series.min && series.max && series.mean && series.sum && series.values &&
	    !vec_push(timeline->counters, timeline->counter_count, series))
		return &timeline->counters[timeline->counter_count - 1];
	counter_series_free(&series);
	build->error = -ENOMEM;
	return NULL;
}

static void on_reading(struct study_build *build, const struct event_reading *event)
{
	struct counter_series *series = counter_find(build, event->counter);
	const __u64 time = moment(build, event->time);
	const float value = (float)event->value;
	unsigned int bin;

	if (!series || isnan(event->value) || time < build->view.start || time > build->view.end)
		return;
	bin = bin_of(build, time);
	if (!series->values[bin] || value < series->min[bin])
		series->min[bin] = value;
	if (!series->values[bin] || value > series->max[bin])
		series->max[bin] = value;
	series->sum[bin] += event->value;
	series->values[bin]++;
}

int timeline_event(void *context, const struct event *event)
{
	struct study_build *build = context;

	if (event->kind == EVENT_QUEUE)
		on_queue(build, &event->queue);
	else if (event->kind == EVENT_READING)
		on_reading(build, &event->reading);
	return build->error;
}

static void end_counter(struct study_build *build, struct counter_series *series)
{
	for (unsigned int i = 0; i < build->view.bins; i++) {
		if (series->values[i])
			series->mean[i] = (float)(series->sum[i] / series->values[i]);
		else
			series->min[i] = series->mean[i] = series->max[i] = NAN;
	}
}

int timeline_end(struct study_build *build)
{
	struct timeline *timeline = build->timeline;

	timeline->queue_views = calloc(timeline->queue_count ?: 1, sizeof(*timeline->queue_views));
	timeline->counter_views = calloc(timeline->counter_count ?: 1, sizeof(*timeline->counter_views));
	if (!timeline->queue_views || !timeline->counter_views)
		return -ENOMEM;
	for (size_t i = 0; i < timeline->queue_count; i++) {
		struct queue_series *series = &timeline->queues[i];

		for (unsigned int bin = 0; bin < build->view.bins; bin++) {
			series->busy[bin] /= (float)build->view.bin;
			series->mean[bin] /= (float)build->view.bin;
		}
		timeline->queue_views[i] = (struct study_queue){ series->queue, series->input, series->busy,
								 series->mean };
	}
	for (size_t i = 0; i < timeline->counter_count; i++) {
		struct counter_series *series = &timeline->counters[i];

		end_counter(build, series);
		timeline->counter_views[i] = (struct study_counter){ series->counter, series->input, series->min,
								     series->mean, series->max };
	}
	build->view.queues = timeline->queue_views;
	build->view.queue_count = timeline->queue_count;
	build->view.counters = timeline->counter_views;
	build->view.counter_count = timeline->counter_count;
	return 0;
}

void timeline_free(struct study_build *build)
{
	struct timeline *timeline = build->timeline;

	for (size_t i = 0; i < build->view.program_count; i++) {
		free((void *)build->builders[i].history.counts);
		free((void *)build->builders[i].history.failed);
		free((void *)build->builders[i].history.time);
	}
	if (!timeline)
		return;
	for (size_t i = 0; i < timeline->queue_count; i++) {
		free(timeline->queues[i].busy);
		free(timeline->queues[i].mean);
	}
	for (size_t i = 0; i < timeline->counter_count; i++)
		counter_series_free(&timeline->counters[i]);
	free(timeline->queues);
	free(timeline->counters);
	free(timeline->queue_views);
	free(timeline->counter_views);
	free(timeline);
}

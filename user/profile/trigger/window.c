/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/trigger/window.h"

#include <errno.h>

#include "model/stats/statistics.h"

static struct trigger_slice *slice_of(struct trigger_window *window, __u64 number)
{
	return &window->slices[number % TRIGGER_SLICES];
}

static void forget(struct trigger_window *window, struct trigger_slice *slice)
{
	window->sum -= slice->sum;
	window->count -= slice->count;
	window->beyond -= slice->beyond;
	statistics_free(slice->values);
	*slice = (struct trigger_slice){ 0 };
}

static void advance(struct trigger_window *window, __u64 number)
{
	__u64 steps = number - window->newest;

	for (__u64 i = 0; i < steps && i < TRIGGER_SLICES; i++)
		forget(window, slice_of(window, number - i));
	window->newest = number;
}

int trigger_window_add(struct trigger_window *window, __u64 number, __u64 latency, bool beyond)
{
	struct trigger_slice *slice;

	if (number < window->newest && window->newest - number >= TRIGGER_SLICES)
		return -ESTALE;
	if (number > window->newest)
		advance(window, number);
	slice = slice_of(window, number);
	if (beyond) {
		if (!slice->values)
			slice->values = statistics_create();
		if (!slice->values || statistics_add(slice->values, latency))
			return -ENOMEM;
	}
	slice->sum += latency;
	slice->count++;
	slice->beyond += beyond;
	window->sum += latency;
	window->count++;
	window->beyond += beyond;
	return 0;
}

int trigger_window_beyond(const struct trigger_window *window, __u64 rank, __u64 *latency)
{
	struct statistics *values = statistics_create();
	int error = values ? 0 : -ENOMEM;

	for (unsigned int i = 0; !error && i < TRIGGER_SLICES; i++)
		if (window->slices[i].values)
			error = statistics_merge(values, window->slices[i].values);
	if (!error)
		*latency = statistics_quantile(values, (double)rank / (double)window->beyond);
	statistics_free(values);
	return error;
}

void trigger_window_free(struct trigger_window *window)
{
	for (unsigned int i = 0; i < TRIGGER_SLICES; i++)
		statistics_free(window->slices[i].values);
}

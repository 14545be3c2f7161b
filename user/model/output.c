/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/output.h"

#include <errno.h>

int output_add_sink(struct output *output, struct event_sink sink)
{
	if (output->sink_count >= MODEL_SINKS_MAX)
		return -ENOSPC;
	output->sinks[output->sink_count++] = sink;
	return 0;
}

void output_write(struct output *output, const struct event *event)
{
	unsigned int i;
	int error;

	for (i = 0; i < output->sink_count; i++) {
		if (!output->sinks[i].write)
			continue;
		error = output->sinks[i].write(output->sinks[i].context, event);
		if (error >= 0)
			continue;
		output->sinks[i].write = NULL;
		if (!output->error)
			output->error = error;
	}
}

void output_lost(struct output *output, const struct event_lost *lost)
{
	const struct event event = { .kind = EVENT_LOST, .lost = *lost };

	output->lost[lost->cause] += lost->count;
	output_write(output, &event);
}

void output_lose(struct output *output, enum xpt_loss cause, __u64 count, __u64 time)
{
	if (!output->untold[cause].count || time < output->untold[cause].since)
		output->untold[cause].since = time;
	if (time > output->untold[cause].until)
		output->untold[cause].until = time;
	output->untold[cause].count += count;
	output->lost[cause] += count;
}

int output_settle(struct output *output)
{
	struct event event = { .kind = EVENT_LOST };
	unsigned int cause;
	int error;

	for (cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (!output->untold[cause].count)
			continue;
		event.lost.cause = cause;
		event.lost.since = output->untold[cause].since;
		event.lost.time = output->untold[cause].until;
		event.lost.count = output->untold[cause].count;
		output->untold[cause].count = output->untold[cause].until = 0;
		output_write(output, &event);
	}
	error = output->error;
	output->error = 0;
	return error;
}

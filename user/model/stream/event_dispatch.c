/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/event_dispatch.h"

#include <errno.h>

int sinks_add(struct sinks *sinks, struct event_sink sink)
{
	if (sinks->count >= MODEL_SINKS_MAX)
		return -ENOSPC;
	sinks->all[sinks->count++] = sink;
	return 0;
}

void sinks_write(struct sinks *sinks, const struct event *event)
{
	unsigned int i;
	int error;

	if (sinks->gate.admits && !sinks->gate.admits(sinks->gate.context, event))
		return;
	for (i = 0; i < sinks->count; i++) {
		if (!sinks->all[i].write)
			continue;
		error = sinks->all[i].write(sinks->all[i].context, event);
		if (error >= 0)
			continue;
		sinks->all[i].write = NULL;
		if (!sinks->error)
			sinks->error = error;
	}
}

void sinks_lost(struct sinks *sinks, const struct event_lost *lost)
{
	const struct event event = { .kind = EVENT_LOST, .lost = *lost };

	sinks->lost[lost->cause] += lost->count;
	sinks_write(sinks, &event);
}

void sinks_lose(struct sinks *sinks, enum xpt_loss cause, __u64 count, __u64 time)
{
	if (!sinks->untold[cause].count || time < sinks->untold[cause].since)
		sinks->untold[cause].since = time;
	if (time > sinks->untold[cause].until)
		sinks->untold[cause].until = time;
	sinks->untold[cause].count += count;
	sinks->lost[cause] += count;
}

int sinks_settle(struct sinks *sinks)
{
	struct event event = { .kind = EVENT_LOST };
	unsigned int cause;
	int error;

	for (cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (!sinks->untold[cause].count)
			continue;
		event.lost.cause = cause;
		event.lost.since = sinks->untold[cause].since;
		event.lost.time = sinks->untold[cause].until;
		event.lost.count = sinks->untold[cause].count;
		sinks->untold[cause].count = sinks->untold[cause].until = 0;
		sinks_write(sinks, &event);
	}
	error = sinks->error;
	sinks->error = 0;
	return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/event_dispatch.h"

#include <errno.h>

#include "model/stream/event.h"

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

/* ---- losses ---- */

static const struct {
	const char *name;
	const char *description;
} losses[] = {
	[XPT_LOSS_RING_FULL] = { "ring_full", "calls that the collector did not read in time" },
	[XPT_LOSS_DEPTH] = { "depth", "calls nested deeper on one thread than is followed" },
	[XPT_LOSS_THREAD] = { "thread", "calls on threads for which the kernel had no memory left" },
	[XPT_LOSS_PROGRAMS] = { "programs", "calls of more programs at once than the kernel counts apart" },
	[XPT_LOSS_UNREADABLE] = { "unreadable", "values that could not be read from the traced process" },
	[XPT_LOSS_LATE_PROBES] = { "late_probes",
				   "programs or libraries that ran on before their probes were in place" },
	[XPT_LOSS_OPEN] = { "open", "calls that had not returned when the recording ended" },
	[XPT_LOSS_OUTPUT] = { "output", "records that could not be written" },
	[XPT_LOSS_NAMES] = { "names", "calls of more programs, processes or regions than are kept apart" },
	[XPT_LOSS_UNPAIRED] = { "unpaired", "inferences begun for which no wait was seen" },
	[XPT_LOSS_NESTED] = { "nested",
			      "driver events, forks and new programs that came while the kernel was handling another one" },
	[XPT_LOSS_LATE_CODES] = { "late_codes", "calls that went on before their code object had been read" },
	[XPT_LOSS_STACKS] = { "stacks",
			      "ends of calls on another stack than an open call (coroutines, signal stacks)" },
	[XPT_LOSS_REPLACED] = { "replaced",
				"launches whose event was used for another one before they were seen to end" },
	[XPT_LOSS_KEYS] = { "keys", "events that were waited for in lists too long to be read, or unreadable" },
	[XPT_LOSS_CALLBACKS] = { "callbacks",
				 "callbacks that cannot be seen: functions in no file (made at run time), or too many" },
	[XPT_LOSS_JOBS] = { "jobs", "jobs of devices beyond those that are followed at once" },
};

int event_losses(const struct event *event)
{
	switch (event->kind) {
	case EVENT_CALL:
	case EVENT_REGION:
	case EVENT_JOB:
	case EVENT_DEVICE:
	case EVENT_IOCTL:
	case EVENT_READING:
		return 1;
	case EVENT_INFERENCE: /* made of calls, which count themselves */
	case EVENT_LAUNCH:
	case EVENT_COUNTER:
	case EVENT_QUEUE:
		return 0;
	default:
		return -1;
	}
}

#define LOSSES (sizeof(losses) / sizeof(losses[0]))

const char *loss_name(enum xpt_loss cause)
{
	return (unsigned int)cause < LOSSES ? losses[cause].name : "unknown";
}

const char *loss_description(enum xpt_loss cause)
{
	return (unsigned int)cause < LOSSES ? losses[cause].description : "for a cause that this version does not know";
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "model/stream/event_dispatch.h"

#include <errno.h>

#include "model/stream/event.h"

int event_dispatch_add(struct event_dispatch *events, struct event_sink sink)
{
	if (events->count >= MODEL_SINKS_MAX)
		return -ENOSPC;
	events->all[events->count++] = sink;
	return 0;
}

void event_dispatch_emit(struct event_dispatch *events, const struct event *event)
{
	unsigned int i;
	int error;

	if (events->gate.admits && !events->gate.admits(events->gate.context, event))
		return;
	for (i = 0; i < events->count; i++) {
		if (!events->all[i].write)
			continue;
		error = events->all[i].write(events->all[i].context, event);
		if (error >= 0)
			continue;
		events->all[i].write = NULL;
		if (!events->error)
			events->error = error;
	}
}

void event_dispatch_lost(struct event_dispatch *events, const struct event_lost *lost)
{
	const struct event event = { .kind = EVENT_LOST, .lost = *lost };

	events->lost[lost->cause] += lost->count;
	event_dispatch_emit(events, &event);
}

void event_dispatch_lose(struct event_dispatch *events, enum xpt_loss cause, __u64 count, __u64 time)
{
	if (!events->unreported[cause].count || time < events->unreported[cause].since)
		events->unreported[cause].since = time;
	if (time > events->unreported[cause].until)
		events->unreported[cause].until = time;
	events->unreported[cause].count += count;
	events->lost[cause] += count;
}

int event_dispatch_settle(struct event_dispatch *events)
{
	struct event event = { .kind = EVENT_LOST };
	unsigned int cause;
	int error;

	for (cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (!events->unreported[cause].count)
			continue;
		event.lost.cause = cause;
		event.lost.since = events->unreported[cause].since;
		event.lost.time = events->unreported[cause].until;
		event.lost.count = events->unreported[cause].count;
		events->unreported[cause].count = events->unreported[cause].until = 0;
		event_dispatch_emit(events, &event);
	}
	error = events->error;
	events->error = 0;
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
	[XPT_LOSS_STACK_COPIES] = { "stack_copies",
				    "stacks of calls that could not be copied, or were not unwound in time" },
	[XPT_LOSS_JOB_ENDS] = { "job_ends",
				"jobs of devices whose end was not seen, though a later one or their process has ended" },
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
	case EVENT_STACK:
	case EVENT_OFF_CPU:
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

void states_add(struct model_states *sum, const struct model_states *states)
{
	sum->calls += states->calls;
	sum->cpu += states->cpu;
	sum->waited += states->waited;
	sum->blocked += states->blocked;
	sum->voluntary += states->voluntary;
	sum->involuntary += states->involuntary;
	sum->minor_faults += states->minor_faults;
	sum->major_faults += states->major_faults;
	for (size_t i = 0; i < sizeof(sum->blocked_by) / sizeof(sum->blocked_by[0]); i++)
		sum->blocked_by[i] += states->blocked_by[i];
}

const char *off_cpu_name(enum xpt_off_cpu reason)
{
	static const char *const names[] = {
		[XPT_OFF_CPU_PREEMPTED] = "preempted", [XPT_OFF_CPU_FUTEX] = "futex",
		[XPT_OFF_CPU_POLL] = "poll",	       [XPT_OFF_CPU_IO] = "io",
		[XPT_OFF_CPU_IOCTL] = "ioctl",	       [XPT_OFF_CPU_FAULT] = "fault",
		[XPT_OFF_CPU_SLEEP] = "sleep",	       [XPT_OFF_CPU_OTHER] = "other",
	};

	return names[reason];
}

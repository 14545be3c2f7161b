/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the model as packets of a Perfetto trace. No files. */
#ifndef XPT_REPORT_PERFETTO_EVENTS_H
#define XPT_REPORT_PERFETTO_EVENTS_H

#include "report/perfetto/track.h"

/* The head of a trace; its times are CLOCK_MONOTONIC. -ENOMEM: to be closed, too. */
int perfetto_open(struct perfetto *perfetto, struct text *text, const struct recording_info *info, __u64 document);
void perfetto_close(struct perfetto *perfetto);
/* What was appended last is lost: everything is named again before it is used. */
void perfetto_forget(struct perfetto *perfetto);
/* An event of the trace itself, without arguments; perfetto_point() follows. NULL: no memory. */
struct perfetto_track *perfetto_note(struct perfetto *perfetto, const char *name);

/* Appends what the event becomes to perfetto->text, or holds it. Fails only through the text's error. */
void perfetto_events_add(struct perfetto *perfetto, const struct event *event);

/* Nothing follows: appends what waited for it. */
void perfetto_events_end(struct perfetto *perfetto);

/* ---- devices.c ---- */

int perfetto_devices_open(struct perfetto *perfetto);
void perfetto_devices_close(struct perfetto *perfetto);
void perfetto_devices_forget(struct perfetto *perfetto);
/* Whether a job or load of the queue is in the trace, or anything of the device. */
bool perfetto_has_queue(const struct perfetto *perfetto, unsigned int queue);
bool perfetto_has_device(const struct perfetto *perfetto, const char *driver, const char *device);
void perfetto_job_add(struct perfetto *perfetto, const struct event_job *job);
void perfetto_queue_add(struct perfetto *perfetto, const struct event_queue *change);
void perfetto_device_add(struct perfetto *perfetto, const struct event_device *device);
/* Shows the load that queues have now; last: nothing follows. */
void perfetto_devices_settle(struct perfetto *perfetto, bool last);

/* ---- stacks.c ---- */

int perfetto_stacks_open(struct perfetto *perfetto);
void perfetto_stacks_close(struct perfetto *perfetto);
void perfetto_stacks_forget(struct perfetto *perfetto);
void perfetto_stack_add(struct perfetto *perfetto, const struct event_stack *stack);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Events of the model as packets of a Perfetto trace. No files. */
#ifndef XPT_REPORT_PERFETTO_EVENTS_H
#define XPT_REPORT_PERFETTO_EVENTS_H

#include "report/perfetto/track.h"

/* Appends what the event becomes to perfetto->text, or holds it. Fails only through the text's error. */
void perfetto_events_add(struct perfetto *perfetto, const struct event *event);

/* Nothing follows: appends what waited for it. */
void perfetto_events_end(struct perfetto *perfetto);

/* ---- devices.c ---- */

int perfetto_devices_open(struct perfetto *perfetto);
void perfetto_devices_close(struct perfetto *perfetto);
/* Sequences begin anew. */
void perfetto_devices_forget(struct perfetto *perfetto);
void perfetto_job_add(struct perfetto *perfetto, const struct event_job *job);
void perfetto_queue_add(struct perfetto *perfetto, const struct event_queue *queue);
void perfetto_device_add(struct perfetto *perfetto, const struct event_device *device);
/* Shows the load that queues have now; last: nothing follows. */
void perfetto_devices_settle(struct perfetto *perfetto, bool last);

/* ---- stacks.c ---- */

int perfetto_stacks_open(struct perfetto *perfetto);
void perfetto_stacks_close(struct perfetto *perfetto);
void perfetto_stacks_forget(struct perfetto *perfetto);
void perfetto_stack_add(struct perfetto *perfetto, const struct event_stack *stack);

#endif

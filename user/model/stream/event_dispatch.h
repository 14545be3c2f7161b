/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the model's events go, and what is missing from them. */
#ifndef XPT_MODEL_STREAM_EVENT_DISPATCH_H
#define XPT_MODEL_STREAM_EVENT_DISPATCH_H

#include "model/stream/event.h"
#include "model/stream/objects.h"

/* Zero it to begin with. */
struct event_dispatch {
	struct event_sink all[MODEL_SINKS_MAX];
	unsigned int count;
	struct event_gate gate;
	int error; /* first one of a sink since event_dispatch_settle */
	__u64 lost[XPT_LOSS_MAX];
	/* What the model itself had to leave out, reported in one event a batch and not in one each. */
	struct {
		__u64 count, since, until;
	} unreported[XPT_LOSS_MAX];
};

int event_dispatch_add(struct event_dispatch *events, struct event_sink sink); /* -ENOSPC */
/* A sink that fails gets no more. */
void event_dispatch_emit(struct event_dispatch *events, const struct event *event);
/* A loss that a record reports: counted, and handed on at once. */
void event_dispatch_lost(struct event_dispatch *events, const struct event_lost *lost);
/* A loss of the model's own. */
void event_dispatch_lose(struct event_dispatch *events, enum xpt_loss cause, __u64 count, __u64 time);
/* At the end of a batch: emits the model's own losses. Returns the first error of a sink in the batch. */
int event_dispatch_settle(struct event_dispatch *events);

#endif

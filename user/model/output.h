/* SPDX-License-Identifier: BSD-2-Clause */
/* Where the model's events go, and what is missing from them. */
#ifndef XPT_MODEL_OUTPUT_H
#define XPT_MODEL_OUTPUT_H

#include "model/event.h"
#include "model/model.h"

/* Zero it to begin with. */
struct output {
	struct event_sink sinks[MODEL_SINKS_MAX];
	unsigned int sink_count;
	int error; /* first one of a sink since output_settle */
	__u64 lost[XPT_LOSS_MAX];
	/* What the model itself had to leave out, told in one event a batch and not in one each. */
	struct {
		__u64 count, since, until;
	} untold[XPT_LOSS_MAX];
};

int output_add_sink(struct output *output, struct event_sink sink); /* -ENOSPC */
/* A sink that fails gets no more. */
void output_write(struct output *output, const struct event *event);
/* A loss that a record tells: counted, and handed on at once. */
void output_lost(struct output *output, const struct event_lost *lost);
/* A loss of the model's own. */
void output_lose(struct output *output, enum xpt_loss cause, __u64 count, __u64 time);
/* At the end of a batch: tells of the model's own losses. Returns the first error of a sink in the batch. */
int output_settle(struct output *output);

#endif

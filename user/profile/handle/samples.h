/* SPDX-License-Identifier: BSD-2-Clause */
/* Which events are inferences, and their part in a sample. */
#ifndef XPT_PROFILE_HANDLE_SAMPLES_H
#define XPT_PROFILE_HANDLE_SAMPLES_H

#include <xputrace/profile_report.h>

#include "model/stream/event.h"

struct inference {
	const struct model_program *program;
	__u64 start, end;
	bool unpaired; /* no wait was seen: only that it began is known; end is 0 */
	bool unended;  /* a launch that was not seen to end: a sample without that; end is 0 */
	bool numbered; /* sample.number is known */
	struct xpt_sample sample;
};

/* False: the event is no inference of a known program; result is not touched. */
bool inference_read(const struct event *event, struct inference *result);
/* When the event happened; 0: it has no time. */
__u64 event_time(const struct event *event);
/* Where the model puts what it cannot keep apart: no program that could be chosen. */
bool program_is_others(const struct model_program *program);

#endif

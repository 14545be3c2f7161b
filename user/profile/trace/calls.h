/* SPDX-License-Identifier: BSD-2-Clause */
/* Which calls are in documents: a job belongs to the document of the call that has submitted it. */
#ifndef XPT_PROFILE_TRACE_CALLS_H
#define XPT_PROFILE_TRACE_CALLS_H

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "model/stream/event.h"

#define TRACE_CALLS_MAX 16384 /* the oldest makes room */

struct trace_calls {
	struct map map;
	struct link list; /* oldest first */
};

void trace_calls_init(struct trace_calls *calls);
void trace_calls_free(struct trace_calls *calls);
/* document: its number, not 0. -ENOMEM. */
int trace_calls_add(struct trace_calls *calls, const struct event_call *call, __u64 document);
/* Number of the document in which the call of the job is; 0: in none. */
__u64 trace_calls_find(const struct trace_calls *calls, const struct event_job *job);

#endif

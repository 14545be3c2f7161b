/* SPDX-License-Identifier: BSD-2-Clause */
/* Documents that grow. */
#ifndef XPT_PROFILE_TRACE_TEXT_H
#define XPT_PROFILE_TRACE_TEXT_H

#include "profile/trace/trace.h"

/* -ENOMEM: the event is left out as a whole, and the document is sound. */
int trace_text_add(struct trace_text *text, const struct event *event);
/* Is anything of this process in the document? 0: of any process. */
bool trace_text_has(const struct trace_text *text, __u32 tgid);
/* Is a job of the queue in it, or one of any queue of the device? */
bool trace_text_has_queue(const struct trace_text *text, unsigned int queue);
bool trace_text_has_device(const struct trace_text *text, const char *driver, const char *device);
__u64 trace_text_number(const struct trace_text *text); /* no other document of the session has it */

#endif

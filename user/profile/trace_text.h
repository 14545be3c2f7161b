/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of trace.h share: names that are known, and documents that grow. */
#ifndef XPT_PROFILE_TRACE_TEXT_H
#define XPT_PROFILE_TRACE_TEXT_H

#include "profile/trace.h"

/* False: not known. Else the fields that a document tells are filled in; strings are valid until the next event. */
bool trace_names_process(const struct trace_names *names, __u32 tgid, struct model_process *process);
const char *trace_names_thread(const struct trace_names *names, __u32 tgid, __u32 tid); /* NULL: not known */

/* -ENOMEM: the event is left out as a whole, and the document is sound. */
int trace_text_add(struct trace_text *text, const struct event *event);
/* Is anything of this process in the document? 0: of any process. */
bool trace_text_has(const struct trace_text *text, __u32 tgid);

#endif

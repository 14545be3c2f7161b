/* SPDX-License-Identifier: BSD-2-Clause */
/* What the parts of trace.h share: names that are known, and documents that grow. */
#ifndef XPT_PROFILE_TRACE_TEXT_H
#define XPT_PROFILE_TRACE_TEXT_H

#include "profile/trace/trace.h"
#include "report/chrome/events.h"

/* False: not known. Else the fields that a document has are filled in; strings are valid until the next event. */
bool trace_names_process(const struct trace_names *names, __u32 tgid, struct model_process *process);
const char *trace_names_thread(const struct trace_names *names, __u32 tgid, __u32 tid); /* NULL: not known */

/* Lives as long as names. */
struct chrome_devices *trace_names_devices(struct trace_names *names);
__u64 trace_names_document(struct trace_names *names); /* number of one more document, from 1 */

/* -ENOMEM: the event is left out as a whole, and the document is sound. */
int trace_text_add(struct trace_text *text, const struct event *event);
/* Is anything of this process in the document? 0: of any process. */
bool trace_text_has(const struct trace_text *text, __u32 tgid);
/* Is a job of the queue in it, or one of any queue of the device? */
bool trace_text_has_queue(const struct trace_text *text, unsigned int queue);
bool trace_text_has_device(const struct trace_text *text, const char *driver, const char *device);
__u64 trace_text_number(const struct trace_text *text); /* no other document of the session has it */

#endif

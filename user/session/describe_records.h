/* SPDX-License-Identifier: BSD-2-Clause */
/* Records that user space adds to the kernel's, so that the stream explains itself. Free the result with free(). */
#ifndef XPT_SESSION_DESCRIBE_RECORDS_H
#define XPT_SESSION_DESCRIBE_RECORDS_H

#include "describe/description.h"
#include "target/process.h"

/* All give NULL when there is no memory. Text is cut so that the record fits. */
struct xpt_record_text *record_text(enum xpt_record_kind kind, __u32 tgid, __u64 time, __u64 id, const char *text);
struct xpt_record_text *record_runtime(const struct description *runtime);
struct xpt_record_text *record_spec(const struct call_spec *spec);
struct xpt_record_text *record_process(const struct process_info *info, __u64 time);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Chrome traces (JSON object format), for Perfetto and chrome://tracing. Schema: user/report/SCHEMA.md. */
#ifndef XPT_REPORT_CHROME_CHROME_H
#define XPT_REPORT_CHROME_CHROME_H

#include "report/trace/event_file.h"

/*
 * At the end it has the totals of the model in its metadata. It is marked as complete when the model has got its END
 * record and no write has failed.
 */
extern const struct event_format chrome_format;

#define CHROME_VIEWER_BYTES 1000000000ull /* what viewers open, about */
/* Warns that the trace gets larger than that, for callers that know it early. */
void chrome_warn_size(const struct log *log, __u64 bytes);

#endif

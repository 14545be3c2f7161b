/* SPDX-License-Identifier: BSD-2-Clause */
/* Perfetto traces (protobuf), for ui.perfetto.dev and Perfetto's trace processor. Schema: user/report/SCHEMA.md. */
#ifndef XPT_REPORT_PERFETTO_PERFETTO_H
#define XPT_REPORT_PERFETTO_PERFETTO_H

#include "report/trace/event_file.h"

/* Every prefix that ends behind a packet is a complete trace. Stacks are shown where the model was asked for them. */
extern const struct event_format perfetto_format;

#endif

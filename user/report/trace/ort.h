/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The format of ONNX Runtime's own profiler: an array of complete events with its categories, names, arguments and units, so
 * that what people have for it reads ours. What cannot be known from outside is left out. See the manual of record.
 */
#ifndef XPT_REPORT_TRACE_ORT_H
#define XPT_REPORT_TRACE_ORT_H

#include "report/trace/event_file.h"

extern const struct event_format ort_format;

#endif

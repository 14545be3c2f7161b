/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The profiling CSV of ONNX Runtime's QNN execution provider: its columns, words and units, so that what people have for
 * it reads ours. An inference is an EXECUTE row, followed by what the device did for it and by its operators, as NODE
 * rows in the order of execution. Timestamps are whole microseconds of CLOCK_MONOTONIC. See SCHEMA.md.
 */
#ifndef XPT_REPORT_TRACE_QNN_CSV_H
#define XPT_REPORT_TRACE_QNN_CSV_H

#include "report/trace/event_file.h"

extern const struct event_format qnn_csv_basic; /* no operators, no timestamps */
extern const struct event_format qnn_csv_detailed;

#endif

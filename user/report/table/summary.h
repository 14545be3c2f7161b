/* SPDX-License-Identifier: BSD-2-Clause */
/* The table that people read when a recording ends. */
#ifndef XPT_REPORT_TABLE_SUMMARY_H
#define XPT_REPORT_TABLE_SUMMARY_H

#include <stdio.h>

#include "model/core/model.h"

/*
 * Programs (count, rate, min, mean, p50, p95, p99, max, standard deviation, errors), what they did on devices and the
 * devices' queues, where there were any jobs, functions without a program, regions, what was lost by cause, and what tracing cost. width: columns of the terminal, 0: not a terminal (nothing
 * is cut). length: ns that rates are of; 0: of the recording. Hostile names are shown with their control bytes escaped. 0 or -EIO.
 */
int summary_write(const struct model *model, FILE *out, unsigned int width, __u64 length);
/* The same for machines: one JSON object, terminated, which the caller frees. 0 or -ENOMEM. Fields: user/report/SCHEMA.md. */
int summary_json(const struct model *model, __u64 length, char **json);

#endif

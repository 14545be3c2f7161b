/* SPDX-License-Identifier: BSD-2-Clause */
/* What the public functions of <xputrace/profile_report.h> lack about the columns. */
#ifndef XPT_MODEL_STATS_LATENCIES_H
#define XPT_MODEL_STATS_LATENCIES_H

#include <stdbool.h>

#include <xputrace/profile_report.h>

/* The column holds whole numbers: inferences, not microseconds or a rate. */
bool latencies_column_whole(enum xpt_column column);

#endif

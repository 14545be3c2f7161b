/* SPDX-License-Identifier: BSD-2-Clause */
/* By what clock each trace to merge is put on the common axis of time. */
#ifndef XPT_REPORT_MERGE_CLOCK_H
#define XPT_REPORT_MERGE_CLOCK_H

#include "report/merge/input.h"

/*
 * Sets numbers.shift and uncertainty of all inputs, and logs the clock of each. The axis is CLOCK_MONOTONIC where an
 * input has it; else that of the first input that counts from 1970. -EINVAL: the clock of one is unknown, or they are
 * of different boots; logged, with what to do.
 */
int merge_clocks(const struct log *log, struct merge_input *inputs, size_t count);

#endif

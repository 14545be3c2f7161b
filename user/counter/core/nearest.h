/* SPDX-License-Identifier: BSD-2-Clause */
/* Names that may have been meant. */
#ifndef XPT_COUNTER_CORE_NEAREST_H
#define XPT_COUNTER_CORE_NEAREST_H

#include "counter/core/counter.h"

#define NEAREST_TEXT_MAX 512

/* Writes up to three names of counters that there are, the nearest first: "a, b, c"; "" when none is like it. */
void nearest_counters(const struct counter_place *place, const char *name, char text[NEAREST_TEXT_MAX]);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The text of a trigger:
 *
 *     latency > 20ms           one inference
 *     p99.9 >= 10ms over 5s    a percentile, p50 as well as p99.999, of the inferences that ended in that time
 *     mean > 1.5ms over 1m     the same of their mean
 *     max > 20ms over 30s      and of the longest
 *     error                    one inference that failed
 *
 * Times are decimal numbers with a unit: ns, us, ms, s or m, which is a minute. Blanks are allowed between all parts.
 * What could never fire, or always would, is refused.
 */
#ifndef XPT_PROFILE_TRIGGER_TEXT_H
#define XPT_PROFILE_TRIGGER_TEXT_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/core/text.h"

#define TRIGGER_TIME_MAX 3600000000000ull /* ns: 1 h, of the limit as of the window */
#define TRIGGER_WINDOW_MIN 1000000ull	  /* ns */
#define TRIGGER_PERCENT 1000u		  /* 1 percent, in the unit of percentiles */

enum trigger_measure {
	TRIGGER_LATENCY,
	TRIGGER_ERROR,
	TRIGGER_PERCENTILE,
	TRIGGER_MEAN,
	TRIGGER_MAX,
};

struct trigger_condition {
	enum trigger_measure measure;
	unsigned int percentile; /* 99900 is p99.9; 1 to 99999 */
	bool at_least;		 /* >= */
	__u64 limit;		 /* ns, 1 to TRIGGER_TIME_MAX; 0: TRIGGER_ERROR */
	__u64 window;		 /* ns, TRIGGER_WINDOW_MIN to TRIGGER_TIME_MAX; 0: TRIGGER_LATENCY, TRIGGER_ERROR */
};

/*
 * -EINVAL: reason, cut to size, quotes what is wrong and shows what would be right, in one line that is fit for a
 * terminal. 256 bytes are enough; size is not 0.
 */
int trigger_text_parse(const char *text, struct trigger_condition *condition, char *reason, size_t size);

/* "p99.9", "latency" */
void trigger_text_measure(struct text *text, const struct trigger_condition *condition);
/* Exactly, in the largest unit up to seconds that is not larger than it: "1.5 ms". */
void trigger_text_time(struct text *text, __u64 nanoseconds);
/* The text as a terminated string of at most size bytes; where it has to be cut, between characters. size is not 0. */
void trigger_text_copy(const struct text *text, char *string, size_t size);

#endif

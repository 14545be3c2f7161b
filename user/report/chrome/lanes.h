/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The track of a job in its queue. Spans on one track must not overlap: viewers take them for nested and lose or cut
 * those that are not. Jobs come in any order, some long after they have ended, so what is taken is remembered.
 */
#ifndef XPT_REPORT_CHROME_LANES_H
#define XPT_REPORT_CHROME_LANES_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#include "report/chrome/devices.h"

#define LANE_SPANS_MAX 1024	   /* remembered of one lane; before them it counts as taken */
#define LANES_SPANS_MAX (1u << 17) /* of all lanes that share a budget: 2 MiB; beyond it lanes remember less */

struct lane_span {
	__u64 start, end;
};

struct lane {
	struct lane_span *spans; /* in order; they neither overlap nor touch */
	unsigned int count, room;
	__u64 floor; /* everything before is taken */
};

/* Begins as zeros. */
struct lanes {
	struct lane lane[CHROME_LANES_MAX];
	unsigned int count; /* in use */
};

/*
 * The first lane on which nothing lies between start and end, which are then taken; -1: there is none. budget: spans that
 * all lanes have room for, the same for all that share it; begins as 0.
 */
int lanes_take(struct lanes *lanes, __u64 start, __u64 end, size_t *budget);
void lanes_free(struct lanes *lanes, size_t *budget);

#endif

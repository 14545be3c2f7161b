/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names with one meaning on every vendor's devices ("busy", "energy"): the counters that each device has for it, and
 * how their samples make one value.
 */
#ifndef XPT_COUNTER_CORE_ALIAS_H
#define XPT_COUNTER_CORE_ALIAS_H

#include "counter/core/counter.h"

/* What a counter has to do with the value. */
enum alias_measure {
	ALIAS_VALUE, /* it is the value */
	ALIAS_SHARE, /* it grows by the time in which something was so: the value is the share of all time, in % */
	ALIAS_TICKS, /* the same, of what the next counter grew by */
	ALIAS_TOTAL, /* that next counter: no value of its own */
};

struct alias_term {
	enum alias_measure measure;
	double factor; /* ALIAS_VALUE: unit of the alias for each of the counter's; ALIAS_SHARE: seconds for each */
};

/* One alias here: terms and counters belong together by their index. All is owned. */
struct alias {
	struct xpt_counter_info info; /* as xpt_counters_info() has it; its strings are owned */
	bool highest;		      /* of all terms the highest value counts, not the sum */
	struct alias_term *terms;
	struct counter *counters;
	size_t count;
};

/* Value of a counter of the session at a poll. */
struct alias_sample {
	double value; /* in the counter's unit; since the start, where it is a sum */
	uint64_t ran; /* ns that it had counted, on all CPUs together */
};

bool alias_is(const char *name);

/*
 * Finds the counters on each device of the place, or on its one. -ENOENT: no device has it; -EOPNOTSUPP: devices cannot
 * be distinguished; else as counter_resolve(). Logged. *alias is zeroed after an error.
 */
int alias_resolve(const struct counter_place *place, const char *name, struct alias *alias);
void alias_free(struct alias *alias);

/* Visits the aliases that some device of the place has; the description names the counters. As xpt_counters_list(). */
int alias_visit(const struct counter_place *place, int (*visit)(void *context, const struct xpt_counter_info *counter),
		void *context);
/* All of them; NULL behind the last. */
const char *alias_name(size_t index);

/*
 * The value from two samples of each counter. False: nothing was counted between them, so there is none; *value is
 * left alone.
 */
bool alias_value(const struct alias_term *terms, size_t count, bool highest, const struct alias_sample *before,
		 const struct alias_sample *now, double *value);

#endif

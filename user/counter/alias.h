/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names with one meaning on every vendor's devices ("busy", "energy"): the counters that each device has for it, and
 * how their samples make one value.
 */
#ifndef XPT_COUNTER_ALIAS_H
#define XPT_COUNTER_ALIAS_H

#include "counter/counter.h"

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

/* ---- the counters of a device for an alias ---- */

struct alias_search {
	struct counter_place place; /* of one device, or of what belongs to no node; without a log */
	const struct log *log;
	const char *name; /* of the alias */
	struct alias *alias;
	bool one_device; /* it alone was asked for */
	int refused;	 /* an error that has been logged, if nothing is found */
};

struct alias_rule {
	/* Adds what the device has, if anything. An error ends the search, but for -ENOENT. */
	int (*find)(struct alias_search *search, const struct alias_rule *rule);
	const char *counter; /* its name, or a pattern of an event's */
	struct alias_term term;
};

struct alias_definition {
	const char *name;
	const char *unit;
	const char *description;
	bool highest;			/* as in struct alias */
	const struct alias_rule *rules; /* in the order in which they are tried; find is NULL behind the last */
};

extern const struct alias_definition alias_definitions[];
extern const size_t alias_definition_count;

/* Takes the counter over, also after an error: -ENOMEM. */
int alias_add(struct alias_search *search, struct counter *counter, struct alias_term term);
/* -ENOENT: there is no such counter; other errors are logged. */
int alias_try(struct alias_search *search, const char *name, struct counter *counter);

/* Tracepoints of the drivers of the place's devices: jobs queued, run and done. As xpt_counters_list(). */
int alias_visit_tracepoints(const struct counter_place *place,
			    int (*visit)(void *context, const struct xpt_counter_info *counter), void *context);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The counters of a device for an alias. */
#ifndef XPT_COUNTER_CORE_ALIAS_RULES_H
#define XPT_COUNTER_CORE_ALIAS_RULES_H

#include "counter/core/alias.h"

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

/* In the order in which they are tried; find is NULL behind the last. */
extern const struct alias_rule alias_busy[], alias_jobs[], alias_energy[], alias_frequency[], alias_memory_used[],
	alias_memory_busy[];

/* Takes the counter over, also after an error: -ENOMEM. */
int alias_add(struct alias_search *search, struct counter *counter, struct alias_term term);
/* -ENOENT: there is no such counter; other errors are logged. */
int alias_try(struct alias_search *search, const char *name, struct counter *counter);

/* Jobs by the tracepoint of the device's driver. */
int alias_find_tracepoint(struct alias_search *search, const struct alias_rule *rule);
/* Tracepoints of the drivers of the place's devices: jobs queued, run and done. As xpt_counters_list(). */
int alias_visit_tracepoints(const struct counter_place *place,
			    int (*visit)(void *context, const struct xpt_counter_info *counter), void *context);

#endif

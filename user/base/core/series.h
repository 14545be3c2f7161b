/* SPDX-License-Identifier: BSD-2-Clause */
/* A bounded number of series of metrics, by their labels: counters that only grow, and histograms. */
#ifndef XPT_BASE_CORE_SERIES_H
#define XPT_BASE_CORE_SERIES_H

#include "base/core/exposition.h"
#include "base/core/hashmap.h"

struct series {
	struct map_node node;
	struct text labels; /* as label_add() made them */
	double created;	    /* s since 1970 */
	__u64 used;	    /* the table's clock when it was got last */
	unsigned int users; /* the owner's: what keeps it from being stale */
	double *values;	    /* of counters; NaN: never observed, and not shown */
	struct histogram *histograms;
};

struct series_table {
	size_t most;
	size_t value_count, histogram_count; /* of each series */
	const double *bounds;
	size_t bound_count;
	struct map map;
	struct series **all;
	size_t count;
	struct series *overflow;
	__u64 clock;   /* ns, the owner's, of any origin */
	__u64 removed; /* stale series */
	__u64 dropped; /* label sets without a series of their own; one that comes again after others may count again */
	bool no_memory;	  /* for one of them; the owner clears it */
	__u64 recent[64]; /* hashes of those that were dropped last */
};

/* Zero it, set the first five members; overflow is the labels of the series that the others are put into. 0 or -ENOMEM. */
int series_init(struct series_table *table, const struct text *overflow);
void series_free(struct series_table *table);
/* That of the labels, made if there is room and memory; else the overflow. now: s since 1970. */
struct series *series_get(struct series_table *table, const struct text *labels, double now);
/* The overflow, for what has no labels. Its counters begin when it is used first. */
struct series *series_overflow(struct series_table *table, double now);
/* Adds to a bucket of the native histogram. -ENOMEM. */
int histogram_native_add(struct histogram *histogram, int bucket, __u64 count);
/* Removes series without users that were not got for longer than age, ns, by the table's clock. Others keep what they count. */
void series_remove_stale(struct series_table *table, __u64 age);
/* Adds to a counter; what is negative or not a number adds nothing. */
void series_add(struct series *series, size_t value, double amount);

#endif

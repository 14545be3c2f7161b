/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by budget.c and budget_costs.c. */
#ifndef XPT_SESSION_COLLECT_BUDGET_PRIVATE_H
#define XPT_SESSION_COLLECT_BUDGET_PRIVATE_H

#include "session/collect/budget_law.h"
#include "session/collect/collector.h"

struct attached;

/* What is known of a program. */
struct budget_program {
	struct map_node node; /* process, runtime and function; handle */
	struct link link;
	struct xpt_program_key key;
	__u64 since, calls; /* as the kernel had them last */
	__u32 factor, every;
	double rate; /* calls a second */
	bool seen;   /* in the latest visit */
};

/* The sums of a site or, without function, of a target. */
struct budget_total {
	struct map_node node; /* process, address of the function's name */
	struct link link;
	pid_t tgid;
	const char *function;
	enum site_class class;
	__u64 hits;
	double cpu, added, shown; /* ns; what is shown as added */
};

struct budget {
	struct collector *collector;
	struct law law;
	__u64 tick, window; /* next look; begin of the current window */
	__u64 *spec_calls;  /* recorded up to that, by spec */
	__u64 *spec_apart;  /* of these, those that sampling does not leave out */
	double *apart_cost; /* ns that these take, on average for each hit of the spec; both sides */
	__u64 cpu;	    /* of the collector, likewise */
	__u64 cpu_at_start;
	__u64 drain_time, drained; /* of the collector's, as of cpu: for records, and their number */
	__u64 driver_records;	   /* of these, those of drivers */
	double idle;		   /* ns a second that the collector takes beside records */
	double time, records; /* ns that records took, and how many there were: sums in which what is old counts less */
	struct map program_map;
	struct link programs;
	struct map total_map;
	struct link totals;
	size_t total_count;
	double coldness;
	bool measured;	    /* coldness */
	double ended;	    /* ns that processes have run which have ended, without what was read of them before */
	__u64 ended_before; /* what the kernel side had counted of that */
	struct kern_run run;
	__u64 stepped;
	double operators,
		operators_calls; /* ns a second that operators took when they were last traced; calls a second then */
	double targets, added;	 /* ns, in all */
	__u64 changes;
	bool warned;
};

/* ---- budget_costs.c ---- */

/* How cold caches were in this window, before its hits are noted. */
void budget_note_coldness(struct budget *budget);
/* What the hits have cost since they were noted last, in ns; they are noted. */
double budget_note_hits(struct budget *budget, struct attached *attached);
__u64 budget_collector_time(void);		   /* ns of CPU time, of the thread that collects, which calls this */
double budget_targets_time(struct budget *budget); /* the same of all targets, since the latest reading */
void budget_drop_program(struct budget *budget, struct budget_program *program);
/* Those that are sampled and have not been released, with their calls in so many seconds; how many they are. */
size_t budget_visit_programs(struct budget *budget, double seconds);
double budget_samples(const struct budget *budget); /* ns that calls have taken in this window for being recorded */
/*
 * The same, in the collector, too, of those that sampling does not leave out: a part of what their probes cost. Before the hits of the window are
 * noted.
 */
double budget_note_apart(struct budget *budget);
/* What hits of the probes cost since they were noted last, with recording those that sampling does not leave out; they are noted. */
double budget_note_cost(struct budget *budget, struct attached *attached);
/* ns that the collector takes for records of this window, at whose end it has had so much CPU time. */
double budget_collecting(struct budget *budget, double seconds, __u64 cpu);
double budget_cost_so_far(const struct budget *budget); /* ns that tracing has added in this window */

#endif

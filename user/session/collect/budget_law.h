/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What to trace, so that tracing takes at most its share of the targets' CPU time. Knows neither kernel nor processes: what was measured
 * in the latest time goes in, what is to change comes out. All rates are ns of CPU time a second.
 */
#ifndef XPT_SESSION_COLLECT_BUDGET_LAW_H
#define XPT_SESSION_COLLECT_BUDGET_LAW_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#define LAW_HIGH_WATER 10 /* s: the most that the targets have used in this time counts */
#define LAW_HOLD 10	  /* s below LAW_LOW of the budget before more is traced again */
#define LAW_HOLD_MAX 320  /* s: after that was too much, twice as long each time; until it was kept for so long */
#define LAW_LOW 0.7	  /* parts of the budget: below it there is room for more */
#define LAW_AIM 0.85	  /* what a change aims at */
#define LAW_KEPT 0.05	  /* what samples may take when all else is too much already */
#define LAW_FACTOR_MAX 65536u
#define LAW_FORGETTING 0.8 /* of sums in which what is old counts less: in each window */
#define LAW_PLACING 1e5	   /* ns that the collector takes to resume a site */
#define LAW_SITES_MAX 4096 /* further ones are not suspended */

/* A program, which is sampled. */
struct law_program {
	double calls; /* inferences a second */
	__u32 factor; /* of its interval, at least 1: in, as it is; out, as it is to be */
};

/* Probes of one function, which can be suspended together. */
struct law_site {
	double cost;	/* of its hits; of a suspended one, what they would take */
	bool known;	/* of a suspended one: cost was measured since */
	bool counted;	/* its calls are those that inferences are counted by: suspended last, resumed first */
	bool suspended; /* in and out */
};

struct law_input {
	double seconds;	  /* that the measurement took */
	double targets;	  /* CPU time of the targets, ns a second, without what tracing has added */
	double sites;	  /* hits of sites, as if nothing was recorded; operators are not in it */
	double operators; /* the same of operators; while they are off: what they would take, 0: unknown */
	double samples;	  /* what recorded calls take beyond that, in the targets and in the collector */
	double idle;	  /* what the collector takes in any case */
	struct law_program *programs;
	size_t program_count;
	struct law_site *site;
	size_t site_count;
	bool has_operators;
};

/* Zero it, and set share. */
struct law {
	double share;			   /* the budget: part of the targets' CPU time */
	size_t processes;		   /* targets there are now; each counts as if it used a little at least */
	double high_water[LAW_HIGH_WATER]; /* of the targets, by second */
	unsigned int second;
	double age; /* s of the latest entry there */
	double samples,
		recorded; /* ns that samples took, and how many there were: sums in which what is old counts less */
	double low;	  /* s for which the cost has been low */
	double since;	  /* s since the latest change */
	double kept;	  /* s since the budget was exceeded */
	double hold;	  /* s that low has to last */
	bool raised;	  /* the latest change was that more is traced */
	bool operators_off;
};

enum law_change { LAW_NONE, LAW_SAMPLING, LAW_OPERATORS, LAW_SITES };

/* ns a second that tracing may take now. */
double law_limit(const struct law *law);
/* What it takes, of the input. */
double law_cost(const struct law *law, const struct law_input *input);
/*
 * After each second, or earlier when the budget of a second has been used up. Returns what has changed: factors of programs, law.operators_off,
 * suspended of sites. urgent: everything that is needed at once, instead of one kind of change; then it is the last kind.
 */
enum law_change law_step(struct law *law, const struct law_input *input, bool urgent);

#endif

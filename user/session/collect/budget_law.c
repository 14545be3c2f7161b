/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/collect/budget_law.h"

#include <math.h>
#include <stdlib.h>

/*
 * What the targets count for where they use less, in ns a second: a tenth of a core, and something for each process, so that first calls of
 * one that is nearly idle do not exceed the budget at once; all of that together at most a core.
 */
#define LEAST_TARGETS 1e8
#define LEAST_PROCESS 2e7
#define LEAST_MOST 1e9
#define WORTH_SUSPENDING 0.02 /* part of the budget: sites that take less stay */
#define IDLE_COUNTED 0.65     /* the same of what the collector takes in any case: for more, nothing is left out */
#define SAMPLES_WORTH 0.05    /* the same of room for samples */
#define FEW_FACTOR 16	      /* times the calls seen: an interval is at most that long */
#define FACTOR_STEP 0.75      /* an interval is lowered only to this part of it or less */

double law_limit(const struct law *law)
{
	double most = fmin(LEAST_TARGETS + LEAST_PROCESS * (double)law->processes, LEAST_MOST);

	for (size_t i = 0; i < LAW_HIGH_WATER; i++)
		most = fmax(most, law->high_water[i]);
	return law->share * most;
}

double law_cost(const struct law *law, const struct law_input *input)
{
	return input->sites + (law->operators_off ? 0 : input->operators) + input->samples + input->idle;
}

static void note_targets(struct law *law, const struct law_input *input)
{
	law->age += input->seconds;
	while (law->age >= 1) {
		law->age -= 1;
		law->second = (law->second + 1) % LAW_HIGH_WATER;
		law->high_water[law->second] = 0;
	}
	law->high_water[law->second] = fmax(law->high_water[law->second], input->targets);
}

/* ---- sampling ---- */

static double recorded_rate(const struct law_input *input)
{
	double rate = 0;

	for (size_t i = 0; i < input->program_count; i++)
		rate += input->programs[i].calls / input->programs[i].factor;
	return rate;
}

static int compare(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

/*
 * The rate of samples that each program may have at most, so that all together have as many as there are: those with fewer calls
 * keep all of them, the most expensive ones are sampled less. INFINITY: nobody has to.
 */
static double fair_rate(const struct law_input *input, double samples)
{
	double *calls = malloc((input->program_count ?: 1) * sizeof(*calls)), left = samples, fair = INFINITY;

	/* Without memory all get the same. */
	if (!calls)
		return samples / (double)(input->program_count ?: 1);
	for (size_t i = 0; i < input->program_count; i++)
		calls[i] = input->programs[i].calls;
	qsort(calls, input->program_count, sizeof(*calls), compare);
	for (size_t i = 0; i < input->program_count; i++) {
		double share = left / (double)(input->program_count - i);

		if (calls[i] > share) {
			fair = share;
			break;
		}
		left -= calls[i];
	}
	free(calls);
	return fair;
}

static __u32 factor_for(const struct law_program *program, double fair, double seconds)
{
	double factor = ceil(program->calls / fair);

	if (!(factor > 1))
		return 1;
	/* A few calls in a short time say little of how many a second has. */
	factor = fmin(factor, fmax(1, FEW_FACTOR * program->calls * seconds));
	return factor < LAW_FACTOR_MAX ? (__u32)factor : LAW_FACTOR_MAX;
}

/*
 * Sets factors so that samples take as much as is available. lower: those that are too high; else those that are too low. Programs
 * that do not run keep theirs. Rather a sample in many seconds than a function that is not even counted.
 */
static bool set_factors(const struct law *law, const struct law_input *input, double available, bool lower)
{
	double fair = law->samples > 0 ? fair_rate(input, available * law->recorded / law->samples) : INFINITY;
	bool changed = false;

	for (size_t i = 0; i < input->program_count; i++) {
		struct law_program *program = &input->programs[i];
		__u32 factor = program->calls > 0 ? factor_for(program, fair, input->seconds) : program->factor;

		if (lower ? factor <= program->factor * FACTOR_STEP : factor > program->factor) {
			program->factor = factor;
			changed = true;
		}
	}
	return changed;
}

/* ---- less ---- */

/* The most expensive one; NULL: none is worth it. */
static struct law_site *most_expensive(const struct law_input *input, bool counted, double limit)
{
	struct law_site *most = NULL;

	for (size_t i = 0; i < input->site_count; i++) {
		struct law_site *site = &input->site[i];

		if (!site->suspended && site->counted == counted && site->cost >= WORTH_SUSPENDING * limit &&
		    (!most || site->cost > most->cost))
			most = site;
	}
	return most;
}

/* The most expensive ones, until the rest takes no more than the limit; those that inferences are counted by come last. */
static bool suspend_sites(const struct law_input *input, double cost, double limit)
{
	bool changed = false;

	while (cost > limit) {
		struct law_site *most = most_expensive(input, false, limit) ?: most_expensive(input, true, limit);

		if (!most)
			break;
		most->suspended = changed = true;
		cost -= most->cost;
	}
	return changed;
}

static enum law_change trace_less(struct law *law, const struct law_input *input, bool urgent)
{
	double limit = law_limit(law), cost = law_cost(law, input), fixed = cost - input->samples;
	double aim = LAW_AIM * limit, available = fmax(aim - fixed, LAW_KEPT * limit);
	enum law_change change = LAW_NONE;

	if (input->samples > available && set_factors(law, input, available, false)) {
		change = LAW_SAMPLING;
		cost = fixed + available;
	}
	if (cost <= limit || (change && !urgent))
		return change;
	if (input->has_operators && !law->operators_off && input->operators >= WORTH_SUSPENDING * limit) {
		law->operators_off = true;
		change = LAW_OPERATORS;
		cost -= input->operators;
	}
	if (cost <= limit || (change && !urgent))
		return change;
	if (suspend_sites(input, cost, aim))
		change = LAW_SITES;
	return change;
}

/* ---- more ---- */

/* The one that takes least and for which there is room. */
static struct law_site *cheapest(const struct law_input *input, bool counted, double room)
{
	struct law_site *least = NULL;

	for (size_t i = 0; i < input->site_count; i++) {
		struct law_site *site = &input->site[i];

		if (site->suspended && site->known && site->counted == counted && site->cost <= room &&
		    (!least || site->cost < least->cost))
			least = site;
	}
	return least;
}

/* What those have that inferences are counted by: what samples and other sites take is theirs. */
static double room_for_counted(const struct law *law, const struct law_input *input, double room)
{
	room += fmax(0, input->samples - LAW_KEPT * law_limit(law));
	for (size_t i = 0; i < input->site_count; i++)
		if (!input->site[i].suspended && !input->site[i].counted)
			room += input->site[i].cost;
	return room;
}

/*
 * As many as there is room for, those first that inferences are counted by, and as the collector can place in the time until more are: that is done
 * once.
 */
static bool resume_sites(const struct law *law, const struct law_input *input, double room)
{
	double for_counted = room_for_counted(law, input, room), placing = fmax(room * LAW_HOLD, LAW_PLACING);
	struct law_site *next;
	bool changed = false;

	while (placing >= LAW_PLACING && (next = cheapest(input, true, for_counted) ?: cheapest(input, false, room))) {
		next->suspended = false;
		for_counted -= next->cost;
		room -= next->cost;
		placing -= LAW_PLACING;
		changed = true;
	}
	return changed;
}

static enum law_change trace_more(struct law *law, const struct law_input *input)
{
	double limit = law_limit(law), room = LAW_AIM * limit - law_cost(law, input);

	if (resume_sites(law, input, room))
		return LAW_SITES;
	if (law->operators_off && input->operators <= room) {
		law->operators_off = false;
		return LAW_OPERATORS;
	}
	return set_factors(law, input, room + input->samples, true) ? LAW_SAMPLING : LAW_NONE;
}

/* Programs are sampled, and there is room for as many samples again. */
static bool samples_fit_twice(const struct law *law, const struct law_input *input, double cost)
{
	double limit = law_limit(law);
	bool sampled = false;

	for (size_t i = 0; i < input->program_count && !sampled; i++)
		sampled = input->programs[i].calls > 0 && input->programs[i].factor > 1;
	return sampled && cost + fmax(input->samples, SAMPLES_WORTH * limit) <= LAW_AIM * limit;
}

/* Whether more can be traced. */
static bool is_low(const struct law *law, const struct law_input *input, double cost)
{
	double limit = law_limit(law);

	return cost < LAW_LOW * limit || samples_fit_twice(law, input, cost) ||
	       cheapest(input, true, room_for_counted(law, input, LAW_AIM * limit - cost));
}

enum law_change law_step(struct law *law, const struct law_input *input, bool urgent)
{
	struct law_input counted = *input;
	enum law_change change = LAW_NONE;
	double cost, limit;

	note_targets(law, input);
	limit = law_limit(law);
	counted.idle = fmin(input->idle, IDLE_COUNTED * limit);
	cost = law_cost(law, &counted);
	law->since += input->seconds;
	law->kept = cost > limit ? 0 : law->kept + input->seconds;
	if (law->hold < LAW_HOLD || law->kept > LAW_HOLD_MAX)
		law->hold = LAW_HOLD;
	law->low = is_low(law, &counted, cost) ? law->low + input->seconds : 0;
	law->samples = LAW_FORGETTING * law->samples + input->samples * input->seconds;
	law->recorded = LAW_FORGETTING * law->recorded + recorded_rate(input) * input->seconds;
	if (cost > limit)
		change = trace_less(law, &counted, urgent);
	else if (law->low >= law->hold && law->since >= law->hold)
		change = trace_more(law, &counted);
	if (!change)
		return change;
	/* What was too much soon after it was allowed is tried again later each time. */
	if (cost > limit && law->raised && law->since < 2 * LAW_HOLD)
		law->hold = fmin(2 * law->hold, LAW_HOLD_MAX);
	law->raised = cost <= limit;
	law->since = law->low = 0;
	return change;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* The control law against simulated targets: what is traced follows from it, and what that costs goes back into it. */
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "session/collect/budget_law.h"

#define CORE 1e9 /* ns a second */
#define PROGRAMS_MAX 1000
#define SITES_MAX 4

/* Programs with calls through one site each, and what these cost. */
struct target {
	double cores;
	double calls[PROGRAMS_MAX]; /* a second */
	size_t programs;
	double trap, sample;	    /* ns of a call that is left out; more of one that is recorded */
	double operators, operator; /* of each call; ns */
	double other[SITES_MAX];    /* ns a second of sites that no program is behind */
	size_t others;
	double idle;
	struct law law;
	struct law_program program[PROGRAMS_MAX];
	struct law_site site[SITES_MAX + 1];
	enum law_change latest;
	unsigned int changes;
};

static void begin(struct target *target, double percent)
{
	target->law.share = percent / 100;
	for (size_t i = 0; i < target->programs; i++)
		target->program[i].factor = 1;
}

/* What tracing takes as things are. */
static double measure(struct target *target, struct law_input *input, double seconds)
{
	double calls = 0, samples = 0;
	bool off = target->site[0].suspended;

	*input = (struct law_input){ .seconds = seconds,
				     .targets = target->cores * CORE,
				     .idle = target->idle,
				     .programs = target->program,
				     .program_count = target->programs,
				     .site = target->site,
				     .site_count = 1 + target->others,
				     .has_operators = target->operators > 0 };
	for (size_t i = 0; i < target->programs; i++) {
		/* Nothing is counted of a site that is suspended, but now and then it is looked at. */
		target->program[i].calls = off ? 0 : target->calls[i];
		calls += target->calls[i];
		samples += off ? 0 : target->calls[i] / target->program[i].factor;
	}
	target->site[0].cost = calls * target->trap;
	target->site[0].known = off;
	for (size_t i = 0; i < target->others; i++) {
		target->site[i + 1].cost = target->other[i];
		target->site[i + 1].known = true;
	}
	for (size_t i = 0; i <= target->others; i++)
		input->sites += target->site[i].suspended ? 0 : target->site[i].cost;
	input->operators = calls * target->operators * target->operator;
	input->samples = samples * target->sample;
	return law_cost(&target->law, input);
}

/* One second: the cost in parts of the targets' CPU time. An urgent step comes as soon as the budget of a second is used up. */
static double second(struct target *target)
{
	struct law_input input;
	double cost = measure(target, &input, 1), spent = 0, left = 1, took;

	while (left > 0) {
		took = left;
		if (cost * left + spent > law_limit(&target->law))
			took = fmin(left, fmax(0.02, (law_limit(&target->law) - spent) / cost));
		spent += cost * took;
		left -= took;
		measure(target, &input, took);
		target->latest = law_step(&target->law, &input, left > 0);
		target->changes += target->latest != LAW_NONE;
		cost = measure(target, &input, 1);
		if (took >= 1 || !target->latest) {
			spent += cost * left;
			break;
		}
	}
	return spent / (target->cores * CORE);
}

static double seconds(struct target *target, unsigned int count)
{
	double cost = 0;

	for (unsigned int i = 0; i < count; i++)
		cost = second(target);
	return cost;
}

Test(session_collect_budget_law, nothing_changes_within_the_budget)
{
	struct target target = { .cores = 1, .programs = 1, .calls = { 1000 }, .trap = 600, .sample = 1000 };

	begin(&target, 2);
	cr_assert_float_eq(seconds(&target, 100), 0.0016, 1e-9);
	cr_assert_eq(target.changes, 0);
}

Test(session_collect_budget_law, samples_are_as_many_as_fit)
{
	struct target target = { .cores = 1, .programs = 1, .calls = { 20000 }, .trap = 600, .sample = 1000 };
	double cost;

	begin(&target, 2);
	cost = second(&target);
	cr_assert_lt(cost, 3 * 0.02, "%g", cost);
	cost = second(&target);
	/* 1.2 % are left out, and there is room for 0.5 %: one call in four. */
	cr_assert_float_eq(cost, 0.012 + 0.02 / target.program[0].factor, 1e-9);
	cr_assert_eq(target.program[0].factor, 4, "%u", target.program[0].factor);
	cr_assert_not(target.site[0].suspended);
	target.changes = 0;
	seconds(&target, 200);
	cr_assert_eq(target.changes, 0);
}

Test(session_collect_budget_law, programs_with_many_calls_lose_samples_first)
{
	struct target target = { .cores = 1, .programs = 3, .calls = { 100, 900, 19000 }, .trap = 100, .sample = 2000 };

	begin(&target, 2);
	seconds(&target, 5);
	cr_assert_eq(target.program[0].factor, 1);
	cr_assert_eq(target.program[1].factor, 1);
	/* 15 ms of 17 are left, of which 2 ms are those of the others: 6500 of 19000 samples. */
	cr_assert_eq(target.program[2].factor, 3, "%u", target.program[2].factor);
}

Test(session_collect_budget_law, a_thousand_programs)
{
	struct target target = { .cores = 1, .programs = PROGRAMS_MAX, .trap = 10, .sample = 1000 };
	double cost;

	for (size_t i = 0; i < PROGRAMS_MAX; i++)
		target.calls[i] = 100;
	begin(&target, 2);
	cost = seconds(&target, 6);
	cr_assert_leq(cost, 0.02, "%g", cost);
	cr_assert_geq(cost, 0.01, "%g", cost);
}

Test(session_collect_budget_law, operators_are_off_before_sites)
{
	struct target target = { .cores = 1,
				 .programs = 1,
				 .calls = { 1000 },
				 .trap = 600,
				 .sample = 1000,
				 .operators = 600,
				 .operator= 1000 };
	double cost;

	begin(&target, 2);
	cost = seconds(&target, 6);
	cr_assert(target.law.operators_off);
	cr_assert_not(target.site[0].suspended);
	cr_assert_leq(cost, 0.02, "%g", cost);
	/* They stay off while calls are as many. */
	target.changes = 0;
	seconds(&target, 120);
	cr_assert(target.law.operators_off);
	cr_assert_leq(target.changes, 1);
	/* With fewer calls there is room for them. */
	target.calls[0] = 20;
	seconds(&target, 60);
	cr_assert_not(target.law.operators_off);
}

Test(session_collect_budget_law, the_most_expensive_site_goes)
{
	struct target target = { .cores = 1,
				 .programs = 1,
				 .calls = { 1000 },
				 .trap = 600,
				 .sample = 1000,
				 .others = 3,
				 .other = { 1e9, 1e6, 5e5 } };
	double cost;

	begin(&target, 2);
	cost = second(&target);
	cr_assert_lt(cost, 3 * 0.02, "%g", cost);
	cr_assert(target.site[1].suspended);
	cr_assert_not(target.site[2].suspended);
	cr_assert_not(target.site[0].suspended);
	target.changes = 0;
	cost = seconds(&target, 300);
	cr_assert_leq(cost, 0.02, "%g", cost);
	cr_assert_leq(target.changes, 1, "at most that there are more samples again");
	/* It returns when it is hit less. */
	target.other[0] = 1e6;
	seconds(&target, 60);
	cr_assert_not(target.site[1].suspended);
}

Test(session_collect_budget_law, bursts_do_not_make_it_change_all_the_time)
{
	struct target target = { .cores = 1, .programs = 1, .trap = 600, .sample = 1000 };
	double added = 0, used = 0;

	begin(&target, 2);
	for (unsigned int i = 0; i < 120; i++) {
		bool on = i % 6 == 0;
		double cost;

		target.cores = on ? 1 : 0.01;
		target.calls[0] = on ? 25000 : 0;
		cost = second(&target) * target.cores;
		if (i < 30)
			continue;
		if (i == 30)
			target.changes = 0;
		added += cost;
		used += target.cores;
	}
	cr_assert_leq(added / used, 0.02, "%g", added / used);
	cr_assert_leq(target.changes, 9, "%u changes in 90 s", target.changes);
}

Test(session_collect_budget_law, a_spike_after_idling)
{
	struct target target = { .cores = 0.01, .programs = 1, .trap = 600, .sample = 1000 };
	double cost;

	begin(&target, 2);
	seconds(&target, 60);
	target.cores = 1;
	target.calls[0] = 30000;
	cost = second(&target);
	cr_assert_leq(cost, 3 * 0.02, "%g", cost);
	cost = seconds(&target, 5);
	cr_assert_leq(cost, 0.025, "%g", cost);
}

Test(session_collect_budget_law, what_was_too_much_is_tried_later_each_time)
{
	struct target target = { .cores = 1, .programs = 1, .calls = { 1000 }, .trap = 600, .sample = 1000 };
	unsigned int last = 0, tries = 0, longest = 0;

	/* It takes less at once when it was allowed more, and more a second later: as a load that reacts to it. */
	begin(&target, 2);
	for (unsigned int i = 0; i < 1000; i++) {
		target.calls[0] = target.program[0].factor == 1 ? 50000 : 100;
		second(&target);
		if (!target.law.raised || !target.latest)
			continue;
		tries++;
		longest = i - last > longest ? i - last : longest;
		last = i;
	}
	cr_assert_leq(tries, 20, "%u", tries);
	cr_assert_geq(longest, 160, "%u", longest);
}

Test(session_collect_budget_law, the_collector_alone_is_nothing_to_leave_out_for)
{
	struct target target = {
		.cores = 0.1, .programs = 1, .calls = { 10 }, .trap = 600, .sample = 1000, .idle = 3e6
	};

	begin(&target, 2);
	seconds(&target, 30);
	cr_assert_not(target.site[0].suspended);
	/* What is too much beside it is suspended, and resumed when it is less. */
	target.others = 1;
	target.other[0] = 2e6;
	seconds(&target, 30);
	cr_assert(target.site[1].suspended && !target.site[0].suspended);
	target.other[0] = 1e5;
	seconds(&target, 30);
	cr_assert_not(target.site[1].suspended);
}

/* 100 processes that do next to nothing: what they cost is small, and nothing is left out of it; but not without end. */
Test(session_collect_budget_law, many_that_are_nearly_idle)
{
	struct target target = { .cores = 0.02, .programs = 100, .trap = 2500, .sample = 3000, .idle = 3e6 };

	for (size_t i = 0; i < target.programs; i++)
		target.calls[i] = 8;
	begin(&target, 2);
	target.law.processes = 100;
	cr_assert_float_eq(law_limit(&target.law), 0.02 * CORE, 1,
			   "400 us a second each, and 2 ms, but no more than of one core");
	seconds(&target, 60);
	cr_assert_not(target.site[0].suspended);
	for (size_t i = 0; i < target.programs; i++)
		cr_assert_eq(target.program[i].factor, 1);
	target.law.processes = 100000;
	cr_assert_float_eq(law_limit(&target.law), 0.02 * CORE, 1, "as of one core");
	target.law.processes = 1;
	for (size_t i = 0; i < target.programs; i++)
		target.calls[i] = 80;
	seconds(&target, 60);
	cr_assert(target.site[0].suspended || target.program[0].factor > 1, "one process has no room for all of that");
	/* Those that work have their share of what they use. */
	target = (struct target){ .cores = 4, .programs = 1 };
	begin(&target, 2);
	target.law.processes = 100;
	seconds(&target, 5);
	cr_assert_float_eq(law_limit(&target.law), 0.02 * 4 * CORE, 1000);
}

/* One call each in the millisecond after which the budget of a second was used up is no thousand calls a second. */
Test(session_collect_budget_law, a_short_time_says_little_of_a_program)
{
	struct law_program programs[100];
	struct law law = { .share = 0.02 };
	struct law_input input = {
		.seconds = 1e-3, .targets = CORE, .samples = 2 * CORE, .programs = programs, .program_count = 100
	};

	for (size_t i = 0; i < 100; i++)
		programs[i] = (struct law_program){ .calls = 1000, .factor = 1 };
	cr_assert_eq(law_step(&law, &input, true), LAW_SAMPLING);
	for (size_t i = 0; i < 100; i++)
		cr_assert(programs[i].factor > 1 && programs[i].factor <= 16, "%u", programs[i].factor);
	input.seconds = 1;
	for (unsigned int second = 0; second < 3; second++)
		law_step(&law, &input, false);
	for (size_t i = 0; i < 100; i++)
		cr_assert_gt(programs[i].factor, 100, "a second does: %u", programs[i].factor);
}

/* A sample in many seconds says more than a function that is not counted. */
Test(session_collect_budget_law, programs_with_few_calls_are_sampled)
{
	struct target target = {
		.cores = 0.09, .programs = 1000, .trap = 8000, .sample = 16000, .idle = 2e6, .site[0].counted = true
	};
	double cost, recorded = 0;

	begin(&target, 2);
	target.law.processes = 100;
	for (size_t i = 0; i < target.programs; i++)
		target.calls[i] = 1;
	cost = seconds(&target, 60) * target.cores * CORE;
	cr_assert(!target.site[0].suspended, "inferences are counted");
	cr_assert(cost <= 0.02 * CORE && cost >= 0.7 * 0.02 * CORE, "%g ns a second", cost);
	for (size_t i = 0; i < target.programs; i++)
		recorded += 1.0 / target.program[i].factor;
	cr_assert(recorded > 300 && recorded < 600, "%g a second", recorded);
}

Test(session_collect_budget_law, what_inferences_are_counted_by_is_suspended_last)
{
	struct target target = {
		.cores = 1, .programs = 1, .calls = { 1000 }, .trap = 8000, .others = 3, .other = { 7e6, 6e6, 5e6 }
	};

	target.site[0].counted = true;
	begin(&target, 2);
	seconds(&target, 5);
	cr_assert(!target.site[0].suspended && target.site[1].suspended);
	target.trap = 25000;
	seconds(&target, 5);
	for (size_t i = 0; i <= target.others; i++)
		cr_assert(target.site[i].suspended, "%zu", i);
	/* There is room for two of them, then for all at once. */
	target.trap = 8000;
	target.other[0] = target.other[1] = target.other[2] = 8.5e6;
	for (unsigned int second_now = 0; second_now < 400 && target.site[0].suspended; second_now++)
		second(&target);
	cr_assert(!target.site[0].suspended &&
		  target.site[1].suspended + target.site[2].suspended + target.site[3].suspended == 2);
	/* What it takes is that of the others, if there is no other way. */
	target.site[0].suspended = true;
	target.other[0] = target.other[1] = target.other[2] = 8.5e6;
	target.trap = 12000;
	for (unsigned int second_now = 0; second_now < 400 && target.site[0].suspended; second_now++)
		second(&target);
	seconds(&target, 2);
	cr_assert(!target.site[0].suspended && target.site[1].suspended && target.site[2].suspended &&
		  target.site[3].suspended);
	target.other[0] = target.other[1] = target.other[2] = 1e6;
	target.trap = 8000;
	target.changes = 0;
	for (unsigned int second_now = 0; second_now < 400 && !target.changes; second_now++)
		second(&target);
	cr_assert(!target.site[1].suspended && !target.site[2].suspended && !target.site[3].suspended);
}

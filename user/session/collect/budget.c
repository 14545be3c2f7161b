/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps what tracing costs below a share of the targets' CPU time: measures it, and changes what is traced (budget_law.h). What it costs
 * is hits of probes, which the kernel side counts, times what such a hit takes on this machine, and the CPU time of the collector.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/json.h"
#include "base/core/log.h"
#include "session/attach/attached.h"
#include "session/collect/budget_private.h"

#define TICK COLLECTOR_POLL  /* ns between two looks whether the budget of a second has been used up */
#define WINDOW 1000000000ull /* ns */
/* ns between two times for which suspended probes are placed, to see how often they are hit */
#define LOOK_EVERY 10000000000ull
#define LOOK_SHARE 0.05 /* part of the budget that this may take */
#define LOOK_MIN 2e-3	/* s */
#define LOOK_MAX 0.2
#define IDLE_FIRST 2e6 /* ns a second, before it is known */

/* ---- what has changed ---- */

static void emit(struct budget *budget, const char *action, pid_t tgid, double cost, struct text *json)
{
	struct xpt_record_text *record;

	json_add_string(json, "action", action);
	json_add_real(json, "cost", 100 * cost * budget->law.share / law_limit(&budget->law));
	json_add_real(json, "budget", 100 * budget->law.share);
	record = record_budget(tgid > 0 ? (__u32)tgid : 0, clock_monotonic(), json);
	collector_pass_text(budget->collector, record);
	budget->changes++;
}

/* How many calls the program records one of. */
static __u32 interval(const struct budget *budget, const struct budget_program *program, __u32 factor)
{
	__u32 every = program->every ?: budget->collector->needs.sample_every;

	return (every ?: 1) * factor;
}

static void change_sampling(struct budget *budget, const struct law_input *input, double cost)
{
	struct budget_program *program, *most = NULL;
	size_t i = 0, changed = 0;
	struct text json = {};
	__u32 every = 0;

	link_for_each(program, &budget->programs, link) {
		__u32 factor;

		if (program->every == XPT_SAMPLE_NONE)
			continue;
		factor = input->programs[i++].factor;
		if (factor == program->factor || kern_set_factor(budget->collector->kern, &program->key, factor))
			continue;
		changed++;
		program->factor = factor;
		if (every < interval(budget, program, factor))
			every = interval(budget, program, factor);
		if (!most || most->rate < program->rate)
			most = program;
	}
	if (!most)
		return;
	log_info(&budget->collector->log,
		 "the budget of %.3g %% is %s: of %zu programs at most 1 call in %u is recorded",
		 100 * budget->law.share, budget->law.raised ? "not used" : "exceeded", changed, every);
	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "every", every);
	json_add_unsigned(&json, "programs", changed);
	json_add_unsigned(&json, "runtime", most->key.runtime);
	json_add_unsigned(&json, "handle", most->key.handle);
	emit(budget, "sampling", (pid_t)most->key.tgid, cost, &json);
}

static void change_operators(struct budget *budget, double cost)
{
	bool on = !budget->law.operators_off;
	struct text json = {};

	attacher_switch_operators(budget->collector->attacher, on);
	log_info(&budget->collector->log, "the budget of %.3g %% is %s: operators are %straced",
		 100 * budget->law.share, on ? "not used" : "exceeded", on ? "" : "not ");
	json_begin(&json, NULL, '{');
	json_add_bool(&json, "on", on);
	emit(budget, "operators", 0, cost, &json);
}

static void change_site(struct budget *budget, struct attached *attached, bool on, double cost)
{
	struct collector *collector = budget->collector;
	const char *function = attacher_function(collector->attacher, attached);
	char process[32] = "";
	struct text json = {};

	if (on && attached->suspended && attacher_resume(collector->attacher, attached))
		return;
	if (!on)
		attacher_suspend(collector->attacher, attached);
	/* Probes of whole files are no process's. */
	if (attached->tgid > 0)
		snprintf(process, sizeof(process), " of process %d", attached->tgid);
	log_info(&collector->log, "the budget of %.3g %% is %s: %s%s is %straced", 100 * budget->law.share,
		 on ? "not used" : "exceeded", function, process, on ? "" : "not ");
	json_begin(&json, NULL, '{');
	json_add_bool(&json, "on", on);
	json_add_string(&json, "function", function);
	if (on)
		json_add_unsigned(&json, "since", attached->load.since);
	emit(budget, "site", attached->tgid, cost, &json);
	attached->load.since = on ? 0 : clock_monotonic();
	attached->load.due = on ? 0 : attached->load.since + LOOK_EVERY;
	attached->load.until = 0;
	attached->load.known = false;
	if (on)
		attached->load.hits = kern_hits(collector->kern, attached->load.counter);
}

/* ---- suspended probes are placed for a moment, now and then ---- */

static void look_at(struct budget *budget, struct attached *attached, __u64 now)
{
	struct attached_load *load = &attached->load;
	struct collector *collector = budget->collector;
	double seconds;

	if (!load->until && now >= load->due) {
		seconds = LOOK_SHARE * law_limit(&budget->law) * (LOOK_EVERY / 1e9) / fmax(load->cost, 1);
		load->due = now + LOOK_EVERY;
		if (attacher_resume(collector->attacher, attached))
			return;
		load->hits = kern_hits(collector->kern, load->counter);
		load->begun = clock_monotonic();
		load->until = load->begun + (__u64)(fmin(fmax(seconds, LOOK_MIN), LOOK_MAX) * 1e9);
	} else if (load->until && now >= load->until) {
		load->cost = budget_note_cost(budget, attached) * 1e9 / (double)(now - load->begun);
		load->known = true;
		load->until = 0;
		attacher_suspend(collector->attacher, attached);
	}
}

static void look_at_suspended(struct budget *budget, __u64 now)
{
	size_t count;
	struct attached *all = attacher_loads(budget->collector->attacher, &count);

	for (size_t i = 0; i < count; i++)
		if (all[i].load.since)
			look_at(budget, &all[i], now);
}

/* ---- a window ---- */

struct window {
	struct law_input input;
	struct attached **attached; /* by site of the input */
};

/* Those of calls; what those of operators have cost, in ns. */
static double collect_sites(struct budget *budget, struct window *window)
{
	struct collector *collector = budget->collector;
	struct law_input *input = &window->input;
	double operators = 0;
	size_t count;
	struct attached *all = attacher_loads(collector->attacher, &count);

	for (size_t i = 0; i < count; i++) {
		struct attached *attached = &all[i];
		double cost;

		if (role_is_step(attacher_role(collector->attacher, attached))) {
			input->has_operators = true;
			operators += budget_note_hits(budget, attached);
			continue;
		}
		if (!attached->load.since) {
			cost = budget_note_cost(budget, attached);
			attached->load.cost = cost / input->seconds;
			input->sites += attached->load.cost;
		}
		if (input->site_count == LAW_SITES_MAX)
			continue;
		window->attached[input->site_count] = attached;
		input->site[input->site_count++] = (struct law_site){
			.cost = attached->load.cost,
			.known = attached->load.known,
			.counted = XPT_ROLES_COUNTED >> attacher_role(collector->attacher, attached) & 1,
			.suspended = attached->load.since,
		};
	}
	return operators;
}

static void collect_programs(struct budget *budget, struct law_input *input)
{
	const struct budget_program *program;

	link_for_each(program, &budget->programs, link) {
		if (program->every == XPT_SAMPLE_NONE)
			continue;
		input->programs[input->program_count++] = (struct law_program){ program->rate, program->factor };
	}
}

/* What operators take or, while they are off, would take: as much as before for each call. */
static void note_operators(struct budget *budget, struct law_input *input, double operators)
{
	double calls = 0;

	for (size_t i = 0; i < input->program_count; i++)
		calls += input->programs[i].calls;
	if (!budget->law.operators_off) {
		input->operators = operators / input->seconds;
		budget->operators = input->operators;
		budget->operators_calls = calls;
	} else if (budget->operators_calls > 0) {
		input->operators = budget->operators * calls / budget->operators_calls;
	}
}

static void apply(struct budget *budget, struct window *window, enum law_change change, double cost)
{
	struct law_input *input = &window->input;
	bool were_off = attacher_operators_off(budget->collector->attacher);

	if (!change)
		return;
	change_sampling(budget, input, cost);
	if (budget->law.operators_off != were_off)
		change_operators(budget, cost);
	for (size_t i = 0; i < input->site_count; i++)
		if (input->site[i].suspended != !!window->attached[i]->load.since)
			change_site(budget, window->attached[i], !input->site[i].suspended, cost);
}

static void warn_of_rest(struct budget *budget, const struct law_input *input, double cost)
{
	double limit = law_limit(&budget->law), percent = 100 * budget->law.share / limit;

	if (budget->warned || cost <= limit || budget->law.since < 2 * LAW_HOLD)
		return;
	budget->warned = true;
	log_warn(&budget->collector->log,
		 "the budget of %.3g %% is not kept: tracing takes %.3g %%, of which the collector %.3g %%, and there is nothing left to leave out",
		 100 * budget->law.share, cost * percent, input->idle * percent);
}

static void end_window(struct budget *budget, __u64 now, bool urgent)
{
	struct collector *collector = budget->collector;
	__u64 cpu = budget_collector_time();
	double seconds = (double)(now - budget->window) / 1e9, operators, cost;
	struct window window = { .input = { .seconds = seconds } };
	struct law_input *input = &window.input;
	size_t sites, programs = budget_visit_programs(budget, seconds);
	double samples = budget_samples(budget), targets = budget_targets_time(budget), before = budget->added;
	double collecting, apart;
	enum law_change change;

	budget_note_coldness(budget);
	attacher_loads(collector->attacher, &sites);
	input->programs = calloc(programs ?: 1, sizeof(*input->programs));
	input->site = calloc(sites ?: 1, sizeof(*input->site));
	window.attached = calloc(sites ?: 1, sizeof(*window.attached));
	if (input->programs && input->site && window.attached) {
		collect_programs(budget, input);
		collecting = budget_collecting(budget, seconds, cpu);
		apart = budget_note_apart(budget);
		operators = collect_sites(budget, &window);
		note_operators(budget, input, operators);
		input->samples = fmax(0, samples + collecting - apart) / seconds;
		input->idle = budget->idle;
		budget->added += samples;
		budget->targets += targets;
		input->targets = fmax(0, targets - (budget->added - before)) / seconds;
		cost = law_cost(&budget->law, input);
		change = law_step(&budget->law, input, urgent);
		apply(budget, &window, change, cost);
		warn_of_rest(budget, input, cost);
	}
	free(input->programs);
	free(input->site);
	free(window.attached);
	memcpy(budget->spec_calls, collector->spec_calls,
	       collector->registry->spec_count * sizeof(*budget->spec_calls));
	memcpy(budget->spec_apart, collector->spec_apart,
	       collector->registry->spec_count * sizeof(*budget->spec_apart));
	budget->cpu = cpu;
	budget->window = now;
}

void budget_look(struct budget *budget)
{
	__u64 now = budget && budget->window ? clock_monotonic() : 0;
	struct kern_run run;
	bool over;

	if (!now)
		return;
	run = kern_run_time(budget->collector->kern);
	if (now < budget->tick && run.stepped == budget->stepped)
		return;
	/* Of the thread that collects, which this is. */
	if (!budget->tick) {
		budget->cpu = budget->cpu_at_start = budget_collector_time();
		budget->drain_time = budget->collector->drain_time;
		budget->drained = budget->collector->drained_records;
		budget->driver_records = budget->collector->events + budget->collector->ioctls;
	}
	budget->tick = now + TICK;
	budget->stepped = run.stepped;
	budget->law.processes = budget->collector->followed_map.count;
	look_at_suspended(budget, now);
	over = budget_cost_so_far(budget) > law_limit(&budget->law) * WINDOW / 1e9;
	if (over || now - budget->window >= WINDOW)
		end_window(budget, now, over);
	attacher_sweep(budget->collector->attacher);
}

/* ---- begin and end ---- */

int budget_create(struct collector *collector, struct budget **result)
{
	struct budget *budget;

	if (!(collector->options.budget > 0))
		return 0;
	budget = calloc(1, sizeof(*budget));
	if (!budget)
		return -ENOMEM;
	budget->spec_calls = calloc(collector->registry->spec_count ?: 1, sizeof(*budget->spec_calls));
	budget->spec_apart = calloc(collector->registry->spec_count ?: 1, sizeof(*budget->spec_apart));
	budget->apart_cost = calloc(collector->registry->spec_count ?: 1, sizeof(*budget->apart_cost));
	link_init(&budget->programs);
	link_init(&budget->totals);
	if (!budget->spec_calls || !budget->spec_apart || !budget->apart_cost) {
		budget_free(budget);
		return -ENOMEM;
	}
	budget->collector = collector;
	budget->law.share = collector->options.budget / 100;
	budget->idle = IDLE_FIRST;
	*result = budget;
	return 0;
}

void budget_start(struct budget *budget)
{
	if (!budget)
		return;
	budget->ended_before = kern_ended_time(budget->collector->kern);
	budget_targets_time(budget);
	budget->window = clock_monotonic();
	budget->run = kern_run_time(budget->collector->kern);
}

void budget_stop(struct budget *budget)
{
	struct attached *all;
	size_t count;

	if (!budget || !budget->window)
		return;
	/* What is left of the last window is counted, and changes nothing. */
	budget->added += budget_samples(budget);
	budget->targets += budget_targets_time(budget);
	budget->cpu = budget_collector_time();
	all = attacher_loads(budget->collector->attacher, &count);
	for (size_t i = 0; i < count; i++)
		budget_note_hits(budget, &all[i]);
	budget->window = 0;
}

void budget_free(struct budget *budget)
{
	struct budget_program *program, *next_program;
	struct budget_total *total, *next_total;

	if (!budget)
		return;
	link_for_each_safe(program, next_program, &budget->programs, link)
		budget_drop_program(budget, program);
	link_for_each_safe(total, next_total, &budget->totals, link)
		free(total);
	map_free(&budget->program_map);
	map_free(&budget->total_map);
	free(budget->spec_calls);
	free(budget->spec_apart);
	free(budget->apart_cost);
	free(budget);
}

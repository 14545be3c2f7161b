/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps what tracing costs below a share of the targets' CPU time: measures it, and changes what is traced (budget_law.h). What it costs
 * is hits of probes, which the kernel side counts, times what such a hit takes on this machine, and the CPU time of the collector.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/clock.h"
#include "base/core/json.h"
#include "base/core/log.h"
#include "base/core/vec.h"
#include "session/attach/attached.h"
#include "session/collect/budget_law.h"
#include "session/collect/collector.h"

#define TICK COLLECTOR_POLL  /* ns between two looks whether the budget of a second has been used up */
#define WINDOW 1000000000ull /* ns */
#define LOOK_EVERY \
	10000000000ull	/* ns between two times for which suspended probes are placed, to see how often they are hit */
#define LOOK_SHARE 0.05 /* part of the budget that this may take */
#define LOOK_MIN 2e-3	/* s */
#define LOOK_MAX 0.2
#define IDLE_FIRST 2e6	 /* ns a second, before it is known */
#define RECORD_FIRST 300 /* ns, likewise */
#define RECORDS_MIN 1000 /* in a window, for a result */
#define RUNS_MIN 16	 /* that were timed, for a result */
#define COLD_MAX 1.5	 /* caches can be colder than those of the measurement at start */
#define SLOT_COST 400	 /* ns: of a perf event that is read before and after a call (make bench, counters) */
#define LISTED_MAX 20	 /* targets and sites in the closing figures */
#define TOTALS_MAX 16384 /* sites and targets that are kept apart for them */

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
	__u64 *spec_calls;  /* recorded up to that */
	__u64 cpu;	    /* of the collector, likewise */
	__u64 cpu_at_start;
	double idle;	    /* least that the collector has taken in a window, ns a second */
	double record_cost; /* ns that the collector takes for a record beyond that */
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
		operators_calls; /* ns a second that operators took when they were on, at so many calls a second */
	double targets, added;	 /* ns, in all */
	__u64 changes;
	bool warned;
};

/* ---- what a hit takes ---- */

static double mixed(const struct budget *budget, __u64 warm, __u64 cold)
{
	double value = (double)warm + ((double)cold - (double)warm) * budget->coldness;

	return value > 0 ? value : 0;
}

static const struct kern_hit_cost *class_costs(const struct budget *budget, enum site_class class)
{
	return kern_hit_costs(budget->collector->kern, (enum kern_cost_kind)(class - SITE_OPTIMISED));
}

static bool is_step(enum xpt_role role)
{
	return role == XPT_ROLE_OPERATOR || role == XPT_ROLE_OPERATOR_END;
}

/* ns of one hit of which nothing is recorded. Those of operators come in pairs, at the call and behind it. */
static double hit_cost(const struct budget *budget, enum xpt_role role, enum site_class class)
{
	const struct kern_hit_cost *own = class_costs(budget, class ?: SITE_EMULATED);
	const struct kern_hit_cost *emulated = class_costs(budget, SITE_EMULATED);
	const struct kern_hit_cost *step = kern_hit_costs(budget->collector->kern, KERN_COST_OPERATOR);
	double cost;

	if (!own)
		return site_class_cost(class ?: SITE_EMULATED) / 2.0;
	cost = mixed(budget, own[0].left_out.cost, own[1].left_out.cost);
	if (!is_step(role))
		return cost;
	cost -= mixed(budget, emulated[0].left_out.cost, emulated[1].left_out.cost);
	return fmax(0, cost + mixed(budget, step[0].left_out.cost, step[1].left_out.cost) / 2);
}

/* ns that recording a call takes beyond the hit at its entry. */
static double record_cost_of(const struct budget *budget, const struct xpt_spec *spec)
{
	const struct collector *collector = budget->collector;
	enum site_class class = attacher_class(collector->attacher, spec->index) ?: SITE_EMULATED;
	const struct kern_hit_cost *cost = spec->role == XPT_ROLE_OPERATOR ?
						   kern_hit_costs(collector->kern, KERN_COST_OPERATOR) :
						   class_costs(budget, class);
	double extra;

	if (!cost)
		return site_class_cost(class) / 2.0;
	extra = mixed(budget, cost[0].recorded.cost, cost[1].recorded.cost) -
		mixed(budget, cost[0].left_out.cost, cost[1].left_out.cost);
	if (spec->flags & XPT_SPEC_ENTRY_ONLY)
		extra /= 2;
	if (XPT_ROLES_COUNTED >> spec->role & 1)
		extra += counter_sampler_slots(collector->counter_sampler) * (double)SLOT_COST;
	return fmax(0, extra);
}

/* ---- warm or cold: how long BPF programs run ---- */

/* Runs at entries, how long they take, and how long they should with warm and cold caches. */
struct runs {
	double hits, warm, cold; /* ns */
};

static void add_runs(struct runs *runs, double hits, const struct kern_hit_cost *cost, bool recorded)
{
	const struct kern_hit_time *warm = recorded ? &cost[0].recorded : &cost[0].left_out;
	const struct kern_hit_time *cold = recorded ? &cost[1].recorded : &cost[1].left_out;

	runs->hits += hits;
	runs->warm += hits * (double)warm->run;
	runs->cold += hits * (double)cold->run;
}

/* Of this window. */
static struct runs expected_runs(const struct budget *budget)
{
	struct collector *collector = budget->collector;
	const struct kern_hit_cost *call = class_costs(budget, SITE_EMULATED), *cost;
	const struct kern_hit_cost *step = kern_hit_costs(collector->kern, KERN_COST_OPERATOR);
	struct runs runs = {};
	size_t count;
	const struct attached *all = attacher_loads(collector->attacher, &count);

	for (size_t i = 0; i < count; i++) {
		cost = is_step(attacher_role(collector->attacher, &all[i])) ? step : call;
		add_runs(&runs, (double)(kern_hits(collector->kern, all[i].load.counter) - all[i].load.hits), cost,
			 false);
	}
	for (size_t i = 0; i < collector->registry->spec_count; i++) {
		bool steps = is_step(collector->registry->specs[i]->wire.role);
		double hits = (double)(collector->spec_calls[i] - budget->spec_calls[i]) * (steps ? 2 : 1);

		cost = steps ? step : call;
		add_runs(&runs, hits, cost, true);
		add_runs(&runs, -hits, cost, false);
	}
	return runs;
}

/* Before the hits of the window are noted. */
static void note_coldness(struct budget *budget)
{
	struct kern_run run = kern_run_time(budget->collector->kern);
	__u64 count = run.runs - budget->run.runs;
	struct runs runs;
	double took, coldness;

	if (count < RUNS_MIN || !kern_hit_costs(budget->collector->kern, KERN_COST_EMULATED))
		return;
	runs = expected_runs(budget);
	took = (double)(run.time - budget->run.time) / (double)count;
	budget->run = run;
	if (!(runs.hits > 0) || !(runs.cold > runs.warm))
		return;
	coldness = fmin(fmax((took * runs.hits - runs.warm) / (runs.cold - runs.warm), 0), COLD_MAX);
	budget->coldness = budget->measured ? (budget->coldness + coldness) / 2 : coldness;
	budget->measured = true;
}

/* ---- sums for the closing figures ---- */

static struct budget_total *total_of(struct budget *budget, pid_t tgid, const char *function)
{
	struct map_node *node = map_find(&budget->total_map, (__u64)tgid, (__u64)(unsigned long)function);
	struct budget_total *total;

	if (node)
		return container_of(node, struct budget_total, node);
	total = budget->total_count < TOTALS_MAX ? calloc(1, sizeof(*total)) : NULL;
	if (!total || map_add(&budget->total_map, &total->node, (__u64)tgid, (__u64)(unsigned long)function)) {
		free(total);
		return NULL;
	}
	total->tgid = tgid;
	total->function = function;
	link_append(&budget->totals, &total->link);
	budget->total_count++;
	return total;
}

/* What the hits have cost since they were noted last, in ns; they are noted. */
static double note_hits(struct budget *budget, struct attached *attached)
{
	struct collector *collector = budget->collector;
	__u64 hits = kern_hits(collector->kern, attached->load.counter), more = hits - attached->load.hits;
	double cost = (double)more *
		      hit_cost(budget, attacher_role(collector->attacher, attached), attached->load.class);
	struct budget_total *total;

	attached->load.hits = hits;
	if (!more)
		return 0;
	total = total_of(budget, attached->tgid > 0 ? attached->tgid : 0,
			 attacher_function(collector->attacher, attached));
	if (total) {
		total->class = attached->load.class;
		total->hits += more;
		total->added += cost;
	}
	budget->added += cost;
	return cost;
}

/* ---- what is measured ---- */

/* Of the thread that collects. */
static __u64 collector_time(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* Of all targets since the latest reading. */
static double targets_time(struct budget *budget)
{
	struct followed *followed;
	double sum = 0;

	link_for_each(followed, &budget->collector->followed, link) {
		struct budget_total *total;
		struct timespec time;
		clockid_t clock;
		__u64 cpu;

		/* Of one that began later, all of it counts. */
		if (clock_getcpuclockid(followed->tgid, &clock) || clock_gettime(clock, &time))
			continue;
		cpu = (__u64)time.tv_sec * 1000000000 + (__u64)time.tv_nsec;
		if (cpu > followed->cpu && (followed->cpu || budget->window)) {
			sum += (double)(cpu - followed->cpu);
			total = total_of(budget, followed->tgid, NULL);
			if (total)
				total->cpu += (double)(cpu - followed->cpu);
		}
		followed->cpu = cpu;
	}
	/* Of those that have ended since, what was not read before. Their ends may be known to the kernel side before they are here. */
	budget->ended += (double)(kern_ended_time(budget->collector->kern) - budget->ended_before);
	budget->ended_before = kern_ended_time(budget->collector->kern);
	if (budget->ended > 0) {
		struct budget_total *total = total_of(budget, 0, NULL);

		sum += budget->ended;
		if (total)
			total->cpu += budget->ended;
		budget->ended = 0;
	}
	return sum;
}

void budget_forget(struct budget *budget, const struct followed *followed)
{
	struct attached *all;
	size_t count;

	if (!budget)
		return;
	budget->ended -= (double)followed->cpu;
	all = attacher_loads(budget->collector->attacher, &count);
	for (size_t i = 0; i < count; i++)
		if (all[i].tgid == followed->tgid)
			note_hits(budget, &all[i]);
}

static __u64 map_key(const struct xpt_program_key *key)
{
	return (__u64)key->tgid << 32 | (__u32)key->runtime << 16 | key->spec;
}

struct visiting {
	struct budget *budget;
	double seconds;
};

static int on_program(void *context, const struct xpt_program_entry *entry)
{
	struct visiting *visiting = context;
	struct budget *budget = visiting->budget;
	const struct xpt_program_key *key = &entry->key;
	struct map_node *node = map_find(&budget->program_map, map_key(key), key->handle);
	struct budget_program *program = node ? container_of(node, struct budget_program, node) : NULL;

	if (key->spec > budget->collector->registry->spec_count)
		return 0;
	if (!program) {
		program = calloc(1, sizeof(*program));
		if (!program || map_add(&budget->program_map, &program->node, map_key(key), key->handle)) {
			free(program);
			return 0;
		}
		program->key = *key;
		link_append(&budget->programs, &program->link);
	}
	if (program->since != entry->since || entry->count.calls < program->calls)
		program->calls = 0;
	program->rate = (double)(entry->count.calls - program->calls) / visiting->seconds;
	program->since = entry->since;
	program->calls = entry->count.calls;
	program->factor = (entry->next & ~XPT_TAKE_NEXT) ?: 1;
	program->every = entry->sample_every;
	program->seen = true;
	return 0;
}

static void program_remove(struct budget *budget, struct budget_program *program)
{
	map_remove(&budget->program_map, &program->node);
	link_remove(&program->link);
	free(program);
}

/* Those that are sampled and have not been released. */
static size_t visit_programs(struct budget *budget, double seconds)
{
	struct visiting visiting = { budget, seconds };
	struct budget_program *program, *next;
	size_t count = 0;

	link_for_each(program, &budget->programs, link)
		program->seen = false;
	kern_counts(budget->collector->kern, on_program, &visiting);
	link_for_each_safe(program, next, &budget->programs, link) {
		if (!program->seen)
			program_remove(budget, program);
		else
			count += program->every != XPT_SAMPLE_NONE;
	}
	return count;
}

/* Times that calls have taken in this window for being recorded. */
static double samples_cost(const struct budget *budget)
{
	const struct collector *collector = budget->collector;
	double cost = 0;

	for (size_t i = 0; i < collector->registry->spec_count; i++) {
		__u64 more = collector->spec_calls[i] - budget->spec_calls[i];

		if (more)
			cost += (double)more * record_cost_of(budget, &collector->registry->specs[i]->wire);
	}
	return cost;
}

static __u64 records_in_window(const struct budget *budget)
{
	const struct collector *collector = budget->collector;
	__u64 records = 0;

	for (size_t i = 0; i < collector->registry->spec_count; i++)
		records += collector->spec_calls[i] - budget->spec_calls[i];
	return records;
}

/* ns a second that the collector takes for records. Of a short time it is what they took before: there is other work now and then. */
static double collecting(struct budget *budget, double seconds, __u64 cpu, bool urgent)
{
	double records = (double)records_in_window(budget), all = (double)(cpu - budget->cpu) / seconds;

	if (!urgent) {
		budget->idle = fmin(budget->idle * 1.01, all);
		if (records >= RECORDS_MIN)
			budget->record_cost = (budget->record_cost + (all - budget->idle) * seconds / records) / 2;
	}
	return urgent ? records * budget->record_cost / seconds : all - fmin(budget->idle, all);
}

/* ns that tracing has added in this window so far. Suspended probes that are placed for a moment have a part of their own. */
static double cost_so_far(const struct budget *budget)
{
	struct collector *collector = budget->collector;
	double cost = samples_cost(budget) + (double)records_in_window(budget) * budget->record_cost;
	size_t count;
	const struct attached *all = attacher_loads(collector->attacher, &count);

	for (size_t i = 0; i < count; i++) {
		__u64 more = kern_hits(collector->kern, all[i].load.counter) - all[i].load.hits;

		if (more && !all[i].load.since)
			cost += (double)more *
				hit_cost(budget, attacher_role(collector->attacher, &all[i]), all[i].load.class);
	}
	return cost;
}

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
	struct text json = {};

	if (on && attached->suspended && attacher_resume(collector->attacher, attached))
		return;
	if (!on)
		attacher_suspend(collector->attacher, attached);
	log_info(&collector->log, "the budget of %.3g %% is %s: %s of process %d is %straced", 100 * budget->law.share,
		 on ? "not used" : "exceeded", function, attached->tgid > 0 ? attached->tgid : 0, on ? "" : "not ");
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
		load->cost = note_hits(budget, attached) * 1e9 / (double)(now - load->begun);
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

		if (is_step(attacher_role(collector->attacher, attached))) {
			input->has_operators = true;
			operators += note_hits(budget, attached);
			continue;
		}
		if (!attached->load.since) {
			cost = note_hits(budget, attached);
			attached->load.cost = cost / input->seconds;
			input->sites += attached->load.cost;
		}
		if (input->site_count == LAW_SITES_MAX)
			continue;
		window->attached[input->site_count] = attached;
		input->site[input->site_count++] = (struct law_site){
			.cost = attached->load.cost,
			.known = attached->load.known,
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
	__u64 cpu = collector_time();
	double seconds = (double)(now - budget->window) / 1e9, operators, cost;
	struct window window = { .input = { .seconds = seconds } };
	struct law_input *input = &window.input;
	size_t sites, programs = visit_programs(budget, seconds);
	double samples = samples_cost(budget), targets = targets_time(budget), before = budget->added;
	enum law_change change;

	note_coldness(budget);
	attacher_loads(collector->attacher, &sites);
	input->programs = calloc(programs ?: 1, sizeof(*input->programs));
	input->site = calloc(sites ?: 1, sizeof(*input->site));
	window.attached = calloc(sites ?: 1, sizeof(*window.attached));
	if (input->programs && input->site && window.attached) {
		collect_programs(budget, input);
		operators = collect_sites(budget, &window);
		note_operators(budget, input, operators);
		input->samples = samples / seconds + collecting(budget, seconds, cpu, urgent);
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
	if (!budget->tick)
		budget->cpu = budget->cpu_at_start = collector_time();
	budget->tick = now + TICK;
	budget->stepped = run.stepped;
	look_at_suspended(budget, now);
	over = cost_so_far(budget) > law_limit(&budget->law) * WINDOW / 1e9;
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
	if (!budget->spec_calls) {
		free(budget);
		return -ENOMEM;
	}
	budget->collector = collector;
	budget->law.share = collector->options.budget / 100;
	budget->idle = IDLE_FIRST;
	budget->record_cost = RECORD_FIRST;
	link_init(&budget->programs);
	link_init(&budget->totals);
	*result = budget;
	return 0;
}

void budget_start(struct budget *budget)
{
	if (!budget)
		return;
	budget->ended_before = kern_ended_time(budget->collector->kern);
	targets_time(budget);
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
	budget->added += samples_cost(budget);
	budget->targets += targets_time(budget);
	budget->cpu = collector_time();
	all = attacher_loads(budget->collector->attacher, &count);
	for (size_t i = 0; i < count; i++)
		note_hits(budget, &all[i]);
	memcpy(budget->spec_calls, budget->collector->spec_calls,
	       budget->collector->registry->spec_count * sizeof(*budget->spec_calls));
	budget->window = 0;
}

void budget_free(struct budget *budget)
{
	struct budget_program *program, *next_program;
	struct budget_total *total, *next_total;

	if (!budget)
		return;
	link_for_each_safe(program, next_program, &budget->programs, link)
		program_remove(budget, program);
	link_for_each_safe(total, next_total, &budget->totals, link)
		free(total);
	map_free(&budget->program_map);
	map_free(&budget->total_map);
	free(budget->spec_calls);
	free(budget);
}

static int compare_totals(const void *left, const void *right)
{
	const struct budget_total *const *a = left, *const *b = right;

	return ((*a)->shown < (*b)->shown) - ((*a)->shown > (*b)->shown);
}

static void add_total(struct text *json, const struct budget_total *total)
{
	json_begin(json, NULL, '{');
	json_add_unsigned(json, "tgid", (__u64)total->tgid);
	if (total->function) {
		json_add_string(json, "function", total->function);
		json_add_string(json, "class", site_class_name(total->class));
		json_add_unsigned(json, "hits", total->hits);
	} else {
		json_add_unsigned(json, "cpu_ns", (__u64)total->cpu);
	}
	json_add_unsigned(json, "added_ns", (__u64)total->shown);
	json_end(json, '}');
}

/* Those of functions, or of targets. */
static void add_totals(const struct budget *budget, struct text *json, bool of_functions)
{
	struct budget_total **sorted = calloc(budget->total_count ?: 1, sizeof(*sorted)), *total;
	size_t count = 0;

	link_for_each(total, &budget->totals, link)
		if (sorted && !!total->function == of_functions)
			sorted[count++] = total;
	if (count)
		qsort(sorted, count, sizeof(*sorted), compare_totals);
	json_begin(json, of_functions ? "sites" : "targets", '[');
	for (size_t i = 0; i < count && i < LISTED_MAX; i++)
		add_total(json, sorted[i]);
	json_end(json, ']');
	free(sorted);
}

/* Of each target: its own sites, and of the rest as much as its CPU time is a part of all. */
static void divide_added(struct budget *budget)
{
	struct budget_total *total, *target;
	double own = 0, cpu = 0;

	link_for_each(total, &budget->totals, link) {
		total->shown = total->added;
		cpu += total->cpu;
	}
	link_for_each(total, &budget->totals, link) {
		target = total->function && total->tgid ? total_of(budget, total->tgid, NULL) : NULL;
		if (!target)
			continue;
		target->shown += total->added;
		own += total->added;
	}
	link_for_each(total, &budget->totals, link)
		if (!total->function && cpu > 0)
			total->shown += (budget->added - own) * total->cpu / cpu;
}

void budget_json(struct budget *budget, struct text *json)
{
	if (!budget)
		return;
	divide_added(budget);
	json_begin(json, "budget", '{');
	json_add_real(json, "percent", 100 * budget->law.share);
	json_add_unsigned(json, "targets_ns", (__u64)budget->targets);
	json_add_unsigned(json, "added_ns", (__u64)budget->added);
	json_add_unsigned(json, "collector_ns", budget->cpu - budget->cpu_at_start);
	json_add_unsigned(json, "changes", budget->changes);
	json_add_real(json, "coldness", budget->coldness);
	add_totals(budget, json, false);
	add_totals(budget, json, true);
	json_end(json, '}');
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What tracing costs: of which probes, of which targets, and how much of that would be less with fewer samples. */
#include <math.h>
#include <stdlib.h>

#include "base/core/clock.h"
#include "base/core/json.h"
#include "session/attach/attached.h"
#include "session/collect/budget_private.h"

#define RECORDS_MIN 100	 /* in the latest windows, for a result */
#define RECORD_FIRST 300 /* ns, before there is one */
#define WINDOW_MIN 0.25	 /* s, to know what else the collector does */
#define IDLE_RISE 1.1	 /* times as much in a window, at most */
#define RUNS_MIN 16	 /* that were timed, for a result */
#define COLD_MAX 1.5	 /* caches can be colder than those of the measurement at start */
#define LISTED_MAX 20	 /* targets and sites in the closing figures */
#define TOTALS_MAX 16384 /* sites and targets that are kept apart for them */

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
	if (!role_is_step(role))
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
		extra += counter_sampler_slots(collector->counter_sampler) * (double)COUNTER_SLOT_COST;
	return fmax(0, extra);
}

/* ns that the collector takes for a record. */
static double collecting_cost(const struct budget *budget)
{
	return budget->records >= RECORDS_MIN ? budget->time / budget->records : RECORD_FIRST;
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
		cost = role_is_step(attacher_role(collector->attacher, &all[i])) ? step : call;
		add_runs(&runs, (double)(kern_hits(collector->kern, all[i].load.counter) - all[i].load.hits), cost,
			 false);
	}
	for (size_t i = 0; i < collector->registry->spec_count; i++) {
		bool steps = role_is_step(collector->registry->specs[i]->wire.role);
		double hits = (double)(collector->spec_calls[i] - budget->spec_calls[i]) * (steps ? 2 : 1);

		cost = steps ? step : call;
		add_runs(&runs, hits, cost, true);
		add_runs(&runs, -hits, cost, false);
	}
	return runs;
}

/* Before the hits of the window are noted. */
void budget_note_coldness(struct budget *budget)
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
double budget_note_hits(struct budget *budget, struct attached *attached)
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
__u64 budget_collector_time(void)
{
	return clock_read(CLOCK_THREAD_CPUTIME_ID);
}

/* Of all targets since the latest reading. */
double budget_targets_time(struct budget *budget)
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
			budget_note_hits(budget, &all[i]);
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
	struct map_node *node = map_find(&budget->program_map, program_map_key(key), key->handle);
	struct budget_program *program = node ? container_of(node, struct budget_program, node) : NULL;

	if (key->spec > budget->collector->registry->spec_count)
		return 0;
	if (!program) {
		program = calloc(1, sizeof(*program));
		if (!program || map_add(&budget->program_map, &program->node, program_map_key(key), key->handle)) {
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
	program->every = XPT_RATE_EVERY(entry->rate);
	program->seen = true;
	return 0;
}

void budget_drop_program(struct budget *budget, struct budget_program *program)
{
	map_remove(&budget->program_map, &program->node);
	link_remove(&program->link);
	free(program);
}

/* Those that are sampled and have not been released. */
size_t budget_visit_programs(struct budget *budget, double seconds)
{
	struct visiting visiting = { budget, seconds };
	struct budget_program *program, *next;
	size_t count = 0;

	link_for_each(program, &budget->programs, link)
		program->seen = false;
	kern_counts(budget->collector->kern, on_program, &visiting);
	link_for_each_safe(program, next, &budget->programs, link) {
		if (!program->seen)
			budget_drop_program(budget, program);
		else
			count += program->every != XPT_SAMPLE_NONE;
	}
	return count;
}

/* Times that calls have taken in this window for being recorded. */
double budget_samples(const struct budget *budget)
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

double budget_note_apart(struct budget *budget)
{
	const struct collector *collector = budget->collector;
	size_t count, specs = collector->registry->spec_count;
	const struct attached *all = attacher_loads(collector->attacher, &count);
	double cost = 0, *hits = calloc(specs ?: 1, sizeof(*hits));

	if (!hits)
		return 0;
	for (size_t i = 0; i < count; i++)
		if (all[i].sites->spec < specs)
			hits[all[i].sites->spec] += (double)(kern_hits(collector->kern, all[i].load.counter) -
							     all[i].load.hits);
	for (size_t i = 0; i < specs; i++) {
		double records = (double)(collector->spec_apart[i] - budget->spec_apart[i]), took;

		if (!(hits[i] > 0)) /* what is recorded late had its hit before */
			continue;
		took = records *
		       (record_cost_of(budget, &collector->registry->specs[i]->wire) + collecting_cost(budget));
		budget->apart_cost[i] = took / hits[i];
		cost += took;
	}
	free(hits);
	return cost;
}

double budget_note_cost(struct budget *budget, struct attached *attached)
{
	__u64 before = attached->load.hits;
	double cost = budget_note_hits(budget, attached);

	if (attached->sites->spec < budget->collector->registry->spec_count)
		cost += (double)(attached->load.hits - before) * budget->apart_cost[attached->sites->spec];
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

double budget_collecting(struct budget *budget, double seconds, __u64 cpu)
{
	const struct collector *collector = budget->collector;
	__u64 drivers = collector->events + collector->ioctls;
	double drained = (double)(collector->drained_records - budget->drained);
	double records = (double)records_in_window(budget), time = (double)(collector->drain_time - budget->drain_time),
	       rest;

	/* What drivers have does not depend on what is traced. */
	if (drained > 0)
		time *= fmax(0, 1 - (double)(drivers - budget->driver_records) / drained);
	rest = fmax(0, (double)(cpu - budget->cpu) - time) / seconds;
	budget->records = LAW_FORGETTING * budget->records + records;
	budget->time = LAW_FORGETTING * budget->time + time;
	budget->drain_time = collector->drain_time;
	budget->drained = collector->drained_records;
	budget->driver_records = drivers;
	/* What it does once, to attach and to read names, is no reason to trace less. */
	if (seconds >= WINDOW_MIN)
		budget->idle = fmin(budget->idle * IDLE_RISE, (budget->idle + rest) / 2);
	return records * collecting_cost(budget);
}

/* ns that tracing has added in this window so far. Suspended probes that are placed for a moment have a part of their own. */
double budget_cost_so_far(const struct budget *budget)
{
	struct collector *collector = budget->collector;
	double cost = budget_samples(budget) + (double)records_in_window(budget) * collecting_cost(budget);
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

struct budget_times budget_times(const struct budget *budget)
{
	const struct attached *all;
	struct budget_times times;
	size_t count;

	if (!budget)
		return (struct budget_times){ 0 };
	times = (struct budget_times){ .added = (__u64)budget->added,
				       .collector = budget->cpu - budget->cpu_at_start,
				       .targets = (__u64)budget->targets };
	all = attacher_loads(budget->collector->attacher, &count);
	for (size_t i = 0; i < count; i++)
		times.suspended += !!all[i].load.since;
	return times;
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

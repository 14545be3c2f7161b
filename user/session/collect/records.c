/* SPDX-License-Identifier: BSD-2-Clause */
/* From the rings to the consumers, and what is counted on the way. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/json.h"
#include "session/collect/collector.h"
#include "target/process/process.h"

#define OPERATOR_COST 2800 /* ns: of an operator, where it was not measured (make bench, operators) */
/* ns: a call that is left out by sampling costs its entry probe only (docs/performance.md). */
#define LEFT_OUT_COST 620
#define DRAIN_INTERVAL 5000000ull /* ns: at most between two drainings while requests take their time */

struct counting {
	struct collector *collector;
	__u64 time;
};

/* From when on what is read from memory now was there: all records up to this time have been passed on. */
static void hold_from(struct collector *collector, __u64 time)
{
	if (collector->hold_from < time)
		collector->hold_from = time;
}

void records_forget_objects(struct collector *collector, pid_t tgid)
{
	objects_forget(&collector->objects, tgid);
	stack_tracer_forget(collector->stack_tracer, tgid);
	if (collector->launch_symbols)
		launch_symbols_drop(collector->launch_symbols, tgid);
}

/* What is loaded at a handle is another program than what was there before, and objects of its operators may be freed. */
static void note_program(struct collector *collector, const struct xpt_record_call *call)
{
	const struct registry *registry = collector->registry;
	enum xpt_role role = call->spec < registry->spec_count ? registry->specs[call->spec]->wire.role : 0;

	if (role != XPT_ROLE_PROGRAM_LOAD && role != XPT_ROLE_PROGRAM_UNLOAD)
		return;
	objects_forget_program(&collector->objects, collector->registry, call);
	if (collector->loaded < call->header.time)
		collector->loaded = call->header.time;
	if (role != XPT_ROLE_PROGRAM_UNLOAD)
		return;
	objects_forget_nodes(&collector->objects, (pid_t)call->header.tgid);
	hold_from(collector, call->header.time);
}

/* Which names in the memory of its process it is the first one to ask for: NAME_*. */
static unsigned int unknown_names(struct collector *collector, const struct xpt_record_call *call)
{
	pid_t tgid = (pid_t)call->header.tgid;
	unsigned int names = 0;

	/* Object and class are the first two of what is fetched for one. */
	if (collector->registry->specs[call->spec]->wire.role == XPT_ROLE_OPERATOR)
		return (call->valid & 3) == 3 &&
				       objects_node_is_new(&collector->objects, tgid, call->value[0], call->value[1]) ?
			       NAME_NODE :
			       0;
	if (objects_program_is_new(&collector->objects, collector->registry, call))
		names |= NAME_PROGRAM;
	if (collector->launch_symbols && launch_symbols_is_new(collector->launch_symbols, call))
		names |= NAME_SYMBOL;
	return names;
}

void records_pass_call(struct collector *collector, const struct xpt_record_call *call)
{
	enum xpt_role role;

	collector_pass(collector, &call->header);
	collector->calls++;
	if (call->flags & XPT_CALL_LAYER)
		return;
	role = collector->registry->specs[call->spec]->wire.role;
	collector->spec_calls[call->spec]++;
	collector->spec_apart[call->spec] += !(call->flags & XPT_CALL_INSIDE) && role != XPT_ROLE_EXECUTE &&
					     role != XPT_ROLE_ENQUEUE && !role_is_step(role);
}

void records_pass_total(struct collector *collector, const struct xpt_record_total *total)
{
	if (total->key.spec > collector->registry->spec_count)
		return; /* of the collector's own specs */
	collector->left_out += total->count.left_out;
	collector_pass(collector, &total->header);
}

/* It stands for two probes: where it began, and where it ended. */
static void on_region(struct collector *collector, const struct xpt_record_region *region)
{
	if (region->spec < collector->registry->spec_count)
		collector->spec_calls[region->spec]++;
	collector_pass(collector, &region->header);
}

/* Rare, so that all of it may wait. Code objects do not: their threads wait for who captures them. */
static int on_control(void *context, const struct xpt_record_header *record)
{
	struct collector *collector = context;

	if (record->kind == XPT_RECORD_PASS) {
		hold_from(collector, collector->pass);
		collector->pass = record->time;
	}
	if (record->kind == XPT_RECORD_CALL)
		note_program(collector, (const void *)record);
	if (record->kind == XPT_RECORD_CODE)
		collector_code_passed(collector, (const void *)record);
	if (record->kind == XPT_RECORD_PASS || record->kind == XPT_RECORD_CODE || record->kind == XPT_RECORD_CODE_PIECE)
		collector_pass(collector, record);
	else
		requests_add(collector, record, 0);
	return 0;
}

static void on_call(struct collector *collector, const struct xpt_record_call *call)
{
	unsigned int names;

	if (call->spec >= collector->registry->spec_count || (call->flags & XPT_CALL_WAITS)) {
		requests_add(collector, &call->header, 0);
		return;
	}
	records_pass_call(collector, call);
	names = unknown_names(collector, call);
	if (names)
		requests_add(collector, &call->header, names);
}

static int on_data(void *context, const struct xpt_record_header *record)
{
	struct collector *collector = context;

	switch (record->kind) {
	case XPT_RECORD_CALL:
		on_call(collector, (const void *)record);
		break;
	case XPT_RECORD_REGION:
		on_region(collector, (const void *)record);
		break;
	case XPT_RECORD_OFF_CPU:
		stack_tracer_off_cpu(collector->stack_tracer, (const void *)record);
		collector_pass(collector, record);
		break;
	default:
		collector->events += record->kind == XPT_RECORD_EVENT;
		collector->ioctls += record->kind == XPT_RECORD_IOCTL;
		collector_pass(collector, record);
	}
	return 0;
}

/* All that is done for a record, but for requests: those come once for what is new. */
static void drain(struct collector *collector, int (*take)(struct kern *kern, kern_record_fn on_record, void *context),
		  kern_record_fn on_record)
{
	__u64 before = collector->budget ? clock_read(CLOCK_THREAD_CPUTIME_ID) : 0;
	int result = take(collector->kern, on_record, collector);

	if (result > 0) {
		collector->active = clock_monotonic();
		collector->drained_records += (unsigned int)result;
	}
	if (result < 0 && !collector->error)
		collector->error = result;
	collector->drained = clock_monotonic();
	if (collector->budget)
		collector->drain_time += clock_read(CLOCK_THREAD_CPUTIME_ID) - before;
}

/* What is known to have happened up to the PASS record is complete when the next one comes: requests are dealt with before. */
void records_drain(struct collector *collector)
{
	drain(collector, kern_drain_control, on_control);
	requests_work(collector);
	drain(collector, kern_drain_data, on_data);
	stack_tracer_look(collector->stack_tracer);
	requests_work(collector);
	records_costs(collector);
}

void records_drain_beside(struct collector *collector)
{
	if (collector->ready && clock_monotonic() - collector->drained >= DRAIN_INTERVAL)
		drain(collector, kern_drain_data, on_data);
}

/* Measured, else as on another machine. */
static struct kern_cost kind_cost(const struct collector *collector, enum kern_cost_kind kind)
{
	const struct kern_cost *measured = kern_costs(collector->kern);

	if (measured)
		return measured[kind];
	return (struct kern_cost){ kind == KERN_COST_OPERATOR ? OPERATOR_COST : site_class_cost(SITE_OPTIMISED + kind),
				   0 };
}

static struct kern_cost class_cost(const struct collector *collector, enum site_class class)
{
	return kind_cost(collector, (enum kern_cost_kind)(class - SITE_OPTIMISED));
}

/* How much more than an emulated one the probe behind a call takes, as a mean over all places. */
static __s64 end_extra(const struct collector *collector)
{
	const size_t *ends = attacher_ends(collector->attacher);
	const struct kern_cost emulated = class_cost(collector, SITE_EMULATED);
	__s64 sum = 0, count = 0;

	for (unsigned int class = SITE_OPTIMISED; class <= SITE_STEPPED; class ++) {
		count += (__s64)ends[class];
		sum += (__s64)ends[class] * (__s64)(class_cost(collector, class).cost - emulated.cost);
	}
	return count ? sum / count : 0;
}

/* Of an operator, or of what ends like one: the instruction at its begin is executed behind the time of the begin. */
static struct kern_cost operator_cost(const struct collector *collector, enum site_class class, __s64 extra)
{
	const struct kern_cost emulated = class_cost(collector, SITE_EMULATED);
	const struct kern_cost begin = class_cost(collector, class), both = kind_cost(collector, KERN_COST_OPERATOR);
	__s64 cost = (__s64)(both.cost + begin.cost - emulated.cost) + extra;
	__s64 inside = (__s64)(both.inside + begin.inside - emulated.inside);

	/* Measured one by one, so that differences may be anything. */
	if (cost < 0)
		cost = 0;
	if (inside < 0)
		inside = 0;
	return (struct kern_cost){ (__u64)cost, (__u64)(inside < cost ? inside : cost) };
}

/* Of one recorded call; all 0: it has no probe. */
static struct kern_cost spec_cost(const struct collector *collector, size_t spec)
{
	const struct xpt_spec *wire = &collector->registry->specs[spec]->wire;
	enum site_class class = attacher_class(collector->attacher, spec);
	struct kern_cost cost;

	if (!class)
		return (struct kern_cost){ 0, 0 };
	if (wire->role == XPT_ROLE_OPERATOR || wire->role == XPT_ROLE_REGION)
		return operator_cost(collector, class, end_extra(collector));
	if (wire->role == XPT_ROLE_REGION_BEGIN)
		return operator_cost(collector, class, 0);
	cost = class_cost(collector, class);
	if (wire->flags & XPT_SPEC_ENTRY_ONLY)
		return (struct kern_cost){ cost.cost / 2, 0 };
	if (XPT_ROLES_COUNTED >> wire->role & 1)
		cost.cost += counter_sampler_slots(collector->counter_sampler) * COUNTER_SLOT_COST;
	return cost;
}

__u64 records_call_cost(const struct collector *collector, size_t spec)
{
	return spec_cost(collector, spec).cost;
}

void records_costs(struct collector *collector)
{
	size_t placed = collector_sites(collector);

	if (!kern_costs(collector->kern) || placed == collector->costs_of)
		return;
	collector->costs_of = placed;
	for (size_t i = 0; i < collector->registry->spec_count; i++) {
		struct kern_cost cost = spec_cost(collector, i), *latest = &collector->spec_costs[i];

		if (!cost.cost || (cost.cost == latest->cost && cost.inside == latest->inside))
			continue;
		collector_pass_text(collector, record_cost(i, cost.cost, cost.inside));
		*latest = cost;
	}
}

struct xpt_record_lost records_loss(const struct collector *collector, enum xpt_loss cause, __u64 count)
{
	return (struct xpt_record_lost){
		.header = { XPT_RECORD_LOST, sizeof(struct xpt_record_lost), 0, clock_monotonic() },
		.since = collector->last_loss_time ?: collector->started,
		.count = count,
		.cause = cause,
	};
}

void records_lost(struct collector *collector, enum xpt_loss cause, __u64 count)
{
	struct xpt_record_lost record = records_loss(collector, cause, count);

	collector->lost += count;
	collector->lost_for[cause] += count;
	collector_pass(collector, &record.header);
}

void records_losses(struct collector *collector)
{
	__u64 losses[XPT_LOSS_MAX];

	if (kern_losses(collector->kern, losses))
		return;
	for (unsigned int cause = 0; cause < XPT_LOSS_MAX; cause++) {
		if (losses[cause] > collector->losses[cause])
			records_lost(collector, cause, losses[cause] - collector->losses[cause]);
		collector->losses[cause] = losses[cause];
	}
	collector->last_loss_time = clock_monotonic();
}

/* What began after the reading is left to the next one: its counts would be of another time than the others. */
static int on_count(void *context, const struct xpt_program_entry *entry)
{
	const struct counting *counting = context;
	struct xpt_record_count record = {
		.header = { XPT_RECORD_COUNT, sizeof(record), entry->key.tgid, counting->time },
		.key = entry->key,
		.count = entry->count,
		.since = entry->since,
	};

	if (!entry->key.spec && entry->since < counting->time)
		collector_pass(counting->collector, &record.header);
	return 0;
}

void records_counts(struct collector *collector, __u64 time)
{
	struct counting counting = { collector, time };

	kern_counts(collector->kern, on_count, &counting);
}

static struct xpt_record_total total_of(const struct xpt_program_entry *entry)
{
	return (struct xpt_record_total){
		.header = { XPT_RECORD_TOTAL, sizeof(struct xpt_record_total), entry->key.tgid, clock_monotonic() },
		.key = entry->key,
		.count = entry->count,
	};
}

static int on_taken(void *context, const struct xpt_program_entry *entry)
{
	struct collector *collector = context;
	struct xpt_record_total record = total_of(entry);

	records_pass_total(collector, &record);
	return 0;
}

struct passing {
	const struct collector *collector;
	record_fn record;
	void *context;
};

static int on_passed(void *context, const struct xpt_program_entry *entry)
{
	struct passing *passing = context;
	struct xpt_record_total record = total_of(entry);

	if (entry->key.spec > passing->collector->registry->spec_count)
		return 0; /* of the collector's own specs */
	passing->record(passing->context, &record.header);
	return 0;
}

void records_totals_pass(struct collector *collector, record_fn record, void *context)
{
	struct passing passing = { collector, record, context };

	kern_counts(collector->kern, on_passed, &passing);
}

void records_totals(struct collector *collector, pid_t tgid)
{
	kern_take_counts(collector->kern, tgid, on_taken, collector);
}

struct records_figures records_figures(const struct collector *collector)
{
	struct records_figures figures = {
		.calls = collector->left_out,
		.cost = collector->left_out * LEFT_OUT_COST,
		.events = collector->events,
		.ioctls = collector->ioctls,
		.lost = collector->lost,
	};

	for (size_t i = 0; i < collector->registry->spec_count; i++) {
		figures.calls += collector->spec_calls[i];
		figures.cost += collector->spec_calls[i] * records_call_cost(collector, i);
	}
	return figures;
}

/* Not getrusage(): its peak is also that of the program that started this one. */
static struct process_usage usage_of_collector(void)
{
	struct process_usage usage = {};
	struct usage_source source;

	if (!usage_open(&source, getpid(), 0)) {
		usage_read(&source, USAGE_CPU | USAGE_MEMORY, &usage);
		usage_close(&source);
	}
	return usage;
}

static void end_json(struct collector *collector, const struct records_ending *ending, struct text *json)
{
	const struct kern_cost *costs = kern_costs(collector->kern);
	const struct attacher_figures *figures = attacher_figures(collector->attacher);
	const struct records_figures *before = ending->before, now = records_figures(collector);
	const struct process_usage usage = usage_of_collector();

	json_begin(json, NULL, '{');
	json_add_unsigned(json, "duration_ns", ending->ended - ending->begun);
	json_add_string(json, "stopped_by", ending->stopped_by);
	json_add_string(json, "link", link_kind_name(kern_link_kind(collector->kern)));
	json_add_unsigned(json, "attach_ns", figures->attach_time);
	json_add_unsigned(json, "detach_ns", figures->detach_time);
	json_begin(json, "sites", '{');
	for (unsigned int class = SITE_OPTIMISED; class <= SITE_STEPPED; class ++)
		json_add_unsigned(json, site_class_name(class), figures->sites[class]);
	json_add_unsigned(json, "refused", figures->refused);
	json_end(json, '}');
	json_begin(json, "drivers", '{');
	json_add_unsigned(json, "tracepoints", driver_tracer_tracepoints(collector->driver_tracer));
	json_add_unsigned(json, "events", now.events - before->events);
	json_add_unsigned(json, "nodes", driver_tracer_nodes(collector->driver_tracer));
	json_add_unsigned(json, "ioctls", now.ioctls - before->ioctls);
	json_end(json, '}');
	json_begin(json, "collector", '{');
	json_add_unsigned(json, "cpu_ns", usage.cpu);
	json_add_unsigned(json, "max_rss_bytes", usage.peak);
	json_end(json, '}');
	json_begin(json, "target", '{');
	json_add_unsigned(json, "calls", now.calls - before->calls);
	json_add_unsigned(json, "cost_ns", now.cost > before->cost ? now.cost - before->cost : 0);
	json_end(json, '}');
	budget_json(collector->budget, json);
	if (!costs)
		return;
	json_begin(json, "probes", '{');
	json_add_unsigned(json, "call_ns", costs[KERN_COST_EMULATED].cost);
	json_add_unsigned(json, "operator_ns", costs[KERN_COST_OPERATOR].cost);
	json_end(json, '}');
}

int records_end(struct collector *collector, const struct records_ending *ending)
{
	struct xpt_record_header pass = { XPT_RECORD_PASS, sizeof(pass), 0, 0 };
	struct xpt_record_text *record;
	struct xpt_record_lost open = records_loss(collector, XPT_LOSS_OPEN, ending->open);
	struct text json = {};

	if (ending->open)
		ending->record(ending->context, &open.header);
	end_json(collector, ending, &json);
	record = record_end(clock_monotonic(), &json);
	if (!record)
		return -ENOMEM;
	ending->record(ending->context, &record->header);
	free(record);
	/* Nothing comes after: the second of two passes releases everything. */
	for (int i = 0; i < 2; i++) {
		pass.time = clock_monotonic();
		ending->record(ending->context, &pass);
	}
	return 0;
}

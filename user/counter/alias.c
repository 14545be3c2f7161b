/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/alias.h"

#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "counter/perf_events.h"
#include "describe/driver/driver.h"
#include "target/tracepoint/tracefs.h"

/* Tracepoints of drivers as counters of jobs: which ones belong to a device, by the drivers' descriptions. */

#define COUNTER_NAME_MAX 256
#define FILTER_MAX 256
#define SCHEDULER "gpu_scheduler"

/* A driver's event as the running kernel has it. */
struct found_event {
	const struct driver_event *event; /* NULL: it has none */
	char name[COUNTER_NAME_MAX];
	const struct driver_field *device; /* the field that has the device's name; NULL: none has */
};

/* Their jobs go through DRM's scheduler: its events report the same for all of them. */
static bool has_scheduler(const char *driver)
{
	static const char *const drivers[] = { "amdgpu",   "amdxdna", "etnaviv", "ethosu", "lima",   "msm", "nouveau",
					       "panfrost", "panthor", "powervr", "radeon", "rocket", "v3d", "xe" };

	for (size_t i = 0; i < sizeof(drivers) / sizeof(drivers[0]); i++)
		if (!strcmp(drivers[i], driver))
			return true;
	return false;
}

/* The description with the events of a device's jobs; NULL: there is none. */
static const struct driver *driver_of(const struct drivers *drivers, const struct node *node)
{
	if (has_scheduler(node->driver))
		return drivers_find(drivers, SCHEDULER);
	for (size_t i = 0; i < drivers->count; i++)
		for (size_t j = 0; j < drivers->items[i]->module_count; j++)
			if (!strcmp(drivers->items[i]->modules[j], node->driver))
				return drivers->items[i];
	return NULL;
}

/* The first of the driver's events of that role, in the order of its sets. -EACCES, -EPERM, -ENOMEM. */
static int find_driver_event(const struct tracefs *tracefs, const struct driver *driver, enum xpt_event_role role,
			     struct found_event *found)
{
	int error = 0;

	*found = (struct found_event){ 0 };
	for (size_t i = 0; i < driver->set_count; i++) {
		const struct driver_set *set = &driver->sets[i];

		for (size_t j = 0; j < set->event_count && !error; j++) {
			struct tracepoint tracepoint;

			if (set->events[j].role != role)
				continue;
			error = tracefs_find(tracefs, &set->events[j], &tracepoint);
			if (error || !tracepoint.found)
				continue;
			found->event = tracepoint.event;
			snprintf(found->name, sizeof(found->name), "%s:%s", found->event->system, found->event->name);
			for (size_t k = 0; k < tracepoint.field_count; k++)
				if (tracepoint.fields[k].field->meaning == XPT_FIELD_DEVICE &&
				    tracepoint.fields[k].field->types & DRIVER_STRING)
					found->device = tracepoint.fields[k].field;
			return 0;
		}
	}
	return error;
}

/* The kernel's filter of an event: its condition, and the device; NULL: -ENOMEM. "": all events count. */
static char *filter_of(const struct found_event *found, const struct node *node)
{
	const struct driver_condition *condition = &found->event->condition;
	char text[FILTER_MAX] = "";
	size_t used = 0;

	if (condition->field.name && condition->text)
		used = (size_t)snprintf(text, sizeof(text), "%s %s \"%s\"", condition->field.name,
					condition->differs ? "!=" : "==", condition->text);
	else if (condition->field.name)
		used = (size_t)snprintf(text, sizeof(text), "%s %s %lld", condition->field.name,
					condition->differs ? "!=" : "==", condition->number);
	if (found->device && used < sizeof(text))
		snprintf(text + used, sizeof(text) - used, "%s%s == \"%s\"", used ? " && " : "", found->device->name,
			 node->address);
	return strdup(text);
}

/* ---- jobs ---- */

/* Events without a field for the device count for all; for one of several devices that would be wrong. */
static int refuse(struct alias_search *search, const struct found_event *found, size_t devices)
{
	log_error(search->log,
		  "%s: %s of this kernel does not report of which of %zu devices a job is: count all, without a device",
		  search->name, found->name, devices);
	search->refused = -EOPNOTSUPP;
	return 0;
}

static int add_tracepoint(struct alias_search *search, const struct found_event *found)
{
	char *filter = filter_of(found, search->place.node);
	struct counter counter;
	int error;

	if (!filter)
		return -ENOMEM;
	error = alias_try(search, found->name, &counter);
	if (error) {
		free(filter);
		return error;
	}
	counter.events[0].of_device = true;
	counter.events[0].of_each_cpu = false;
	if (*filter)
		counter.events[0].filter = filter;
	else
		free(filter);
	return alias_add(search, &counter, (struct alias_term){ ALIAS_VALUE, 1 });
}

static bool is_counted(const struct alias *alias, const struct found_event *found)
{
	for (size_t i = 0; i < alias->count; i++)
		if (!strcmp(alias->counters[i].info.name, found->name))
			return true;
	return false;
}

static int find_jobs(struct alias_search *search, const struct drivers *drivers, const struct tracefs *tracefs)
{
	const struct counter_place *place = &search->place;
	const struct driver *driver = driver_of(drivers, place->node);
	struct found_event found = { 0 };
	size_t devices = 0;
	int error = driver ? find_driver_event(tracefs, driver, XPT_EVENT_RUN, &found) : 0;

	if (error || !found.event)
		return error;
	for (size_t i = 0; i < place->nodes.count; i++)
		devices += driver_of(drivers, &place->nodes.items[i]) == driver;
	if (!found.device && devices > 1 && search->one_device)
		return refuse(search, &found, devices);
	if (!found.device && is_counted(search->alias, &found))
		return 0;
	return add_tracepoint(search, &found);
}

static int find_tracepoint(struct alias_search *search, const struct alias_rule *rule)
{
	struct drivers *drivers;
	struct tracefs tracefs;
	int error;

	(void)rule;
	if (!search->place.node)
		return 0;
	error = drivers_create(NULL, NULL, 0, &drivers);
	if (error)
		return error;
	if (driver_of(drivers, search->place.node)) {
		error = tracefs_open(search->place.tracefs, &tracefs);
		if (error && error != -ENOENT)
			log_error(search->log, "%s: %s", search->name, tracefs_advice(error));
		if (!error) {
			error = find_jobs(search, drivers, &tracefs);
			tracefs_close(&tracefs);
		}
	}
	drivers_free(drivers);
	return error;
}

/* ---- those of the devices here ---- */

static const struct {
	enum xpt_event_role role;
	const char *description;
} shown[] = {
	{ XPT_EVENT_QUEUE, "jobs queued" },
	{ XPT_EVENT_RUN, "jobs run: handed to the device" },
	{ XPT_EVENT_DONE, "jobs done" },
};

static int visit_driver(const struct tracefs *tracefs, const struct driver *driver,
			int (*visit)(void *context, const struct xpt_counter_info *counter), void *context)
{
	struct xpt_counter_info info = { .size = sizeof(info), .unit = "", .source = "tracepoint", .scale = 1 };
	struct found_event found;
	int result = 0;

	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]) && !result; i++) {
		if (find_driver_event(tracefs, driver, shown[i].role, &found))
			break;
		/* Without the condition, other events than these would be counted by that name. */
		if (!found.event || found.event->condition.field.name)
			continue;
		info.name = found.name;
		info.description = shown[i].description;
		result = visit(context, &info);
	}
	return result;
}

static bool was_before(const struct drivers *drivers, const struct counter_place *place, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (driver_of(drivers, &place->nodes.items[i]) == driver_of(drivers, &place->nodes.items[index]))
			return true;
	return false;
}

int alias_visit_tracepoints(const struct counter_place *place,
			    int (*visit)(void *context, const struct xpt_counter_info *counter), void *context)
{
	struct drivers *drivers = NULL;
	struct tracefs tracefs;
	int result;

	if (!place->nodes.count || tracefs_open(place->tracefs, &tracefs))
		return 0;
	result = drivers_create(NULL, NULL, 0, &drivers);
	for (size_t i = 0; i < place->nodes.count && !result; i++) {
		const struct driver *driver = driver_of(drivers, &place->nodes.items[i]);

		if (!driver || (place->node ? place->node != &place->nodes.items[i] : was_before(drivers, place, i)))
			continue;
		result = visit_driver(&tracefs, driver, visit, context);
	}
	if (drivers)
		drivers_free(drivers);
	tracefs_close(&tracefs);
	return result;
}

#define INSTANCES_MAX 32 /* of a class of engines */

static int add_named(struct alias_search *search, const char *name, struct alias_term term)
{
	struct counter counter;
	int error = alias_try(search, name, &counter);

	return error ? error : alias_add(search, &counter, term);
}

/* ---- by name ---- */

static bool has_nvidia(const struct nodes *nodes)
{
	for (size_t i = 0; i < nodes->count; i++)
		if (!strcmp(nodes->items[i].driver, "nvidia"))
			return true;
	return false;
}

/* Without a node, NVIDIA's library reports all its devices together: those that have one have been read already. */
static int find_named(struct alias_search *search, const struct alias_rule *rule)
{
	bool nvml = !strncmp(rule->counter, "nvml/", 5);

	if (!search->place.node && (!nvml || has_nvidia(&search->place.nodes)))
		return 0;
	return add_named(search, rule->counter, rule->term);
}

/* Intel's integrated graphics have this address, and a share of the processor's energy. */
static int find_integrated(struct alias_search *search, const struct alias_rule *rule)
{
	const struct node *node = search->place.node;

	if (!node || strcmp(node->address, "0000:00:02.0") ||
	    (strcmp(node->driver, "i915") && strcmp(node->driver, "xe")))
		return 0;
	return add_named(search, rule->counter, rule->term);
}

/* ---- events of the device's own PMU ---- */

/* Seconds; 0: it is no time. */
static double seconds_of(const char *unit)
{
	return !strcmp(unit, "ns") ? 1e-9 :
	       !strcmp(unit, "us") ? 1e-6 :
	       !strcmp(unit, "ms") ? 1e-3 :
	       !strcmp(unit, "s")  ? 1 :
				     0;
}

static int add_event(struct alias_search *search, const struct pmu *pmu, const char *event, struct alias_term term)
{
	char name[COUNTER_NAME_MAX];

	if (snprintf(name, sizeof(name), "%s/%s/", pmu->name, event) >= (int)sizeof(name))
		return 0;
	return add_named(search, name, term);
}

/*
 * Events that match the pattern. Of what is a share, all that are times: one for each engine. Else the first: of a device with
 * several GTs, the main one's.
 */
static int find_event(struct alias_search *search, const struct alias_rule *rule)
{
	bool share = rule->term.measure == ALIAS_SHARE;
	struct alias_term term = rule->term;
	int error = 0;

	for (size_t i = 0; i < search->place.pmus.count && !error; i++) {
		const struct pmu *pmu = &search->place.pmus.items[i];
		size_t added = 0;

		if (!counter_is_own(&search->place, pmu))
			continue;
		for (size_t j = 0; j < pmu->event_count && !error && (share || !added); j++) {
			const struct pmu_event *event = &pmu->events[j];

			if (strchr(event->terms, '?') || fnmatch(rule->counter, event->name, FNM_EXTMATCH))
				continue;
			if (share)
				term.factor = seconds_of(event->unit);
			if (term.factor <= 0)
				continue;
			error = add_event(search, pmu, event->name, term);
			added++;
		}
	}
	return error;
}

/* ---- xe: ticks of each engine ---- */

struct engine {
	unsigned int gt, class, instance;
};

static int try_ticks(struct alias_search *search, const struct pmu *pmu, const char *event, struct engine engine,
		     struct counter *counter)
{
	char name[COUNTER_NAME_MAX];

	snprintf(name, sizeof(name), "%s/%s,gt=%u,engine_class=%u,engine_instance=%u/", pmu->name, event, engine.gt,
		 engine.class, engine.instance);
	return alias_try(search, name, counter);
}

/* -ENOENT: there is no such engine, which only the kernel itself knows. */
static int add_engine(struct alias_search *search, const struct pmu *pmu, struct engine engine)
{
	int (*exists)(const struct counter_event *event) = search->place.exists ?: perf_event_exists;
	struct counter active, total;
	int known, error = try_ticks(search, pmu, "engine-active-ticks", engine, &active);

	if (error)
		return error;
	known = exists(&active.events[0]);
	/* Who may not ask will not be let count either: the first one stands for all. */
	if (known > 0 || (known == -EACCES && !engine.instance))
		error = try_ticks(search, pmu, "engine-total-ticks", engine, &total);
	else
		error = -ENOENT;
	if (error) {
		counter_free(&active);
		return error;
	}
	error = alias_add(search, &active, (struct alias_term){ ALIAS_TICKS, 1 });
	if (error) {
		counter_free(&total);
		return error;
	}
	return alias_add(search, &total, (struct alias_term){ ALIAS_TOTAL, 1 });
}

/* As the driver's interface numbers the classes; -1: it is none that counts. */
static int class_of(const char *name)
{
	static const char *const classes[] = { "rcs", "bcs", "vcs", "vecs", "ccs" };

	for (int i = 0; i < (int)(sizeof(classes) / sizeof(classes[0])); i++)
		if (!strcmp(classes[i], name))
			return i;
	return -1;
}

/* path: .../tile0/gt1/engines/vcs */
static int add_class(struct alias_search *search, const struct pmu *pmu, const char *path)
{
	const char *gt = strstr(path, "/gt"), *next = gt;
	int class = class_of(strrchr(path, '/') + 1), error = 0;
	struct engine engine = { 0 };

	/* The last one: above it, the path is any. */
	while (next && (next = strstr(next + 1, "/gt")))
		gt = next;
	if (class < 0 || !gt || sscanf(gt, "/gt%u/", &engine.gt) != 1)
		return 0;
	engine.class = (unsigned int)class;
	/* They are numbered without gaps. */
	for (; engine.instance < INSTANCES_MAX && !error; engine.instance++)
		error = add_engine(search, pmu, engine);
	return error == -ENOENT ? 0 : error;
}

static int add_classes(struct alias_search *search, const struct pmu *pmu)
{
	char pattern[PATH_MAX];
	glob_t found = { 0 };
	int error = 0;

	snprintf(pattern, sizeof(pattern), "%s/tile*/gt*/engines/*", search->place.node->sysfs);
	if (glob(pattern, 0, NULL, &found) == GLOB_NOSPACE)
		error = -ENOMEM;
	for (size_t i = 0; !error && i < found.gl_pathc; i++)
		error = add_class(search, pmu, found.gl_pathv[i]);
	globfree(&found);
	return error;
}

static int find_ticks(struct alias_search *search, const struct alias_rule *rule)
{
	int error = 0;

	for (size_t i = 0; search->place.node && i < search->place.pmus.count && !error; i++) {
		const struct pmu *pmu = &search->place.pmus.items[i];

		if (counter_is_own(&search->place, pmu) && pmu_event(pmu, rule->counter, strlen(rule->counter)))
			error = add_classes(search, pmu);
	}
	return error;
}

/* ---- the rules ---- */

#define AS_IT_IS               \
	{                      \
		ALIAS_VALUE, 1 \
	}
#define OF_SECONDS             \
	{                      \
		ALIAS_SHARE, 1 \
	}

static const struct alias_rule busy[] = {
	{ find_event, "?(*-)busy", OF_SECONDS },
	{ find_ticks, "engine-active-ticks", { ALIAS_TICKS, 1 } },
	{ find_named, "amdgpu/busy/", AS_IT_IS },
	{ find_named, "nvml/busy/", AS_IT_IS },
	{ find_named, "ivpu/busy-time/", OF_SECONDS },
	{ find_named, "fdinfo/engine-*/", OF_SECONDS },
	{ 0 },
};

static const struct alias_rule jobs[] = {
	{ find_event, "jobs", AS_IT_IS },
	{ find_tracepoint, NULL, AS_IT_IS },
	{ 0 },
};

static const struct alias_rule energy[] = {
	{ find_named, "hwmon/energy/", AS_IT_IS },
	{ find_named, "hwmon/energy-package/", AS_IT_IS },
	{ find_named, "nvml/energy/", AS_IT_IS },
	{ find_integrated, "power/energy-gpu/", AS_IT_IS },
	{ 0 },
};

static const struct alias_rule frequency[] = {
	{ find_event, "actual-frequency*", AS_IT_IS },
	{ find_event, "gt-actual-frequency", AS_IT_IS },
	{ find_named, "nvml/frequency/", AS_IT_IS },
	{ find_named, "ivpu/frequency/", AS_IT_IS },
	{ find_named, "hwmon/frequency/", { ALIAS_VALUE, 1e-6 } },
	{ 0 },
};

static const struct alias_rule memory_used[] = {
	{ find_named, "amdgpu/memory-used/", AS_IT_IS },
	{ find_named, "nvml/memory-used/", AS_IT_IS },
	{ find_named, "ivpu/memory-used/", AS_IT_IS },
	{ find_named, "fdinfo/memory-*/", AS_IT_IS },
	{ 0 },
};

static const struct alias_rule memory_busy[] = {
	{ find_named, "amdgpu/memory-busy/", AS_IT_IS },
	{ find_named, "nvml/memory-busy/", AS_IT_IS },
	{ 0 },
};

const struct alias_definition alias_definitions[] = {
	{ "busy", "%", "share of the time in which the device executed, its busiest engine", true, busy },
	{ "jobs", "", "jobs handed to the device", false, jobs },
	{ "energy", "J", "energy that the device took", false, energy },
	{ "frequency", "MHz", "frequency of the device", true, frequency },
	{ "memory_used", "B", "the device's memory in use", false, memory_used },
	{ "memory_busy", "%", "share of the time in which the device's memory was read or written", true, memory_busy },
};
const size_t alias_definition_count = sizeof(alias_definitions) / sizeof(alias_definitions[0]);

#define SOURCE_MAX 240 /* bytes of the counters' names */

static const struct alias_definition *find_definition(const char *name)
{
	for (size_t i = 0; i < alias_definition_count; i++)
		if (!strcmp(alias_definitions[i].name, name))
			return &alias_definitions[i];
	return NULL;
}

bool alias_is(const char *name)
{
	return find_definition(name) != NULL;
}

const char *alias_name(size_t index)
{
	return index < alias_definition_count ? alias_definitions[index].name : NULL;
}

/* ---- the counters ---- */

int alias_add(struct alias_search *search, struct counter *counter, struct alias_term term)
{
	struct alias *alias = search->alias;

	/* Both arrays have the same count. */
	if (vec_reserve(alias->terms, alias->count) || vec_reserve(alias->counters, alias->count)) {
		counter_free(counter);
		return -ENOMEM;
	}
	alias->terms[alias->count] = term;
	alias->counters[alias->count++] = *counter;
	return 0;
}

/* What is not there is passed over; any other error is logged. */
int alias_try(struct alias_search *search, const char *name, struct counter *counter)
{
	struct counter_place aloud = search->place;
	int error = counter_resolve(&search->place, name, counter);

	if (!error || error == -ENOENT || error == -ENOMEM)
		return error;
	aloud.log = search->log;
	return counter_resolve(&aloud, name, counter);
}

static int search_device(struct alias_search *search, const struct alias_rule *rules)
{
	size_t before = search->alias->count;
	int error = 0;

	for (; rules->find && !error && search->alias->count == before; rules++) {
		error = rules->find(search, rules);
		if (error == -ENOENT)
			error = 0;
	}
	return error;
}

static int search_devices(struct alias_search *search, const struct counter_place *place,
			  const struct alias_rule *rules)
{
	int error = 0;

	for (size_t i = 0; i < place->nodes.count && !error; i++) {
		const struct node *node = &place->nodes.items[i];

		if (place->node && place->node != node)
			continue;
		search->place.node = node;
		error = search_device(search, rules);
	}
	if (error || place->node)
		return error;
	/* A device may have a PMU and no node, or be known to NVIDIA's library alone. */
	search->place.node = NULL;
	return search_device(search, rules);
}

/* ---- their descriptions ---- */

static bool is_named_before(const struct alias *alias, size_t index)
{
	for (size_t i = 0; i < index; i++)
		if (!strcmp(alias->counters[i].info.name, alias->counters[index].info.name))
			return true;
	return false;
}

static void write_names(const struct alias *alias, char text[SOURCE_MAX])
{
	size_t used = 0;

	text[0] = '\0';
	for (size_t i = 0; i < alias->count; i++) {
		const char *name = alias->counters[i].info.name;

		if (is_named_before(alias, i))
			continue;
		if (used + strlen(name) + sizeof(",...") >= SOURCE_MAX) {
			snprintf(text + used, SOURCE_MAX - used, ",...");
			break;
		}
		used += (size_t)snprintf(text + used, SOURCE_MAX - used, "%s%s", used ? "," : "", name);
	}
}

/* Where one has only its current value, it is no mean. */
static enum xpt_counter_kind kind_of(const struct alias *alias)
{
	bool mean = false, level = false;

	for (size_t i = 0; i < alias->count; i++) {
		enum xpt_counter_kind kind = alias->counters[i].info.kind;

		mean |= alias->terms[i].measure != ALIAS_VALUE || kind == XPT_COUNTER_MEAN;
		level |= alias->terms[i].measure == ALIAS_VALUE && kind == XPT_COUNTER_LEVEL;
	}
	return mean ? XPT_COUNTER_MEAN : level ? XPT_COUNTER_LEVEL : XPT_COUNTER_SUM;
}

static int describe(struct alias *alias, const struct alias_definition *definition)
{
	char source[SOURCE_MAX];
	struct xpt_counter_info info = {
		.name = definition->name,
		.unit = definition->unit,
		.description = definition->description,
		.source = source,
		.kind = kind_of(alias),
		.scale = 1,
	};

	write_names(alias, source);
	alias->highest = definition->highest;
	return counter_info_copy(&info, &alias->info);
}

/* ---- resolving ---- */

static void report_none(const struct counter_place *place, const char *name)
{
	if (place->node)
		log_error(place->log, "%s: the device %s (%s) does not report it", name, place->node->address,
			  *place->node->driver ? place->node->driver : "no driver");
	else if (!place->nodes.count)
		log_error(place->log, "%s: there is no device here that reports it: see xputrace list devices", name);
	else
		log_error(place->log, "%s: none of the devices here reports it: see xputrace list counters", name);
}

int alias_resolve(const struct counter_place *place, const char *name, struct alias *alias)
{
	const struct alias_definition *definition = find_definition(name);
	struct alias_search search = {
		.place = *place, .alias = alias, .name = name, .log = place->log, .one_device = place->node
	};
	int error;

	*alias = (struct alias){ 0 };
	search.place.log = NULL;
	search.place.highest = definition->highest;
	/* As with units of devices: what everybody does, while the command runs. */
	if (place->mixed)
		search.place.pid = 0;
	error = search_devices(&search, place, definition->rules);
	if (!error && !alias->count) {
		error = search.refused ? search.refused : -ENOENT;
		if (!search.refused)
			report_none(place, name);
	}
	if (!error)
		error = describe(alias, definition);
	if (error)
		alias_free(alias);
	return error;
}

void alias_free(struct alias *alias)
{
	for (size_t i = 0; i < alias->count; i++)
		counter_free(&alias->counters[i]);
	free(alias->counters);
	free(alias->terms);
	counter_info_free(&alias->info);
	*alias = (struct alias){ 0 };
}

int alias_visit(const struct counter_place *place, int (*visit)(void *context, const struct xpt_counter_info *counter),
		void *context)
{
	struct counter_place quiet = *place;
	int result = 0;

	quiet.log = NULL;
	for (size_t i = 0; i < alias_definition_count && !result; i++) {
		char description[SOURCE_MAX + 128];
		struct xpt_counter_info info;
		struct alias alias;

		result = alias_resolve(&quiet, alias_definitions[i].name, &alias);
		if (result == -ENOMEM)
			break;
		if (result) {
			result = 0;
			continue;
		}
		info = alias.info;
		snprintf(description, sizeof(description), "%s: %s", info.description, info.source);
		info.description = description;
		result = visit(context, &info);
		alias_free(&alias);
	}
	return result;
}

/* ---- the value ---- */

/* Clocks are read one after the other, and several units of an engine may work at once: no share is above all. */
static double percent(double part, double whole)
{
	double share = 100 * part / whole;

	return share < 100 ? share : 100;
}

static bool term_value(const struct alias_term *term, const struct alias_sample *before, const struct alias_sample *now,
		       double *value)
{
	double grown = now->value - before->value, total;

	switch (term->measure) {
	case ALIAS_VALUE:
		*value = now->value * term->factor;
		return true;
	case ALIAS_SHARE:
		if (now->ran <= before->ran)
			return false;
		*value = percent(grown * term->factor, (double)(now->ran - before->ran) / 1e9);
		return true;
	case ALIAS_TICKS:
		total = now[1].value - before[1].value;
		if (total <= 0)
			return false;
		*value = percent(grown, total);
		return true;
	case ALIAS_TOTAL:
		break;
	}
	return false;
}

bool alias_value(const struct alias_term *terms, size_t count, bool highest, const struct alias_sample *before,
		 const struct alias_sample *now, double *value)
{
	double result = 0, one;
	bool any = false;

	for (size_t i = 0; i < count; i++) {
		if (!term_value(&terms[i], &before[i], &now[i], &one))
			continue;
		if (!highest)
			result += one;
		else if (!any || one > result)
			result = one;
		any = true;
	}
	if (any)
		*value = result;
	return any;
}

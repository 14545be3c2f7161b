/* SPDX-License-Identifier: BSD-2-Clause */
/* Events that the kernel has names for on every machine: perf_event_open(2). */
#include "counter/counter.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/vec.h"
#include "counter/pmu.h"
#include "target/tracepoint/tracefs.h"

#define INFO(name, unit, description, source)                                                        \
	{                                                                                            \
		sizeof(struct xpt_counter_info), name, unit, description, source, XPT_COUNTER_SUM, 1 \
	}
#define SOFTWARE(name, alias, id, unit, description, task)                                                \
	{                                                                                                 \
		INFO(name, unit, description, "software"), alias, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_##id, \
			XPT_TASK_##task                                                                   \
	}
#define HARDWARE(name, alias, id, description)                                                                        \
	{                                                                                                             \
		INFO(name, "", description, "hardware"), alias, PERF_TYPE_HARDWARE, PERF_COUNT_HW_##id, XPT_TASK_NONE \
	}

const struct kernel_event kernel_events[] = {
	SOFTWARE("cpu-clock", NULL, CPU_CLOCK, "ns", "time of the CPU's clock", NONE),
	SOFTWARE("task-clock", NULL, TASK_CLOCK, "ns", "time in which tasks ran", TIME),
	SOFTWARE("page-faults", "faults", PAGE_FAULTS, "", "page faults", FAULTS),
	SOFTWARE("minor-faults", NULL, PAGE_FAULTS_MIN, "", "page faults without reading from disk", MINOR_FAULTS),
	SOFTWARE("major-faults", NULL, PAGE_FAULTS_MAJ, "", "page faults that read from disk", MAJOR_FAULTS),
	SOFTWARE("context-switches", "cs", CONTEXT_SWITCHES, "", "switches from one task to another", SWITCHES),
	SOFTWARE("cpu-migrations", "migrations", CPU_MIGRATIONS, "", "tasks that went on on another CPU", MIGRATIONS),
	SOFTWARE("alignment-faults", NULL, ALIGNMENT_FAULTS, "", "unaligned accesses that the kernel handled", NONE),
	SOFTWARE("emulation-faults", NULL, EMULATION_FAULTS, "", "instructions that the kernel emulated", NONE),
	HARDWARE("cycles", "cpu-cycles", CPU_CYCLES, "cycles of the CPU"),
	HARDWARE("instructions", NULL, INSTRUCTIONS, "instructions retired"),
	HARDWARE("cache-references", NULL, CACHE_REFERENCES, "accesses to the last-level cache"),
	HARDWARE("cache-misses", NULL, CACHE_MISSES, "accesses that the last-level cache could not serve"),
	HARDWARE("branches", "branch-instructions", BRANCH_INSTRUCTIONS, "branches retired"),
	HARDWARE("branch-misses", NULL, BRANCH_MISSES, "branches that were predicted wrongly"),
	HARDWARE("bus-cycles", NULL, BUS_CYCLES, "cycles of the bus"),
	HARDWARE("ref-cycles", NULL, REF_CPU_CYCLES, "cycles at the nominal frequency"),
};
const size_t kernel_event_count = sizeof(kernel_events) / sizeof(kernel_events[0]);

#define SYSFS "/sys"

/* ---- the place ---- */

void counter_place_close(struct counter_place *place)
{
	pmus_free(&place->pmus);
	nodes_free(&place->nodes);
	cpus_free(&place->online);
}

int counter_place_open(const struct log *log, int cpu, int gpu, pid_t pid, struct counter_place *place)
{
	int error;

	*place = (struct counter_place){ .sysfs = SYSFS, .proc = "/proc", .cpu = cpu, .pid = pid, .log = log };
	error = nodes_find(SYSFS, &place->nodes);
	if (!error)
		error = pmus_read(SYSFS, &place->pmus);
	/* Without perf events the others can be read. */
	if (error == -ENOENT)
		error = 0;
	if (!error)
		error = cpus_online(SYSFS, &place->online);
	if (!error && gpu >= 0 && (size_t)gpu >= place->nodes.count) {
		log_error(log, "there is no device %d: %s", gpu,
			  place->nodes.count ? "see xputrace list devices" :
					       "this machine has no DRM render or accel node");
		error = -ENODEV;
	}
	if (!error && gpu >= 0)
		place->node = &place->nodes.items[gpu];
	return error;
}

/* ---- instances ---- */

/* Of "i915_0000_03_00.0", "uncore_imc_0", "smmuv3_pmcg_2b442": what is behind the name that they have in common. */
static bool is_instance(const char *suffix)
{
	size_t hexadecimal = strspn(suffix, "0123456789abcdef"), decimal = strspn(suffix, "0123456789");
	unsigned int domain, bus, device, function;
	int end = 0;

	if (!suffix[decimal] && decimal)
		return true;
	if (!suffix[hexadecimal] && hexadecimal > 2)
		return true;
	return sscanf(suffix, "%4x_%2x_%2x.%1x%n", &domain, &bus, &device, &function, &end) == 4 && !suffix[end];
}

static bool is_named(const char *own, const char *name, size_t length)
{
	if (strncmp(own, name, length))
		return false;
	return !own[length] || (own[length] == '_' && is_instance(own + length + 1));
}

/* As perf has it, the first part of Intel's names may be left out. */
static bool pmu_is(const struct pmu *pmu, const char *name, size_t length)
{
	static const char uncore[] = "uncore_";

	return is_named(pmu->name, name, length) || (!strncmp(pmu->name, uncore, sizeof(uncore) - 1) &&
						     is_named(pmu->name + sizeof(uncore) - 1, name, length));
}

static bool has_address(const struct pmu *pmu, const struct node *node)
{
	size_t length = strlen(node->address), name = strlen(pmu->name);
	const char *suffix = name > length ? pmu->name + name - length : NULL;

	for (size_t i = 0; suffix && i < length; i++)
		if (suffix[i] != (node->address[i] == ':' ? '_' : node->address[i]))
			return false;
	return suffix && suffix[-1] == '_';
}

/* amdgpu's have the number of the card. */
static bool has_card(const struct pmu *pmu, const struct node *node)
{
	const char *number = strrchr(pmu->name, '_');
	char path[PATH_MAX];

	if (!number || !isdigit((unsigned char)number[1]))
		return false;
	snprintf(path, sizeof(path), "%s/drm/card%s", node->sysfs, number + 1);
	return !access(path, F_OK);
}

/* The SoC's nvidia_scf_pmu_0 is not of the driver that is called nvidia. */
static bool is_of_driver(const struct pmu *pmu, const struct node *node)
{
	static const char data_fabric[] = "amdgpu_df";
	size_t length = strlen(node->driver);

	if (!length)
		return false;
	return is_named(pmu->name, node->driver, length) ||
	       (!strcmp(node->driver, "amdgpu") && is_named(pmu->name, data_fabric, sizeof(data_fabric) - 1));
}

/* The name of the driver alone is that of the first device: i915 has it for integrated graphics, others their address. */
static bool is_plain(const struct counter_place *place, const struct pmu *pmu)
{
	if (strcmp(pmu->name, place->node->driver) != 0)
		return false;
	for (size_t i = 0; i < place->pmus.count; i++)
		if (is_of_driver(&place->pmus.items[i], place->node) && has_address(&place->pmus.items[i], place->node))
			return false;
	return true;
}

bool counter_of_node(const struct counter_place *place, const struct pmu *pmu)
{
	bool of_device = false;

	for (size_t i = 0; i < place->nodes.count; i++)
		of_device |= is_of_driver(pmu, &place->nodes.items[i]);
	if (!of_device || !place->node)
		return true;
	if (!is_of_driver(pmu, place->node))
		return false;
	return is_plain(place, pmu) || has_address(pmu, place->node) || has_card(pmu, place->node);
}

bool counter_is_own(const struct counter_place *place, const struct pmu *pmu)
{
	if (place->node)
		return is_of_driver(pmu, place->node) && counter_of_node(place, pmu);
	for (size_t i = 0; i < place->nodes.count; i++)
		if (is_of_driver(pmu, &place->nodes.items[i]))
			return false;
	return true;
}

/* ---- resolving ---- */

int counter_info_copy(const struct xpt_counter_info *from, struct xpt_counter_info *to)
{
	*to = *from;
	to->size = sizeof(*to);
	to->name = strdup(from->name);
	to->unit = strdup(from->unit);
	to->description = strdup(from->description);
	to->source = strdup(from->source);
	return to->name && to->unit && to->description && to->source ? 0 : -ENOMEM;
}

void counter_info_free(struct xpt_counter_info *info)
{
	free((char *)info->name);
	free((char *)info->unit);
	free((char *)info->description);
	free((char *)info->source);
	*info = (struct xpt_counter_info){ 0 };
}

enum counting counter_describe(const struct pmu *pmu, const struct pmu_event *event, struct xpt_counter_info *info)
{
	const struct pmu_catalogue_entry *known = event ? pmu_catalogue_find(pmu->name, event->name) : NULL;
	enum counting counting = known && known->counting ? known->counting :
				 event && event->snapshot ? COUNTING_LEVEL :
							    COUNTING_SUM;

	info->unit = known && known->unit ? known->unit : event ? event->unit : "";
	info->description = known ? known->description : "";
	info->source = pmu->name;
	info->kind = counting == COUNTING_SUM	     ? XPT_COUNTER_SUM :
		     counting == COUNTING_PER_SECOND ? XPT_COUNTER_MEAN :
						       XPT_COUNTER_LEVEL;
	info->scale = event ? event->scale : 1;
	return counting;
}

enum counting counter_describe_polled(const struct polled_info *polled, struct xpt_counter_info *info)
{
	info->unit = polled->unit;
	info->description = polled->description;
	info->source = polled->source;
	info->kind = polled->level ? XPT_COUNTER_LEVEL : XPT_COUNTER_SUM;
	info->scale = polled->scale;
	return polled->level ? COUNTING_LEVEL : COUNTING_SUM;
}

static int wrong(const struct counter_place *place, int error, const char *name, const char *reason)
{
	log_error(place->log, "%s: %s", name, reason);
	return error;
}

/* Where one CPU is asked for, the others fall away. */
static int choose_cpus(const struct counter_place *place, const char *name, const struct pmu *pmu,
		       struct counter_event *event)
{
	struct cpus first = { .items = place->online.items, .count = place->online.count ? 1 : 0 };
	const struct cpus *all = &place->online;
	int one = place->cpu;

	event->of_each_cpu = !pmu || pmu_of_each_cpu(pmu->name);
	if (pmu && pmu->has_mask)
		all = &pmu->mask;
	else if (pmu && !event->of_each_cpu)
		all = &first;
	if (one < 0)
		return cpus_copy(all, &event->cpus);
	if (!cpus_have(&place->online, one)) {
		log_error(place->log, "%s: CPU %d is not there, or offline", name, one);
		return -ENODEV;
	}
	if (pmu && pmu->has_mask && !cpus_have(&pmu->mask, one)) {
		log_error(place->log,
			  "%s: %s does not count on CPU %d: see cpumask in /sys/bus/event_source/devices/%s", name,
			  pmu->name, one, pmu->name);
		return -ENODEV;
	}
	return cpus_copy(&(struct cpus){ &one, 1 }, &event->cpus);
}

static int add_event(const struct counter_place *place, const char *name, const struct pmu *pmu, __u32 type,
		     const __u64 *config, struct counter *counter)
{
	struct counter_event event = {
		.type = type,
		.pmu = strdup(pmu ? pmu->name : "kernel"),
		.only_cpu = place->cpu < 0 ? -1 : place->cpu,
	};
	int error = event.pmu ? choose_cpus(place, name, pmu, &event) : -ENOMEM;

	memcpy(event.config, config, sizeof(event.config));
	if (!error)
		error = vec_push(counter->events, counter->event_count, event);
	if (error) {
		cpus_free(&event.cpus);
		free(event.pmu);
	}
	return error;
}

static int resolve_kernel_event(const struct counter_place *place, const char *name, const struct kernel_event *event,
				struct counter *counter)
{
	__u64 config[PMU_CONFIGS] = { event->config };
	struct xpt_counter_info info = event->info;
	int error = add_event(place, name, NULL, event->type, config, counter);

	if (error)
		return error;
	counter->events[0].task = event->task;
	info.name = name;
	return counter_info_copy(&info, &counter->info);
}

static int resolve_tracepoint(const struct counter_place *place, const char *name, const char *colon,
			      struct counter *counter)
{
	struct xpt_counter_info info = INFO(name, "", "times that the tracepoint was met", "tracepoint");
	__u64 config[PMU_CONFIGS] = { 0 };
	struct tracefs tracefs;
	int error = strchr(name, '/') ? -EINVAL : tracefs_open(place->tracefs, &tracefs), id;

	if (error)
		return wrong(place, error, name, tracefs_advice(error));
	id = tracefs_id(&tracefs, name, (size_t)(colon - name), colon + 1);
	if (id < 0)
		log_error(place->log, "%s: no such tracepoint, in %s (perf list tracepoint shows all)", name,
			  tracefs.kernel);
	tracefs_close(&tracefs);
	if (id < 0)
		return id;
	config[0] = (__u64)id;
	error = add_event(place, name, NULL, PERF_TYPE_TRACEPOINT, config, counter);
	return error ?: counter_info_copy(&info, &counter->info);
}

static int resolve_polled(const struct counter_place *place, const char *name, size_t length, struct counter *counter)
{
	char source[64], event[64];
	struct xpt_counter_info info = { .name = name };
	struct polled_info polled;
	size_t rest = strlen(name) - length - 2; /* between the slashes */
	int error;

	if (length >= sizeof(source) || rest >= sizeof(event))
		return -ENOENT;
	snprintf(source, sizeof(source), "%.*s", (int)length, name);
	snprintf(event, sizeof(event), "%.*s", (int)rest, name + length + 1);
	error = polled_open(place, source, event, &polled, &counter->polled);
	if (error)
		return error;
	counter->counting = counter_describe_polled(&polled, &info);
	return counter_info_copy(&info, &counter->info);
}

static int unknown(const struct counter_place *place, const char *name)
{
	char near[NEAREST_TEXT_MAX];

	if (!place->log)
		return -ENOENT;
	nearest_counters(place, name, near);
	log_error(place->log, "%s: unknown counter%s%s (see `xputrace list counters`)", name,
		  *near ? "; near it: " : "", near);
	return -ENOENT;
}

static bool has_name(const struct pmu *pmu, const char *name, size_t length)
{
	return strlen(pmu->name) == length && !memcmp(pmu->name, name, length);
}

static int resolve_pmu(const struct counter_place *place, const char *name, const char *slash, struct counter *counter)
{
	size_t length = (size_t)(slash - name), terms = strlen(slash + 1);
	struct xpt_counter_info info = { .name = name };
	char reason[EVENT_TERMS_REASON_MAX];
	struct event_encoding code;
	bool exact = false;
	int error = 0;

	if (!terms || slash[terms] != '/' || strchr(slash + 1, '/') != slash + terms)
		return wrong(place, -EINVAL, name, "events of a PMU are written pmu/event/ or pmu/event,term=value/");
	for (size_t i = 0; i < place->pmus.count; i++)
		exact |= has_name(&place->pmus.items[i], name, length) && counter_of_node(place, &place->pmus.items[i]);
	for (size_t i = 0; i < place->pmus.count && !error; i++) {
		const struct pmu *pmu = &place->pmus.items[i];

		if (!(exact ? has_name(pmu, name, length) : pmu_is(pmu, name, length)) || !counter_of_node(place, pmu))
			continue;
		error = event_terms_encode(pmu, slash + 1, terms - 1, &code, reason);
		/* Not all devices of a driver have the same engines. */
		if (error == -ENOENT) {
			error = 0;
			continue;
		}
		if (error)
			return wrong(place, error, name, reason);
		error = add_event(place, name, pmu, pmu->type, code.config, counter);
		/* From the first instance that has it; an event is the same in all of one PMU. */
		if (!error && counter->event_count == 1) {
			counter->counting = counter_describe(pmu, code.event, &info);
			error = counter_info_copy(&info, &counter->info);
		}
	}
	if (error || counter->event_count)
		return error;
	error = resolve_polled(place, name, length, counter);
	return error == -ENOENT ? unknown(place, name) : error;
}

int counter_resolve(const struct counter_place *place, const char *name, struct counter *counter)
{
	const char *slash = strchr(name, '/'), *colon = strchr(name, ':');
	int error = -ENOENT;

	*counter = (struct counter){ 0 };
	if (slash && slash != name) {
		error = resolve_pmu(place, name, slash, counter);
	} else if (colon && colon != name && colon[1]) {
		error = resolve_tracepoint(place, name, colon, counter);
	} else {
		for (size_t i = 0; i < kernel_event_count && error == -ENOENT; i++)
			if (!strcmp(kernel_events[i].info.name, name) ||
			    (kernel_events[i].alias && !strcmp(kernel_events[i].alias, name)))
				error = resolve_kernel_event(place, name, &kernel_events[i], counter);
		if (error == -ENOENT)
			error = unknown(place, name);
	}
	if (error)
		counter_free(counter);
	return error;
}

void counter_free(struct counter *counter)
{
	for (size_t i = 0; i < counter->event_count; i++) {
		cpus_free(&counter->events[i].cpus);
		free(counter->events[i].filter);
		free(counter->events[i].pmu);
	}
	free(counter->events);
	polled_close(counter->polled);
	counter_info_free(&counter->info);
	*counter = (struct counter){ 0 };
}

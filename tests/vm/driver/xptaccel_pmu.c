// SPDX-License-Identifier: (GPL-2.0-only OR BSD-2-Clause)
/*
 * The device's PMU: counts for as long as a perf event is enabled, for the whole device, no matter who uses it.
 *
 * It has the habits of real ones. It counts on one processor only, which the file cpumask names, and its events end when that goes
 * offline; it has few counters, so that more events than these take turns; and a field of its format lies in two places.
 */
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/device.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sysfs.h>

#include "xptaccel_pmu.h"

#define COUNTERS 4 /* that can be given any event; what counts ended jobs is a counter of its own, always there */

#define EVENT_LOW GENMASK_ULL(3, 0)
#define EVENT_HIGH GENMASK_ULL(11, 8)
#define ENGINE GENMASK_ULL(23, 16)
#define SAMPLE BIT_ULL(0) /* of config1: running jobs count for busy once they have ended */

static unsigned int pmu_cpu;
module_param(pmu_cpu, uint, 0644);
MODULE_PARM_DESC(pmu_cpu, "the processor that counts, which cpumask names; open events stay where they are (0)");

enum {
	EVENT_JOBS = 0x11,
	EVENT_QUEUED = 0x12,
	EVENT_FAILED = 0x13,
	EVENT_BUSY = 0x21,
	EVENT_BYTES = 0x22,
	EVENT_DEPTH = 0x31, /* the only one that is no sum */
};

/* ---- counting ---- */

/*
 * The word counts->running: its lower bits have the number of jobs that run. The upper ones have the sum of all ends
 * less the sum of all beginnings, modulo 2^59 ns, which are 18 years: with the time of now for each job that runs, that
 * is for how long jobs have run until now. Both change at once, and can be read in any context.
 */
#define RUNNING_MASK GENMASK_ULL(XPTACCEL_RUNNING_BITS - 1, 0)

void xptaccel_count_queued(struct xptaccel_counts *counts)
{
	atomic64_inc(&counts->queued);
}

void xptaccel_count_started(struct xptaccel_counts *counts, u64 started_ns)
{
	atomic64_sub((s64)((started_ns << XPTACCEL_RUNNING_BITS) - 1), &counts->running);
}

void xptaccel_count_ended(struct xptaccel_counts *counts, u64 started_ns, u64 finished_ns, u64 bytes, bool failed)
{
	atomic64_add((s64)((finished_ns << XPTACCEL_RUNNING_BITS) - 1), &counts->running);
	atomic64_add((s64)(finished_ns - started_ns), &counts->ended_ns);
	atomic64_add((s64)bytes, &counts->bytes);
	if (failed)
		atomic64_inc(&counts->failed);
	atomic64_inc(&counts->ended);
}

/* Up to now for the jobs that run, as hardware that counts cycles would. */
static u64 busy_ns(struct xptaccel_counts *counts)
{
	u64 word, now;

	do {
		word = atomic64_read(&counts->running);
		now = ktime_get_ns();
	} while (atomic64_read(&counts->running) != word);
	now *= word & RUNNING_MASK;
	/* With its sign: the clocks of two processors may lie apart. */
	return (u64)((s64)((word & ~RUNNING_MASK) + (now << XPTACCEL_RUNNING_BITS)) >> XPTACCEL_RUNNING_BITS);
}

static unsigned int event_code(const struct perf_event *event)
{
	return (event->attr.config & EVENT_LOW) | (event->attr.config & EVENT_HIGH) >> 4;
}

static u64 engine_value(const struct perf_event *event, struct xptaccel_counts *counts)
{
	switch (event_code(event)) {
	case EVENT_JOBS:
		return atomic64_read(&counts->ended);
	case EVENT_QUEUED:
		return atomic64_read(&counts->queued);
	case EVENT_FAILED:
		return atomic64_read(&counts->failed);
	case EVENT_BUSY:
		return event->attr.config1 & SAMPLE ? atomic64_read(&counts->ended_ns) : busy_ns(counts);
	case EVENT_BYTES:
		return atomic64_read(&counts->bytes);
	default: /* EVENT_DEPTH */
		return atomic64_read(&counts->running) & RUNNING_MASK;
	}
}

static struct xptaccel_pmu *event_pmu(const struct perf_event *event)
{
	return container_of(event->pmu, struct xptaccel_pmu, pmu);
}

/* 0: all engines; n: engine n - 1. */
static unsigned int event_engine(const struct perf_event *event)
{
	return (event->attr.config & ENGINE) >> 16;
}

static u64 event_value(const struct perf_event *event)
{
	struct xptaccel_pmu *pmu = event_pmu(event);
	unsigned int engine = event_engine(event), i;
	u64 value = 0;

	for (i = 0; i < pmu->engine_count; i++)
		if (!engine || i == engine - 1)
			value += engine_value(event, &pmu->counts[i]);
	return value;
}

/* ---- events ---- */

static bool needs_counter(const struct perf_event *event)
{
	return event_code(event) != EVENT_JOBS;
}

/* Whether a group with this event, which is not among its siblings yet, has enough counters. */
static bool group_fits(struct perf_event *event)
{
	struct perf_event *leader = event->group_leader, *sibling;
	unsigned int needed = needs_counter(event);

	if (leader == event)
		return true;
	if (leader->pmu == event->pmu)
		needed += needs_counter(leader);
	for_each_sibling_event(sibling, leader) if (sibling->pmu == event->pmu) needed += needs_counter(sibling);
	return needed <= COUNTERS;
}

static bool config_valid(const struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;

	if (attr->config & ~(EVENT_LOW | EVENT_HIGH | ENGINE) || attr->config1 & ~SAMPLE || attr->config2)
		return false;
	switch (event_code(event)) {
	case EVENT_JOBS:
	case EVENT_QUEUED:
	case EVENT_FAILED:
	case EVENT_BUSY:
	case EVENT_BYTES:
	case EVENT_DEPTH:
		return event_engine(event) <= event_pmu(event)->engine_count;
	default:
		return false;
	}
}

static int event_init(struct perf_event *event)
{
	if (event->attr.type != event->pmu->type)
		return -ENOENT;
	if (event->attach_state & PERF_ATTACH_TASK || event->cpu < 0 || is_sampling_event(event))
		return -EINVAL;
	if (has_branch_stack(event))
		return -EOPNOTSUPP;
	if (!cpu_online(event->cpu))
		return -ENODEV;
	if (event->cpu != READ_ONCE(pmu_cpu) || !config_valid(event) || !group_fits(event))
		return -EINVAL;
	return 0;
}

static void event_update(struct perf_event *event)
{
	u64 value, before;

	if (event_code(event) == EVENT_DEPTH) {
		local64_set(&event->count, event_value(event));
		return;
	}
	do {
		before = local64_read(&event->hw.prev_count);
		value = event_value(event);
		/* Busy time stays ahead until the end of a job, which has been taken before, is counted. */
		if ((s64)(value - before) <= 0)
			return;
	} while (local64_cmpxchg(&event->hw.prev_count, before, value) != before);
	local64_add(value - before, &event->count);
}

static void event_start(struct perf_event *event, int flags)
{
	local64_set(&event->hw.prev_count, event_value(event));
	event->hw.state = 0;
	perf_event_update_userpage(event);
}

static void event_stop(struct perf_event *event, int flags)
{
	if (event->hw.state & PERF_HES_STOPPED)
		return;
	event_update(event);
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
}

/* With interrupts off on the processor that counts, as event_del(). */
static int event_add(struct perf_event *event, int flags)
{
	struct xptaccel_pmu *pmu = event_pmu(event);
	unsigned int counter = COUNTERS;

	if (needs_counter(event)) {
		counter = ffz(pmu->used);
		if (counter >= COUNTERS)
			return -EAGAIN;
		pmu->used |= BIT(counter);
	}
	event->hw.idx = counter;
	event->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START)
		event_start(event, flags);
	return 0;
}

static void event_del(struct perf_event *event, int flags)
{
	event_stop(event, PERF_EF_UPDATE);
	if (needs_counter(event))
		event_pmu(event)->used &= ~BIT(event->hw.idx);
	event->hw.idx = -1;
	perf_event_update_userpage(event);
}

/* ---- files ---- */

static ssize_t text_show(struct device *device, struct device_attribute *attribute, char *buffer)
{
	const char *text = container_of(attribute, struct dev_ext_attribute, attr)->var;

	return sysfs_emit(buffer, "%s\n", text);
}

static ssize_t cpumask_show(struct device *device, struct device_attribute *attribute, char *buffer)
{
	return sysfs_emit(buffer, "%u\n", READ_ONCE(pmu_cpu));
}

static DEVICE_ATTR_RO(cpumask);

/* A file with one line of text. */
#define TEXT(file, text) \
	(&(struct dev_ext_attribute){ { { .name = (file), .mode = 0444 }, .show = text_show }, (text) }.attr.attr)

static struct attribute *format_files[] = {
	TEXT("event", "config:0-3,8-11"),
	TEXT("engine", "config:16-23"),
	TEXT("sample", "config1:0"),
	NULL,
};

static struct attribute *event_files[] = {
	TEXT("jobs", "event=0x11"),
	TEXT("queued", "event=0x12"),
	TEXT("failed", "event=0x13"),
	TEXT("busy", "event=0x21"),
	TEXT("busy.scale", "1e-9"),
	TEXT("busy.unit", "s"),
	TEXT("engine-busy", "event=0x21,engine=?"),
	TEXT("bytes", "event=0x22"),
	TEXT("bytes.scale", "9.5367431640625e-07"),
	TEXT("bytes.unit", "MiB"),
	TEXT("depth", "event=0x31"),
	TEXT("depth.snapshot", "1"),
	NULL,
};

static struct attribute *other_files[] = {
	&dev_attr_cpumask.attr,
	NULL,
};

static const struct attribute_group format_group = { .name = "format", .attrs = format_files };
static const struct attribute_group event_group = { .name = "events", .attrs = event_files };
static const struct attribute_group other_group = { .attrs = other_files };
static const struct attribute_group *groups[] = { &format_group, &event_group, &other_group, NULL };

/* ---- registration ---- */

int xptaccel_pmu_register(struct xptaccel_pmu *pmu, unsigned int device, unsigned int engines)
{
	int error;

	pmu->engine_count = engines;
	snprintf(pmu->name, sizeof(pmu->name), "xptaccel_%u", device);
	pmu->pmu = (struct pmu){
		.module = THIS_MODULE,
		.attr_groups = groups,
		.capabilities = PERF_PMU_CAP_NO_EXCLUDE | PERF_PMU_CAP_NO_INTERRUPT,
		.task_ctx_nr = perf_invalid_context,
		.event_init = event_init,
		.add = event_add,
		.del = event_del,
		.start = event_start,
		.stop = event_stop,
		.read = event_update,
	};
	error = perf_pmu_register(&pmu->pmu, pmu->name, -1);
	pmu->registered = !error;
	return error;
}

void xptaccel_pmu_unregister(struct xptaccel_pmu *pmu)
{
	if (pmu->registered)
		perf_pmu_unregister(&pmu->pmu);
	pmu->registered = false;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/perf_events.h"

#include <fcntl.h>

#include "tests/unit/counter_perf.h"

static const struct log log_said = { .write = on_message };

#define OPEN(events, ...)                                                       \
	call_events_open(&log_said, NULL, (const char *const[]){ __VA_ARGS__ }, \
			 sizeof((const char *[]){ __VA_ARGS__ }) / sizeof(char *), events)

static bool is_open(int descriptor)
{
	return descriptor >= 0 && fcntl(descriptor, F_GETFD) >= 0;
}

Test(counter_perf_events_call_events, an_event_of_each_cpu, .init = need_perf_events)
{
	struct call_events events;
	unsigned int online = (unsigned int)sysconf(_SC_NPROCESSORS_ONLN), opened = 0, stale = 0;

	cr_assert_eq(OPEN(&events, "cpu-clock", "alignment-faults"), 0, "%s", said);
	cr_assert_eq(events.count, 2);
	cr_assert_eq(events.slots, 2);
	cr_assert_geq(events.cpus, online);
	cr_assert(call_events_of_each_cpu(&events.counters[0]));
	for (unsigned int i = 0; i < events.slots * events.cpus; i++)
		opened += is_open(events.descriptors[i]);
	cr_assert_eq(opened, 2 * online);
	/* They count already, each its own CPU. */
	for (unsigned int i = 0; i < events.slots * events.cpus; i++) {
		__u64 values[4] = { 0 };

		if (events.descriptors[i] < 0)
			continue;
		cr_assert_gt(read(events.descriptors[i], values, sizeof(values)), 0);
		cr_assert_gt(values[1], 0, "time enabled");
	}
	opened = (unsigned int)events.descriptors[0];
	call_events_release(&events);
	for (unsigned int i = 0; i < events.slots * events.cpus; i++)
		stale += events.descriptors[i] >= 0;
	cr_assert_eq(stale, 0);
	cr_assert(!is_open((int)opened));
	cr_assert_str_eq(events.counters[1].info.name, "alignment-faults", "the counters stay");
	cr_assert_str_eq(call_events_of(&events.counters[1]), "CPU");
	call_events_close(&events);
}

/* What the kernel counts of each thread anyway needs no event. */
Test(counter_perf_events_call_events, of_the_thread)
{
	struct call_events events;

	cr_assert_eq(OPEN(&events, "task-clock", "faults", "cs", "cpu-migrations"), 0, "%s", said);
	cr_assert_eq(events.slots, 4);
	cr_assert_eq(events.tasks[0], XPT_TASK_TIME);
	cr_assert_eq(events.tasks[1], XPT_TASK_FAULTS);
	cr_assert_eq(events.tasks[2], XPT_TASK_SWITCHES);
	cr_assert_eq(events.tasks[3], XPT_TASK_MIGRATIONS);
	for (unsigned int i = 0; i < events.slots * events.cpus; i++)
		cr_assert_eq(events.descriptors[i], -1);
	for (unsigned int i = 0; i < events.count; i++) {
		cr_assert_str_eq(call_events_of(&events.counters[i]), "thread");
		cr_assert(!call_events_of_each_cpu(&events.counters[i]));
	}
	call_events_close(&events);
}

Test(counter_perf_events_call_events, what_cannot_be_read_is_refused, .init = need_perf_events)
{
	struct call_events events;

	cr_assert_eq(OPEN(&events, "page-faults", "cs", "cpu-clock", "task-clock", "major-faults"), -E2BIG);
	cr_assert(strstr(said, "major-faults: 5 perf events"), "%s", said);
	call_events_close(&events);
	cr_assert_eq(OPEN(&events, "busy"), -EOPNOTSUPP);
	cr_assert(strstr(said, "busy: stands for several counters"), "%s", said);
	call_events_close(&events);
	cr_assert_eq(OPEN(&events, "no-such-pmu/x/"), -ENOENT);
	call_events_close(&events);
	cr_assert_eq(OPEN(&events, "page-faults"), 0);
	call_events_close(&events);
	call_events_close(&events); /* again */
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/perf_events.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/vec.h"
#include "counter/alias.h"
#include "counter/pmu.h"
#include "kern/perf.h"
#include "target/process/process.h"

/* ---- owners ---- */

struct owners {
	char *text;
	size_t used;
};

static bool has_perf_event(pid_t process)
{
	char path[64], target[64];
	struct dirent *entry;
	bool found = false;
	ssize_t length;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/fd", process);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = '\0';
		found = !strcmp(target, "anon_inode:[perf_event]");
	}
	if (folder)
		closedir(folder);
	return found;
}

static int add_owner(void *context, pid_t process)
{
	struct owners *owners = context;
	char name[16];

	if (!has_perf_event(process))
		return 0;
	process_thread_name(process, process, name);
	/* It may call itself anything. */
	for (char *c = name; *c; c++)
		if (!isprint((unsigned char)*c))
			*c = '?';
	if (*name)
		owners->used += (size_t)snprintf(owners->text + owners->used, FD_OWNERS_TEXT_MAX - owners->used,
						 "%s%s (%d)", owners->used ? ", " : "", name, process);
	return owners->used >= FD_OWNERS_TEXT_MAX - 1;
}

void fd_owners_of_perf_events(char text[FD_OWNERS_TEXT_MAX])
{
	struct owners owners = { .text = text };

	text[0] = '\0';
	process_each(add_owner, &owners);
}

/* ---- events ---- */

/* config3 came with Linux 6.3; headers may be older. */
#define CONFIG3_OFFSET 128
#define ATTRIBUTES_SIZE 136

union attributes {
	struct perf_event_attr plain;
	unsigned char bytes[ATTRIBUTES_SIZE];
};

/* What a read of a group gives, with PERF_FORMAT_GROUP and both times. */
struct group_values {
	__u64 count;
	__u64 enabled, running;
	__u64 values[];
};

struct perf_member {
	int descriptor;
	size_t part;
};

struct perf_group {
	__u32 key;		     /* type of the PMU; that of software for all that needs no hardware */
	int cpu;		     /* -1: on all */
	pid_t task;		     /* 0: of everybody */
	struct perf_member *members; /* the first one leads */
	size_t count;
	struct group_values *room; /* values of the members in the same order */
	__u64 enabled, changed;	   /* the time that it was enabled, and when that was read last to have changed */
};

/*
 * What needs no counter of the hardware can be in one group, and never takes turns. With those that do, it would: they have
 * groups of their own.
 */
static __u32 key_of(const struct counter_event *event)
{
	return event->type == PERF_TYPE_TRACEPOINT || !strcmp(event->pmu, "msr") ? PERF_TYPE_SOFTWARE : event->type;
}

static bool is_of_process(const struct perf_events *events, const struct counter_event *event)
{
	return events->pid && !event->of_device && (event->of_each_cpu || !events->mixed);
}

/* Where an event counts: on one CPU, or of one thread. */
struct scope {
	int cpu;
	pid_t task;
};

static int open_event(const struct perf_events *events, const struct counter_event *event, struct scope scope,
		      int leader)
{
	union attributes attributes = { .plain = {
						.type = event->type,
						.size = event->config[3] ? ATTRIBUTES_SIZE : PERF_ATTR_SIZE_VER7,
						.config = event->config[0],
						.config1 = event->config[1],
						.config2 = event->config[2],
						.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
							       PERF_FORMAT_TOTAL_TIME_RUNNING,
						.disabled = leader < 0,
						.inherit = scope.task != 0,
						.pinned = leader < 0 && events->pinned,
						.enable_on_exec = leader < 0 && scope.task && events->until_exec,
					} };
	int descriptor, error;

	memcpy(attributes.bytes + CONFIG3_OFFSET, &event->config[3], sizeof(event->config[3]));
	descriptor = (events->open ?: perf_open)(&attributes.plain, scope.task ?: -1, scope.cpu, leader);
	if (descriptor < 0 || !event->filter || !ioctl(descriptor, PERF_EVENT_IOC_SET_FILTER, event->filter))
		return descriptor;
	error = -errno;
	close(descriptor);
	return error;
}

int perf_event_exists(const struct counter_event *event)
{
	const struct perf_events nobody = { 0 };
	int descriptor = open_event(&nobody, event, (struct scope){ .cpu = event->cpus.items[0] }, -1);

	if (descriptor >= 0)
		close(descriptor);
	if (descriptor == -EACCES || descriptor == -EPERM)
		return -EACCES;
	return descriptor != -ENOENT && descriptor != -EINVAL && descriptor != -ENODEV;
}

double perf_mean(enum counting counting, const struct perf_sample *past, const struct perf_sample *now, double last)
{
	double grown = (double)(now->count - past->count);

	if (now->running <= past->running)
		return last;
	return counting == COUNTING_BY_READ ? grown : grown * 1e9 / (double)(now->running - past->running);
}

static int report_error(const struct perf_events *events, const struct counter *counter,
			const struct counter_event *event, int cpu, int error)
{
	const char *name = counter->info.name;
	char who[FD_OWNERS_TEXT_MAX];

	switch (error) {
	case -EACCES:
	case -EPERM:
		log_error(events->log, "%s: permission denied: requires root or CAP_PERFMON", name);
		return -EACCES;
	case -EBUSY:
		fd_owners_of_perf_events(who);
		log_error(events->log, "%s: busy%s%s", name, *who ? ", perf events are held by " : "", who);
		return error;
	case -ENODEV:
		log_error(events->log, "%s: %s does not count on CPU %d (offline?)", name, event->pmu, cpu);
		return error;
	case -ESRCH:
		return error;
	case -ENOENT:
		log_error(events->log, "%s: this machine cannot count it", name);
		return error;
	case -ENOSPC:
		log_error(events->log, "%s: there is no room in the hardware for it", name);
		return error;
	case -EINVAL:
	case -EOPNOTSUPP:
		if (events->pid && !events->mixed && !event->of_each_cpu) {
			log_error(events->log, "%s: %s counts a device, not what a single process does", name,
				  event->pmu);
			return -EOPNOTSUPP;
		}
		log_error(events->log, "%s: %s has no such event", name, event->pmu);
		return -EINVAL;
	default:
		log_error(events->log, "%s: %s", name, strerror(-error));
		return error;
	}
}

static struct perf_group *add_group(struct perf_events *events, __u32 key, struct scope scope)
{
	struct perf_group group = { .key = key, .cpu = scope.cpu, .task = scope.task };

	return vec_push(events->groups, events->group_count, group) ? NULL : &events->groups[events->group_count - 1];
}

static int add_member(struct perf_group *group, int descriptor, size_t part)
{
	void *room = realloc(group->room, sizeof(*group->room) + (group->count + 1) * sizeof(__u64));

	if (!room)
		return -ENOMEM;
	group->room = room;
	return vec_push(group->members, group->count, (struct perf_member){ descriptor, part });
}

/* Into the newest group of its kind, if it fits. */
static int open_part(struct perf_events *events, const struct counter_event *event, struct scope scope,
		     struct perf_group **group)
{
	__u32 key = key_of(event);
	int descriptor;

	*group = NULL;
	for (size_t i = events->group_count; i-- && !*group;)
		if (events->groups[i].key == key && events->groups[i].cpu == scope.cpu &&
		    events->groups[i].task == scope.task)
			*group = &events->groups[i];
	if (*group) {
		descriptor = open_event(events, event, scope, (*group)->members[0].descriptor);
		if (descriptor != -EINVAL && descriptor != -ENOSPC && descriptor != -EBUSY)
			return descriptor;
		*group = NULL;
	}
	descriptor = open_event(events, event, scope, -1);
	if (descriptor < 0)
		return descriptor;
	*group = add_group(events, key, scope);
	if (*group)
		return descriptor;
	close(descriptor);
	return -ENOMEM;
}

static int add_scope(struct perf_events *events, const struct counter *counter, size_t index,
		     const struct counter_event *event, struct scope scope)
{
	struct perf_group *group;
	int descriptor = open_part(events, event, scope, &group), error;

	if (descriptor < 0)
		return report_error(events, counter, event, scope.cpu, descriptor);
	error = vec_push(events->parts, events->part_count,
			 (struct perf_part){ .counter = index, .event = event, .counting = counter->counting });
	if (!error)
		error = add_member(group, descriptor, events->part_count - 1);
	if (error)
		close(descriptor);
	return error;
}

/* Each thread that there is; those that they start are counted with them. */
static int add_threads(struct perf_events *events, const struct counter *counter, size_t index,
		       const struct counter_event *event)
{
	struct scope scope = { .cpu = event->only_cpu };
	struct dirent *entry;
	int error = 0, added = 0;
	char path[64];
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%d/task", events->pid);
	folder = opendir(path);
	while (folder && !error && (entry = readdir(folder))) {
		scope.task = atoi(entry->d_name);
		if (!scope.task)
			continue;
		error = add_scope(events, counter, index, event, scope);
		/* The thread has ended. */
		if (error == -ESRCH)
			error = 0;
		else
			added += !error;
	}
	if (folder)
		closedir(folder);
	if (error || added)
		return error;
	log_error(events->log, "there is no process %d", events->pid);
	return -ESRCH;
}

int perf_events_add(struct perf_events *events, const struct counter *counter, size_t index)
{
	int error = 0;

	for (size_t i = 0; i < counter->event_count && !error; i++) {
		const struct counter_event *event = &counter->events[i];

		if (event->of_device && events->pid && !events->mixed)
			return report_error(events, counter, event, 0, -EOPNOTSUPP);
		if (is_of_process(events, event)) {
			error = add_threads(events, counter, index, event);
			continue;
		}
		for (size_t j = 0; j < event->cpus.count && !error; j++)
			error = add_scope(events, counter, index, event, (struct scope){ .cpu = event->cpus.items[j] });
	}
	return error;
}

int perf_event_open_alone(const struct log *log, const struct counter *counter, const struct counter_event *event,
			  int cpu)
{
	const struct perf_events events = { .pinned = true, .log = log };
	int descriptor = open_event(&events, event, (struct scope){ .cpu = cpu }, -1);

	if (descriptor < 0)
		return report_error(&events, counter, event, cpu, descriptor);
	ioctl(descriptor, PERF_EVENT_IOC_ENABLE, 0);
	return descriptor;
}

/* What begins with a new program does so by itself. */
static void control(struct perf_events *events, unsigned long request)
{
	for (size_t i = 0; i < events->group_count; i++)
		if (events->groups[i].count &&
		    !(request == PERF_EVENT_IOC_ENABLE && events->until_exec && events->groups[i].task))
			ioctl(events->groups[i].members[0].descriptor, request, PERF_IOC_FLAG_GROUP);
}

int perf_events_enable(struct perf_events *events)
{
	bool fits = true;

	control(events, PERF_EVENT_IOC_ENABLE);
	/* A group that must always be in the hardware and was not let in has ended, which a read detects. */
	if (events->pinned)
		perf_events_read(events);
	for (size_t i = 0; i < events->part_count && events->pinned; i++)
		fits &= !events->parts[i].now.gone;
	for (size_t i = 0; i < events->group_count; i++)
		events->groups[i].changed = clock_monotonic();
	events->counting = fits;
	if (fits)
		return 0;
	perf_events_disable(events);
	log_error(events->log, "the hardware cannot count all of them at once: take fewer, or let them take turns");
	return -ENOSPC;
}

void perf_events_disable(struct perf_events *events)
{
	perf_events_renew(events); /* what it shows cannot be seen later */
	events->counting = false;
	control(events, PERF_EVENT_IOC_DISABLE);
}

/* ---- CPUs that go offline: their events end, and do not come back with them ---- */

#define BEHIND 20000000ull /* ns: more than clocks can differ */

static bool is_online(int cpu)
{
	struct cpus online;
	bool found;

	if (cpus_online("/sys", &online))
		return false;
	found = cpus_have(&online, cpu);
	cpus_free(&online);
	return found;
}

/* Another CPU on which the device can be counted, which no part of its event is counted on; -1: none. */
static int other_cpu(const struct perf_events *events, const struct counter_event *event)
{
	struct cpus cpus;
	int cpu = -1;

	if (event->of_each_cpu || event->of_device ||
	    (pmu_read_mask("/sys", event->pmu, &cpus) && cpus_online("/sys", &cpus)))
		return -1;
	for (size_t i = 0; i < cpus.count && cpu < 0; i++) {
		cpu = cpus.items[i];
		for (size_t j = 0; j < events->group_count; j++)
			if (events->groups[j].cpu == cpu &&
			    events->parts[events->groups[j].members[0].part].event == event)
				cpu = -1;
	}
	cpus_free(&cpus);
	return cpu;
}

/* Opens all members on the CPU into descriptors; none after an error. */
static int open_members(const struct perf_events *events, const struct perf_group *group, int cpu, int *descriptors)
{
	int error = 0;
	size_t i;

	for (i = 0; i < group->count && !error; i++) {
		descriptors[i] = open_event(events, events->parts[group->members[i].part].event,
					    (struct scope){ .cpu = cpu }, i ? descriptors[0] : -1);
		error = descriptors[i] < 0 ? descriptors[i] : 0;
	}
	while (error && i-- > 1)
		close(descriptors[i - 1]);
	return error;
}

/* What it has counted stays; what is open counts on from there. */
static int group_renew(struct perf_events *events, struct perf_group *group)
{
	int descriptors[group->count], cpu = group->cpu;
	int error = open_members(events, group, cpu, descriptors);

	if (error) {
		cpu = other_cpu(events, events->parts[group->members[0].part].event);
		if (cpu < 0 || open_members(events, group, cpu, descriptors))
			return error;
	}
	group->cpu = cpu;
	for (size_t i = 0; i < group->count; i++) {
		struct perf_part *part = &events->parts[group->members[i].part];

		close(group->members[i].descriptor);
		group->members[i].descriptor = descriptors[i];
		part->before = part->now;
		if (part->counting == COUNTING_LEVEL)
			part->before.count = 0;
	}
	error = ioctl(descriptors[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP) ? -errno : 0;
	group->enabled = 0;
	group->changed = clock_monotonic();
	return error;
}

/*
 * Whether it counts no more, though it should: then its time falls behind. Or, of several, is a group no more: then less can be read than
 * before. Of a pinned one that was thrown out, and of a device that has gone, nothing can be read: that is no such case.
 */
static bool group_has_ended(const struct perf_events *events, struct perf_group *group, ssize_t length, __u64 time)
{
	const size_t size = sizeof(*group->room) + group->count * sizeof(__u64);
	__u64 grown, elapsed = time > group->changed ? time - group->changed : 0;

	if (group->task || !length)
		return false;
	if (length != (ssize_t)size)
		return true;
	grown = group->room->enabled - group->enabled;
	if (grown) {
		group->enabled = group->room->enabled;
		group->changed = clock_monotonic();
	}
	return events->counting && grown < elapsed / 10 * 9 && elapsed - grown >= BEHIND;
}

static void group_take(struct perf_events *events, const struct perf_group *group)
{
	for (size_t i = 0; i < group->count; i++) {
		struct perf_part *part = &events->parts[group->members[i].part];

		part->now.count = part->before.count + group->room->values[i];
		part->now.enabled = part->before.enabled + group->room->enabled;
		part->now.running = part->before.running + group->room->running;
	}
}

/* Some add their present value at each read: that is the caller's alone. */
static bool is_changed_by_read(const struct perf_events *events, const struct perf_group *group)
{
	for (size_t i = 0; i < group->count; i++)
		if (events->parts[group->members[i].part].counting == COUNTING_BY_READ)
			return true;
	return false;
}

#define LATE 1000000ull /* ns: of the clock before it, longer than a read takes */

/*
 * The clock is read before the values. If the thread did not run in between, they are of later than that: they are read
 * again.
 */
static ssize_t read_values(const struct perf_events *events, const struct perf_group *group, size_t size, __u64 *time)
{
	ssize_t length;
	int tries = is_changed_by_read(events, group) ? 1 : 3; /* a read of some changes what the next one returns */

	do {
		*time = clock_monotonic();
		length = read(group->members[0].descriptor, group->room, size);
	} while (--tries && clock_monotonic() - *time > LATE);
	return length;
}

static void read_group(struct perf_events *events, struct perf_group *group)
{
	const size_t size = sizeof(*group->room) + group->count * sizeof(__u64);
	__u64 time;
	const ssize_t length = read_values(events, group, size, &time);
	bool gone = length != (ssize_t)size, offline = group_has_ended(events, group, length, time);
	int error;

	if (!gone)
		group_take(events, group);
	if (offline) {
		error = events->counting ? group_renew(events, group) : -ENODEV;
		gone = error;
		offline = !error || error == -ENODEV || !is_online(group->cpu);
	}
	for (size_t i = 0; i < group->count; i++) {
		struct perf_part *part = &events->parts[group->members[i].part];

		part->now.time = time;
		part->now.gone = gone;
		part->offline |= offline;
	}
}

size_t perf_events_read(struct perf_events *events)
{
	size_t reads = 0;

	for (size_t i = 0; i < events->group_count; i++) {
		if (!events->groups[i].count)
			continue;
		read_group(events, &events->groups[i]);
		reads++;
	}
	return reads;
}

void perf_events_renew(struct perf_events *events)
{
	for (size_t i = 0; i < events->group_count && events->counting; i++)
		if (!events->groups[i].task && events->groups[i].count &&
		    !is_changed_by_read(events, &events->groups[i]))
			read_group(events, &events->groups[i]);
}

void perf_events_close(struct perf_events *events)
{
	for (size_t i = 0; i < events->group_count; i++) {
		struct perf_group *group = &events->groups[i];

		for (size_t j = group->count; j--;)
			close(group->members[j].descriptor);
		free(group->members);
		free(group->room);
	}
	free(events->groups);
	free(events->parts);
	events->groups = NULL;
	events->parts = NULL;
	events->group_count = events->part_count = 0;
}

bool call_events_of_each_cpu(const struct counter *counter)
{
	return !counter->events[0].task && (counter->events[0].of_each_cpu || counter->events[0].cpus.count > 1);
}

const char *call_events_of(const struct counter *counter)
{
	return counter->events[0].task ? "thread" : counter->events[0].of_each_cpu ? "CPU" : "device";
}

static int check(const struct log *log, const struct call_events *events, const struct counter *counter)
{
	const char *name = counter->info.name;

	if (!counter->event_count) {
		log_error(log, "%s: it is no perf event, and cannot be read around inferences", name);
		return -EOPNOTSUPP;
	}
	if (counter->counting != COUNTING_SUM && counter->counting != COUNTING_PER_SECOND) {
		log_error(log, "%s: it does not add up, so that it has no difference around an inference", name);
		return -EOPNOTSUPP;
	}
	if (events->slots + counter->event_count <= XPT_SLOT_MAX)
		return 0;
	log_error(log, "%s: %zu perf events in all, at most %d can be read around inferences", name,
		  events->slots + counter->event_count, XPT_SLOT_MAX);
	return -E2BIG;
}

/* The number of the package that a CPU is in; ~0: not known. */
static __u64 package_of(int cpu)
{
	__u64 package;

	return sysfs_read_number(&package, "/sys/devices/system/cpu/cpu%d/topology/physical_package_id", cpu) ? ~0ull :
														package;
}

/* The one of the event's CPUs that counts for this CPU, too: that of its package, else the first. */
static int counted_on(const struct counter_event *event, int cpu)
{
	__u64 package;

	if (event->of_each_cpu || cpus_have(&event->cpus, cpu))
		return cpu;
	package = package_of(cpu);
	for (size_t i = 0; i < event->cpus.count; i++)
		if (package_of(event->cpus.items[i]) == package)
			return event->cpus.items[i];
	return event->cpus.items[0];
}

static int open_slot(const struct log *log, const struct counter *counter, const struct counter_event *event,
		     const struct cpus *online, struct call_events *events)
{
	int *row = events->descriptors + (size_t)events->slots * events->cpus, descriptor;

	events->tasks[events->slots] = event->task;
	if (event->task) {
		events->slots++;
		return 0;
	}
	for (size_t i = 0; i < event->cpus.count; i++) {
		descriptor = perf_event_open_alone(log, counter, event, event->cpus.items[i]);
		if (descriptor < 0)
			return descriptor;
		row[event->cpus.items[i]] = descriptor;
	}
	/* Where the kernel lets a device be read on any CPU, it is; else the reading fails there. */
	for (size_t i = 0; i < online->count && event->cpus.count; i++)
		if (row[online->items[i]] < 0)
			row[online->items[i]] = row[counted_on(event, online->items[i])];
	events->slots++;
	return 0;
}

static int open_counter(const struct counter_place *place, const char *name, struct call_events *events)
{
	struct counter *counter = &events->counters[events->count];
	int error;

	if (alias_is(name)) {
		log_error(place->log,
			  "%s: stands for several counters: name one of them (see `xputrace list counters`)", name);
		return -EOPNOTSUPP;
	}
	error = counter_resolve(place, name, counter);
	if (error)
		return error;
	events->count++;
	error = check(place->log, events, counter);
	for (size_t i = 0; i < counter->event_count && !error; i++)
		error = open_slot(place->log, counter, &counter->events[i], &place->online, events);
	return error;
}

/* As many rows as there may be slots, all empty. */
static int allocate(size_t count, struct call_events *events)
{
	struct cpus possible;
	size_t room;
	int error = cpus_possible("/sys", &possible);

	if (error)
		return error;
	events->cpus = possible.count ? (unsigned int)possible.items[possible.count - 1] + 1 : 1;
	cpus_free(&possible);
	room = (size_t)XPT_SLOT_MAX * events->cpus;
	events->counters = calloc(count ? count : 1, sizeof(*events->counters));
	events->descriptors = malloc(room * sizeof(*events->descriptors));
	if (!events->counters || !events->descriptors)
		return -ENOMEM;
	memset(events->descriptors, -1, room * sizeof(*events->descriptors));
	return 0;
}

int call_events_open(const struct log *log, const char *tracefs, const char *const *names, size_t count,
		     struct call_events *events)
{
	struct counter_place place;
	int error = counter_place_open(log, XPT_COUNTERS_ALL, XPT_COUNTERS_ALL, 0, &place);

	*events = (struct call_events){ 0 };
	place.tracefs = tracefs;
	if (!error)
		error = allocate(count, events);
	for (size_t i = 0; i < count && !error; i++)
		error = open_counter(&place, names[i], events);
	counter_place_close(&place);
	return error;
}

void call_events_renew(const struct log *log, struct call_events *events, unsigned int cpu,
		       int descriptors[XPT_SLOT_MAX])
{
	unsigned int slot = 0;

	for (size_t c = 0; c < events->count; c++) {
		const struct counter *counter = &events->counters[c];

		for (size_t i = 0; i < counter->event_count && slot < events->slots; i++, slot++) {
			const struct counter_event *event = &counter->events[i];

			descriptors[slot] = -1;
			if (!event->task && (event->of_each_cpu || cpus_have(&event->cpus, (int)cpu)))
				descriptors[slot] = perf_event_open_alone(log, counter, event, (int)cpu);
		}
	}
}

void call_events_release(struct call_events *events)
{
	size_t count = events->descriptors ? (size_t)XPT_SLOT_MAX * events->cpus : 0;

	/* One may stand for several CPUs. */
	for (size_t i = 0; i < count; i++) {
		int descriptor = events->descriptors[i];

		if (descriptor < 0)
			continue;
		close(descriptor);
		for (size_t j = i; j < count; j++)
			if (events->descriptors[j] == descriptor)
				events->descriptors[j] = -1;
	}
}

void call_events_close(struct call_events *events)
{
	call_events_release(events);
	for (size_t i = 0; i < events->count; i++)
		counter_free(&events->counters[i]);
	free(events->counters);
	free(events->descriptors);
	*events = (struct call_events){ 0 };
}

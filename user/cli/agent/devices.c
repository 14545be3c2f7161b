/* SPDX-License-Identifier: BSD-2-Clause */
/* What each process, container and pod has of each device: by accounts of drivers where there are some, else by jobs. */
#include "cli/agent/agent.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/device.h>

#include "base/core/cgroup.h"
#include "base/core/clock.h"
#include "base/core/hashmap.h"
#include "base/core/series.h"
#include "base/core/vec.h"

enum value { TIME, QUEUE, JOBS, MEMORY, VALUES };

#define PROCESSES_MAX 8192
#define QUEUE_USES_MAX 16384

/* One device that processes have something of. */
struct shared_device {
	char *driver, *address; /* of jobs: as their events name it */
	struct text labels;
	struct series_table series;
	bool accounted; /* its driver keeps accounts of time: those of jobs are not used */
	double scaled;	/* s */
	/* Of the interval: */
	double sum;   /* s, of all parts */
	double total; /* s, of the device */
};

/* What a process has of a device in one interval. */
struct part {
	size_t device;
	pid_t pid;
	char process[16];
	double time, queue; /* s */
	double jobs;
	double memory; /* bytes; NaN: not known */
	bool accounts; /* time is from the driver's accounts, else of jobs */
};

/* How far a queue's use by a process has been taken. */
struct taken {
	struct keyed keyed; /* first; by queue and process */
	uint64_t jobs, queue_time, device_time;
};

/* Of which container a process is: it may have ended when its last use comes. */
struct person {
	struct keyed keyed; /* first; by number */
	unsigned long long started;
	char name[16];
	struct cgroup_ids ids;
};

struct agent_devices {
	struct xpt_device_usage *usage; /* NULL: no driver keeps accounts */
	struct agent_metrics_options options;
	struct shared_device **all;
	size_t count;
	struct keyed_table taken, people;
	struct part *parts; /* of the interval */
	size_t part_count;
	const struct agent_device *known; /* likewise */
	size_t known_count;
	uint64_t read; /* ns, CLOCK_MONOTONIC; 0: not yet */
	struct {
		unsigned int queue;
		size_t device;
		double busy;	 /* s, when it was read last */
		double grown;	 /* s, in the interval */
		uint64_t number; /* of the interval */
	} * queues;
	size_t queue_count;
	uint64_t number;
};

/* ---- devices ---- */

static void device_free(struct shared_device *device)
{
	free(device->driver);
	free(device->address);
	text_free(&device->labels);
	series_free(&device->series);
	free(device);
}

/* NULL: no memory. */
static struct shared_device *device_create(struct agent_devices *devices, const char *driver, const char *address,
					   const struct text *labels)
{
	struct shared_device *device = calloc(1, sizeof(*device));
	struct text other = {};

	if (!device)
		return NULL;
	device->series = (struct series_table){ .most = devices->options.max_series, .value_count = VALUES };
	device->driver = strdup(driver);
	device->address = strdup(address);
	if (labels) {
		text_bytes(&device->labels, labels->data, labels->length);
	} else {
		label_add(&device->labels, "hw_id", address);
		label_add(&device->labels, "hw_type", "gpu");
		label_add(&device->labels, "driver", driver);
	}
	text_bytes(&other, device->labels.data, device->labels.length);
	label_add(&other, "process", "other");
	if (!device->driver || !device->address || device->labels.error || other.error ||
	    series_init(&device->series, &other) || vec_push(devices->all, devices->count, device)) {
		device_free(device);
		device = NULL;
	}
	text_free(&other);
	return device;
}

/* Where i915 says the minor number of a node, the address behind it. */
static void resolve_minor(const char *device, char address[PATH_MAX])
{
	char link[64], path[PATH_MAX];

	snprintf(address, PATH_MAX, "%.100s", device);
	if (!*device || device[strspn(device, "0123456789")] || strlen(device) > 6)
		return;
	snprintf(link, sizeof(link), "/sys/class/drm/card%s/device", device);
	if (realpath(link, path))
		snprintf(address, PATH_MAX, "%s", strrchr(path, '/') + 1);
}

/* Of a device without name where there is only one of the driver's, that. -1: no memory, or too many. */
static ssize_t device_find(struct agent_devices *devices, const char *driver, const char *address)
{
	const struct agent_device *known = NULL;

	for (size_t i = 0; *address && i < devices->known_count; i++)
		if (!strcmp(devices->known[i].address, address))
			known = &devices->known[i];
	if (!*address && devices->known_count == 1)
		known = devices->known;
	if (known) {
		driver = "";
		address = known->address;
	}
	for (size_t i = 0; i < devices->count; i++)
		if (!strcmp(devices->all[i]->address, address) && !strcmp(devices->all[i]->driver, driver))
			return (ssize_t)i;
	if (devices->count >= AGENT_DEVICES_MAX ||
	    !device_create(devices, driver, address, known ? known->labels : NULL))
		return -1;
	return (ssize_t)devices->count - 1;
}

static const struct agent_device *known_of(const struct agent_devices *devices, const struct shared_device *device)
{
	for (size_t i = 0; !*device->driver && i < devices->known_count; i++)
		if (!strcmp(devices->known[i].address, device->address))
			return &devices->known[i];
	return NULL;
}

/* ---- processes ---- */

/* Name and start of a process that lives. */
static bool read_process(pid_t pid, char name[16], unsigned long long *started)
{
	char path[64], text[1024], *begin, *end;
	FILE *file;
	size_t length;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	length = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[length] = '\0';
	begin = strchr(text, '(');
	end = strrchr(text, ')');
	if (!begin || !end ||
	    sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		   started) != 1)
		return false;
	snprintf(name, 16, "%.*s", (int)(end - begin - 1), begin + 1);
	return true;
}

/* NULL: no memory. A process that was never seen alive has the name that is given. */
static const struct person *person_of(struct agent_devices *devices, pid_t pid, const char *name, bool *alive)
{
	struct keyed *found = keyed_find(&devices->people, (uint64_t)pid, 0);
	struct person *person = found ? container_of(found, struct person, keyed) : NULL;
	unsigned long long started = 0;
	char now[16] = "";

	*alive = pid > 0 && read_process(pid, now, &started);
	if (person) {
		keyed_renew(&devices->people, found);
	} else {
		person = calloc(1, sizeof(*person));
		if (!person || keyed_add(&devices->people, &person->keyed, 0, (uint64_t)pid, 0)) {
			free(person);
			return NULL;
		}
		snprintf(person->name, sizeof(person->name), "%.15s", name);
	}
	if (*alive && (person->started != started || strcmp(person->name, now))) {
		person->started = started;
		memcpy(person->name, now, sizeof(now));
		cgroup_read(&person->ids, pid);
	}
	return person;
}

static void add_value(struct series *series, enum value value, double amount)
{
	if (!isnan(amount))
		series_add(series, value, amount);
}

/* Not by what is rounded. */
static bool exceeds(const struct shared_device *device)
{
	return device->sum > device->total * (1 + 1e-6);
}

static void add_part(struct agent_devices *devices, const struct part *part, double now)
{
	struct shared_device *device = devices->all[part->device];
	double factor = exceeds(device) ? device->total / device->sum : 1;
	bool used = part->time > 0 || part->queue > 0 || part->jobs > 0 || !isnan(part->memory), alive;
	const struct person *person = person_of(devices, part->pid, part->process, &alive);
	struct series *series = NULL;
	struct text labels = {};

	if (!used && !alive)
		return;
	text_bytes(&labels, device->labels.data, device->labels.length);
	if (person) {
		label_add(&labels, "process", part->pid > 0 ? person->name : "unknown");
		label_add(&labels, "container", person->ids.container);
		label_add(&labels, "pod_uid", person->ids.pod);
		series = labels.error ? NULL : series_get(&device->series, &labels, now);
	}
	text_free(&labels);
	if (!series) /* no memory */
		series = device->series.overflow;
	series_add(series, TIME, part->time * factor);
	if (part->jobs > 0 || part->queue > 0) {
		series_add(series, QUEUE, part->queue);
		series_add(series, JOBS, part->jobs);
	}
	add_value(series, MEMORY, part->memory);
}

/* ---- an interval ---- */

/* That of the process on the device, made if there is none; NULL: no memory. */
static struct part *part_of(struct agent_devices *devices, size_t device, pid_t pid)
{
	for (size_t i = devices->part_count; i--;)
		if (devices->parts[i].device == device && devices->parts[i].pid == pid)
			return &devices->parts[i];
	if (vec_push(devices->parts, devices->part_count, (struct part){ .device = device, .pid = pid, .memory = NAN }))
		return NULL;
	return &devices->parts[devices->part_count - 1];
}

static int on_account(void *context, const struct xpt_device_use *use)
{
	struct agent_devices *devices = context;
	const struct agent_device *known = NULL;
	ssize_t device = -1;
	struct part *part;

	for (size_t i = 0; !known && i < devices->known_count; i++)
		if (devices->known[i].index == use->index)
			known = &devices->known[i];
	if (known)
		device = device_find(devices, "", known->address);
	part = device < 0 ? NULL : part_of(devices, (size_t)device, use->pid);
	if (!part)
		return 0;
	if (use->has_time) {
		devices->all[device]->accounted = true;
		part->accounts = true;
		part->time = (double)use->device_time / 1e9;
	}
	if (use->has_memory)
		part->memory = (double)use->memory;
	return 0;
}

/* The device of a queue, and how long the queue was busy in the interval. -1: no memory. */
static ssize_t note_queue(struct agent_devices *devices, const struct xpt_queue_use *use)
{
	double busy = (double)use->busy_time / 1e9;
	char address[PATH_MAX];
	ssize_t device;
	size_t i = 0;

	while (i < devices->queue_count && devices->queues[i].queue != use->queue)
		i++;
	if (i == devices->queue_count) {
		__typeof__(*devices->queues) queue = { .queue = use->queue };

		resolve_minor(use->device, address);
		device = device_find(devices, use->driver, address);
		queue.device = (size_t)device;
		if (device < 0 || vec_push(devices->queues, devices->queue_count, queue))
			return -1;
	}
	if (devices->queues[i].number != devices->number) {
		devices->queues[i].number = devices->number;
		devices->queues[i].grown = busy - devices->queues[i].busy;
		devices->queues[i].busy = busy;
	}
	return (ssize_t)devices->queues[i].device;
}

static uint64_t grown(uint64_t *before, uint64_t now)
{
	uint64_t result = now >= *before ? now - *before : now;

	*before = now;
	return result;
}

static int on_queue(void *context, const struct xpt_queue_use *use)
{
	struct agent_devices *devices = context;
	struct keyed *found = keyed_find(&devices->taken, use->queue, (uint64_t)use->pid);
	struct taken *taken = found ? container_of(found, struct taken, keyed) : calloc(1, sizeof(*taken));
	ssize_t device = taken ? note_queue(devices, use) : -1;
	struct part *part = device < 0 ? NULL : part_of(devices, (size_t)device, use->pid);
	double time;

	if (!found && taken &&
	    (!part || keyed_add(&devices->taken, &taken->keyed, 0, use->queue, (uint64_t)use->pid))) {
		free(taken);
		return 0;
	}
	if (!part)
		return 0;
	keyed_renew(&devices->taken, &taken->keyed);
	if (*use->process)
		snprintf(part->process, sizeof(part->process), "%.15s", use->process);
	part->queue += (double)grown(&taken->queue_time, use->queue_time) / 1e9;
	part->jobs += (double)grown(&taken->jobs, use->jobs);
	time = (double)grown(&taken->device_time, use->device_time) / 1e9;
	/* Of the engine that it used most, as the device's time is. */
	if (!devices->all[device]->accounted && time > part->time)
		part->time = time;
	return 0;
}

static void find_totals(struct agent_devices *devices, double elapsed)
{
	for (size_t i = 0; i < devices->count; i++) {
		struct shared_device *device = devices->all[i];
		const struct agent_device *known = known_of(devices, device);

		device->sum = 0;
		device->total = known ? known->busy : -1;
		if (device->total < 0 && device->accounted)
			device->total = elapsed;
		/* Without a counter of the device its busiest queue counts. */
		for (size_t each = 0; device->total < 0 && each < devices->queue_count; each++)
			if (devices->queues[each].device == i && devices->queues[each].number == devices->number)
				device->sum = fmax(device->sum, devices->queues[each].grown);
		if (device->total < 0)
			device->total = device->sum;
		device->sum = 0;
	}
	for (size_t i = 0; i < devices->part_count; i++)
		devices->all[devices->parts[i].device]->sum += devices->parts[i].time;
	for (size_t i = 0; i < devices->count; i++)
		if (exceeds(devices->all[i]))
			devices->all[i]->scaled += devices->all[i]->sum - devices->all[i]->total;
}

static void clear_memory(struct shared_device *device)
{
	for (size_t i = 0; i < device->series.count; i++)
		device->series.all[i]->values[MEMORY] = NAN;
	device->series.overflow->values[MEMORY] = NAN;
}

void agent_devices_update(struct agent_devices *devices, struct xpt_session *session, const struct agent_device *known,
			  size_t count, double now)
{
	uint64_t time = clock_monotonic();
	double elapsed = devices->read ? (double)(time - devices->read) / 1e9 : 0;

	devices->read = time;
	devices->known = known;
	devices->known_count = count;
	devices->part_count = 0;
	devices->number++;
	if (devices->usage)
		xpt_device_usage_read(devices->usage, on_account, devices);
	if (session)
		xpt_session_queues(session, on_queue, devices);
	find_totals(devices, elapsed);
	for (size_t i = 0; i < devices->count; i++) {
		devices->all[i]->series.clock = time;
		clear_memory(devices->all[i]);
	}
	for (size_t i = 0; i < devices->part_count; i++)
		add_part(devices, &devices->parts[i], now);
	for (size_t i = 0; i < devices->count; i++)
		series_remove_stale(&devices->all[i]->series, devices->options.stale);
}

/* ---- all of them as text ---- */

void agent_devices_render(const struct agent_devices *devices, struct exposition *to, double started)
{
	static const struct {
		struct metric metric;
		enum value value;
	} families[] = {
		{ { "xputrace_process_device_seconds", "seconds",
		    "Time that the process had the device, of the engine it used most, by accounts of the driver or its jobs; "
		    "scaled down where all together exceed the busy time of the device in an interval.",
		    METRIC_COUNTER },
		  TIME },
		{ { "xputrace_process_device_queue_seconds", "seconds",
		    "Time that jobs of the process waited for the device, sum over all jobs.", METRIC_COUNTER },
		  QUEUE },
		{ { "xputrace_process_device_jobs", NULL, "Jobs of the process that have ended on the device.",
		    METRIC_COUNTER },
		  JOBS },
		{ { "xputrace_process_device_memory_bytes", "bytes", "Memory of the device that the process has.",
		    METRIC_GAUGE },
		  MEMORY },
	};
	static const struct metric scaled = {
		"xputrace_process_device_scaled_seconds", "seconds",
		"Time by which xputrace_process_device_seconds was scaled down, as the parts exceeded the device's.",
		METRIC_COUNTER
	};

	for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++) {
		exposition_family(to, &families[i].metric);
		for (size_t each = 0; each < devices->count; each++) {
			const struct series_table *table = &devices->all[each]->series;

			for (size_t at = 0; at <= table->count; at++) {
				const struct series *series = at < table->count ? table->all[at] : table->overflow;
				double value = series->values[families[i].value];

				if (!isnan(value))
					exposition_value(to, &series->labels, value, series->created ?: started);
			}
		}
	}
	exposition_family(to, &scaled);
	for (size_t each = 0; each < devices->count; each++)
		exposition_value(to, &devices->all[each]->labels, devices->all[each]->scaled, started);
}

/* ---- begin and end ---- */

int agent_devices_create(const struct agent_metrics_options *options, struct agent_devices **result)
{
	struct agent_devices *devices = calloc(1, sizeof(*devices));

	if (!devices)
		return -ENOMEM;
	devices->options = *options;
	keyed_init(&devices->taken, QUEUE_USES_MAX, NULL, NULL);
	keyed_init(&devices->people, PROCESSES_MAX, NULL, NULL);
	if (xpt_device_usage_create(&devices->usage))
		devices->usage = NULL;
	*result = devices;
	return 0;
}

void agent_devices_free(struct agent_devices *devices)
{
	if (!devices)
		return;
	xpt_device_usage_destroy(devices->usage);
	for (size_t i = 0; i < devices->count; i++)
		device_free(devices->all[i]);
	free(devices->all);
	free(devices->parts);
	free(devices->queues);
	keyed_free(&devices->taken);
	keyed_free(&devices->people);
	free(devices);
}

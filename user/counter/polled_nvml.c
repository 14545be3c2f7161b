/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * NVIDIA's driver has neither a PMU nor files in sysfs: its management library (NVML) is loaded when there is one. Names,
 * types and numbers are those of NVIDIA's NVML API reference; they have been the same since the functions came.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "counter/counter.h"
#include "counter/usage.h"

/* nvmlReturn_t */
enum nvml_result {
	NVML_OK = 0,
	NVML_NO_PERMISSION = 4,
	NVML_NOT_FOUND = 6,
	NVML_INSUFFICIENT_SIZE = 7,
	NVML_GPU_LOST = 15,
};

#define NVML_SM_CLOCK 1 /* in nvmlClockType_t */

typedef void *nvml_device; /* owned by the library */

struct nvml_utilization {
	unsigned int gpu, memory; /* % */
};

struct nvml_memory {
	unsigned long long total, free, used; /* bytes */
};

/* Of the second version, since driver 510: used lacks what is reserved, as in the vendor's own tool. */
struct nvml_memory_2 {
	unsigned int version;
	unsigned long long total, reserved, free, used; /* bytes */
};

#define NVML_MEMORY_2 (sizeof(struct nvml_memory_2) | 2u << 24)

struct nvml {
	void *handle;
	int (*initialize)(void);
	int (*shut_down)(void);
	int (*count)(unsigned int *count);
	int (*by_index)(unsigned int index, nvml_device *device);
	int (*by_address)(const char *address, nvml_device *device);
};

struct nvml_counter {
	const char *function;
	int (*read)(void *function, nvml_device device, __u64 *raw);
	struct polled_info info;
	const struct nvml_counter *older; /* in its place where the library does not have the function; NULL: none is */
};

struct opened {
	struct polled polled;
	struct nvml nvml;
	const struct nvml_counter *counter;
	void *function;
	nvml_device *devices;
	size_t device_count;
	bool highest;
};

static const char *library_name = "libnvidia-ml.so.1";

void nvml_use(const char *library)
{
	library_name = library;
}

/* ---- functions of the library ---- */

static int read_energy(void *function, nvml_device device, __u64 *raw)
{
	unsigned long long energy = 0;
	int result = ((int (*)(nvml_device, unsigned long long *))function)(device, &energy);

	*raw = energy;
	return result;
}

static int read_number(void *function, nvml_device device, __u64 *raw)
{
	unsigned int number = 0;
	int result = ((int (*)(nvml_device, unsigned int *))function)(device, &number);

	*raw = number;
	return result;
}

static int read_utilization(void *function, nvml_device device, struct nvml_utilization *utilization)
{
	*utilization = (struct nvml_utilization){ 0 };
	return ((int (*)(nvml_device, struct nvml_utilization *))function)(device, utilization);
}

static int read_busy(void *function, nvml_device device, __u64 *raw)
{
	struct nvml_utilization utilization;
	int result = read_utilization(function, device, &utilization);

	*raw = utilization.gpu;
	return result;
}

static int read_memory_busy(void *function, nvml_device device, __u64 *raw)
{
	struct nvml_utilization utilization;
	int result = read_utilization(function, device, &utilization);

	*raw = utilization.memory;
	return result;
}

static int read_memory_used(void *function, nvml_device device, __u64 *raw)
{
	struct nvml_memory memory = { 0 };
	int result = ((int (*)(nvml_device, struct nvml_memory *))function)(device, &memory);

	*raw = memory.used;
	return result;
}

static int read_memory_used_2(void *function, nvml_device device, __u64 *raw)
{
	struct nvml_memory_2 memory = { .version = NVML_MEMORY_2 };
	int result = ((int (*)(nvml_device, struct nvml_memory_2 *))function)(device, &memory);

	*raw = memory.used;
	return result;
}

static int read_frequency(void *function, nvml_device device, __u64 *raw)
{
	unsigned int frequency = 0;
	int result = ((int (*)(nvml_device, int, unsigned int *))function)(device, NVML_SM_CLOCK, &frequency);

	*raw = frequency;
	return result;
}

static const struct nvml_counter memory_used = {
	"nvmlDeviceGetMemoryInfo",
	read_memory_used,
	{ "nvml", "memory-used", "B", "the GPU's memory in use, with what the driver reserves", 1, true },
	NULL,
};

static const struct nvml_counter counters[] = {
	{ "nvmlDeviceGetTotalEnergyConsumption",
	  read_energy,
	  { "nvml", "energy", "J", "energy that the GPU took", 1e-3, false },
	  NULL },
	{ "nvmlDeviceGetPowerUsage",
	  read_number,
	  { "nvml", "power", "W", "power that the GPU and its board take", 1e-3, true },
	  NULL },
	{ "nvmlDeviceGetUtilizationRates",
	  read_busy,
	  { "nvml", "busy", "%", "time in which a kernel ran, over the library's last sample of up to 1 s", 1, true },
	  NULL },
	{ "nvmlDeviceGetUtilizationRates",
	  read_memory_busy,
	  { "nvml", "memory-busy", "%", "time in which memory was read or written, over the same sample", 1, true },
	  NULL },
	{ "nvmlDeviceGetMemoryInfo_v2",
	  read_memory_used_2,
	  { "nvml", "memory-used", "B", "the GPU's memory in use, without what the driver reserves", 1, true },
	  &memory_used },
	{ "nvmlDeviceGetClockInfo",
	  read_frequency,
	  { "nvml", "frequency", "MHz", "frequency of the streaming multiprocessors", 1, true },
	  NULL },
};
#define COUNTER_COUNT (sizeof(counters) / sizeof(counters[0]))

static int to_error(int result)
{
	switch (result) {
	case NVML_OK:
		return 0;
	case NVML_NO_PERMISSION:
		return -EACCES;
	case NVML_NOT_FOUND:
	case NVML_GPU_LOST:
		return -ENODEV;
	default:
		return -EIO;
	}
}

/* ---- library and devices ---- */

/* -ENOENT: there is none that works; -EACCES. */
static int nvml_load(struct nvml *nvml)
{
	int result;

	nvml->handle = dlopen(library_name, RTLD_NOW | RTLD_LOCAL);
	if (!nvml->handle)
		return -ENOENT;
	*(void **)&nvml->initialize = dlsym(nvml->handle, "nvmlInit_v2");
	*(void **)&nvml->shut_down = dlsym(nvml->handle, "nvmlShutdown");
	*(void **)&nvml->count = dlsym(nvml->handle, "nvmlDeviceGetCount_v2");
	*(void **)&nvml->by_index = dlsym(nvml->handle, "nvmlDeviceGetHandleByIndex_v2");
	*(void **)&nvml->by_address = dlsym(nvml->handle, "nvmlDeviceGetHandleByPciBusId_v2");
	if (nvml->initialize && nvml->shut_down && nvml->count && nvml->by_index && nvml->by_address) {
		result = nvml->initialize();
		if (result == NVML_OK)
			return 0;
	} else {
		result = NVML_NOT_FOUND;
	}
	dlclose(nvml->handle);
	return result == NVML_NO_PERMISSION ? -EACCES : -ENOENT;
}

static void nvml_unload(struct nvml *nvml)
{
	nvml->shut_down();
	dlclose(nvml->handle);
}

/* The library need not be asked about another vendor's device. */
static bool is_possible(const struct counter_place *place)
{
	return !place->node || strcmp(place->node->driver, "nvidia") == 0;
}

/* All that the library has: a GPU may have no node of DRM. A device that it does not give is none of its. */
static int find_devices(const struct nvml *nvml, const struct counter_place *place, nvml_device **devices,
			size_t *count)
{
	unsigned int all = 1;

	*count = 0;
	if (!place->node && nvml->count(&all))
		all = 0;
	*devices = calloc(all ? all : 1, sizeof(**devices));
	if (!*devices)
		return -ENOMEM;
	for (unsigned int i = 0; i < all; i++) {
		nvml_device *device = &(*devices)[*count];

		if ((place->node ? nvml->by_address(place->node->address, device) : nvml->by_index(i, device)) ==
		    NVML_OK)
			(*count)++;
	}
	return 0;
}

/* Leaves the devices that the function supports. The last error, when none does. */
static int keep_supported(const struct nvml_counter *counter, void *function, nvml_device *devices, size_t *count)
{
	size_t kept = 0;
	int result = NVML_OK;
	__u64 raw;

	for (size_t i = 0; i < *count; i++) {
		int got = counter->read(function, devices[i], &raw);

		if (got == NVML_OK)
			devices[kept++] = devices[i];
		else
			result = got;
	}
	*count = kept;
	return kept ? NVML_OK : result;
}

/* The counter, or the older one in its place. */
static const struct nvml_counter *variant(const struct nvml *nvml, const struct nvml_counter *counter)
{
	return counter->older && !dlsym(nvml->handle, counter->function) ? counter->older : counter;
}

static bool is_supported(const struct nvml *nvml, const struct nvml_counter *counter, const nvml_device *devices,
			 size_t count)
{
	void *function = dlsym(nvml->handle, counter->function);
	__u64 raw;

	for (size_t i = 0; function && i < count; i++)
		if (counter->read(function, devices[i], &raw) == NVML_OK)
			return true;
	return false;
}

/* ---- the source ---- */

static int list(const struct counter_place *place, polled_visit visit, void *context)
{
	nvml_device *devices;
	struct nvml nvml;
	size_t count;
	int result;

	if (!is_possible(place) || nvml_load(&nvml))
		return 0;
	result = find_devices(&nvml, place, &devices, &count);
	if (!result) {
		for (size_t i = 0; !result && i < COUNTER_COUNT; i++) {
			const struct nvml_counter *counter = variant(&nvml, &counters[i]);

			if (is_supported(&nvml, counter, devices, count))
				result = visit(context, &counter->info);
		}
		free(devices);
	}
	nvml_unload(&nvml);
	return result;
}

static const struct nvml_counter *find_counter(const char *source, const char *event)
{
	for (size_t i = 0; i < COUNTER_COUNT; i++)
		if (polled_is(&counters[i].info, source, event))
			return &counters[i];
	return NULL;
}

/* What a function does not support is not there; all else is logged. */
static int find_function(struct opened *opened, const struct counter_place *place)
{
	int error, result;

	opened->counter = variant(&opened->nvml, opened->counter);
	opened->function = dlsym(opened->nvml.handle, opened->counter->function);
	if (!opened->function)
		return -ENOENT;
	error = find_devices(&opened->nvml, place, &opened->devices, &opened->device_count);
	if (error)
		return error;
	result = keep_supported(opened->counter, opened->function, opened->devices, &opened->device_count);
	if (opened->device_count)
		return 0;
	error = to_error(result);
	if (error == -EACCES)
		log_error(place->log, "nvml/%s/: may not be read: try sudo", opened->counter->info.event);
	else if (error == -ENODEV)
		log_error(place->log, "nvml/%s/: the GPU is gone", opened->counter->info.event);
	else
		error = -ENOENT;
	return error;
}

static int open_counter(const struct counter_place *place, const char *source, const char *event,
			struct polled_info *info, struct polled **result)
{
	const struct nvml_counter *counter = find_counter(source, event);
	struct opened *opened;
	int error;

	if (!counter || !is_possible(place))
		return -ENOENT;
	opened = calloc(1, sizeof(*opened));
	if (!opened)
		return -ENOMEM;
	opened->counter = counter;
	opened->highest = place->highest;
	error = nvml_load(&opened->nvml);
	if (error == -EACCES)
		log_error(place->log, "NVIDIA's management library may not be used: try sudo");
	if (!error) {
		error = find_function(opened, place);
		if (error)
			nvml_unload(&opened->nvml);
	}
	if (error) {
		free(opened->devices);
		free(opened);
		return error;
	}
	*info = opened->counter->info;
	*result = &opened->polled;
	return 0;
}

static int read_counter(struct polled *polled, __u64 *raw)
{
	const struct opened *opened = (struct opened *)polled;
	int error = 0;

	*raw = 0;
	for (size_t i = 0; !error && i < opened->device_count; i++) {
		__u64 value = 0;

		error = to_error(opened->counter->read(opened->function, opened->devices[i], &value));
		if (!opened->highest)
			*raw += value;
		else if (value > *raw)
			*raw = value;
	}
	return error == -EACCES ? -EIO : error;
}

static void close_counter(struct polled *polled)
{
	struct opened *opened = (struct opened *)polled;

	nvml_unload(&opened->nvml);
	free(opened->devices);
	free(opened);
}

/* ---- processes ---- */

struct nvml_sample {
	unsigned int pid;
	unsigned long long time;		   /* us since 1970 */
	unsigned int sm, memory, encoder, decoder; /* % */
};

struct nvml_process {
	unsigned int pid;
	unsigned long long memory; /* bytes; ~0: not known */
	unsigned int instance, compute_instance;
};

struct nvml_usage {
	struct nvml nvml;
	int (*samples)(nvml_device device, struct nvml_sample *samples, unsigned int *count, unsigned long long since);
	int (*processes[2])(nvml_device device, unsigned int *count, struct nvml_process *processes);
	struct {
		nvml_device device;
		int index;
		unsigned long long since; /* us, of the newest sample */
	} * devices;
	size_t count;
};

void nvml_usage_close(struct nvml_usage *usage)
{
	if (!usage)
		return;
	nvml_unload(&usage->nvml);
	free(usage->devices);
	free(usage);
}

int nvml_usage_open(const struct counter_place *place, struct nvml_usage **result)
{
	struct nvml_usage *usage;
	const struct node *node;
	int error = 0;

	*result = NULL;
	for (size_t i = 0; (node = polled_node(place, i)) && strcmp(node->driver, "nvidia"); i++)
		;
	if (!node)
		return -ENODEV;
	usage = calloc(1, sizeof(*usage));
	if (!usage)
		return -ENOMEM;
	if (nvml_load(&usage->nvml)) {
		free(usage);
		return -ENODEV;
	}
	*(void **)&usage->samples = dlsym(usage->nvml.handle, "nvmlDeviceGetProcessUtilization");
	*(void **)&usage->processes[0] = dlsym(usage->nvml.handle, "nvmlDeviceGetComputeRunningProcesses_v3");
	*(void **)&usage->processes[1] = dlsym(usage->nvml.handle, "nvmlDeviceGetGraphicsRunningProcesses_v3");
	for (size_t i = 0; !error && (node = polled_node(place, i)); i++) {
		__typeof__(*usage->devices) device = { .index = (int)i };

		if (!strcmp(node->driver, "nvidia") && usage->nvml.by_address(node->address, &device.device) == NVML_OK)
			error = vec_push(usage->devices, usage->count, device);
	}
	if (!error && !usage->count)
		error = -ENODEV;
	if (error) {
		nvml_usage_close(usage);
		return error;
	}
	*result = usage;
	return 0;
}

/* What functions have that fill in an array; it grows meanwhile. NULL: none, or no memory. */
static void *read_list(size_t size, unsigned int *count,
		       int (*read)(const void *context, void *items, unsigned int *count), const void *context)
{
	void *items = NULL;
	int result;

	*count = 0;
	result = read(context, NULL, count);
	for (int tries = 0; result == NVML_INSUFFICIENT_SIZE && *count && tries < 4; tries++) {
		free(items);
		*count += 8;
		items = calloc(*count, size);
		if (!items)
			return NULL;
		result = read(context, items, count);
	}
	if (result == NVML_OK && items)
		return items;
	free(items);
	*count = 0;
	return NULL;
}

struct list_request {
	const struct nvml_usage *usage;
	size_t device, kind;
};

static int read_samples(const void *context, void *items, unsigned int *count)
{
	const struct list_request *request = context;

	return request->usage->samples(request->usage->devices[request->device].device, items, count,
				       request->usage->devices[request->device].since);
}

static int read_processes(const void *context, void *items, unsigned int *count)
{
	const struct list_request *request = context;

	return request->usage->processes[request->kind](request->usage->devices[request->device].device, count, items);
}

/* Several samples of a process are of times that follow each other: their mean counts. */
static int add_samples(struct nvml_usage *usage, size_t device, __u64 elapsed, struct usage_list *list)
{
	const struct list_request request = { usage, device, 0 };
	unsigned int count;
	struct nvml_sample *samples = read_list(sizeof(*samples), &count, read_samples, &request);
	unsigned long long newest = usage->devices[device].since;
	int error = 0;

	for (unsigned int i = 0; !error && i < count; i++) {
		unsigned int same = 0;

		for (unsigned int each = 0; each < count; each++)
			same += samples[each].pid == samples[i].pid;
		if (samples[i].time > newest)
			newest = samples[i].time;
		if (samples[i].sm <= 100)
			error = usage_add(list, (struct xpt_device_use){ .index = usage->devices[device].index,
									 .pid = (pid_t)samples[i].pid,
									 .source = "nvml",
									 .has_time = 1,
									 .device_time = elapsed * samples[i].sm / 100 /
											same });
	}
	usage->devices[device].since = newest;
	free(samples);
	return error;
}

static int add_processes(const struct nvml_usage *usage, size_t device, size_t kind, struct usage_list *list)
{
	const struct list_request request = { usage, device, kind };
	unsigned int count;
	struct nvml_process *processes = read_list(sizeof(*processes), &count, read_processes, &request);
	int error = 0;

	for (unsigned int i = 0; !error && i < count; i++)
		if (processes[i].memory != ~0ull)
			error = usage_add(list, (struct xpt_device_use){ .index = usage->devices[device].index,
									 .pid = (pid_t)processes[i].pid,
									 .source = "nvml",
									 .has_memory = 1,
									 .memory = processes[i].memory });
	free(processes);
	return error;
}

int nvml_usage_read(struct nvml_usage *usage, __u64 elapsed, struct usage_list *list)
{
	int error = 0;

	for (size_t i = 0; !error && i < usage->count; i++) {
		if (usage->samples)
			error = add_samples(usage, i, elapsed, list);
		for (size_t kind = 0; !error && kind < 2; kind++)
			if (usage->processes[kind])
				error = add_processes(usage, i, kind, list);
	}
	return error;
}

const struct polled_source polled_nvml = { list, open_counter, read_counter, close_counter };

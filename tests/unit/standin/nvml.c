/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stands in for NVIDIA's management library: three GPUs, the functions by their names and signatures in NVIDIA's API
 * reference. What they answer is set by the test through nvml_standin, found by dlsym().
 */
#include <stdio.h>
#include <string.h>

#include "tests/unit/standin/nvml.h"

#define EXPORTED __attribute__((visibility("default")))

typedef struct nvmlDevice_st {
	const char *address;
	struct standin_gpu *gpu;
} * nvmlDevice_t;
typedef int nvmlReturn_t;
typedef struct {
	unsigned int gpu;
	unsigned int memory;
} nvmlUtilization_t;
typedef struct {
	unsigned long long total;
	unsigned long long free;
	unsigned long long used;
} nvmlMemory_t;
typedef enum { NVML_CLOCK_GRAPHICS, NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_CLOCK_VIDEO } nvmlClockType_t;

EXPORTED struct standin_nvml nvml_standin;

static struct nvmlDevice_st devices[STANDIN_GPUS] = {
	{ "0000:17:00.0", &nvml_standin.gpus[0] },
	{ "0000:65:00.0", &nvml_standin.gpus[1] },
	{ "0000:ca:00.0", &nvml_standin.gpus[2] },
};

/* What every function of a device answers first. */
static nvmlReturn_t check(nvmlDevice_t device, enum standin_function function)
{
	if (nvml_standin.initialized <= 0)
		return 1;
	if (device < devices || device >= devices + STANDIN_GPUS)
		return 2;
	device->gpu->calls[function]++;
	return device->gpu->results[function];
}

EXPORTED nvmlReturn_t nvmlInit_v2(void)
{
	if (!nvml_standin.init_result)
		nvml_standin.initialized++;
	return nvml_standin.init_result;
}

EXPORTED nvmlReturn_t nvmlShutdown(void)
{
	if (nvml_standin.initialized <= 0)
		return 1;
	nvml_standin.initialized--;
	return 0;
}

EXPORTED nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count)
{
	if (nvml_standin.initialized <= 0)
		return 1;
	*count = STANDIN_GPUS;
	return 0;
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device)
{
	if (index >= STANDIN_GPUS)
		return 2;
	if (nvml_standin.gpus[index].handle_result)
		return nvml_standin.gpus[index].handle_result;
	*device = &devices[index];
	return 0;
}

EXPORTED nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *address, nvmlDevice_t *device)
{
	for (unsigned int i = 0; i < STANDIN_GPUS; i++)
		if (strcmp(devices[i].address, address) == 0)
			return nvmlDeviceGetHandleByIndex_v2(i, device);
	return 6;
}

EXPORTED nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *energy)
{
	nvmlReturn_t result = check(device, STANDIN_ENERGY);

	if (!result)
		*energy = device->gpu->energy;
	return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *power)
{
	nvmlReturn_t result = check(device, STANDIN_POWER);

	if (!result)
		*power = device->gpu->power;
	return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
	nvmlReturn_t result = check(device, STANDIN_UTILIZATION);

	if (!result)
		*utilization = (nvmlUtilization_t){ device->gpu->busy, device->gpu->memory_busy };
	return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t result = check(device, STANDIN_MEMORY);

	if (!result)
		*memory = (nvmlMemory_t){ 1ull << 40, (1ull << 40) - STANDIN_RESERVED - device->gpu->memory_used,
					  STANDIN_RESERVED + device->gpu->memory_used };
	return result;
}

typedef struct {
	unsigned int pid;
	unsigned long long timeStamp;
	unsigned int smUtil;
	unsigned int memUtil;
	unsigned int encUtil;
	unsigned int decUtil;
} nvmlProcessUtilizationSample_t;

EXPORTED nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device, nvmlProcessUtilizationSample_t *utilization,
						      unsigned int *processSamplesCount,
						      unsigned long long lastSeenTimeStamp)
{
	nvmlReturn_t result = check(device, STANDIN_SAMPLES);
	unsigned int count = 0;

	for (int i = 0; !result && i < STANDIN_CLIENTS; i++) {
		const struct standin_client *client = &device->gpu->clients[i];

		if (!client->pid || !client->sm || client->time <= lastSeenTimeStamp)
			continue;
		if (count < *processSamplesCount)
			utilization[count] = (nvmlProcessUtilizationSample_t){ client->pid, client->time,
									       client->sm,  0,
									       0,	    0 };
		count++;
	}
	if (!result && count > *processSamplesCount)
		result = 7;
	else if (!result && !count)
		result = 6;
	*processSamplesCount = count;
	return result;
}

typedef struct {
	unsigned int pid;
	unsigned long long usedGpuMemory;
	unsigned int gpuInstanceId;
	unsigned int computeInstanceId;
} nvmlProcessInfo_t;

EXPORTED nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *infoCount,
							      nvmlProcessInfo_t *infos)
{
	nvmlReturn_t result = check(device, STANDIN_PROCESSES);
	unsigned int count = 0;

	for (int i = 0; !result && i < STANDIN_CLIENTS; i++) {
		const struct standin_client *client = &device->gpu->clients[i];

		if (!client->pid || !client->memory)
			continue;
		if (count < *infoCount)
			infos[count] = (nvmlProcessInfo_t){ client->pid, client->memory, 0, 0 };
		count++;
	}
	if (!result && count > *infoCount)
		result = 7;
	*infoCount = count;
	return result;
}

typedef struct {
	unsigned int version;
	unsigned long long total;
	unsigned long long reserved;
	unsigned long long free;
	unsigned long long used;
} nvmlMemory_v2_t;

/* An older library has neither. */
#ifndef STANDIN_WITHOUT_CLOCK
EXPORTED nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t result = check(device, STANDIN_MEMORY);

	if (memory->version != (sizeof(*memory) | 2u << 24))
		return 25; /* NVML_ERROR_ARGUMENT_VERSION_MISMATCH */
	if (!result)
		*memory = (nvmlMemory_v2_t){ memory->version, 1ull << 40, STANDIN_RESERVED,
					     (1ull << 40) - STANDIN_RESERVED - device->gpu->memory_used,
					     device->gpu->memory_used };
	return result;
}

EXPORTED nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned int *clock)
{
	nvmlReturn_t result = check(device, STANDIN_CLOCK);

	if (!result)
		*clock = type == NVML_CLOCK_SM ? device->gpu->frequency : 1;
	return result;
}
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What the stand-in for NVIDIA's management library answers, and what it was asked. */
#ifndef XPT_TEST_STANDIN_NVML_H
#define XPT_TEST_STANDIN_NVML_H

#define STANDIN_RESERVED 512 /* bytes of each GPU, by the driver */
#define STANDIN_GPUS 3	     /* at 0000:17:00.0, 0000:65:00.0, 0000:ca:00.0 */

enum standin_function {
	STANDIN_ENERGY,
	STANDIN_POWER,
	STANDIN_UTILIZATION,
	STANDIN_MEMORY,
	STANDIN_CLOCK,
	STANDIN_SAMPLES,
	STANDIN_PROCESSES,
	STANDIN_FUNCTIONS,
};

#define STANDIN_CLIENTS 4

/* A process on a GPU; pid 0: none. */
struct standin_client {
	unsigned int pid, sm; /* %; 0: there is no sample of it */
	unsigned long long time, memory;
};

struct standin_gpu {
	struct standin_client clients[STANDIN_CLIENTS];
	unsigned long long energy;	/* mJ */
	unsigned int power;		/* mW */
	unsigned int busy, memory_busy; /* % */
	unsigned long long memory_used; /* bytes */
	unsigned int frequency;		/* MHz, of the SMs */
	int handle_result;		/* nvmlReturn_t, as those of the functions */
	int results[STANDIN_FUNCTIONS];
	int calls[STANDIN_FUNCTIONS];
};

struct standin_nvml {
	int init_result;
	int initialized; /* how often more than it was shut down */
	struct standin_gpu gpus[STANDIN_GPUS];
};

#endif

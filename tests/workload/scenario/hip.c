/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * HIP: kernels of a module on even programs, kernels of the fat binary on odd ones; one stream a thread. The runtime
 * calls the HSA runtime for all of it.
 */
#include "workload.h"

#include <semaphore.h>

#define THREADS_MAX 64
#define BUFFER_BYTES 8192
#define HOST_TO_DEVICE 1

struct dim3 {
	uint32_t x, y, z;
};

#define FUNCTIONS(X)                                                                                                \
	X(hipInit, int, unsigned int)                                                                               \
	X(hipSetDevice, int, int)                                                                                   \
	X(hipMalloc, int, void **, size_t)                                                                          \
	X(hipFree, int, void *)                                                                                     \
	X(hipMemcpy, int, void *, const void *, size_t, int)                                                        \
	X(hipMemcpyAsync, int, void *, const void *, size_t, int, void *)                                           \
	X(hipModuleLoad, int, void **, const char *)                                                                \
	X(hipModuleUnload, int, void *)                                                                             \
	X(hipModuleGetFunction, int, void **, void *, const char *)                                                 \
	X(hipModuleLaunchKernel, int, void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, \
	  void *, void **, void **)                                                                                 \
	X(hipLaunchKernel, int, const void *, struct dim3, struct dim3, void **, size_t, void *)                    \
	X(hipStreamCreate, int, void **)                                                                            \
	X(hipStreamDestroy, int, void *)                                                                            \
	X(hipStreamSynchronize, int, void *)                                                                        \
	X(hipStreamAddCallback, int, void *, void (*)(void *, int, void *), void *, unsigned int)                   \
	X(hipDeviceSynchronize, int, void)                                                                          \
	X(__hipRegisterFatBinary, void **, const void *)                                                            \
	X(__hipRegisterFunction, void, void **, const void *, char *, const char *, unsigned int, void *, void *,   \
	  struct dim3 *, struct dim3 *, int *)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
};

struct hip_run {
	struct run run;
	struct functions functions;
	void *module;
	void *kernels[PROGRAMS_MAX];
	void *streams[THREADS_MAX];
	void *buffer;
	char host_functions[ROUNDS_MAX][PROGRAMS_MAX]; /* their addresses stand for functions */
	char data[BUFFER_BYTES];
};

static bool hip_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct hip_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void kernels_begin(struct hip_run *hip)
{
	struct functions *functions = &hip->functions;
	struct ledger *ledger = hip->run.ledger;
	void **handle;

	CALL(hipModuleLoad, (&hip->module, "/kernels/module.hsaco"));
	CALL_HANDLE(handle, __hipRegisterFatBinary, (hip->data));
	for (unsigned int i = 0; i < hip->run.options->programs; i++) {
		const char *name = program_name("hip_kernel", i, hip->run.round);

		if (i % 2) {
			hip->kernels[i] = &hip->host_functions[hip->run.round][i];
			CALL_NO_STATUS(__hipRegisterFunction,
				       (handle, hip->kernels[i], hip->data, name, 0, NULL, NULL, NULL, NULL, NULL),
				       .program = name, .handle = SOME(hip->kernels[i]));
		} else {
			CALL(hipModuleGetFunction, (&hip->kernels[i], hip->module, name), .program = name,
			     .handle = SOME(hip->kernels[i]));
		}
	}
}

static void hip_begin(struct run *run)
{
	struct hip_run *hip = (struct hip_run *)run;
	struct functions *functions = &hip->functions;
	struct ledger *ledger = run->ledger;

	CALL(hipInit, (0));
	CALL(hipSetDevice, (3), .core = SOME(3));
	CALL(hipMalloc, (&hip->buffer, BUFFER_BYTES), .size = SOME(BUFFER_BYTES));
	for (unsigned int t = 0; t < run->options->threads; t++)
		CALL(hipStreamCreate, (&hip->streams[t]));
	kernels_begin(hip);
}

static void called_back(void *stream, int status, void *ended)
{
	(void)stream;
	(void)status;
	sem_post(ended);
}

static void hip_execute(struct worker *worker, unsigned long number)
{
	struct hip_run *hip = (struct hip_run *)worker->run;
	struct functions *functions = &hip->functions;
	struct ledger *ledger = worker->ledger;
	unsigned int i = number % worker->run->options->programs;
	const char *name = program_name("hip_kernel", i, worker->run->round);
	void *kernel = hip->kernels[i], *stream = hip->streams[worker->index];
	struct dim3 one = { 1, 1, 1 };

	CALL(hipMemcpyAsync, (hip->buffer, hip->data, 1000 + i, HOST_TO_DEVICE, stream), .size = SOME(1000 + i),
	     .stream = SOME(stream));
	if (i % 2)
		CALL(hipLaunchKernel, (kernel, one, one, NULL, 0, stream), .program = name, .handle = SOME(kernel),
		     .stream = SOME(stream));
	else
		CALL(hipModuleLaunchKernel, (kernel, 1, 2, 3, 4, 5, 6, 0, stream, NULL, NULL), .program = name,
		     .handle = SOME(kernel), .stream = SOME(stream));
	if (worker->run->options->callbacks) {
		sem_t ended;

		sem_init(&ended, 0, 0);
		CALL(hipStreamAddCallback, (stream, called_back, &ended, 0), .stream = SOME(stream));
		sem_wait(&ended);
		return;
	}
	CALL(hipStreamSynchronize, (stream), .stream = SOME(stream));
	if (number % 4 == 0 && worker->index == 0)
		CALL(hipMemcpy, (hip->buffer, hip->data, 2000 + i, HOST_TO_DEVICE), .size = SOME(2000 + i));
}

static void hip_end(struct run *run)
{
	struct hip_run *hip = (struct hip_run *)run;
	struct functions *functions = &hip->functions;
	struct ledger *ledger = run->ledger;

	CALL(hipDeviceSynchronize, ());
	for (unsigned int t = 0; t < run->options->threads; t++)
		CALL(hipStreamDestroy, (hip->streams[t]));
	CALL(hipFree, (hip->buffer));
	CALL(hipModuleUnload, (hip->module));
}

const struct scenario scenario_hip = {
	.runtime = "hip",
	.library = "libamdhip64.so.6",
	.run_size = sizeof(struct hip_run),
	.bind = hip_bind,
	.load = hip_begin,
	.execute = hip_execute,
	.unload = hip_end,
};

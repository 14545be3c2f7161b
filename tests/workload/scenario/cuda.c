/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The CUDA driver, called directly; one stream a thread. With --resolve every second launch goes through the address
 * that cuGetProcAddress has handed out.
 */
#include "workload.h"

#define THREADS_MAX 64
#define BUFFER_BYTES 16384

struct launch_config {
	uint32_t grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
	void *stream;
	void *attributes;
	uint32_t attribute_count;
};

#define LAUNCH_PARAMETERS \
	void *, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, void *, void **, void **
#define FUNCTIONS(X)                                                                     \
	X(cuInit, int, unsigned int)                                                     \
	X(cuCtxCreate_v2, int, void **, unsigned int, int)                               \
	X(cuModuleLoad, int, void **, const char *)                                      \
	X(cuModuleLoadData, int, void **, const void *)                                  \
	X(cuModuleUnload, int, void *)                                                   \
	X(cuModuleGetFunction, int, void **, void *, const char *)                       \
	X(cuLaunchKernel, int, LAUNCH_PARAMETERS)                                        \
	X(cuLaunchKernel_ptsz, int, LAUNCH_PARAMETERS)                                   \
	X(cuLaunchKernelEx, int, const struct launch_config *, void *, void **, void **) \
	X(cuMemAlloc_v2, int, uint64_t *, size_t)                                        \
	X(cuMemFree_v2, int, uint64_t)                                                   \
	X(cuMemcpyHtoD_v2, int, uint64_t, const void *, size_t)                          \
	X(cuMemcpyDtoH_v2, int, void *, uint64_t, size_t)                                \
	X(cuMemcpyHtoDAsync_v2, int, uint64_t, const void *, size_t, void *)             \
	X(cuStreamCreate, int, void **, unsigned int)                                    \
	X(cuStreamDestroy_v2, int, void *)                                               \
	X(cuStreamSynchronize, int, void *)                                              \
	X(cuCtxSynchronize, int, void)                                                   \
	X(cuGetProcAddress_v2, int, const char *, void **, int, uint64_t, int *)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
	int (*resolved)(LAUNCH_PARAMETERS);
};

struct cuda_run {
	struct run run;
	struct functions functions;
	void *context;
	void *module;
	void *kernels[PROGRAMS_MAX];
	void *streams[THREADS_MAX];
	uint64_t buffer;
	char data[BUFFER_BYTES];
};

static bool cuda_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct cuda_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void cuda_begin(struct run *run)
{
	struct cuda_run *cuda = (struct cuda_run *)run;
	struct functions *functions = &cuda->functions;
	struct ledger *ledger = run->ledger;

	CALL(cuInit, (0));
	CALL(cuCtxCreate_v2, (&cuda->context, 0, 0));
	if (run->options->resolve)
		CALL(cuGetProcAddress_v2, ("cuLaunchKernel", (void **)&functions->resolved, 12000, 0, NULL));
	CALL(cuMemAlloc_v2, (&cuda->buffer, BUFFER_BYTES), .size = SOME(BUFFER_BYTES));
	CALL(cuModuleLoad, (&cuda->module, "/kernels/module.cubin"));
	for (unsigned int t = 0; t < run->options->threads; t++)
		CALL(cuStreamCreate, (&cuda->streams[t], 0));
	for (unsigned int i = 0; i < run->options->programs; i++) {
		const char *name = program_name("cuda_kernel", i, run->round);

		CALL(cuModuleGetFunction, (&cuda->kernels[i], cuda->module, name), .program = name,
		     .handle = SOME(cuda->kernels[i]));
	}
}

static void launch(struct worker *worker, unsigned long number)
{
	struct cuda_run *cuda = (struct cuda_run *)worker->run;
	struct functions *functions = &cuda->functions;
	struct ledger *ledger = worker->ledger;
	unsigned int i = number % worker->run->options->programs;
	const char *name = program_name("cuda_kernel", i, worker->run->round);
	void *kernel = cuda->kernels[i], *stream = cuda->streams[worker->index];
	struct launch_config config = { 1, 1, 1, 1, 1, 1, 0, stream, NULL, 0 };

	if (number % 4 == 3)
		CALL(cuLaunchKernelEx, (&config, kernel, NULL, NULL), .program = name, .handle = SOME(kernel),
		     .stream = SOME(stream));
	else if (number % 4 == 2)
		CALL(cuLaunchKernel_ptsz, (kernel, 1, 2, 3, 4, 5, 6, 0, stream, NULL, NULL), .program = name,
		     .handle = SOME(kernel), .stream = SOME(stream), .function = "cuLaunchKernel");
	else if (functions->resolved && number % 4 == 1)
		CALL(resolved, (kernel, 1, 2, 3, 4, 5, 6, 0, stream, NULL, NULL), .program = name,
		     .handle = SOME(kernel), .stream = SOME(stream), .function = "cuLaunchKernel");
	else
		CALL(cuLaunchKernel, (kernel, 1, 2, 3, 4, 5, 6, 0, stream, NULL, NULL), .program = name,
		     .handle = SOME(kernel), .stream = SOME(stream));
}

static void cuda_execute(struct worker *worker, unsigned long number)
{
	struct cuda_run *cuda = (struct cuda_run *)worker->run;
	struct functions *functions = &cuda->functions;
	struct ledger *ledger = worker->ledger;
	void *stream = cuda->streams[worker->index];

	CALL(cuMemcpyHtoDAsync_v2, (cuda->buffer, cuda->data, 1000 + number % 3, stream),
	     .size = SOME(1000 + number % 3), .stream = SOME(stream));
	launch(worker, number);
	CALL(cuStreamSynchronize, (stream), .stream = SOME(stream));
	if (number % 8 == 0) {
		CALL(cuMemcpyHtoD_v2, (cuda->buffer, cuda->data, 3000), .size = SOME(3000));
		CALL(cuMemcpyDtoH_v2, (cuda->data, cuda->buffer, 4000), .size = SOME(4000));
	}
}

static void cuda_end(struct run *run)
{
	struct cuda_run *cuda = (struct cuda_run *)run;
	struct functions *functions = &cuda->functions;
	struct ledger *ledger = run->ledger;

	CALL(cuCtxSynchronize, ());
	for (unsigned int t = 0; t < run->options->threads; t++)
		CALL(cuStreamDestroy_v2, (cuda->streams[t]));
	CALL(cuModuleUnload, (cuda->module));
	CALL(cuMemFree_v2, (cuda->buffer));
}

const struct scenario scenario_cuda = {
	.runtime = "cuda",
	.library = "libcuda.so.1",
	.run_size = sizeof(struct cuda_run),
	.bind = cuda_bind,
	.load = cuda_begin,
	.execute = cuda_execute,
	.unload = cuda_end,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/* The CUDA runtime; one stream a thread. The runtime calls the driver for all of it. */
#include "workload.h"

#define THREADS_MAX 64
#define BUFFER_BYTES 8192
#define HOST_TO_DEVICE 1

struct dim3 {
	uint32_t x, y, z;
};

#define FUNCTIONS(X)                                                                                              \
	X(cudaSetDevice, int, int)                                                                                \
	X(cudaMalloc, int, void **, size_t)                                                                       \
	X(cudaFree, int, void *)                                                                                  \
	X(cudaMemcpy, int, void *, const void *, size_t, int)                                                     \
	X(cudaMemcpyAsync, int, void *, const void *, size_t, int, void *)                                        \
	X(cudaLaunchKernel, int, const void *, struct dim3, struct dim3, void **, size_t, void *)                 \
	X(cudaStreamCreate, int, void **)                                                                         \
	X(cudaStreamDestroy, int, void *)                                                                         \
	X(cudaStreamSynchronize, int, void *)                                                                     \
	X(cudaDeviceSynchronize, int, void)                                                                       \
	X(__cudaRegisterFatBinary, void **, void *)                                                               \
	X(__cudaRegisterFunction, void, void **, const char *, char *, const char *, int, void *, void *, void *, \
	  void *, int *)

#ifdef WORKLOAD_LINKED
FUNCTIONS(DECLARE_FUNCTION)
#endif

struct functions {
	FUNCTIONS(DECLARE_POINTER)
};

struct cudart_run {
	struct run run;
	struct functions functions;
	void *streams[THREADS_MAX];
	void *buffer;
	char host_functions[ROUNDS_MAX][PROGRAMS_MAX]; /* their addresses stand for functions */
	char data[BUFFER_BYTES];
};

static bool cudart_bind(struct run *run, void *library)
{
	struct functions *functions = &((struct cudart_run *)run)->functions;
	bool complete = true;

	(void)library;
	FUNCTIONS(BIND_POINTER)
	return complete;
}

static void cudart_begin(struct run *run)
{
	struct cudart_run *cudart = (struct cudart_run *)run;
	struct functions *functions = &cudart->functions;
	struct ledger *ledger = run->ledger;
	void **handle;

	CALL_HANDLE(handle, __cudaRegisterFatBinary, (cudart->data));
	for (unsigned int i = 0; i < run->options->programs; i++) {
		const char *name = program_name("cudart_kernel", i, run->round);
		char *function = &cudart->host_functions[run->round][i];

		CALL_NO_STATUS(__cudaRegisterFunction,
			       (handle, function, function, name, -1, NULL, NULL, NULL, NULL, NULL), .program = name,
			       .handle = SOME(function));
	}
	CALL(cudaSetDevice, (2), .core = SOME(2));
	CALL(cudaMalloc, (&cudart->buffer, BUFFER_BYTES), .size = SOME(BUFFER_BYTES));
	for (unsigned int t = 0; t < run->options->threads; t++)
		CALL(cudaStreamCreate, (&cudart->streams[t]));
}

static void cudart_execute(struct worker *worker, unsigned long number)
{
	struct cudart_run *cudart = (struct cudart_run *)worker->run;
	struct functions *functions = &cudart->functions;
	struct ledger *ledger = worker->ledger;
	unsigned int i = number % worker->run->options->programs;
	const char *name = program_name("cudart_kernel", i, worker->run->round);
	char *function = &cudart->host_functions[worker->run->round][i];
	void *stream = cudart->streams[worker->index];
	struct dim3 one = { 1, 1, 1 };

	CALL(cudaMemcpyAsync, (cudart->buffer, cudart->data, 1000 + i, HOST_TO_DEVICE, stream), .size = SOME(1000 + i),
	     .stream = SOME(stream));
	CALL(cudaLaunchKernel, (function, one, one, NULL, 0, stream), .program = name, .handle = SOME(function),
	     .stream = SOME(stream));
	CALL(cudaStreamSynchronize, (stream), .stream = SOME(stream));
	if (number % 4 == 0)
		CALL(cudaMemcpy, (cudart->buffer, cudart->data, 2000 + i, HOST_TO_DEVICE), .size = SOME(2000 + i));
}

static void cudart_end(struct run *run)
{
	struct cudart_run *cudart = (struct cudart_run *)run;
	struct functions *functions = &cudart->functions;
	struct ledger *ledger = run->ledger;

	CALL(cudaDeviceSynchronize, ());
	for (unsigned int t = 0; t < run->options->threads; t++)
		CALL(cudaStreamDestroy, (cudart->streams[t]));
	CALL(cudaFree, (cudart->buffer));
}

const struct scenario scenario_cudart = {
	.runtime = "cudart",
	.library = "libcudart.so.12",
	.run_size = sizeof(struct cudart_run),
	.bind = cudart_bind,
	.load = cudart_begin,
	.execute = cudart_execute,
	.unload = cudart_end,
};

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for the CUDA runtime: names, argument positions and status values of libcudart.so.12. Calls the driver as
 * the real one does: launches and asynchronous copies through cuGetProcAddress, the rest by name.
 */
#include <pthread.h>

#include "device.h"

#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1
#define FUNCTIONS 64

struct dim3 {
	uint32_t x, y, z;
};

typedef int launch_fn(void *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
		      uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, void *stream, void **parameters,
		      void **extra);
typedef int copy_fn(uint64_t destination, uint64_t source, size_t size, void *stream);

int cuModuleLoadData(void **module, const void *image);
int cuModuleGetFunction(void **function, void *module, const char *name);
int cuMemAlloc_v2(uint64_t *address, size_t size);
int cuMemFree_v2(uint64_t address);
int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t size);
int cuStreamCreate(void **stream, unsigned int flags);
int cuStreamDestroy_v2(void *stream);
int cuStreamSynchronize(void *stream);
int cuCtxSynchronize(void);
int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status);

static struct {
	pthread_once_t once;
	launch_fn *launch;
	copy_fn *copy;
	void *module;
	struct {
		const void *host;
		void *driver;
	} functions[FUNCTIONS]; /* registered by one thread, before the first launch */
	size_t count;
} runtime = { .once = PTHREAD_ONCE_INIT };

static void resolve(void)
{
	void *found;

	if (cuGetProcAddress_v2("cuLaunchKernel", &found, 12000, 0, NULL) == CUDA_SUCCESS)
		runtime.launch = (launch_fn *)found;
	if (cuGetProcAddress_v2("cuMemcpyAsync", &found, 12000, 0, NULL) == CUDA_SUCCESS)
		runtime.copy = (copy_fn *)found;
}

struct wrapper {
	uint32_t magic, version;
	const void *binary;
	void *file;
};

/* What the driver is given is the runtime's own: it takes out what is for its device. */
STANDIN_API void **__cudaRegisterFatBinary(void *data)
{
	static const char extracted[] = ".version 8.0\n.target sm_80\n.address_size 64\n";
	const struct wrapper *wrapper = data;

	pthread_once(&runtime.once, resolve);
	if (wrapper->magic == 0x466243b1 && !code_given(wrapper->binary))
		return NULL;
	cuModuleLoadData(&runtime.module, extracted);
	return &runtime.module;
}

STANDIN_API void __cudaUnregisterFatBinary(void **handle)
{
	(void)handle;
}

STANDIN_API void __cudaRegisterFunction(void **handle, const char *host_function, char *device_function,
					const char *device_name, int thread_limit, void *thread_index,
					void *block_index, void *block, void *grid, int *warp_size)
{
	(void)device_function;
	(void)thread_limit;
	(void)thread_index;
	(void)block_index;
	(void)block;
	(void)grid;
	(void)warp_size;
	if (runtime.count == FUNCTIONS)
		return;
	if (cuModuleGetFunction(&runtime.functions[runtime.count].driver, *handle, device_name) == CUDA_SUCCESS)
		runtime.functions[runtime.count++].host = host_function;
}

STANDIN_API int cudaSetDevice(int device)
{
	return device < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

STANDIN_API int cudaMalloc(void **address, size_t size)
{
	return cuMemAlloc_v2((uint64_t *)address, size);
}

STANDIN_API int cudaFree(void *address)
{
	return cuMemFree_v2((uintptr_t)address);
}

STANDIN_API int cudaMemcpy(void *destination, const void *source, size_t count, int kind)
{
	(void)kind;
	return cuMemcpyHtoD_v2((uintptr_t)destination, source, count);
}

STANDIN_API int cudaMemcpyAsync(void *destination, const void *source, size_t count, int kind, void *stream)
{
	(void)kind;
	return runtime.copy((uintptr_t)destination, (uintptr_t)source, count, stream);
}

STANDIN_API int cudaLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
				 size_t shared_bytes, void *stream)
{
	for (size_t i = 0; i < runtime.count; i++)
		if (runtime.functions[i].host == function)
			return runtime.launch(runtime.functions[i].driver, grid.x, grid.y, grid.z, block.x, block.y,
					      block.z, shared_bytes, stream, arguments, NULL);
	return CUDA_ERROR_INVALID_VALUE;
}

STANDIN_API int cudaStreamCreate(void **stream)
{
	return cuStreamCreate(stream, 0);
}

STANDIN_API int cudaStreamDestroy(void *stream)
{
	return cuStreamDestroy_v2(stream);
}

STANDIN_API int cudaStreamSynchronize(void *stream)
{
	return cuStreamSynchronize(stream);
}

STANDIN_API int cudaDeviceSynchronize(void)
{
	return cuCtxSynchronize();
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for the CUDA driver: names, argument positions and status values of libcuda.so.1. As in the real library,
 * the exported launch and copy functions are stubs that jump through a table, and cuGetProcAddress hands out addresses
 * that are not the exported ones.
 */
#include <stdlib.h>
#include <string.h>

#include "device.h"

#define CUDA_SUCCESS 0
#define CUDA_ERROR_INVALID_VALUE 1
#define CUDA_ERROR_OUT_OF_MEMORY 2
#define CUDA_ERROR_INVALID_IMAGE 200
#define CUDA_ERROR_INVALID_HANDLE 400
#define CUDA_ERROR_NOT_FOUND 500
#define CUDA_ERROR_NOT_READY 600
#define CUDA_ERROR_LAUNCH_FAILED 719

struct launch_config {
	uint32_t grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
	struct object *stream;
	void *attributes;
	uint32_t attribute_count;
};

_Static_assert(offsetof(struct launch_config, stream) == 32, "layout of a launch configuration");

static int make(struct object **result, struct object *from)
{
	*result = object_new();
	if (!*result)
		return CUDA_ERROR_OUT_OF_MEMORY;
	(*result)->other = from;
	return CUDA_SUCCESS;
}

static int release(struct object *object)
{
	if (!object || !object->used)
		return CUDA_ERROR_INVALID_HANDLE;
	object_free(object);
	return CUDA_SUCCESS;
}

static int submit(struct object *stream, uint64_t sequence)
{
	if (stream)
		stream->last = sequence;
	return CUDA_SUCCESS;
}

STANDIN_API int cuInit(unsigned int flags)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

STANDIN_API int cuDeviceGet(int *device, int ordinal)
{
	*device = ordinal;
	return ordinal < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

STANDIN_API int cuCtxCreate_v2(struct object **context, unsigned int flags, int device)
{
	(void)flags;
	(void)device;
	return make(context, NULL);
}

STANDIN_API int cuCtxDestroy_v2(struct object *context)
{
	return release(context);
}

static int load(struct object **result, const void *given)
{
	return code_given(given) ? make(result, NULL) : CUDA_ERROR_INVALID_IMAGE;
}

STANDIN_API int cuModuleLoad(struct object **module, const char *path)
{
	return path ? load(module, NULL) : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_API int cuModuleLoadData(struct object **module, const void *image)
{
	return image ? load(module, image) : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_API int cuModuleLoadDataEx(struct object **module, const void *image, unsigned int count, int *options,
				   void **values)
{
	(void)options;
	(void)values;
	return image && !count ? load(module, image) : CUDA_ERROR_INVALID_VALUE;
}

/* Not the code of cuModuleLoadData(), as in the real library: the compiler would put them together. */
STANDIN_API __attribute__((no_icf)) int cuModuleLoadFatBinary(struct object **module, const void *binary)
{
	return binary ? load(module, binary) : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_API int cuLibraryLoadData(struct object **library, const void *code, int *options, void **values,
				  unsigned int count, int *library_options, void **library_values,
				  unsigned int library_count)
{
	(void)options;
	(void)values;
	(void)library_options;
	(void)library_values;
	return code && !count && !library_count ? load(library, code) : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_API int cuLibraryLoadFromFile(struct object **library, const char *path, int *options, void **values,
				      unsigned int count, int *library_options, void **library_values,
				      unsigned int library_count)
{
	(void)options;
	(void)values;
	(void)library_options;
	(void)library_values;
	return path && !count && !library_count ? load(library, NULL) : CUDA_ERROR_INVALID_VALUE;
}

STANDIN_API int cuLibraryUnload(struct object *library)
{
	return release(library);
}

STANDIN_API int cuModuleUnload(struct object *module)
{
	object_free_offspring(module);
	return release(module);
}

/* Never looks at the name: the hostile workload passes bad ones. */
STANDIN_API int cuModuleGetFunction(struct object **function, struct object *module, const char *name)
{
	(void)name;
	return module ? make(function, module) : CUDA_ERROR_NOT_FOUND;
}

static int launch(struct object *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z, uint32_t block_x,
		  uint32_t block_y, uint32_t block_z, uint32_t shared_bytes, struct object *stream, void **parameters,
		  void **extra)
{
	(void)shared_bytes;
	(void)parameters;
	(void)extra;
	if (!function || grid_x * grid_y * grid_z * block_x * block_y * block_z == 0)
		return CUDA_ERROR_INVALID_VALUE;
	return device_fails() ? CUDA_ERROR_LAUNCH_FAILED : submit(stream, device_launch());
}

static int copy_sync(const void *destination, const void *source, size_t size)
{
	(void)destination;
	(void)source;
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	device_run();
	return CUDA_SUCCESS;
}

static int copy_async(const void *destination, const void *source, size_t size, struct object *stream)
{
	(void)destination;
	(void)source;
	return size ? submit(stream, device_submit()) : CUDA_ERROR_INVALID_VALUE;
}

static struct {
	typeof(launch) *launch;
	typeof(copy_sync) *copy_sync;
	typeof(copy_async) *copy_async;
} *volatile table = &(typeof(*table)){ launch, copy_sync, copy_async };

STANDIN_API int cuLaunchKernel(struct object *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
			       uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
			       struct object *stream, void **parameters, void **extra)
{
	return table->launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream,
			     parameters, extra);
}

/* The per-thread default stream twin: code of its own, not an alias. */
STANDIN_API int cuLaunchKernel_ptsz(struct object *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
				    uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
				    struct object *stream, void **parameters, void **extra)
{
	return launch(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, parameters,
		      extra);
}

STANDIN_API int cuLaunchKernelEx(const struct launch_config *config, struct object *function, void **parameters,
				 void **extra)
{
	return launch(function, config->grid_x, config->grid_y, config->grid_z, config->block_x, config->block_y,
		      config->block_z, config->shared_bytes, config->stream, parameters, extra);
}

STANDIN_API int cuMemAlloc_v2(uint64_t *address, size_t size)
{
	if (!size)
		return CUDA_ERROR_INVALID_VALUE;
	*address = (uintptr_t)malloc(size);
	return *address ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

STANDIN_API int cuMemFree_v2(uint64_t address)
{
	free((void *)(uintptr_t)address);
	return CUDA_SUCCESS;
}

STANDIN_API int cuMemcpyHtoD_v2(uint64_t destination, const void *source, size_t size)
{
	return table->copy_sync((void *)(uintptr_t)destination, source, size);
}

STANDIN_API int cuMemcpyDtoH_v2(void *destination, uint64_t source, size_t size)
{
	return copy_sync(destination, (void *)(uintptr_t)source, size);
}

STANDIN_API int cuMemcpyHtoDAsync_v2(uint64_t destination, const void *source, size_t size, struct object *stream)
{
	return table->copy_async((void *)(uintptr_t)destination, source, size, stream);
}

STANDIN_API int cuMemcpyAsync(uint64_t destination, uint64_t source, size_t size, struct object *stream)
{
	return copy_async((void *)(uintptr_t)destination, (void *)(uintptr_t)source, size, stream);
}

STANDIN_API int cuStreamCreate(struct object **stream, unsigned int flags)
{
	(void)flags;
	return make(stream, NULL);
}

STANDIN_API int cuStreamDestroy_v2(struct object *stream)
{
	return release(stream);
}

STANDIN_API int cuStreamSynchronize(struct object *stream)
{
	int error = device_wait(stream ? stream->last : device_last());

	return error ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

STANDIN_API int cuStreamQuery(struct object *stream)
{
	return device_done(stream ? stream->last : device_last()) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

STANDIN_API int cuCtxSynchronize(void)
{
	device_wait(device_last());
	return CUDA_SUCCESS;
}

STANDIN_API int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
	(void)version;
	(void)flags;
	*function = NULL;
	if (strcmp(name, "cuLaunchKernel") == 0)
		*function = launch;
	else if (strcmp(name, "cuMemcpyAsync") == 0)
		*function = cuMemcpyAsync;
	if (status)
		*status = *function ? 0 : 1;
	return *function ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

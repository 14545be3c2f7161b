/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for the HIP runtime: names, argument positions and status values of libamdhip64.so.6. Does everything
 * through the exported functions of the HSA runtime, as the real one does.
 */
#include "device.h"

#include <pthread.h>
#include <stdlib.h>

#define HIP_SUCCESS 0
#define HIP_ERROR_INVALID_VALUE 1
#define HIP_ERROR_OUT_OF_MEMORY 2
#define HIP_ERROR_INVALID_IMAGE 200
#define HIP_ERROR_NOT_FOUND 500
#define HIP_ERROR_LAUNCH_FAILURE 719

struct dim3 {
	uint32_t x, y, z;
};

int hsa_signal_create(int64_t initial, uint32_t count, const void *consumers, uint64_t *signal);
int hsa_signal_destroy(uint64_t signal);
void hsa_signal_store_screlease(uint64_t signal, int64_t value);
int64_t hsa_signal_wait_scacquire(uint64_t signal, int condition, int64_t value, uint64_t timeout, int hint);
int hsa_amd_memory_pool_allocate(uint64_t pool, size_t size, uint32_t flags, void **address);
int hsa_amd_memory_pool_free(void *address);
int hsa_amd_memory_async_copy(void *destination, uint64_t destination_agent, const void *source, uint64_t source_agent,
			      size_t size, uint32_t count, const uint64_t *dependencies, uint64_t signal);
int hsa_code_object_reader_create_from_memory(const void *code, size_t size, uint64_t *reader);
int hsa_code_object_reader_destroy(uint64_t reader);
int hsa_executable_create_alt(int profile, int rounding, const char *options, uint64_t *executable);
int hsa_executable_load_agent_code_object(uint64_t executable, uint64_t agent, uint64_t reader, const char *options,
					  uint64_t *loaded);
int hsa_executable_freeze(uint64_t executable, const char *options);
int hsa_executable_destroy(uint64_t executable);
int hsa_executable_get_symbol_by_name(uint64_t executable, const char *name, const uint64_t *agent, uint64_t *symbol);

static uint64_t default_signal;

static void wait_for(uint64_t signal)
{
	hsa_signal_wait_scacquire(signal, 0, 0, UINT64_MAX, 0);
}

/* A stream is the signal of its last piece of work. The scenario makes the first call from one thread. */
static uint64_t stream_signal(const struct object *stream)
{
	if (stream)
		return stream->value;
	if (!default_signal)
		hsa_signal_create(0, 0, NULL, &default_signal);
	return default_signal;
}

STANDIN_API int hipInit(unsigned int flags)
{
	return flags ? HIP_ERROR_INVALID_VALUE : HIP_SUCCESS;
}

STANDIN_API int hipSetDevice(int device)
{
	return device < 0 ? HIP_ERROR_INVALID_VALUE : HIP_SUCCESS;
}

STANDIN_API int hipMalloc(void **address, size_t size)
{
	return hsa_amd_memory_pool_allocate(1, size, 0, address) ? HIP_ERROR_OUT_OF_MEMORY : HIP_SUCCESS;
}

STANDIN_API int hipFree(void *address)
{
	return hsa_amd_memory_pool_free(address) ? HIP_ERROR_INVALID_VALUE : HIP_SUCCESS;
}

STANDIN_API int hipMemcpyAsync(void *destination, const void *source, size_t size, int kind, struct object *stream)
{
	(void)kind;
	return hsa_amd_memory_async_copy(destination, 1, source, 1, size, 0, NULL, stream_signal(stream)) ?
		       HIP_ERROR_INVALID_VALUE :
		       HIP_SUCCESS;
}

STANDIN_API int hipMemcpy(void *destination, const void *source, size_t size, int kind)
{
	(void)kind;
	if (hsa_amd_memory_async_copy(destination, 1, source, 1, size, 0, NULL, stream_signal(NULL)))
		return HIP_ERROR_INVALID_VALUE;
	wait_for(default_signal);
	return HIP_SUCCESS;
}

/* What HSA is given is the runtime's own: it takes out what is for its device. */
static int load_code(struct object **module, const void *given)
{
	static const char extracted[] = "code";
	uint64_t reader, executable;

	if (!code_given(given))
		return HIP_ERROR_INVALID_IMAGE;
	if (hsa_code_object_reader_create_from_memory(extracted, 4, &reader))
		return HIP_ERROR_INVALID_VALUE;
	hsa_executable_create_alt(0, 0, NULL, &executable);
	hsa_executable_load_agent_code_object(executable, 1, reader, NULL, NULL);
	hsa_executable_freeze(executable, NULL);
	hsa_code_object_reader_destroy(reader);
	*module = object_new();
	if (!*module)
		return HIP_ERROR_OUT_OF_MEMORY;
	(*module)->value = executable;
	return HIP_SUCCESS;
}

STANDIN_API int hipModuleLoad(struct object **module, const char *path)
{
	return path ? load_code(module, NULL) : HIP_ERROR_INVALID_VALUE;
}

STANDIN_API int hipModuleLoadData(struct object **module, const void *image)
{
	return image ? load_code(module, image) : HIP_ERROR_INVALID_VALUE;
}

STANDIN_API int hipModuleLoadDataEx(struct object **module, const void *image, unsigned int count, int *options,
				    void **values)
{
	(void)options;
	(void)values;
	return image && !count ? load_code(module, image) : HIP_ERROR_INVALID_VALUE;
}

STANDIN_API int hipModuleUnload(struct object *module)
{
	if (!module || !module->used)
		return HIP_ERROR_INVALID_VALUE;
	hsa_executable_destroy(module->value);
	object_free_offspring(module);
	object_free(module);
	return HIP_SUCCESS;
}

STANDIN_API int hipModuleGetFunction(struct object **function, struct object *module, const char *name)
{
	uint64_t symbol;

	if (!module || hsa_executable_get_symbol_by_name(module->value, name, NULL, &symbol))
		return HIP_ERROR_NOT_FOUND;
	*function = object_new();
	if (!*function)
		return HIP_ERROR_OUT_OF_MEMORY;
	(*function)->value = symbol;
	(*function)->other = module;
	return HIP_SUCCESS;
}

static int launch(struct object *stream)
{
	if (device_fails())
		return HIP_ERROR_LAUNCH_FAILURE;
	hsa_signal_store_screlease(stream_signal(stream), 1);
	return HIP_SUCCESS;
}

STANDIN_API int hipModuleLaunchKernel(struct object *function, uint32_t grid_x, uint32_t grid_y, uint32_t grid_z,
				      uint32_t block_x, uint32_t block_y, uint32_t block_z, uint32_t shared_bytes,
				      struct object *stream, void **parameters, void **extra)
{
	(void)shared_bytes;
	(void)parameters;
	(void)extra;
	if (!function || grid_x * grid_y * grid_z * block_x * block_y * block_z == 0)
		return HIP_ERROR_INVALID_VALUE;
	return launch(stream);
}

STANDIN_API int hipLaunchKernel(const void *function, struct dim3 grid, struct dim3 block, void **arguments,
				size_t shared_bytes, struct object *stream)
{
	(void)arguments;
	(void)shared_bytes;
	if (!function || grid.x * grid.y * grid.z * block.x * block.y * block.z == 0)
		return HIP_ERROR_INVALID_VALUE;
	return launch(stream);
}

STANDIN_API int hipStreamCreate(struct object **stream)
{
	*stream = object_new();
	if (!*stream)
		return HIP_ERROR_OUT_OF_MEMORY;
	return hsa_signal_create(0, 0, NULL, &(*stream)->value) ? HIP_ERROR_OUT_OF_MEMORY : HIP_SUCCESS;
}

STANDIN_API int hipStreamDestroy(struct object *stream)
{
	hsa_signal_destroy(stream->value);
	object_free(stream);
	return HIP_SUCCESS;
}

STANDIN_API int hipStreamSynchronize(struct object *stream)
{
	wait_for(stream_signal(stream));
	return HIP_SUCCESS;
}

struct waiting {
	uint64_t signal;
	struct object *stream;
	void (*callback)(struct object *stream, int status, void *data);
	void *data;
};

static void *call_back(void *argument)
{
	struct waiting *waiting = argument;

	wait_for(waiting->signal);
	waiting->callback(waiting->stream, HIP_SUCCESS, waiting->data);
	free(waiting);
	return NULL;
}

STANDIN_API int hipStreamAddCallback(struct object *stream,
				     void (*callback)(struct object *stream, int status, void *data), void *data,
				     unsigned int flags)
{
	struct waiting *waiting = malloc(sizeof(*waiting));
	pthread_t thread;

	if (!waiting || flags)
		return HIP_ERROR_INVALID_VALUE;
	*waiting = (struct waiting){ stream_signal(stream), stream, callback, data };
	if (pthread_create(&thread, NULL, call_back, waiting))
		return HIP_ERROR_OUT_OF_MEMORY;
	return pthread_detach(thread) ? HIP_ERROR_INVALID_VALUE : HIP_SUCCESS;
}

STANDIN_API int hipDeviceSynchronize(void)
{
	wait_for(stream_signal(NULL));
	return HIP_SUCCESS;
}

struct wrapper {
	uint32_t magic, version;
	const void *binary;
	void *unused;
};

STANDIN_API void **__hipRegisterFatBinary(const void *data)
{
	const struct wrapper *wrapper = data;

	return wrapper->magic != 0x48495046 || code_given(wrapper->binary) ? (void **)data : NULL;
}

STANDIN_API void __hipUnregisterFatBinary(void **handle)
{
	(void)handle;
}

STANDIN_API void __hipRegisterFunction(void **handle, const void *host_function, char *device_function,
				       const char *device_name, unsigned int thread_limit, void *thread_index,
				       void *block_index, struct dim3 *block, struct dim3 *grid, int *warp_size)
{
	(void)handle;
	(void)host_function;
	(void)device_function;
	(void)device_name;
	(void)thread_limit;
	(void)thread_index;
	(void)block_index;
	(void)block;
	(void)grid;
	(void)warp_size;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Stand-in for ggml's backend front end: names, argument positions and status values of libggml-base.so.0. */
#include <stdlib.h>

#include "device.h"

#define GGML_STATUS_SUCCESS 0
#define GGML_STATUS_FAILED -1

STANDIN_API int ggml_backend_graph_compute(void *backend, void *graph)
{
	if (!backend || !graph)
		return GGML_STATUS_FAILED;
	device_run();
	return device_fails() ? GGML_STATUS_FAILED : GGML_STATUS_SUCCESS;
}

STANDIN_API int ggml_backend_sched_graph_compute(void *sched, void *graph)
{
	return ggml_backend_graph_compute(sched, graph);
}

STANDIN_API int ggml_backend_sched_graph_compute_async(void *sched, void *graph)
{
	if (!sched || !graph || device_fails())
		return GGML_STATUS_FAILED;
	device_submit();
	return GGML_STATUS_SUCCESS;
}

STANDIN_API void ggml_backend_sched_synchronize(void *sched)
{
	(void)sched;
	device_wait(device_last());
}

STANDIN_API void ggml_backend_tensor_set(void *tensor, const void *data, size_t offset, size_t size)
{
	(void)tensor;
	(void)data;
	(void)offset;
	(void)size;
	device_run();
}

STANDIN_API void ggml_backend_tensor_get(const void *tensor, void *data, size_t offset, size_t size)
{
	(void)tensor;
	(void)data;
	(void)offset;
	(void)size;
	device_run();
}

STANDIN_API void *ggml_backend_alloc_buffer(void *backend, size_t size)
{
	struct object *buffer = backend && size ? object_new() : NULL;

	if (buffer)
		buffer->value = size;
	return buffer;
}

STANDIN_API void ggml_backend_buffer_free(void *buffer)
{
	object_free(buffer);
}

struct gguf_parameters {
	bool no_alloc;
	void **context;
};

STANDIN_API void *gguf_init_from_file(const char *path, struct gguf_parameters parameters)
{
	(void)parameters;
	return path && code_given(NULL) ? object_new() : NULL;
}

STANDIN_API void gguf_free(void *gguf)
{
	object_free(gguf);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* A Neuron runtime without threads, so that it can be unloaded. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define API __attribute__((visibility("default")))
#define INVALID_HANDLE 3

API int nrt_load(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, void **model);
API int nrt_unload(void *model);
API int nrt_execute(void *model, const void *inputs, void *outputs);
API int nrt_tensor_write(void *tensor, const void *buffer, size_t offset, size_t size);

int nrt_load(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, void **model)
{
	(void)neff;
	(void)size;
	(void)vnc;
	(void)vnc_count;
	*model = malloc(64);
	return *model ? 0 : 1;
}

int nrt_unload(void *model)
{
	free(model);
	return 0;
}

int nrt_execute(void *model, const void *inputs, void *outputs)
{
	(void)inputs;
	(void)outputs;
	return model ? 0 : INVALID_HANDLE;
}

int nrt_tensor_write(void *tensor, const void *buffer, size_t offset, size_t size)
{
	(void)buffer;
	(void)offset;
	(void)size;
	return tensor ? 0 : INVALID_HANDLE;
}

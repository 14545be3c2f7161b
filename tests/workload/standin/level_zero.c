/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for the loader of Level Zero: names, argument positions and status values of libze_loader.so.1. Loads
 * modules; kernels are made of them and never run.
 */
#include "device.h"

#define ZE_RESULT_SUCCESS 0
#define ZE_RESULT_ERROR_MODULE_BUILD_FAILURE 0x70000004
#define ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY 0x70000002
#define ZE_RESULT_ERROR_INVALID_NULL_HANDLE 0x78000005
#define ZE_RESULT_ERROR_INVALID_SIZE 0x78000008

struct module_description {
	uint32_t type;
	const void *next;
	uint32_t format; /* 0: SPIR-V, 1: native */
	size_t size;
	const uint8_t *input;
	const char *flags;
	const void *constants;
};

_Static_assert(offsetof(struct module_description, format) == 16, "layout of a module's description");
_Static_assert(offsetof(struct module_description, size) == 24, "layout of a module's description");
_Static_assert(offsetof(struct module_description, input) == 32, "layout of a module's description");

STANDIN_API int zeModuleCreate(void *context, void *device, const struct module_description *description,
			       struct object **module, void **log)
{
	(void)context;
	(void)device;
	if (log)
		*log = NULL;
	if (!description->size || !description->input)
		return ZE_RESULT_ERROR_INVALID_SIZE;
	if (!code_given(description->input))
		return ZE_RESULT_ERROR_MODULE_BUILD_FAILURE;
	*module = object_new();
	return *module ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

STANDIN_API int zeKernelCreate(struct object *module, const void *description, struct object **kernel)
{
	if (!module || !description)
		return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
	*kernel = object_new();
	return *kernel ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY;
}

STANDIN_API int zeCommandQueueExecuteCommandLists(void *queue, uint32_t count, void **lists, void *fence)
{
	(void)fence;
	if (!queue || !lists)
		return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
	return count ? ZE_RESULT_SUCCESS : ZE_RESULT_ERROR_INVALID_SIZE;
}

STANDIN_API int zeModuleDestroy(struct object *module)
{
	if (!module || !module->used)
		return ZE_RESULT_ERROR_INVALID_NULL_HANDLE;
	object_free(module);
	return ZE_RESULT_SUCCESS;
}

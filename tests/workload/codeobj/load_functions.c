/* SPDX-License-Identifier: BSD-2-Clause */
#include "load_functions.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../standin/pjrt.h"

static int only_handle(void *returned, uint64_t *handle)
{
	*handle = (uintptr_t)returned;
	return returned ? 0 : -1;
}

/* ---- modules of HIP and CUDA ---- */

static int load_image(void *function, const struct load_given *given, uint64_t *handle)
{
	return ((int (*)(uint64_t *, const void *))function)(handle, given->bytes);
}

static int load_path(void *function, const struct load_given *given, uint64_t *handle)
{
	return ((int (*)(uint64_t *, const char *))function)(handle, given->path);
}

static int load_image_options(void *function, const struct load_given *given, uint64_t *handle)
{
	int (*load)(uint64_t *, const void *, unsigned int, int *, void **) = function;

	return load(handle, given->bytes, 0, NULL, NULL);
}

static int load_library(void *function, const void *what, uint64_t *handle)
{
	int (*load)(uint64_t *, const void *, int *, void **, unsigned int, int *, void **, unsigned int) = function;

	return load(handle, what, NULL, NULL, 0, NULL, NULL, 0);
}

static int load_library_image(void *function, const struct load_given *given, uint64_t *handle)
{
	return load_library(function, given->bytes, handle);
}

static int load_library_path(void *function, const struct load_given *given, uint64_t *handle)
{
	return load_library(function, given->path, handle);
}

/* As the compilers write it into a program. HIP's runtime gives its address back as the handle, so it stays. */
struct wrapper {
	uint32_t magic, version;
	const void *binary;
	void *other;
};

static int register_binary(void *function, const struct load_given *given, uint32_t magic, uint64_t *handle)
{
	struct wrapper *wrapper = malloc(sizeof(*wrapper));

	if (!wrapper)
		return -1;
	*wrapper = (struct wrapper){ .magic = magic, .version = 1, .binary = given->bytes };
	return only_handle(((void *(*)(const void *))function)(wrapper), handle);
}

static int register_hip(void *function, const struct load_given *given, uint64_t *handle)
{
	return register_binary(function, given, 0x48495046, handle);
}

static int register_cuda(void *function, const struct load_given *given, uint64_t *handle)
{
	return register_binary(function, given, 0x466243b1, handle);
}

/* ---- the others ---- */

static int load_hsa_memory(void *function, const struct load_given *given, uint64_t *handle)
{
	return ((int (*)(const void *, size_t, uint64_t *))function)(given->bytes, given->size, handle);
}

static int load_hsa_file(void *function, const struct load_given *given, uint64_t *handle)
{
	return ((int (*)(int, uint64_t *))function)(given->descriptor, handle);
}

static int load_neff(void *function, const struct load_given *given, uint64_t *handle)
{
	int (*load)(const void *, size_t, int32_t, int32_t, uint64_t *) = function;

	return load(given->bytes, given->size, 0, -1, handle);
}

static int load_neff_collectives(void *function, const struct load_given *given, uint64_t *handle)
{
	int (*load)(const void *, size_t, int32_t, int32_t, uint32_t, uint32_t, uint64_t *) = function;

	return load(given->bytes, given->size, 0, -1, 0, 1, handle);
}

static int load_qpc(void *function, const struct load_given *given, uint64_t *handle)
{
	return ((int (*)(uint64_t *, const void *, size_t, bool))function)(handle, given->bytes, given->size, true);
}

static int load_level_zero(void *function, const struct load_given *given, uint64_t *handle)
{
	const struct {
		uint32_t type;
		const void *next;
		uint32_t format;
		size_t size;
		const void *input;
		const char *flags;
		const void *constants;
	} description = { .type = 0x1b, .size = given->size, .input = given->bytes };
	int (*load)(void *, void *, const void *, uint64_t *, void **) = function;

	return load(NULL, NULL, &description, handle, NULL);
}

static int load_gguf(void *function, const struct load_given *given, uint64_t *handle)
{
	struct parameters {
		bool no_alloc;
		void **context;
	};
	void *(*load)(const char *, struct parameters) = function;

	return only_handle(load(given->path, (struct parameters){ .no_alloc = true }), handle);
}

static int compile(void *function, const struct load_given *given, uint64_t *handle)
{
	const struct pjrt_program program = { .head = { .struct_size = sizeof(program) },
					      .code = given->bytes,
					      .code_size = given->size,
					      .format = "mlir",
					      .format_size = 4 };
	struct pjrt_compile_args arguments = { .head = { .struct_size = sizeof(arguments) }, .program = &program };
	void *error = ((pjrt_fn *)function)(&arguments);

	*handle = (uintptr_t)arguments.executable;
	return error ? -1 : 0;
}

static int deserialize(void *function, const struct load_given *given, uint64_t *handle)
{
	struct pjrt_deserialize_args arguments = { .head = { .struct_size = sizeof(arguments) },
						   .serialized = given->bytes,
						   .size = given->size };
	void *error = ((pjrt_fn *)function)(&arguments);

	*handle = (uintptr_t)arguments.executable;
	return error ? -1 : 0;
}

/* No load: what the time of one is compared with. The first call with a size only takes memory, and answers 1. */
static int copy(void *function, const struct load_given *given, uint64_t *handle)
{
	static char *to;
	static size_t size;

	(void)function;
	if (!to || size != given->size) {
		free(to);
		size = given->size;
		to = malloc(size);
		if (to)
			memset(to, 1, size);
		return to ? 1 : -1;
	}
	memcpy(to, given->bytes, size);
	*handle = (unsigned char)to[size - 1];
	return 0;
}

static const struct load_function functions[] = {
	{ "hipModuleLoad", FROM_PATH, "hipModuleUnload", load_path },
	{ "hipModuleLoadData", FROM_BYTES, "hipModuleUnload", load_image },
	{ "hipModuleLoadDataEx", FROM_BYTES, "hipModuleUnload", load_image_options },
	{ "__hipRegisterFatBinary", FROM_BYTES, "__hipUnregisterFatBinary", register_hip },
	{ "cuModuleLoad", FROM_PATH, "cuModuleUnload", load_path },
	{ "cuModuleLoadData", FROM_BYTES, "cuModuleUnload", load_image },
	{ "cuModuleLoadDataEx", FROM_BYTES, "cuModuleUnload", load_image_options },
	{ "cuModuleLoadFatBinary", FROM_BYTES, "cuModuleUnload", load_image },
	{ "cuLibraryLoadData", FROM_BYTES, "cuLibraryUnload", load_library_image },
	{ "cuLibraryLoadFromFile", FROM_PATH, "cuLibraryUnload", load_library_path },
	{ "__cudaRegisterFatBinary", FROM_BYTES, "__cudaUnregisterFatBinary", register_cuda },
	{ "hsa_code_object_reader_create_from_memory", FROM_BYTES, "hsa_code_object_reader_destroy", load_hsa_memory },
	{ "hsa_code_object_reader_create_from_file", FROM_DESCRIPTOR, "hsa_code_object_reader_destroy", load_hsa_file },
	{ "nrt_load", FROM_BYTES, "nrt_unload", load_neff },
	{ "nrt_load_collectives", FROM_BYTES, "nrt_unload", load_neff_collectives },
	{ "qaicOpenQpc", FROM_BYTES, "qaicCloseQpc", load_qpc },
	{ "qaicOpenQpcFile", FROM_PATH, "qaicCloseQpc", load_path },
	{ "zeModuleCreate", FROM_BYTES, "zeModuleDestroy", load_level_zero },
	{ "PJRT_Client_Compile", FROM_BYTES, "PJRT_LoadedExecutable_Destroy", compile },
	{ "PJRT_Executable_DeserializeAndLoad", FROM_BYTES, "PJRT_LoadedExecutable_Destroy", deserialize },
	{ "gguf_init_from_file", FROM_PATH, "gguf_free", load_gguf },
	{ "memcpy", FROM_BYTES, NULL, copy },
};

const struct load_function *load_function_find(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i];
	return NULL;
}

static const struct {
	const char *name;
	enum pjrt_slot slot;
} slots[] = {
	{ "PJRT_Client_Compile", PJRT_CLIENT_COMPILE },
	{ "PJRT_Executable_DeserializeAndLoad", PJRT_DESERIALIZE },
	{ "PJRT_LoadedExecutable_Destroy", PJRT_LOADED_DESTROY },
};

void *load_symbol(const char *name)
{
	const struct pjrt_api *(*get_api)(void) = dlsym(RTLD_DEFAULT, "GetPjrtApi");

	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (strcmp(slots[i].name, name) == 0)
			return get_api ? get_api()->slot[slots[i].slot] : NULL;
	return dlsym(RTLD_DEFAULT, name);
}

void load_undo(const char *name, void *function, uint64_t handle)
{
	struct pjrt_handle_args arguments = { .head = { .struct_size = sizeof(arguments) },
					      .handle = (void *)(uintptr_t)handle };

	if (strncmp(name, "PJRT_", 5) == 0)
		((pjrt_fn *)function)(&arguments);
	else
		((int (*)(uint64_t))function)(handle);
}

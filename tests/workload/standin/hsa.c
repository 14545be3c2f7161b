/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for the HSA runtime: names, argument positions and status values of libhsa-runtime64.so.1. The exported
 * memory functions are thunks through a table, as the real ones are.
 */
#include <stdlib.h>

#include "device.h"

#define HSA_STATUS_SUCCESS 0
#define HSA_STATUS_ERROR_INVALID_ARGUMENT 0x1001
#define HSA_STATUS_ERROR_OUT_OF_RESOURCES 0x1008
#define HSA_STATUS_ERROR_INVALID_CODE_OBJECT 0x1010
#define HSA_STATUS_ERROR_INVALID_FILE 0x1020
#define SYMBOL_KERNEL_OBJECT 22

struct hsa_queue {
	uint32_t type;
	uint32_t features;
	void *base_address;
	uint64_t doorbell;
	uint32_t size;
	uint32_t reserved;
	uint64_t id;
};

_Static_assert(offsetof(struct hsa_queue, doorbell) == 16, "layout of a queue");
_Static_assert(offsetof(struct hsa_queue, size) == 24, "layout of a queue");
_Static_assert(offsetof(struct hsa_queue, id) == 32, "layout of a queue");

static int make(uint64_t *handle)
{
	struct object *object = object_new();

	if (!object)
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	*handle = (uintptr_t)object;
	return HSA_STATUS_SUCCESS;
}

static struct object *of(uint64_t handle)
{
	return (struct object *)(uintptr_t)handle;
}

STANDIN_API int hsa_init(void)
{
	return HSA_STATUS_SUCCESS;
}

STANDIN_API int hsa_shut_down(void)
{
	return HSA_STATUS_SUCCESS;
}

STANDIN_API int hsa_queue_create(uint64_t agent, uint32_t size, uint32_t type, void *callback, void *data,
				 uint32_t private_size, uint32_t group_size, struct hsa_queue **queue)
{
	struct hsa_queue *made = calloc(1, sizeof(*made));

	(void)agent;
	(void)callback;
	(void)data;
	(void)private_size;
	(void)group_size;
	if (!made || make(&made->doorbell)) {
		free(made);
		return HSA_STATUS_ERROR_OUT_OF_RESOURCES;
	}
	made->size = size;
	made->type = type;
	*queue = made;
	return HSA_STATUS_SUCCESS;
}

STANDIN_API int hsa_queue_destroy(struct hsa_queue *queue)
{
	object_free(of(queue->doorbell));
	free(queue);
	return HSA_STATUS_SUCCESS;
}

STANDIN_API int hsa_signal_create(int64_t initial, uint32_t count, const void *consumers, uint64_t *signal)
{
	(void)initial;
	(void)count;
	(void)consumers;
	return make(signal);
}

STANDIN_API int hsa_signal_destroy(uint64_t signal)
{
	object_free(of(signal));
	return HSA_STATUS_SUCCESS;
}

/* On a doorbell: the queue has a new packet. */
STANDIN_API void hsa_signal_store_screlease(uint64_t signal, int64_t value)
{
	of(signal)->value = value;
	of(signal)->last = device_submit();
}

STANDIN_API void hsa_signal_store_release(uint64_t signal, int64_t value)
	__attribute__((alias("hsa_signal_store_screlease")));

STANDIN_API int64_t hsa_signal_wait_scacquire(uint64_t signal, int condition, int64_t value, uint64_t timeout, int hint)
{
	(void)condition;
	(void)timeout;
	(void)hint;
	device_wait(of(signal)->last);
	return value;
}

STANDIN_API int64_t hsa_signal_wait_acquire(uint64_t signal, int condition, int64_t value, uint64_t timeout, int hint)
	__attribute__((alias("hsa_signal_wait_scacquire")));

static int pool_allocate(uint64_t pool, size_t size, uint32_t flags, void **address)
{
	(void)pool;
	(void)flags;
	if (!size)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	*address = malloc(size);
	return *address ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_OUT_OF_RESOURCES;
}

static int pool_free(void *address)
{
	free(address);
	return HSA_STATUS_SUCCESS;
}

static int async_copy(void *destination, uint64_t destination_agent, const void *source, uint64_t source_agent,
		      size_t size, uint32_t count, const uint64_t *dependencies, uint64_t signal)
{
	(void)destination;
	(void)destination_agent;
	(void)source;
	(void)source_agent;
	(void)count;
	(void)dependencies;
	if (!size)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	of(signal)->last = device_submit();
	return HSA_STATUS_SUCCESS;
}

/* Not const: the real table can be replaced by tools, so the thunks load it. */
static struct {
	int (*allocate)(uint64_t, size_t, uint32_t, void **);
	int (*free)(void *);
	int (*copy)(void *, uint64_t, const void *, uint64_t, size_t, uint32_t, const uint64_t *, uint64_t);
} *volatile memory_table = &(typeof(*memory_table)){ pool_allocate, pool_free, async_copy };

STANDIN_API int hsa_amd_memory_pool_allocate(uint64_t pool, size_t size, uint32_t flags, void **address)
{
	return memory_table->allocate(pool, size, flags, address);
}

STANDIN_API int hsa_amd_memory_pool_free(void *address)
{
	return memory_table->free(address);
}

STANDIN_API int hsa_amd_memory_async_copy(void *destination, uint64_t destination_agent, const void *source,
					  uint64_t source_agent, size_t size, uint32_t count,
					  const uint64_t *dependencies, uint64_t signal)
{
	return memory_table->copy(destination, destination_agent, source, source_agent, size, count, dependencies,
				  signal);
}

STANDIN_API int hsa_code_object_reader_create_from_memory(const void *code, size_t size, uint64_t *reader)
{
	if (!code || !size)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	return code_given(code) ? make(reader) : HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}

STANDIN_API int hsa_code_object_reader_create_from_file(int file, uint64_t *reader)
{
	if (file < 0)
		return HSA_STATUS_ERROR_INVALID_FILE;
	return code_given(NULL) ? make(reader) : HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
}

STANDIN_API int hsa_code_object_reader_destroy(uint64_t reader)
{
	object_free(of(reader));
	return HSA_STATUS_SUCCESS;
}

STANDIN_API int hsa_executable_create_alt(int profile, int rounding, const char *options, uint64_t *executable)
{
	(void)profile;
	(void)rounding;
	(void)options;
	return make(executable);
}

STANDIN_API int hsa_executable_load_agent_code_object(uint64_t executable, uint64_t agent, uint64_t reader,
						      const char *options, uint64_t *loaded)
{
	(void)executable;
	(void)agent;
	(void)options;
	if (loaded)
		*loaded = reader;
	return reader ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

STANDIN_API int hsa_executable_freeze(uint64_t executable, const char *options)
{
	(void)options;
	return executable ? HSA_STATUS_SUCCESS : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

STANDIN_API int hsa_executable_destroy(uint64_t executable)
{
	object_free(of(executable));
	return HSA_STATUS_SUCCESS;
}

STANDIN_API int hsa_executable_get_symbol_by_name(uint64_t executable, const char *name, const uint64_t *agent,
						  uint64_t *symbol)
{
	(void)name;
	(void)agent;
	return executable ? make(symbol) : HSA_STATUS_ERROR_INVALID_ARGUMENT;
}

STANDIN_API int hsa_executable_symbol_get_info(uint64_t symbol, int attribute, void *value)
{
	if (attribute != SYMBOL_KERNEL_OBJECT)
		return HSA_STATUS_ERROR_INVALID_ARGUMENT;
	*(uint64_t *)value = symbol;
	return HSA_STATUS_SUCCESS;
}

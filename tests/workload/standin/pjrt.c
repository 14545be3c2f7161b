/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Stand-in for a PJRT plugin: exports GetPjrtApi only. The table is in zeroed memory and filled by the first call, so
 * it cannot be read from the file. Slot numbers and the layouts of the argument structs are those of the C API.
 */
#include "pjrt.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "device.h"

static struct pjrt_api table;
static pthread_once_t filled = PTHREAD_ONCE_INIT;
static int failure; /* its address is the error object */

static void *client_create(struct pjrt_client_args *args)
{
	args->client = object_new();
	return args->client ? NULL : &failure;
}

static void *client_destroy(struct pjrt_handle_args *args)
{
	object_free(args->handle);
	return NULL;
}

static void *client_compile(struct pjrt_compile_args *args)
{
	struct object *executable;

	if (!args->program || !args->program->code_size || !code_given(args->program->code))
		return &failure;
	executable = object_new();
	if (!executable)
		return &failure;
	executable->value = (uintptr_t)args->program->code;
	args->executable = executable;
	return NULL;
}

static void *deserialize(struct pjrt_deserialize_args *args)
{
	if (!args->serialized || !args->size || !code_given(args->serialized))
		return &failure;
	args->executable = object_new();
	return args->executable ? NULL : &failure;
}

/* The loaded executable and the executable are two handles of one thing. */
static void *loaded_get_executable(struct pjrt_get_executable_args *args)
{
	struct object *executable = object_new();

	if (!executable)
		return &failure;
	executable->other = args->loaded;
	args->executable = executable;
	return NULL;
}

/* The first bytes of the program's code are its name, up to a newline; not terminated, as in the real API. */
static void *executable_name(struct pjrt_name_args *args)
{
	const struct object *executable = args->executable;
	const char *code = (const char *)(uintptr_t)executable->other->value;
	size_t length = 0;

	while (code[length] && code[length] != '\n')
		length++;
	args->name = code;
	args->size = length;
	return NULL;
}

/* Four functions, as in a real plugin, and not one in four slots. The compiler would put them together. */
#define DESTROY(name)                                                            \
	__attribute__((no_icf)) static void *name(struct pjrt_handle_args *args) \
	{                                                                        \
		object_free(args->handle);                                       \
		return NULL;                                                     \
	}

DESTROY(event_destroy)
DESTROY(executable_destroy)
DESTROY(loaded_destroy)
DESTROY(buffer_destroy)

static void *execute(struct pjrt_execute_args *args)
{
	struct object *executable = args->executable;
	uint64_t sequence;

	if (!executable || !executable->used || device_fails())
		return &failure;
	sequence = device_submit();
	for (size_t i = 0; args->device_complete_events && i < args->num_devices; i++) {
		struct object *event = object_new();

		if (!event)
			return &failure;
		event->last = sequence;
		args->device_complete_events[i] = event;
	}
	return NULL;
}

static void *event_await(struct pjrt_handle_args *args)
{
	const struct object *event = args->handle;

	device_wait(event->last);
	return NULL;
}

static void *buffer_from_host(struct pjrt_from_host_args *args)
{
	struct object *buffer = object_new();
	struct object *event = object_new();

	if (!buffer || !event)
		return &failure;
	event->last = device_submit();
	args->buffer = buffer;
	args->done_event = event;
	return NULL;
}

static void *buffer_to_host(struct pjrt_to_host_args *args)
{
	struct object *event = object_new();

	if (!event)
		return &failure;
	event->last = device_submit();
	args->event = event;
	return NULL;
}

/* STANDIN_FILL_MS: how long it takes, as where a plugin looks for its devices first. */
static void fill(void)
{
	const char *milliseconds = getenv("STANDIN_FILL_MS");

	if (milliseconds)
		usleep(1000 * (useconds_t)strtoul(milliseconds, NULL, 10));
	table.struct_size = sizeof(table);
	table.version_size = 24;
	table.minor = 70;
	table.slot[PJRT_EVENT_DESTROY] = (pjrt_fn *)event_destroy;
	table.slot[PJRT_EVENT_AWAIT] = (pjrt_fn *)event_await;
	table.slot[PJRT_CLIENT_CREATE] = (pjrt_fn *)client_create;
	table.slot[PJRT_CLIENT_DESTROY] = (pjrt_fn *)client_destroy;
	table.slot[PJRT_CLIENT_COMPILE] = (pjrt_fn *)client_compile;
	table.slot[PJRT_BUFFER_FROM_HOST] = (pjrt_fn *)buffer_from_host;
	table.slot[PJRT_EXECUTABLE_DESTROY] = (pjrt_fn *)executable_destroy;
	table.slot[PJRT_EXECUTABLE_NAME] = (pjrt_fn *)executable_name;
	table.slot[PJRT_LOADED_DESTROY] = (pjrt_fn *)loaded_destroy;
	table.slot[PJRT_LOADED_GET_EXECUTABLE] = (pjrt_fn *)loaded_get_executable;
	table.slot[PJRT_LOADED_EXECUTE] = (pjrt_fn *)execute;
	table.slot[PJRT_DESERIALIZE] = (pjrt_fn *)deserialize;
	table.slot[PJRT_BUFFER_DESTROY] = (pjrt_fn *)buffer_destroy;
	table.slot[PJRT_BUFFER_TO_HOST] = (pjrt_fn *)buffer_to_host;
}

STANDIN_API const struct pjrt_api *GetPjrtApi(void)
{
	pthread_once(&filled, fill);
	return &table;
}

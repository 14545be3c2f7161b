/* SPDX-License-Identifier: BSD-2-Clause */
/* The part of the PJRT C API that the stand-in plugin has: slots of its table and the structs that they take. */
#ifndef STANDIN_PJRT_H
#define STANDIN_PJRT_H

#include <stddef.h>
#include <stdint.h>

enum pjrt_slot {
	PJRT_EVENT_DESTROY = 5,
	PJRT_EVENT_AWAIT = 8,
	PJRT_CLIENT_CREATE = 10,
	PJRT_CLIENT_DESTROY = 11,
	PJRT_CLIENT_COMPILE = 20,
	PJRT_BUFFER_FROM_HOST = 22,
	PJRT_EXECUTABLE_DESTROY = 40,
	PJRT_EXECUTABLE_NAME = 41,
	PJRT_LOADED_DESTROY = 50,
	PJRT_LOADED_GET_EXECUTABLE = 51,
	PJRT_LOADED_EXECUTE = 55,
	PJRT_DESERIALIZE = 56,
	PJRT_BUFFER_DESTROY = 58,
	PJRT_BUFFER_TO_HOST = 70,
	PJRT_SLOTS = 104,
};

typedef void *pjrt_fn(void *args); /* NULL: success; else an error object */

struct pjrt_api {
	size_t struct_size;
	void *extension_start;
	size_t version_size;
	void *version_extension;
	int32_t major, minor;
	pjrt_fn *slot[PJRT_SLOTS];
};

/* Every argument struct begins so. */
struct pjrt_head {
	size_t struct_size;
	void *extension_start;
};

struct pjrt_handle_args {
	struct pjrt_head head;
	void *handle;
};

struct pjrt_client_args {
	struct pjrt_head head;
	const void *create_options;
	size_t num_options;
	void *callbacks[4];
	void *client;
};

struct pjrt_program {
	struct pjrt_head head;
	const char *code;
	size_t code_size;
	const char *format;
	size_t format_size;
};

struct pjrt_compile_args {
	struct pjrt_head head;
	void *client;
	const struct pjrt_program *program;
	const char *options;
	size_t options_size;
	void *executable; /* out */
};

struct pjrt_deserialize_args {
	struct pjrt_head head;
	void *client;
	const char *serialized;
	size_t size;
	void *executable; /* out */
};

struct pjrt_name_args {
	struct pjrt_head head;
	void *executable;
	const char *name; /* out, not terminated */
	size_t size;	  /* out */
};

struct pjrt_get_executable_args {
	struct pjrt_head head;
	void *loaded;
	void *executable; /* out */
};

struct pjrt_execute_args {
	struct pjrt_head head;
	void *executable;
	const void *options;
	const void *argument_lists;
	size_t num_devices;
	size_t num_args;
	void *output_lists;
	void **device_complete_events; /* array of num_devices, written */
	void *execute_device;
};

struct pjrt_from_host_args {
	struct pjrt_head head;
	void *client;
	const void *data;
	int32_t type;
	const int64_t *dims;
	size_t num_dims;
	const int64_t *strides;
	size_t num_strides;
	int32_t semantics;
	void *device;
	void *memory;
	void *layout;
	void *done_event; /* out */
	void *buffer;	  /* out */
};

struct pjrt_to_host_args {
	struct pjrt_head head;
	void *source;
	void *host_layout;
	void *destination;
	size_t destination_size;
	void *event; /* out */
};

#define PJRT_AT(type, field, offset) _Static_assert(offsetof(struct type, field) == (offset), #type " " #field)
PJRT_AT(pjrt_api, minor, 36);
PJRT_AT(pjrt_api, slot, 40);
PJRT_AT(pjrt_program, code_size, 24);
PJRT_AT(pjrt_compile_args, executable, 48);
PJRT_AT(pjrt_deserialize_args, executable, 40);
PJRT_AT(pjrt_name_args, size, 32);
PJRT_AT(pjrt_execute_args, num_devices, 40);
PJRT_AT(pjrt_execute_args, device_complete_events, 64);
PJRT_AT(pjrt_from_host_args, num_dims, 48);
PJRT_AT(pjrt_from_host_args, done_event, 104);
PJRT_AT(pjrt_from_host_args, buffer, 112);
PJRT_AT(pjrt_to_host_args, destination_size, 40);
PJRT_AT(pjrt_to_host_args, event, 48);

#endif

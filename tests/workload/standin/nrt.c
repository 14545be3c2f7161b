/* SPDX-License-Identifier: BSD-2-Clause */
/* Stand-in for the AWS Neuron runtime: names, argument positions and status values of libnrt.so.1. */
#include "device.h"

#define NRT_SUCCESS 0
#define NRT_INVALID 2
#define NRT_INVALID_HANDLE 3
#define NRT_RESOURCE 4
#define NRT_EXEC_BAD_INPUT 1002

#define COMPUTE_UNIT (3ull << 48) /* of a sequence number: the execution unit */

STANDIN_API int nrt_init(int framework, const char *framework_version, const char *fal_version)
{
	(void)framework_version;
	(void)fal_version;
	return framework ? NRT_SUCCESS : NRT_INVALID;
}

STANDIN_API void nrt_close(void)
{
}

static int model_new(const void *neff, size_t size, int32_t vnc, struct object **model)
{
	if (!neff || !size || !code_given(neff))
		return NRT_INVALID;
	*model = object_new();
	if (!*model)
		return NRT_RESOURCE;
	(*model)->core = vnc;
	return NRT_SUCCESS;
}

STANDIN_API int nrt_load(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, struct object **model)
{
	(void)vnc_count;
	return model_new(neff, size, vnc, model);
}

STANDIN_API int nrt_load_collectives(const void *neff, size_t size, int32_t vnc, int32_t vnc_count, uint32_t device,
				     uint32_t device_count, struct object **model)
{
	(void)vnc_count;
	return device < device_count ? model_new(neff, size, vnc, model) : NRT_INVALID;
}

STANDIN_API int nrt_unload(struct object *model)
{
	if (!model || !model->used)
		return NRT_INVALID_HANDLE;
	object_free(model);
	return NRT_SUCCESS;
}

STANDIN_API int nrt_execute(struct object *model, const void *inputs, void *outputs)
{
	int error;

	(void)inputs;
	(void)outputs;
	if (!model || !model->used)
		return NRT_INVALID_HANDLE;
	error = device_wait(device_launch());
	return device_fails() || error ? NRT_EXEC_BAD_INPUT : NRT_SUCCESS;
}

STANDIN_API int nrt_execute_repeat(struct object *model, const void *inputs, void *outputs, int repeat_count)
{
	(void)inputs;
	(void)outputs;
	if (!model || !model->used)
		return NRT_INVALID_HANDLE;
	for (int i = 0; i < repeat_count; i++)
		device_run();
	return device_fails() ? NRT_EXEC_BAD_INPUT : NRT_SUCCESS;
}

STANDIN_API int nrt_tensor_allocate(int placement, int vnc, size_t size, const char *name, struct object **tensor)
{
	(void)placement;
	(void)name;
	*tensor = object_new();
	if (!*tensor)
		return NRT_RESOURCE;
	(*tensor)->core = vnc;
	(*tensor)->value = size;
	return NRT_SUCCESS;
}

STANDIN_API void nrt_tensor_free(struct object **tensor)
{
	object_free(*tensor);
	*tensor = NULL;
}

static int transfer(const struct object *tensor, size_t offset, size_t size)
{
	if (!tensor || !tensor->used)
		return NRT_INVALID_HANDLE;
	return offset + size <= tensor->value ? NRT_SUCCESS : NRT_INVALID;
}

STANDIN_API int nrt_tensor_read(const struct object *tensor, void *buffer, size_t offset, size_t size)
{
	(void)buffer;
	return transfer(tensor, offset, size);
}

STANDIN_API int nrt_tensor_write(struct object *tensor, const void *buffer, size_t offset, size_t size)
{
	(void)buffer;
	return transfer(tensor, offset, size);
}

STANDIN_API int nrt_tensor_copy(const struct object *source, size_t source_offset, struct object *destination,
				size_t destination_offset, size_t size)
{
	int status = transfer(source, source_offset, size);

	return status ? status : transfer(destination, destination_offset, size);
}

static int schedule(uint64_t unit, int *error, uint64_t *sequence)
{
	*error = NRT_SUCCESS;
	*sequence = unit | device_submit();
	return NRT_SUCCESS;
}

STANDIN_API int nrta_execute_schedule(struct object *model, const void *inputs, void *outputs, int queue, int *error,
				      uint64_t *sequence)
{
	(void)inputs;
	(void)outputs;
	if (!model || !model->used)
		return NRT_INVALID_HANDLE;
	if (queue != 0 || device_fails())
		return NRT_INVALID;
	*error = NRT_SUCCESS;
	*sequence = COMPUTE_UNIT | device_launch();
	return NRT_SUCCESS;
}

STANDIN_API int nrta_tensor_write(struct object *tensor, const void *buffer, size_t offset, size_t size, int queue,
				  int *error, uint64_t *sequence)
{
	int status = transfer(tensor, offset, size);

	(void)buffer;
	(void)queue;
	return status ? status : schedule(1ull << 48, error, sequence);
}

STANDIN_API int nrta_tensor_read(void *buffer, struct object *tensor, size_t offset, size_t size, int queue, int *error,
				 uint64_t *sequence)
{
	int status = transfer(tensor, offset, size);

	(void)buffer;
	(void)queue;
	return status ? status : schedule(0, error, sequence);
}

STANDIN_API int nrta_tensor_copy(struct object *source, size_t source_offset, struct object *destination,
				 size_t destination_offset, size_t size, int queue, int *error, uint64_t *sequence)
{
	int status = nrt_tensor_copy(source, source_offset, destination, destination_offset, size);

	(void)queue;
	return status ? status : schedule(2ull << 48, error, sequence);
}

STANDIN_API int nrta_is_completed(uint64_t sequence, bool *completed)
{
	*completed = device_done(sequence & ((1ull << 48) - 1));
	return NRT_SUCCESS;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Stand-in for the Qualcomm Cloud AI runtime: names, argument positions and status values of libQAic.so. */
#include "device.h"

#define QS_SUCCESS 0
#define QS_NOMEM 3
#define QS_INVAL 6
#define QS_DEV_ERROR 300

static int make(struct object **result, struct object *from, int core)
{
	*result = object_new();
	if (!*result)
		return QS_NOMEM;
	(*result)->other = from;
	(*result)->core = core;
	return QS_SUCCESS;
}

static int release(struct object *object)
{
	if (!object || !object->used)
		return QS_INVAL;
	object_free(object);
	return QS_SUCCESS;
}

STANDIN_API int qaicCreateContext(struct object **context, const void *properties, uint32_t devices, const int32_t *ids,
				  void *log, void *log_user, void *error, void *error_user)
{
	(void)properties;
	(void)log;
	(void)log_user;
	(void)error;
	(void)error_user;
	return make(context, NULL, devices ? ids[0] : -1);
}

STANDIN_API int qaicReleaseContext(struct object *context)
{
	return release(context);
}

STANDIN_API int qaicOpenQpc(struct object **qpc, const uint8_t *buffer, size_t size, bool copy)
{
	(void)copy;
	return buffer && size && code_given(buffer) ? make(qpc, NULL, 0) : QS_INVAL;
}

STANDIN_API int qaicOpenQpcFile(struct object **qpc, const char *path)
{
	return path && code_given(NULL) ? make(qpc, NULL, 0) : QS_INVAL;
}

STANDIN_API int qaicCloseQpc(struct object *qpc)
{
	return release(qpc);
}

STANDIN_API int qaicCreateProgram(struct object *context, struct object **program, const void *properties, int32_t id,
				  const char *name, struct object *qpc)
{
	(void)context;
	(void)properties;
	(void)name;
	return qpc ? make(program, qpc, id) : QS_INVAL;
}

STANDIN_API int qaicLoadProgram(struct object *program)
{
	return program && program->used ? QS_SUCCESS : QS_INVAL;
}

STANDIN_API int qaicRunActivationCmd(struct object *program, int command)
{
	return program && program->used && (command == 0 || command == 1) ? QS_SUCCESS : QS_INVAL;
}

STANDIN_API int qaicUnloadProgram(struct object *program)
{
	return program && program->used ? QS_SUCCESS : QS_INVAL;
}

STANDIN_API int qaicReleaseProgram(struct object *program)
{
	return release(program);
}

STANDIN_API int qaicCreateQueue(struct object *context, struct object **queue, const void *properties, int32_t id)
{
	(void)properties;
	return make(queue, context, id);
}

STANDIN_API int qaicReleaseQueue(struct object *queue)
{
	return release(queue);
}

STANDIN_API int qaicCreateExecObj(struct object *context, struct object **exec, const void *properties,
				  struct object *program, const void *data)
{
	(void)context;
	(void)properties;
	(void)data;
	return program ? make(exec, program, program->core) : QS_INVAL;
}

STANDIN_API int qaicReleaseExecObj(struct object *exec)
{
	return release(exec);
}

STANDIN_API int qaicExecObjSetData(struct object *exec, uint32_t count, const void *buffers)
{
	return exec && count && buffers ? QS_SUCCESS : QS_INVAL;
}

STANDIN_API int qaicEnqueueExecObj(struct object *queue, struct object *exec, struct object *event)
{
	if (!queue || !exec || !exec->used)
		return QS_INVAL;
	if (device_fails())
		return QS_DEV_ERROR;
	exec->last = device_launch();
	if (event)
		event->last = exec->last;
	return QS_SUCCESS;
}

STANDIN_API int qaicExecObjWaitForCompletion(struct object *exec, uint32_t timeout)
{
	(void)timeout;
	if (!exec || !exec->used)
		return QS_INVAL;
	return device_wait(exec->last) ? QS_DEV_ERROR : QS_SUCCESS;
}

STANDIN_API int qaicCreateEvent(struct object *context, struct object **event, int type)
{
	(void)type;
	return make(event, context, 0);
}

STANDIN_API int qaicWaitforEvent(struct object *event)
{
	if (!event || !event->used)
		return QS_INVAL;
	return device_wait(event->last) ? QS_DEV_ERROR : QS_SUCCESS;
}

STANDIN_API int qaicReleaseEvent(struct object *event)
{
	return release(event);
}

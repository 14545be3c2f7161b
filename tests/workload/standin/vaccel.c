/* SPDX-License-Identifier: BSD-2-Clause */
/* Stand-in for vAccel: names, argument positions, struct layouts and status values of libvaccel.so. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"

struct vaccel_session {
	int64_t id;
	int64_t remote_id;
	uint32_t hint;
	bool is_virtio;
	char rundir[4096];
};

struct vaccel_resource {
	int64_t id;
	int64_t remote_id;
	uint32_t type;
	uint32_t path_type;
	char **paths;
	size_t nr_paths;
};

struct vaccel_prof_region {
	const char *name;
	bool name_owned;
	size_t nr_entries;
	void *samples;
	size_t size;
};

_Static_assert(offsetof(struct vaccel_session, rundir) == 21, "layout of a session");
_Static_assert(offsetof(struct vaccel_resource, paths) == 24, "layout of a resource");
_Static_assert(sizeof(struct vaccel_prof_region) == 40, "layout of a region");

STANDIN_API int vaccel_session_new(struct vaccel_session **session, uint32_t flags)
{
	*session = calloc(1, sizeof(**session));
	if (!*session)
		return ENOMEM;
	(*session)->id = 1;
	(*session)->hint = flags;
	return 0;
}

STANDIN_API int vaccel_session_delete(struct vaccel_session *session)
{
	if (!session)
		return EINVAL;
	free(session);
	return 0;
}

STANDIN_API int vaccel_resource_new(struct vaccel_resource **resource, const char *path, int type)
{
	struct vaccel_resource *made = calloc(1, sizeof(*made));

	if (!made)
		return ENOMEM;
	made->type = type;
	made->nr_paths = 1;
	made->paths = calloc(1, sizeof(*made->paths));
	if (made->paths)
		made->paths[0] = strdup(path);
	*resource = made;
	return made->paths && made->paths[0] ? 0 : ENOMEM;
}

STANDIN_API int vaccel_resource_delete(struct vaccel_resource *resource)
{
	if (!resource)
		return EINVAL;
	free(resource->paths[0]);
	free(resource->paths);
	free(resource);
	return 0;
}

STANDIN_API int vaccel_resource_register(struct vaccel_resource *resource, struct vaccel_session *session)
{
	return resource && session ? 0 : EINVAL;
}

STANDIN_API int vaccel_resource_unregister(struct vaccel_resource *resource, struct vaccel_session *session)
{
	return resource && session ? 0 : EINVAL;
}

static int operate(const struct vaccel_session *session, const struct vaccel_resource *resource)
{
	if (!session || !resource)
		return EINVAL;
	device_run();
	return device_fails() ? EIO : 0;
}

STANDIN_API int vaccel_tf_model_load(struct vaccel_session *session, struct vaccel_resource *model, void *status)
{
	(void)status;
	return session && model ? 0 : EINVAL;
}

STANDIN_API int vaccel_tf_model_run(struct vaccel_session *session, struct vaccel_resource *model, const void *options,
				    const void *in_nodes, void *const *in, int nr_inputs, const void *out_nodes,
				    void **out, int nr_outputs, void *status)
{
	(void)options;
	(void)in_nodes;
	(void)in;
	(void)nr_inputs;
	(void)out_nodes;
	(void)out;
	(void)nr_outputs;
	(void)status;
	return operate(session, model);
}

STANDIN_API int vaccel_tf_model_unload(struct vaccel_session *session, struct vaccel_resource *model, void *status)
{
	(void)status;
	return session && model ? 0 : EINVAL;
}

STANDIN_API int vaccel_torch_model_load(struct vaccel_session *session, struct vaccel_resource *model)
{
	return session && model ? 0 : EINVAL;
}

STANDIN_API int vaccel_torch_model_run(struct vaccel_session *session, struct vaccel_resource *model,
				       const void *options, void **in, int nr_read, void **out, int nr_write)
{
	(void)options;
	(void)in;
	(void)nr_read;
	(void)out;
	(void)nr_write;
	return operate(session, model);
}

STANDIN_API int vaccel_exec(struct vaccel_session *session, const char *library, const char *function, void *read,
			    size_t nr_read, void *write, size_t nr_write)
{
	(void)library;
	(void)function;
	(void)read;
	(void)nr_read;
	(void)write;
	(void)nr_write;
	return session ? 0 : EINVAL;
}

/* The regions never look at the name: the hostile workload passes bad ones. */
STANDIN_API int vaccel_prof_region_init(struct vaccel_prof_region *region, const char *name)
{
	memset(region, 0, sizeof(*region));
	region->name = name;
	return 0;
}

STANDIN_API int vaccel_prof_region_start(struct vaccel_prof_region *region)
{
	region->nr_entries++;
	return 0;
}

STANDIN_API int vaccel_prof_region_stop(const struct vaccel_prof_region *region)
{
	return region->nr_entries ? 0 : EINVAL;
}

STANDIN_API int vaccel_prof_region_release(struct vaccel_prof_region *region)
{
	memset(region, 0, sizeof(*region));
	return 0;
}

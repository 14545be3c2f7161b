/* SPDX-License-Identifier: BSD-2-Clause */
/* Stand-in for vAccel: names, argument positions, struct layouts and status values of libvaccel.so. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

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

struct vaccel_blob {
	uint32_t type;
	char *name;
	char *path;
	bool path_owned;
	uint8_t *data;
	bool data_owned;
	size_t size;
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
_Static_assert(offsetof(struct vaccel_blob, name) == 8, "layout of a blob");
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

/* Exported, and called below through its name, as in the library. */
STANDIN_API int vaccel_resource_init_from_blobs(struct vaccel_resource *resource, const struct vaccel_blob **blobs,
						size_t count, int type)
{
	if (!blobs || !count)
		return EINVAL;
	resource->type = type;
	resource->nr_paths = 1;
	resource->paths = calloc(1, sizeof(*resource->paths));
	if (resource->paths)
		resource->paths[0] = strdup(blobs[0]->path);
	return resource->paths && resource->paths[0] ? 0 : ENOMEM;
}

STANDIN_API int vaccel_resource_from_blobs(struct vaccel_resource **resource, const struct vaccel_blob **blobs,
					   size_t count, int type)
{
	*resource = calloc(1, sizeof(**resource));
	return *resource ? vaccel_resource_init_from_blobs(*resource, blobs, count, type) : ENOMEM;
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

/*
 * Regions. With profiling off, as it is unless the environment asks for it, every function returns at once: what was
 * initialised keeps whatever lay in its memory.
 */
struct vaccel_prof_sample {
	uint64_t start, time; /* ns */
};

static uint64_t prof_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return now.tv_sec * 1000000000ull + now.tv_nsec;
}

static bool prof_enabled(void)
{
	const char *now = getenv("VACCEL_PROFILING_ENABLED"), *before = getenv("VACCEL_PROF_ENABLED");

	return (now && !strcmp(now, "1")) || (before && !strcmp(before, "enabled"));
}

STANDIN_API bool vaccel_prof_enabled(void)
{
	return prof_enabled();
}

STANDIN_API int vaccel_prof_region_init(struct vaccel_prof_region *region, const char *name)
{
	if (!prof_enabled())
		return 0;
	*region = (struct vaccel_prof_region){ .name = strdup(name ? name : ""), .name_owned = true };
	return region->name ? 0 : ENOMEM;
}

static int sample_start(struct vaccel_prof_region *region)
{
	struct vaccel_prof_sample *samples = region->samples;

	if (region->nr_entries == region->size) {
		region->size = region->size ? region->size * 2 : 1024;
		samples = realloc(samples, region->size * sizeof(*samples));
		if (!samples)
			return ENOMEM;
		region->samples = samples;
	}
	samples[region->nr_entries++] = (struct vaccel_prof_sample){ .start = prof_now() };
	return 0;
}

static int sample_stop(const struct vaccel_prof_region *region)
{
	struct vaccel_prof_sample *samples = region->samples;

	if (!region->nr_entries)
		return EINVAL;
	samples += region->nr_entries - 1;
	samples->time = prof_now() - samples->start;
	return 0;
}

STANDIN_API int vaccel_prof_region_start(struct vaccel_prof_region *region)
{
	return prof_enabled() ? sample_start(region) : 0;
}

STANDIN_API int vaccel_prof_region_stop(const struct vaccel_prof_region *region)
{
	return prof_enabled() ? sample_stop(region) : 0;
}

/* Of several with that name it is the last. */
static struct vaccel_prof_region *region_named(struct vaccel_prof_region *regions, int count, const char *name)
{
	struct vaccel_prof_region *found = NULL;

	for (int i = 0; i < count; i++)
		if (!strcmp(regions[i].name, name))
			found = &regions[i];
	return found;
}

STANDIN_API int vaccel_prof_regions_start_by_name(struct vaccel_prof_region *regions, int count, const char *name)
{
	struct vaccel_prof_region *region = prof_enabled() ? region_named(regions, count, name) : NULL;

	return region ? sample_start(region) : 0;
}

STANDIN_API int vaccel_prof_regions_stop_by_name(struct vaccel_prof_region *regions, int count, const char *name)
{
	struct vaccel_prof_region *region = prof_enabled() ? region_named(regions, count, name) : NULL;

	return region ? sample_stop(region) : 0;
}

static int region_write(FILE *out, const struct vaccel_prof_region *region)
{
	const struct vaccel_prof_sample *samples = region->samples;
	uint64_t total = 0;

	for (size_t i = 0; i < region->nr_entries; i++)
		total += samples[i].time;
	return fprintf(out, "[prof] %s: total_time: %" PRIu64 " nsec nr_entries: %zu\n", region->name, total,
		       region->nr_entries);
}

STANDIN_API int vaccel_prof_region_print(const struct vaccel_prof_region *region)
{
	if (prof_enabled())
		region_write(stderr, region);
	return 0;
}

STANDIN_API int vaccel_prof_regions_print_all(const struct vaccel_prof_region *regions, int count)
{
	for (int i = 0; i < count && prof_enabled(); i++)
		region_write(stderr, &regions[i]);
	return 0;
}

/* The bytes that all lines have. */
STANDIN_API int vaccel_prof_regions_print_all_to_buf(char **buffer, size_t size,
						     const struct vaccel_prof_region *regions, int count)
{
	FILE *out = prof_enabled() ? fmemopen(*buffer, size, "w") : NULL;
	int length = 0;

	for (int i = 0; i < count && out; i++)
		length += region_write(out, &regions[i]);
	if (out)
		fclose(out);
	return length;
}

static int region_release(struct vaccel_prof_region *region)
{
	if (!prof_enabled())
		return 0;
	if (region->name_owned)
		free((char *)region->name);
	free(region->samples);
	memset(region, 0, sizeof(*region));
	return 0;
}

STANDIN_API int vaccel_prof_region_release(struct vaccel_prof_region *region)
{
	return region_release(region);
}

STANDIN_API int vaccel_prof_regions_release(struct vaccel_prof_region *regions, int count)
{
	for (int i = 0; i < count; i++)
		vaccel_prof_region_release(&regions[i]);
	return 0;
}

/* Until version 0.6 these two were called so. */
STANDIN_API int vaccel_prof_region_destroy(struct vaccel_prof_region *region)
{
	return region_release(region);
}

STANDIN_API int vaccel_prof_regions_clear(struct vaccel_prof_region *regions, int count)
{
	for (int i = 0; i < count; i++)
		vaccel_prof_region_destroy(&regions[i]);
	return 0;
}

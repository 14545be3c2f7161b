/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/polled.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/vec.h"
#include "counter/counter.h"
#include "counter/pmu.h"

/* ---- sysfs: counters that drivers have as files of the device's folder, each with one decimal number ---- */

struct file_counter {
	const char *driver; /* as the device's link to its driver names it; NULL: any */
	const char *file;   /* below the device's folder; may have wildcards */
	struct polled_info info;
};

/*
 * Of several rows with one name the first with an existing file counts.
 *
 * ivpu's driver is bound as intel_vpu; its later files came with later kernels. amdgpu, hwmon: the chip decides which
 * files there are.
 */
static const struct file_counter counters[] = {
	{ "intel_vpu",
	  "npu_busy_time_us",
	  { "ivpu", "busy-time", "s", "time in which the NPU had jobs to execute", 1e-6, false } },
	{ "intel_vpu", "npu_memory_utilization", { "ivpu", "memory-used", "B", "memory in use by the NPU", 1, true } },
	{ "intel_vpu",
	  "npu_current_frequency_mhz",
	  { "ivpu", "frequency", "MHz", "frequency of the NPU's data processing unit; 0 while it sleeps", 1, true } },
	{ "amdgpu", "gpu_busy_percent", { "amdgpu", "busy", "%", "how busy the GPU is", 1, true } },
	{ "amdgpu", "mem_busy_percent", { "amdgpu", "memory-busy", "%", "how busy the GPU's memory is", 1, true } },
	{ "amdgpu", "mem_info_vram_used", { "amdgpu", "memory-used", "B", "the GPU's own memory in use", 1, true } },
	{ NULL, "hwmon/hwmon*/energy1_input", { "hwmon", "energy", "J", "energy that the device took", 1e-6, false } },
	{ "xe",
	  "hwmon/hwmon*/energy2_input",
	  { "hwmon", "energy-package", "J", "energy that the package took, without the rest of the card", 1e-6,
	    false } },
	{ NULL,
	  "hwmon/hwmon*/power1_average",
	  { "hwmon", "power", "W", "power that the device takes, over a short time", 1e-6, true } },
	{ NULL,
	  "hwmon/hwmon*/power1_input",
	  { "hwmon", "power", "W", "power that the device takes at the moment", 1e-6, true } },
	{ NULL, "hwmon/hwmon*/freq1_input", { "hwmon", "frequency", "Hz", "frequency of the device", 1, true } },
};
#define COUNTER_COUNT (sizeof(counters) / sizeof(counters[0]))

struct files {
	struct polled polled;
	char **paths;
	size_t count;
};

/* Whether the file's neighbour "name" has the driver's name: the kernel's word for the sensors of the whole device. */
static bool is_of_device(const char *file, const char *driver)
{
	char name[SYSFS_FILE_MAX];

	return sysfs_read(name, "%.*s/name", (int)(strrchr(file, '/') - file), file) > 0 && strcmp(name, driver) == 0;
}

/* The counter's file of a device; *path is NULL when it has none. i915 has sensors for the device and for each part. */
static int find_file(const struct node *node, const struct file_counter *counter, char **path)
{
	char pattern[PATH_MAX];
	glob_t found = { 0 };
	size_t chosen = 0;
	int error;

	*path = NULL;
	if ((counter->driver && strcmp(counter->driver, node->driver)) ||
	    snprintf(pattern, sizeof(pattern), "%s/%s", node->sysfs, counter->file) >= (int)sizeof(pattern))
		return 0;
	error = glob(pattern, 0, NULL, &found) == GLOB_NOSPACE ? -ENOMEM : 0;
	if (!error && found.gl_pathc) {
		for (size_t i = 0; found.gl_pathc > 1 && i < found.gl_pathc; i++)
			if (is_of_device(found.gl_pathv[i], node->driver)) {
				chosen = i;
				break;
			}
		*path = strdup(found.gl_pathv[chosen]);
		if (!*path)
			error = -ENOMEM;
	}
	globfree(&found);
	return error;
}

/* The file of the first row of that name that a device has; *row is left alone when it has none. */
static int find_named(const struct node *node, const char *source, const char *event, const struct file_counter **row,
		      char **path)
{
	int error = 0;

	*path = NULL;
	for (size_t i = 0; !error && !*path && i < COUNTER_COUNT; i++) {
		if (!polled_is(&counters[i].info, source, event))
			continue;
		error = find_file(node, &counters[i], path);
		if (*path)
			*row = &counters[i];
	}
	return error;
}

static void paths_free(struct files *files)
{
	for (size_t i = 0; i < files->count; i++)
		free(files->paths[i]);
	free(files->paths);
}

/* *row is the row of the first device that has one; NULL when there is none. */
static int find_files(const struct counter_place *place, const char *source, const char *event,
		      const struct file_counter **row, struct files *files)
{
	const struct file_counter *other = NULL;
	const struct node *node;
	int error = 0;

	*row = NULL;
	for (size_t i = 0; !error && (node = polled_node(place, i)); i++) {
		char *path;

		error = find_named(node, source, event, *row ? &other : row, &path);
		if (error || !path)
			continue;
		error = vec_push(files->paths, files->count, path);
		if (error)
			free(path);
	}
	return error;
}

static bool was_before(size_t row)
{
	for (size_t i = 0; i < row; i++)
		if (polled_is(&counters[i].info, counters[row].info.source, counters[row].info.event))
			return true;
	return false;
}

static int list(const struct counter_place *place, polled_visit visit, void *context)
{
	int result = 0;

	for (size_t i = 0; !result && i < COUNTER_COUNT; i++) {
		const struct file_counter *row;
		struct files files = { 0 };

		if (was_before(i))
			continue;
		result = find_files(place, counters[i].info.source, counters[i].info.event, &row, &files);
		paths_free(&files);
		if (!result && row)
			result = visit(context, &row->info);
	}
	return result;
}

/* Opens a file only: reading may wake the device, or fail as long as it sleeps. */
static int check_file(const struct log *log, const char *path)
{
	int file = open(path, O_RDONLY | O_CLOEXEC), error = errno;

	if (file >= 0) {
		close(file);
		return 0;
	}
	if (error == EACCES || error == EPERM) {
		log_error(log, "%s: may not be read: try sudo", path);
		return -EACCES;
	}
	log_error(log, "%s: cannot be read: %s", path, strerror(error));
	return error == ENOMEM ? -ENOMEM : -ENODEV;
}

static void close_files(struct polled *polled)
{
	paths_free((struct files *)polled);
	free(polled);
}

static int open_files(const struct counter_place *place, const char *source, const char *event,
		      struct polled_info *info, struct polled **result)
{
	struct files *files = calloc(1, sizeof(*files));
	const struct file_counter *row;
	int error;

	if (!files)
		return -ENOMEM;
	error = find_files(place, source, event, &row, files);
	if (!error && !row)
		error = -ENOENT;
	for (size_t i = 0; !error && i < files->count; i++)
		error = check_file(place->log, files->paths[i]);
	if (error) {
		close_files(&files->polled);
		return error;
	}
	*info = row->info;
	*result = &files->polled;
	return 0;
}

static int read_files(struct polled *polled, __u64 *raw)
{
	const struct files *files = (struct files *)polled;
	int error = 0;

	*raw = 0;
	for (size_t i = 0; !error && i < files->count; i++) {
		__u64 value = 0;

		error = sysfs_read_number(&value, "%s", files->paths[i]);
		*raw += value;
	}
	return error == -ENOENT || error == -ENODEV || error == -ENXIO ? -ENODEV : error ? -EIO : 0;
}

static const struct polled_source polled_sysfs = { list, open_files, read_files, close_files };

/* ---- all sources ---- */

static const struct polled_source *const sources[] = { &polled_sysfs, &polled_fdinfo, &polled_nvml };
#define SOURCE_COUNT (sizeof(sources) / sizeof(sources[0]))

bool polled_is(const struct polled_info *info, const char *source, const char *event)
{
	return !strcmp(info->source, source) && !strcmp(info->event, event);
}

const struct node *polled_node(const struct counter_place *place, size_t index)
{
	if (place->node)
		return index ? NULL : place->node;
	return index < place->nodes.count ? &place->nodes.items[index] : NULL;
}

int polled_list(const struct counter_place *place, polled_visit visit, void *context)
{
	int result = 0;

	for (size_t i = 0; !result && i < SOURCE_COUNT; i++)
		result = sources[i]->list(place, visit, context);
	return result;
}

int polled_open(const struct counter_place *place, const char *source, const char *event, struct polled_info *info,
		struct polled **result)
{
	int error = -ENOENT;

	for (size_t i = 0; error == -ENOENT && i < SOURCE_COUNT; i++) {
		error = sources[i]->open(place, source, event, info, result);
		if (!error) {
			(*result)->source = sources[i];
			(*result)->level = info->level;
		}
	}
	return error;
}

int polled_read(struct polled *polled, __u64 *raw)
{
	int error = polled->source->read(polled, raw);

	if (error || polled->level)
		return error;
	/* The value of a driver may decrease, for a while or by starting anew; a difference must not be negative. */
	if (*raw < polled->highest)
		*raw = polled->highest;
	polled->highest = *raw;
	return 0;
}

void polled_close(struct polled *polled)
{
	if (polled)
		polled->source->close(polled);
}

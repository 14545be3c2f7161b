/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/vec.h"
#include "describe/reader/builtin.h"
#include "describe/runtime/function_regions.h"
#include "describe/reader/reader.h"

/* A registry while it is put together. */
struct builder {
	const struct log *log;
	struct registry *registry;
	__u64 from_user; /* bit i: runtime i came from a file, not from the built-in ones */
};

static ssize_t find(const struct registry *registry, const char *name)
{
	for (size_t i = 0; i < registry->runtime_count; i++)
		if (strcmp(registry->runtimes[i]->name, name) == 0)
			return i;
	return -1;
}

const struct description *registry_find(const struct registry *registry, const char *name)
{
	ssize_t found = find(registry, name);

	return found < 0 ? NULL : registry->runtimes[found];
}

/* Takes the description over, also when it fails. */
static int add(struct builder *builder, struct description *description, bool from_user)
{
	struct registry *registry = builder->registry;
	ssize_t found = find(registry, description->name);

	if (found >= 0 && (!from_user || builder->from_user & 1ull << found)) {
		log_error(builder->log, "%s: runtime: '%s' is already described by %s", description->file,
			  description->name, registry->runtimes[found]->file);
		description_free(description);
		return -EINVAL;
	}
	if (found >= 0) {
		log_debug(builder->log, "%s: replaces the built-in description of '%s'", description->file,
			  description->name);
		description_free(registry->runtimes[found]);
		registry->runtimes[found] = description;
		builder->from_user |= 1ull << found;
		return 0;
	}
	if (registry->runtime_count == XPT_RUNTIME_MAX) {
		log_error(builder->log, "%s: more than %d runtimes are described", description->file, XPT_RUNTIME_MAX);
		description_free(description);
		return -E2BIG;
	}
	if (vec_reserve(registry->runtimes, registry->runtime_count)) {
		description_free(description);
		return -ENOMEM;
	}
	builder->from_user |= (__u64)from_user << registry->runtime_count;
	registry->runtimes[registry->runtime_count++] = description;
	return 0;
}

static int add_file(struct builder *builder, const char *path)
{
	struct description *description;
	size_t length;
	char *text;
	int error = reader_file(builder->log, path, &text, &length);

	if (error)
		return error;
	error = description_parse(builder->log, path, text, length, &description);
	free(text);
	return error ? error : add(builder, description, true);
}

static int add_builtins(struct builder *builder)
{
	for (size_t i = 0; i < builtin_file_count; i++) {
		const struct builtin_file *file = &builtin_files[i];
		struct description *description;
		int error = description_parse(builder->log, file->name, file->text, file->length, &description);

		if (!error)
			error = add(builder, description, false);
		if (error)
			return error;
	}
	return 0;
}

/* All names in `over` are known. Before some runtimes are left out: those may be named all the same. */
static int check_over(const struct log *log, const struct registry *registry)
{
	for (size_t i = 0; i < registry->runtime_count; i++) {
		const struct description *runtime = registry->runtimes[i];

		for (size_t j = 0; j < runtime->over_count; j++) {
			if (find(registry, runtime->over[j]) >= 0)
				continue;
			log_error(log, "%s:%u: over[%zu]: no runtime '%s' is described", runtime->file,
				  runtime->over_line, j, runtime->over[j]);
			return -EINVAL;
		}
	}
	return 0;
}

static int unknown_runtime(const struct log *log, const struct registry *registry, const char *name)
{
	char known[900] = "";
	size_t used = 0;

	for (size_t i = 0; i < registry->runtime_count && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, " %s", registry->runtimes[i]->name);
	log_error(log, "unknown runtime '%.40s' (known:%s)", name, known);
	return -ENOENT;
}

/* Drops the runtimes that are not in only. */
static int keep_only(const struct log *log, struct registry *registry, const char *const *only, size_t only_count)
{
	size_t kept = 0;

	for (size_t i = 0; i < only_count; i++)
		if (find(registry, only[i]) < 0)
			return unknown_runtime(log, registry, only[i]);
	for (size_t i = 0; i < registry->runtime_count; i++) {
		struct description *runtime = registry->runtimes[i];
		bool wanted = false;

		for (size_t j = 0; j < only_count && !wanted; j++)
			wanted = strcmp(only[j], runtime->name) == 0;
		if (wanted)
			registry->runtimes[kept++] = runtime;
		else
			description_free(runtime);
	}
	registry->runtime_count = kept;
	return 0;
}

static __u64 over_mask(const struct registry *registry, const struct description *runtime)
{
	__u64 mask = 0;

	for (size_t i = 0; i < runtime->over_count; i++) {
		ssize_t found = find(registry, runtime->over[i]);

		if (found >= 0)
			mask |= 1ull << found;
	}
	return mask;
}

static void number_spec(struct registry *registry, struct description *runtime, struct call_spec *spec)
{
	spec->wire.index = registry->spec_count;
	spec->code.index = registry->spec_count;
	spec->wire.runtime = runtime->index;
	if (spec->wire.over)
		spec->wire.flags |= XPT_SPEC_AROUND;
	registry->specs[registry->spec_count] = spec;
	registry->spec_runtime[registry->spec_count++] = runtime;
}

static int number_specs(const struct log *log, struct registry *registry)
{
	size_t total = 0;

	for (size_t i = 0; i < registry->runtime_count; i++)
		total += registry->runtimes[i]->call_count + registry->runtimes[i]->operators.method_count;
	if (total > XPT_SPEC_MAX) {
		log_error(log, "%zu functions are described; %d are the most", total, XPT_SPEC_MAX);
		return -E2BIG;
	}
	registry->specs = calloc(total + 1, sizeof(*registry->specs));
	registry->spec_runtime = calloc(total + 1, sizeof(*registry->spec_runtime));
	if (!registry->specs || !registry->spec_runtime)
		return -ENOMEM;
	for (size_t i = 0; i < registry->runtime_count; i++) {
		struct description *runtime = registry->runtimes[i];
		__u64 over = over_mask(registry, runtime);

		runtime->index = i;
		for (size_t j = 0; j < runtime->call_count; j++) {
			runtime->calls[j].wire.over = over;
			number_spec(registry, runtime, &runtime->calls[j]);
		}
		for (size_t j = 0; j < runtime->operators.method_count; j++)
			number_spec(registry, runtime, &runtime->operators.methods[j].call);
	}
	return 0;
}

static int add_regions(struct builder *builder, const struct registry_options *options)
{
	struct description *description;
	int error;

	if (!options->region_count)
		return 0;
	error = function_regions_describe(builder->log, options->regions, options->region_count, &description);
	return error ? error : add(builder, description, true);
}

int registry_create(const struct log *log, const struct registry_options *options, struct registry **result)
{
	struct registry *registry = calloc(1, sizeof(*registry));
	struct builder builder = { log, registry, 0 };
	int error = registry ? add_builtins(&builder) : -ENOMEM;

	*result = NULL;
	for (size_t i = 0; i < options->file_count && !error; i++)
		error = add_file(&builder, options->files[i]);
	if (!error)
		error = check_over(log, registry);
	if (!error && options->only)
		error = keep_only(log, registry, options->only, options->only_count);
	if (!error)
		error = add_regions(&builder, options);
	if (!error)
		error = number_specs(log, registry);
	if (error) {
		registry_free(registry);
		return error;
	}
	*result = registry;
	return 0;
}

void registry_free(struct registry *registry)
{
	if (!registry)
		return;
	for (size_t i = 0; i < registry->runtime_count; i++)
		description_free(registry->runtimes[i]);
	free(registry->runtimes);
	free(registry->specs);
	free(registry->spec_runtime);
	free(registry);
}

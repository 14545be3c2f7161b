/* SPDX-License-Identifier: BSD-2-Clause */
#include "describe/runtime/registry.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/json.h"

#define REGIONS_SOURCE "--region" /* in messages, in place of a file's name */

static struct description *description_of(struct described *described)
{
	return container_of(described, struct description, described);
}

/* All names in `over` are known. Before some runtimes are left out: those may be named all the same. */
static int check_over(const struct collection *runtimes)
{
	for (size_t i = 0; i < runtimes->count; i++) {
		const struct description *runtime = description_of(runtimes->items[i]);

		for (size_t j = 0; j < runtime->over_count; j++) {
			if (collection_find(runtimes, runtime->over[j]))
				continue;
			log_error(runtimes->log, "%s:%u: over[%zu]: no runtime '%s' is described", runtime->file,
				  runtime->over_line, j, runtime->over[j]);
			return -EINVAL;
		}
	}
	return 0;
}

static int unknown_runtime(const struct collection *runtimes, const char *name)
{
	char known[900] = "";
	size_t used = 0;

	for (size_t i = 0; i < runtimes->count && used < sizeof(known); i++)
		used += snprintf(known + used, sizeof(known) - used, " %s", runtimes->items[i]->name);
	log_error(runtimes->log, "unknown runtime '%.40s' (known:%s)", name, known);
	return -ENOENT;
}

/* Drops the runtimes that are not in only. */
static int keep_only(struct collection *runtimes, const char *const *only, size_t only_count)
{
	size_t kept = 0;

	for (size_t i = 0; i < only_count; i++)
		if (!collection_find(runtimes, only[i]))
			return unknown_runtime(runtimes, only[i]);
	for (size_t i = 0; i < runtimes->count; i++) {
		struct described *runtime = runtimes->items[i];
		bool wanted = false;

		for (size_t j = 0; j < only_count && !wanted; j++)
			wanted = strcmp(only[j], runtime->name) == 0;
		if (wanted)
			runtimes->items[kept++] = runtime;
		else
			description_free(description_of(runtime));
	}
	runtimes->count = kept;
	return 0;
}

/* ---- functions of any program that are regions ---- */

static int add_call(const struct log *log, struct text *json, const char *region)
{
	const char *colon = strchr(region, ':');
	char *file;

	if (!colon || colon == region || colon[1] == ':' || !colon[1]) {
		log_error(log, "region '%s': expected FILE:FUNCTION, such as 'libdecode.so*:decode_*'", region);
		return -EINVAL;
	}
	file = strndup(region, (size_t)(colon - region));
	if (!file)
		return -ENOMEM;
	json_begin(json, NULL, '{');
	json_add_string(json, "symbol", colon + 1);
	json_add_string(json, "file", file);
	json_add_string(json, "role", "region");
	json_end(json, '}');
	free(file);
	return 0;
}

int function_regions_describe(const struct log *log, const char *const *regions, size_t count,
			      struct description **result)
{
	struct text json = {};
	int error = 0;

	json_begin(&json, NULL, '{');
	json_add_unsigned(&json, "schema", 1);
	json_add_string(&json, "runtime", "function");
	json_add_string(&json, "title", "Functions");
	json_begin(&json, "calls", '[');
	for (size_t i = 0; i < count && !error; i++)
		error = add_call(log, &json, regions[i]);
	json_end(&json, ']');
	json_end(&json, '}');
	if (!error)
		error = json.error ?: description_parse(log, REGIONS_SOURCE, json.data, json.length, result);
	text_free(&json);
	return error;
}

static int add_regions(struct collection *runtimes, const struct registry_options *options)
{
	struct description *description;
	int error;

	if (!options->region_count)
		return 0;
	error = function_regions_describe(runtimes->log, options->regions, options->region_count, &description);
	if (error)
		return error;
	description->from_user = true;
	return collection_add(runtimes, &description->described);
}

/* ---- numbers ---- */

static ssize_t find(const struct registry *registry, const char *name)
{
	for (size_t i = 0; i < registry->runtime_count; i++)
		if (strcmp(registry->runtimes[i]->name, name) == 0)
			return i;
	return -1;
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

/* ---- registries ---- */

/* Takes the descriptions over. */
static int take_runtimes(struct registry *registry, struct collection *runtimes)
{
	registry->runtimes = calloc(runtimes->count + 1, sizeof(*registry->runtimes));
	if (!registry->runtimes)
		return -ENOMEM;
	for (; registry->runtime_count < runtimes->count; registry->runtime_count++)
		registry->runtimes[registry->runtime_count] = description_of(runtimes->items[registry->runtime_count]);
	runtimes->count = 0;
	return number_specs(runtimes->log, registry);
}

int registry_create(const struct log *log, const struct registry_options *options, struct registry **result)
{
	struct collection runtimes = { .kind = &runtime_descriptions, .log = log };
	struct registry *registry = calloc(1, sizeof(*registry));
	int error = registry ? collection_read(&runtimes, options->files, options->file_count) : -ENOMEM;

	if (!error)
		error = check_over(&runtimes);
	if (!error && options->only)
		error = keep_only(&runtimes, options->only, options->only_count);
	if (!error)
		error = add_regions(&runtimes, options);
	if (!error)
		error = take_runtimes(registry, &runtimes);
	collection_free(&runtimes);
	if (error)
		registry_free(registry);
	*result = error ? NULL : registry;
	return error;
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

const struct description *registry_find(const struct registry *registry, const char *name)
{
	ssize_t found = find(registry, name);

	return found < 0 ? NULL : registry->runtimes[found];
}

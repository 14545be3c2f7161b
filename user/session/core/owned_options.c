/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/core/owned_options.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/options.h"

/* A list of strings among the options. */
struct strings {
	const char *const **list;
	size_t *count;
};

#define STRING_LISTS 6

static void string_lists(struct xpt_session_options *options, struct strings lists[STRING_LISTS])
{
	lists[0] = (struct strings){ &options->runtime_files, &options->runtime_file_count };
	lists[1] = (struct strings){ &options->runtimes, &options->runtime_count };
	lists[2] = (struct strings){ &options->driver_files, &options->driver_file_count };
	lists[3] = (struct strings){ &options->counters, &options->counter_count };
	lists[4] = (struct strings){ &options->regions, &options->region_count };
	lists[5] = (struct strings){ &options->process_names, &options->process_name_count };
}

/* Replaces a string of the caller's by a copy. */
static int own_string(const char **string)
{
	if (!*string)
		return 0;
	*string = strdup(*string);
	return *string ? 0 : -ENOMEM;
}

/* As far as it gets, the list and its count hold what is owned. */
static int own_strings(const struct strings *strings)
{
	const char *const *given = *strings->list;
	size_t count = *strings->count;
	const char **owned;

	*strings->list = NULL;
	*strings->count = 0;
	if (!count)
		return 0;
	if (!given)
		return -EINVAL;
	owned = calloc(count, sizeof(*owned));
	*strings->list = owned;
	for (size_t i = 0; owned && i < count; i++) {
		if (!given[i])
			return -EINVAL;
		owned[i] = strdup(given[i]);
		if (!owned[i])
			return -ENOMEM;
		*strings->count = i + 1;
	}
	return owned ? 0 : -ENOMEM;
}

static int own_pids(struct xpt_session_options *options, const pid_t *given, size_t count)
{
	pid_t *owned;

	if (!count)
		return 0;
	if (!given)
		return -EINVAL;
	owned = reallocarray(NULL, count, sizeof(*owned));
	if (!owned)
		return -ENOMEM;
	memcpy(owned, given, count * sizeof(*owned));
	options->pids = owned;
	options->pid_count = count;
	return 0;
}

static int own_names(struct xpt_session_options *options, const struct xpt_handle_name *given, size_t count,
		     size_t stride)
{
	struct xpt_handle_name *owned;
	int error;

	if (!count)
		return 0;
	if (!given)
		return -EINVAL;
	owned = calloc(count, sizeof(*owned));
	options->names = owned;
	for (size_t i = 0; owned && i < count; i++) {
		error = options_copy_element(&owned[i], sizeof(owned[i]), given, stride, i);
		if (error || !owned[i].name)
			return error ?: -EINVAL;
		owned[i].name = strdup(owned[i].name);
		if (!owned[i].name)
			return -ENOMEM;
		options->name_count = i + 1;
	}
	return owned ? 0 : -ENOMEM;
}

int owned_options_copy(struct xpt_session_options *options, const struct xpt_session_options *given)
{
	struct strings lists[STRING_LISTS];
	struct xpt_session_options from = {};
	int error = options_copy(&from, sizeof(from), given);

	*options = (struct xpt_session_options){};
	if (error)
		return error;
	*options = from;
	options->size = sizeof(*options);
	/* What has not been copied must not be freed. */
	options->pids = NULL;
	options->pid_count = 0;
	options->names = NULL;
	options->name_count = 0;
	options->name_size = sizeof(*options->names);
	string_lists(options, lists);
	for (size_t i = 0; i < STRING_LISTS; i++) {
		int failed = own_strings(&lists[i]);

		error = error ?: failed;
	}
	if (own_string(&options->drivers) | own_string(&options->tracefs))
		error = error ?: -ENOMEM;
	if (!error)
		error = own_pids(options, from.pids, from.pid_count);
	if (!error)
		error = own_names(options, from.names, from.name_count, from.name_size);
	if (error)
		owned_options_free(options);
	return error;
}

void owned_options_free(struct xpt_session_options *options)
{
	struct strings lists[STRING_LISTS];

	string_lists(options, lists);
	for (size_t i = 0; i < STRING_LISTS; i++) {
		for (size_t j = 0; j < *lists[i].count; j++)
			free((char *)(*lists[i].list)[j]);
		free((const char **)*lists[i].list);
	}
	for (size_t i = 0; i < options->name_count; i++)
		free((char *)options->names[i].name);
	free((struct xpt_handle_name *)options->names);
	free((pid_t *)options->pids);
	free((char *)options->drivers);
	free((char *)options->tracefs);
	*options = (struct xpt_session_options){};
}

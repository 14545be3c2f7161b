/* SPDX-License-Identifier: BSD-2-Clause */
/* xpt_inspect_options_*() */
#include "session/inspect/options.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "session/collect/collector.h"
#include "session/core/owned_options.h"

#define DEFAULT_SESSION 1
#define DEFAULT_OUTPUT "./output"
#define DEFAULT_EVENTS 1000000u

/* ---- settings ---- */

int inspect_settings_set_session_id(struct inspect_settings *settings, __s64 id)
{
	if (id < 0 || id > INT_MAX)
		return -EINVAL;
	settings->session_id = (int)id;
	return 0;
}

int inspect_settings_set_max_events(struct inspect_settings *settings, __u64 events)
{
	if (!events || events > XPT_INSPECT_EVENTS_MAX)
		return -EINVAL;
	settings->max_events_per_core = events;
	return 0;
}

int inspect_settings_set_core(struct inspect_settings *settings, __u32 core, bool enabled)
{
	__u8 bit = 1u << core % 8;

	if (core == XPT_INSPECT_ALL_CORES) {
		memset(settings->cores, enabled ? 0xff : 0, sizeof(settings->cores));
		settings->other_cores = enabled;
		return 0;
	}
	if (core >= XPT_INSPECT_CORES)
		return -EINVAL;
	if (enabled)
		settings->cores[core / 8] |= bit;
	else
		settings->cores[core / 8] &= ~bit;
	return 0;
}

static __u32 with_bits(__u32 all, __u32 bits, bool set)
{
	return set ? all | bits : all & ~bits;
}

void inspect_settings_set_activities(struct inspect_settings *settings, __u32 activities, bool enabled)
{
	settings->activities = with_bits(settings->activities, activities, enabled);
}

static void set_defaults(struct inspect_settings *settings)
{
	*settings = (struct inspect_settings){
		.session_id = DEFAULT_SESSION,
		.max_events_per_core = DEFAULT_EVENTS,
		.types = INSPECT_ALL_TYPES,
		.activities = INSPECT_ALL_ACTIVITIES,
	};
	inspect_settings_set_core(settings, XPT_INSPECT_ALL_CORES, true);
}

/* ---- the object ---- */

/* Lists anew what is enabled. */
static void list_names(struct xpt_inspect_options *options)
{
	const struct xpt_inspect_event_type *types = xpt_inspect_event_types(NULL);
	const struct xpt_inspect_activity *activities = xpt_inspect_activities(NULL);
	size_t count = 0;

	for (size_t i = 0; i < INSPECT_TYPES; i++)
		if (options->settings.types & 1u << i)
			options->type_names[count++] = types[i].name;
	options->type_names[count] = NULL;
	count = 0;
	for (size_t i = 0; i < INSPECT_ACTIVITIES; i++)
		if (options->settings.activities & 1u << i)
			options->activity_names[count++] = activities[i].name;
	options->activity_names[count] = NULL;
}

int inspect_options_take(struct xpt_inspect_options *options, const struct inspect_settings *settings,
			 const char *output_dir)
{
	int error = output_dir ? xpt_inspect_options_set_output_dir(options, output_dir) : 0;

	if (error)
		return error;
	options->settings = *settings;
	list_names(options);
	return 0;
}

int xpt_inspect_options_create(struct xpt_inspect_options **result)
{
	struct xpt_inspect_options *options;
	int error;

	if (!result)
		return -EINVAL;
	options = calloc(1, sizeof(*options));
	error = options ? xpt_inspect_options_defaults(options) : -ENOMEM;
	if (error) {
		xpt_inspect_options_free(options);
		return error;
	}
	*result = options;
	return 0;
}

int xpt_inspect_options_defaults(struct xpt_inspect_options *options)
{
	struct inspect_settings settings;
	int error;

	if (!options)
		return -EINVAL;
	set_defaults(&settings);
	error = inspect_options_take(options, &settings, DEFAULT_OUTPUT);
	if (error)
		return error;
	owned_options_free(&options->targets);
	return xpt_inspect_options_set_owner(options, geteuid(), getegid());
}

void xpt_inspect_options_free(struct xpt_inspect_options *options)
{
	if (!options)
		return;
	owned_options_free(&options->targets);
	free(options->output_dir);
	free(options);
}

/* ---- setters ---- */

int xpt_inspect_options_set_targets(struct xpt_inspect_options *options, const struct xpt_session_options *given)
{
	struct xpt_session_options targets;
	int error = options ? owned_options_copy(&targets, given) : -EINVAL;

	if (error)
		return error;
	error = collector_check_options(&(struct collector_options){ COLLECTOR_OPTIONS(&targets) });
	if (error) {
		owned_options_free(&targets);
		return error;
	}
	owned_options_free(&options->targets);
	options->targets = targets;
	return 0;
}

int xpt_inspect_options_set_owner(struct xpt_inspect_options *options, uid_t user, gid_t group)
{
	if (!options)
		return -EINVAL;
	options->user = user;
	options->group = group;
	return 0;
}

int xpt_inspect_options_set_session_id(struct xpt_inspect_options *options, int id)
{
	return options ? inspect_settings_set_session_id(&options->settings, id) : -EINVAL;
}

int xpt_inspect_options_set_output_dir(struct xpt_inspect_options *options, const char *path)
{
	char *copy;

	if (!options || !path || !path[0])
		return -EINVAL;
	if (strlen(path) >= PATH_MAX)
		return -ENAMETOOLONG;
	copy = strdup(path);
	if (!copy)
		return -ENOMEM;
	free(options->output_dir);
	options->output_dir = copy;
	return 0;
}

int xpt_inspect_options_set_max_events_per_core(struct xpt_inspect_options *options, uint64_t events)
{
	return options ? inspect_settings_set_max_events(&options->settings, events) : -EINVAL;
}

int xpt_inspect_options_set_core(struct xpt_inspect_options *options, uint32_t core, int enabled)
{
	return options ? inspect_settings_set_core(&options->settings, core, enabled) : -EINVAL;
}

int xpt_inspect_options_set_event_type(struct xpt_inspect_options *options, const char *name, int enabled)
{
	__u32 types = options && name ? inspect_types_from_name(name) : 0;

	if (!types)
		return -EINVAL;
	options->settings.types = with_bits(options->settings.types, types, enabled);
	list_names(options);
	return 0;
}

int xpt_inspect_options_set_activity(struct xpt_inspect_options *options, const char *name, int enabled)
{
	__u32 activities = options && name ? inspect_activities_from_name(name) : 0;

	if (!activities)
		return -EINVAL;
	inspect_settings_set_activities(&options->settings, activities, enabled);
	list_names(options);
	return 0;
}

int xpt_inspect_options_set_inspect(struct xpt_inspect_options *options, int enabled)
{
	if (!options)
		return -EINVAL;
	options->settings.inspect = enabled;
	return 0;
}

int xpt_inspect_options_set_on_fail(struct xpt_inspect_options *options, int enabled)
{
	if (!options)
		return -EINVAL;
	options->settings.on_fail = enabled;
	return 0;
}

/* ---- getters ---- */

const char *const *xpt_inspect_options_event_types(const struct xpt_inspect_options *options, size_t *count)
{
	if (count)
		*count = options ? (size_t)__builtin_popcount(options->settings.types) : 0;
	return options ? options->type_names : NULL;
}

const char *const *xpt_inspect_options_activities(const struct xpt_inspect_options *options, size_t *count)
{
	if (count)
		*count = options ? (size_t)__builtin_popcount(options->settings.activities) : 0;
	return options ? options->activity_names : NULL;
}

bool inspect_settings_wants_core(const struct inspect_settings *settings, __s64 core)
{
	if (core < 0 || core >= XPT_INSPECT_CORES)
		return settings->other_cores;
	return settings->cores[core / 8] & 1u << core % 8;
}

bool inspect_settings_wants_type(const struct inspect_settings *settings, enum inspect_type type)
{
	return settings->types & 1u << type && settings->activities & 1u << inspect_activity_of_type(type);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/continuous/options.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profile/trigger/trigger.h"
#include "session/core/owned_options.h"

#define SAMPLE_MAX 1000000u
#define COUNTERS_EVERY_MIN 100000ull
#define COUNTERS_EVERY_MAX 3600000000000ull
#define NAME_MAX_LENGTH 64

int xpt_continuous_options_create(struct xpt_continuous_options **result)
{
	struct xpt_continuous_options *options = calloc(1, sizeof(*options));

	if (!options)
		return -ENOMEM;
	options->user = geteuid();
	options->group = getegid();
	options->window_bytes = XPT_WINDOW_BYTES;
	options->window_time = XPT_WINDOW_TIME;
	options->sample_every = 1;
	options->after = XPT_SAVE_AFTER;
	options->cooldown = XPT_SAVE_COOLDOWN;
	options->files = XPT_SAVE_FILES;
	options->bytes = XPT_SAVE_BYTES;
	options->directory = strdup(XPT_CONTINUOUS_DIR);
	if (!options->directory) {
		free(options);
		return -ENOMEM;
	}
	*result = options;
	return 0;
}

void xpt_continuous_options_free(struct xpt_continuous_options *options)
{
	if (!options)
		return;
	if (options->has_targets)
		owned_options_free(&options->targets);
	for (size_t i = 0; i < options->trigger_count; i++)
		free(options->triggers[i]);
	free(options->directory);
	free(options->name);
	free(options);
}

int xpt_continuous_options_set_targets(struct xpt_continuous_options *options,
				       const struct xpt_session_options *targets)
{
	struct xpt_session_options copy;
	int error = owned_options_copy(&copy, targets);

	if (error)
		return error;
	if (options->has_targets)
		owned_options_free(&options->targets);
	options->targets = copy;
	options->has_targets = true;
	return 0;
}

static int set_string(char **string, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*string);
	*string = copy;
	return 0;
}

int xpt_continuous_options_set_output_dir(struct xpt_continuous_options *options, const char *directory)
{
	if (!directory || !*directory)
		return -EINVAL;
	if (strlen(directory) >= PATH_MAX)
		return -ENAMETOOLONG;
	return set_string(&options->directory, directory);
}

void xpt_continuous_options_set_owner(struct xpt_continuous_options *options, uid_t user, gid_t group)
{
	options->user = user;
	options->group = group;
}

int xpt_continuous_options_set_window(struct xpt_continuous_options *options, uint64_t bytes, uint64_t time)
{
	if (bytes < XPT_WINDOW_BYTES_MIN || bytes > XPT_WINDOW_BYTES_MAX)
		return -EINVAL;
	if (time && (time < XPT_WINDOW_TIME_MIN || time > XPT_WINDOW_TIME_MAX))
		return -EINVAL;
	options->window_bytes = bytes;
	options->window_time = time;
	return 0;
}

int xpt_continuous_options_set_level(struct xpt_continuous_options *options, enum xpt_level level)
{
	if (level != XPT_LEVEL_STANDARD && level != XPT_LEVEL_BASIC && level != XPT_LEVEL_DETAILED)
		return -EINVAL;
	options->level = level;
	return 0;
}

int xpt_continuous_options_set_sampling(struct xpt_continuous_options *options, unsigned int sample_every)
{
	if (!sample_every || sample_every > SAMPLE_MAX)
		return -EINVAL;
	options->sample_every = sample_every;
	return 0;
}

int xpt_continuous_options_set_counters(struct xpt_continuous_options *options, uint64_t every, int per_inference)
{
	if (every < COUNTERS_EVERY_MIN || every > COUNTERS_EVERY_MAX)
		return -EINVAL;
	options->counters_every = every;
	options->counters_per_inference = per_inference;
	return 0;
}

/* It becomes a part of a path. */
static bool is_name(const char *name)
{
	size_t length = strlen(name);

	if (!length || length > NAME_MAX_LENGTH || *name == '.')
		return false;
	for (; *name; name++) {
		if (!isascii((unsigned char)*name) || !(isalnum((unsigned char)*name) || strchr("-_.", *name)))
			return false;
	}
	return true;
}

int xpt_continuous_options_set_name(struct xpt_continuous_options *options, const char *name)
{
	if (!name) {
		free(options->name);
		options->name = NULL;
		return 0;
	}
	return is_name(name) ? set_string(&options->name, name) : -EINVAL;
}

int xpt_continuous_options_add_trigger(struct xpt_continuous_options *options, const char *text, char *reason,
				       size_t size)
{
	struct trigger *trigger;
	char why[256] = "";
	int error;

	if (options->trigger_count == XPT_TRIGGERS_MAX) {
		snprintf(why, sizeof(why), "more than %d triggers", XPT_TRIGGERS_MAX);
		error = -ENOSPC;
	} else {
		error = text ? trigger_parse(text, &trigger, why, sizeof(why)) : -EINVAL;
	}
	if (!error) {
		trigger_free(trigger);
		options->triggers[options->trigger_count] = strdup(text);
		error = options->triggers[options->trigger_count] ? 0 : -ENOMEM;
	}
	if (!error)
		options->trigger_count++;
	else if (size)
		snprintf(reason, size, "%s", why);
	return error;
}

int xpt_continuous_options_set_saving(struct xpt_continuous_options *options, uint64_t after, uint64_t cooldown,
				      uint64_t files, uint64_t bytes)
{
	if (after > XPT_SAVE_AFTER_MAX || cooldown > XPT_WINDOW_TIME_MAX)
		return -EINVAL;
	options->after = after;
	options->cooldown = cooldown;
	options->files = files;
	options->bytes = bytes;
	return 0;
}

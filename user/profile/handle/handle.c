/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/profile.h>

#include "profile/handle/state.h"

/* 585 years take some more bits. */
#define DELAY_MAX (NEVER / 8)

static int refuse(const struct profiling *profiling, const char *reason)
{
	log_error(profiling->options.log, "%s", reason);
	return -EINVAL;
}

static int check(const struct profiling *profiling, const struct handle_options *options)
{
	if (options->type != XPT_PROFILE_LATENCY && options->type != XPT_PROFILE_TRACE)
		return refuse(profiling, "a profile is of type latency or trace");
	if (options->summary && options->type != XPT_PROFILE_LATENCY)
		return refuse(profiling, "a summary is made of latencies: it cannot be had as a trace");
	if (options->stream) {
		if (options->report_every < XPT_REPORT_EVERY_MIN || options->report_every > XPT_REPORT_EVERY_MAX)
			return refuse(profiling, "the reporting rate must be 10 ms to 24 h");
		if (options->sample_every < 1 || options->sample_every > XPT_SAMPLE_EVERY_MAX)
			return refuse(profiling, "the sampling rate must be 1 to 1000000");
		return 0;
	}
	if (!options->program.name && !options->program.handle)
		return refuse(profiling, "a profile needs the name or the handle of a program");
	if (options->samples < 1 || options->samples > XPT_SAMPLES_MAX)
		return refuse(profiling, "the number of samples must be 1 to 1000000000");
	if (options->delay > DELAY_MAX)
		return refuse(profiling, "the delay is too long");
	return 0;
}

static void handle_drop(struct handle *handle)
{
	free((char *)handle->options.name);
	free((char *)handle->options.program.name);
	expression_free(handle->expression);
	choices_free(&handle->choices);
	free(handle);
}

int handle_create(struct profiling *profiling, const struct handle_options *options, struct handle **result)
{
	const char *program = options->stream ? NULL : options->program.name;
	struct handle *handle;
	int error;

	handle = calloc(1, sizeof(*handle));
	if (!handle)
		return -ENOMEM;
	handle->profiling = profiling;
	handle->options = *options;
	if (options->stream && !options->report_every)
		handle->options.report_every = XPT_REPORT_EVERY_500MS;
	if (options->stream && !options->sample_every)
		handle->options.sample_every = XPT_SAMPLE_FULL;
	handle->options.match = NULL;
	handle->options.name = strdup(options->name ?: "");
	handle->options.program.name = program ? strdup(program) : NULL;
	error = -ENOMEM;
	if (!handle->options.name || (program && !handle->options.program.name))
		goto out;
	error = check(profiling, &handle->options);
	if (error)
		goto out;
	if (options->stream && options->match) {
		handle->everything = !*options->match;
		error = expression_compile(profiling->options.log, options->match, &handle->expression);
		if (error)
			goto out;
	}
	link_append(&profiling->handles, &handle->link);
	*result = handle;
	return 0;
out:
	handle_drop(handle);
	return error;
}

void handle_free(struct handle *handle)
{
	struct profiling *profiling = handle->profiling;
	struct run *run, *following;

	link_for_each_safe(run, following, &profiling->runs, link) {
		if (run->handle == handle)
			run_free(run);
	}
	link_remove(&handle->link);
	handle_drop(handle);
	rates_refresh(profiling);
}

int handle_start(struct handle *handle, __u64 now, __s64 offset)
{
	struct run *run;
	int error;

	if (handle->current)
		return -EALREADY;
	error = run_create(handle, now, offset, &run);
	if (error)
		return error;
	handle->current = run;
	handle->runs++;
	selection_refresh(handle->profiling, run);
	rates_refresh(handle->profiling);
	return 0;
}

int handle_stop(struct handle *handle, __u64 now)
{
	if (!handle->current)
		return -EALREADY;
	run_end(handle->current, XPT_PROFILE_STOPPED, now);
	return 0;
}

static void choices_changed(struct handle *handle)
{
	if (!handle->current)
		return;
	selection_refresh(handle->profiling, handle->current);
	rates_refresh(handle->profiling);
}

int handle_add(struct handle *handle, const struct xpt_program_choice *choice)
{
	int error;

	if (!handle->options.stream)
		return -EINVAL;
	if (choices_standing(&handle->choices, choice) == CHOICE_ADDED)
		return -EEXIST;
	error = choices_set(&handle->choices, choice, true);
	if (!error)
		choices_changed(handle);
	return error;
}

/* Does the choice fit a program that is there and chosen? */
static bool handle_has(struct handle *handle, const struct xpt_program_choice *choice)
{
	const struct catalogue *catalogue = &handle->profiling->catalogue;
	const struct entry *entry;

	link_for_each(entry, &catalogue->alive, link) {
		if (choice_fits(choice, entry->identity) && selection_wants(handle, entry))
			return true;
	}
	return false;
}

int handle_remove(struct handle *handle, const struct xpt_program_choice *choice)
{
	enum choice_answer standing = choices_standing(&handle->choices, choice);
	int error;

	if (!handle->options.stream || (!choice->name && !choice->handle))
		return -EINVAL;
	if (standing == CHOICE_REMOVED)
		return -ENOENT;
	if (standing == CHOICE_NONE && !handle->expression && !choices_has(&handle->choices, choice) &&
	    !handle_has(handle, choice))
		return -ENOENT;
	/* Where nothing else could choose the program there is nothing to be remembered. */
	if (!handle->expression && handle->choices.added <= 1 && choices_has(&handle->choices, choice)) {
		choices_forget(&handle->choices, choice);
	} else {
		error = choices_set(&handle->choices, choice, false);
		if (error)
			return error;
	}
	choices_changed(handle);
	return 0;
}

bool handle_runs(const struct handle *handle)
{
	return handle->current;
}

bool handle_settled(const struct handle *handle)
{
	return handle->runs == (handle->current ? 1 : 0);
}

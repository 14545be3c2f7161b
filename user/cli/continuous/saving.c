/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/continuous/saving.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file/output.h"
#include "cli/session.h"

static bool take_trigger(void *triggers, const char *value, const char **reason)
{
	static char why[256];

	*reason = why;
	if (((struct string_list *)triggers)->count == XPT_TRIGGERS_MAX) {
		snprintf(why, sizeof(why), "more than %d triggers", XPT_TRIGGERS_MAX);
		return false;
	}
	return !xpt_trigger_check(value, why, sizeof(why)) && string_list_add(triggers, value);
}

static bool take_program_path(void *path, const char *value, const char **reason)
{
	*reason = "expected the path of a program, with a '/'";
	if (!strchr(value, '/'))
		return false;
	*reason = "expected a program that can be run";
	*(const char **)path = value;
	return !access(value, X_OK);
}

#define FIELD(name) .offset = offsetof(struct saving, name)

const struct option_entry saving_options[] = {
	{ 'o', "output-dir", "DIR", "where saved files go; made if missing (default: " XPT_CONTINUOUS_DIR ")",
	  OPTION_STRING, FIELD(options.output_dir) },
	{ 'w', "window", "SIZE", "memory for what is kept: 64M, 1G (default 64M)", OPTION_SIZE,
	  FIELD(options.window_bytes), .min = XPT_WINDOW_BYTES_MIN, .max = XPT_WINDOW_BYTES_MAX },
	{ 0, "window-time", "TIME", "keep nothing older (default 60s); 0: as much as fits", OPTION_DURATION,
	  FIELD(options.window_time), .min = XPT_WINDOW_TIME_MIN, .max = XPT_WINDOW_TIME_MAX, .zero = true },
	{ 0, "save-on", "TRIGGER",
	  "save the window when this happens, may be given several times:\n'latency > 20ms', 'p99 > 10ms over 5s' (also p50..., mean,\n"
	  "max), error",
	  OPTION_CALLBACK, FIELD(triggers), .take = take_trigger },
	{ 0, "after", "TIME", "and what happens in this time after it (default 1s)", OPTION_DURATION,
	  FIELD(options.save_after), .max = XPT_SAVE_AFTER_MAX, .zero = true },
	{ 0, "cooldown", "TIME", "and not again before this time is over (default 30s)", OPTION_DURATION,
	  FIELD(options.save_cooldown), .max = XPT_WINDOW_TIME_MAX, .zero = true },
	{ 0, "max-files", "N", "and no more files than this (default 100; 0: no limit)", OPTION_NUMBER,
	  FIELD(options.save_files) },
	{ 0, "max-bytes", "SIZE", "nor bytes in them (default 10G; 0: no limit)", OPTION_SIZE,
	  FIELD(options.save_bytes), .zero = true },
	{ 0, "on-save", "PROGRAM", "run PROGRAM FILE for each saved file, one at a time", OPTION_CALLBACK,
	  FIELD(on_save.program), .take = take_program_path },
	{ 0, "on-save-limit", "TIME", "kill a run of it that takes longer (default 60s)", OPTION_DURATION,
	  FIELD(on_save.limit), .min = 100000000, .max = XPT_WINDOW_TIME_MAX },
	{ .group = level_option, FIELD(options.level) },
	{}
};

int saving_begin(struct saving *saving, const char *instance, xpt_log_fn log)
{
	struct xpt_continuous_options *options = &saving->options;
	uint64_t *const limits[] = { &options->window_time, &options->save_after, &options->save_cooldown,
				     &options->save_files, &options->save_bytes };
	int error;

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		*limits[i] = *limits[i] ?: XPT_NONE;
	options->triggers = saving->triggers.items;
	options->trigger_count = saving->triggers.count;
	options->has_owner = sudo_caller(&options->user, &options->group);
	if (!saving->on_save.program)
		return 0;
	saving->on_save.instance = instance;
	saving->on_save.log = log;
	error = on_save_create(&saving->on_save, &saving->runs);
	if (error)
		return error;
	options->saved = on_save_file;
	options->saved_context = saving->runs;
	return 0;
}

void saving_end(struct saving *saving)
{
	on_save_destroy(saving->runs);
	saving->runs = NULL;
}

/* What SIGUSR2 saves; a handler has no other way to know. */
static struct xpt_continuous *volatile running;

static void on_trigger(int number)
{
	struct xpt_continuous *continuous = running;

	(void)number;
	if (continuous)
		xpt_continuous_trigger(continuous);
}

void saving_on_signal(struct xpt_continuous *continuous)
{
	struct sigaction action = { .sa_handler = continuous ? on_trigger : SIG_IGN };

	running = continuous;
	sigaction(SIGUSR2, &action, NULL);
}

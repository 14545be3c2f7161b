/* SPDX-License-Identifier: BSD-2-Clause */
/* xputrace continuous start: the collector itself. The other words after continuous ask one that runs: cli/remote.c. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/continuous.h>

#include "cli/commands.h"
#include "cli/remote.h"
#include "cli/running.h"
#include "cli/service.h"
#include "cli/session_options.h"

struct start_context {
	struct session_options session; /* first: see session_options.h */
	struct xpt_continuous_options *options;
	const char *instance;
	uint64_t window_bytes, window_time;
	uint64_t after, cooldown, files, bytes;
	bool background;
};

static bool take_directory(void *context, const char *value, const char **reason)
{
	*reason = "the name of a directory is wanted";
	return !xpt_continuous_options_set_output_dir(((struct start_context *)context)->options, value);
}

static bool take_window(void *context, const char *value, const char **reason)
{
	uint64_t *bytes = &((struct start_context *)context)->window_bytes;

	*reason = "a size from 2M to 1024G is wanted";
	return parse_size(value, bytes) && *bytes >= XPT_WINDOW_BYTES_MIN && *bytes <= XPT_WINDOW_BYTES_MAX;
}

static bool take_window_time(void *context, const char *value, const char **reason)
{
	uint64_t *time = &((struct start_context *)context)->window_time;

	*reason = "a time from 1s to 24h is wanted, or 0 for no limit";
	if (!strcmp(value, "0")) {
		*time = 0;
		return true;
	}
	return parse_duration(value, time) && *time >= XPT_WINDOW_TIME_MIN && *time <= XPT_WINDOW_TIME_MAX;
}

static bool take_trigger(void *context, const char *value, const char **reason)
{
	static char why[256];

	*reason = why;
	return !xpt_continuous_options_add_trigger(((struct start_context *)context)->options, value, why, sizeof(why));
}

static bool take_after(void *context, const char *value, const char **reason)
{
	uint64_t *after = &((struct start_context *)context)->after;

	*reason = "a time up to 60s is wanted";
	if (!strcmp(value, "0")) {
		*after = 0;
		return true;
	}
	return parse_duration(value, after) && *after <= XPT_SAVE_AFTER_MAX;
}

static bool take_cooldown(void *context, const char *value, const char **reason)
{
	uint64_t *cooldown = &((struct start_context *)context)->cooldown;

	*reason = "a time up to 24h is wanted";
	if (!strcmp(value, "0")) {
		*cooldown = 0;
		return true;
	}
	return parse_duration(value, cooldown) && *cooldown <= XPT_WINDOW_TIME_MAX;
}

static bool take_max_files(void *context, const char *value, const char **reason)
{
	*reason = "a number is wanted; 0: no limit";
	return parse_number(value, &((struct start_context *)context)->files);
}

static bool take_max_bytes(void *context, const char *value, const char **reason)
{
	uint64_t *bytes = &((struct start_context *)context)->bytes;

	*reason = "a size like 500M or 10G is wanted; 0: no limit";
	if (!strcmp(value, "0")) {
		*bytes = 0;
		return true;
	}
	return parse_size(value, bytes);
}

static bool take_instance(void *context, const char *value, const char **reason)
{
	struct start_context *start = context;

	*reason = "letters, digits, '-', '_' and '.' are wanted, 64 at most";
	start->instance = value;
	return !xpt_continuous_options_set_name(start->options, value);
}

static bool take_sample(void *context, const char *value, const char **reason)
{
	uint64_t number;

	*reason = "a number from 1 to 1000000 is wanted";
	return parse_number(value, &number) && number <= UINT32_MAX &&
	       !xpt_continuous_options_set_sampling(((struct start_context *)context)->options, number);
}

static bool take_level(void *context, const char *value, const char **reason)
{
	enum xpt_level level;

	return parse_level(value, &level, reason) &&
	       !xpt_continuous_options_set_level(((struct start_context *)context)->options, level);
}

static bool take_background(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct start_context *)context)->background = true;
	return true;
}

static const struct option_entry entries[] = {
	TARGET_OPTIONS,
	{ 'o', "output-dir", "DIR", "where saved files go; made if missing (default: " XPT_CONTINUOUS_DIR ")",
	  take_directory },
	{ 'w', "window", "SIZE", "memory for what is kept: 64M, 1G (default 64M)", take_window },
	{ 0, "window-time", "TIME", "keep nothing older (default 60s); 0: as much as fits", take_window_time },
	{ 0, "save-on", "TRIGGER",
	  "save the window when this happens, may be given several times:\n'latency > 20ms', 'p99 > 10ms over 5s' (also p50..., mean,\n"
	  "max), error",
	  take_trigger },
	{ 0, "after", "TIME", "and what happens in this time after it (default 1s)", take_after },
	{ 0, "cooldown", "TIME", "and not again before this time is over (default 30s)", take_cooldown },
	{ 0, "max-files", "N", "and no more files than this (default 100; 0: no limit)", take_max_files },
	{ 0, "max-bytes", "SIZE", "nor bytes in them (default 10G; 0: no limit)", take_max_bytes },
	{ 0, "instance", "NAME", "what save, status and stop call it (default: " XPT_CONTINUOUS_NAME ")",
	  take_instance },
	{ 0, "background", NULL, "return once it runs; messages go to the system's log", take_background },
	{ 's', "sample", "N", "record one inference in N of each program", take_sample },
	{ 0, "level", "LEVEL",
	  "basic: loads and inferences only; standard (default): all\ndescribed calls; detailed: and operators",
	  take_level },
	{ 0, "counters", "NAME[,NAME...]", "read these counters meanwhile; `xputrace list counters`\nnames them",
	  take_counters },
	{ 0, "counters-every", "TIME", "read them at this interval (default 10ms)", take_counters_every },
	{ 0, "counters-per-inference", NULL, "and around each inference: up to 4 perf events", take_per_inference },
	SESSION_OPTIONS,
};

static const struct command_line line = {
	.name = "continuous start",
	.summary = "Record all the time into a window in memory; save what has just happened when asked.",
	.usage = "  xputrace continuous start -p PID[,PID...] [OPTION...]\n"
		 "  xputrace continuous start --process NAME [OPTION...]\n"
		 "  xputrace continuous start -a [OPTION...]\n"
		 "  xputrace continuous start [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.option_count = sizeof(entries) / sizeof(entries[0]),
	.more = "It runs until Ctrl-C, SIGTERM, or `xputrace continuous stop`, which save nothing. SIGUSR2 saves as\n"
		"a trigger does. Files are recordings: `xputrace report FILE.xpt` makes a trace of one.\n\n"
		"examples:\n"
		"  sudo xputrace continuous start --process server -o /var/tmp/profiles --background\n"
		"  sudo xputrace continuous start -p 4711 --save-on 'latency > 20ms' --save-on error\n"
		"  sudo xputrace continuous start -a -w 512M --window-time 5m --level detailed\n"
		"  sudo xputrace continuous save --core 3\n\n"
		"exit status: 0 stopped, 1 failed, 2 wrong usage",
};

static void on_end(void *continuous)
{
	xpt_continuous_interrupt(continuous);
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

static int set_options(struct start_context *start)
{
	const struct session_options *session = &start->session;
	struct xpt_session_options targets = { .size = sizeof(targets), WATCH_OPTIONS(session) };
	struct xpt_continuous_options *options = start->options;
	uid_t user;
	gid_t group;
	int error;

	targets.log = service_message;
	error = xpt_continuous_options_set_targets(options, &targets);
	if (!error)
		error = xpt_continuous_options_set_window(options, start->window_bytes, start->window_time);
	if (!error)
		error = xpt_continuous_options_set_saving(options, start->after, start->cooldown, start->files,
							  start->bytes);
	if (!error && (session->counters_every || session->counters_per_inference))
		error = xpt_continuous_options_set_counters(options, session->counters_every ?: 10000000,
							    session->counters_per_inference);
	if (sudo_caller(&user, &group))
		xpt_continuous_options_set_owner(options, user, group);
	return error;
}

static void tell_start(const struct start_context *start)
{
	char text[200], instance[100] = "";

	if (strcmp(start->instance, XPT_CONTINUOUS_NAME))
		snprintf(instance, sizeof(instance), " --instance %s", start->instance);
	snprintf(text, sizeof(text),
		 "recording into memory; `xputrace continuous save%s` writes what has just happened", instance);
	service_message(NULL, XPT_LOG_INFO, text);
}

static int run(struct start_context *start)
{
	const struct session_options *session = &start->session;
	struct sigaction action = { .sa_handler = on_trigger };
	struct xpt_continuous *continuous;
	int error;

	if (!start->background)
		messages_detach();
	error = xpt_continuous_start(start->options, &continuous);
	if (error)
		return exit_status(error);
	end_on_signals(on_end, continuous);
	running = continuous;
	sigaction(SIGUSR2, &action, NULL);
	if (!session->quiet)
		tell_start(start);
	service_ready();
	error = xpt_continuous_wait(continuous, XPT_FOREVER);
	if (!session->quiet)
		tell_command(session->command, xpt_continuous_command_status(continuous));
	end_on_signals(NULL, NULL);
	running = NULL;
	end_soon(false);
	xpt_continuous_stop(continuous);
	return error < 0 && error != -EINTR ? exit_failed(error) : 0;
}

static int start_command(int argc, char **argv)
{
	static struct start_context start = {
		.instance = XPT_CONTINUOUS_NAME,
		.window_bytes = XPT_WINDOW_BYTES,
		.window_time = XPT_WINDOW_TIME,
		.after = XPT_SAVE_AFTER,
		.cooldown = XPT_SAVE_COOLDOWN,
		.files = XPT_SAVE_FILES,
		.bytes = XPT_SAVE_BYTES,
	};
	int result;

	service_streams();
	if (xpt_continuous_options_create(&start.options) ||
	    xpt_continuous_options_set_name(start.options, XPT_CONTINUOUS_NAME))
		return exit_failed(-ENOMEM);
	result = session_options_parse(&line, argc, argv, &start);
	if (!result && session_counters_missing(&line, &start.session))
		result = EXIT_USAGE;
	if (!result && set_options(&start))
		result = EXIT_FAILED;
	if (!result) {
		signal(SIGUSR2, SIG_IGN);
		if (start.background)
			service_background();
		result = run(&start);
	}
	xpt_continuous_options_free(start.options);
	return result == PARSE_HELP ? 0 : result;
}

static void usage(FILE *out)
{
	fprintf(out, "Record all the time into a window in memory; save what has just happened when asked.\n\n"
		     "usage:\n"
		     "  xputrace continuous start    attach and record, until it is stopped\n"
		     "  xputrace continuous save     write the latest inference, or more of the window, into a file\n"
		     "  xputrace continuous status   tell what is in the window\n"
		     "  xputrace continuous stop     end it; nothing is saved\n\n"
		     "  xputrace continuous WORD --help tells more about each\n");
}

int command_continuous(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "start"))
		return start_command(argc - 1, argv + 1);
	if (!strcmp(what, "save"))
		return remote_save(argc - 1, argv + 1);
	if (!strcmp(what, "status"))
		return remote_status(argc - 1, argv + 1);
	if (!strcmp(what, "stop"))
		return remote_stop(argc - 1, argv + 1);
	if (!strcmp(what, "--help") || !strcmp(what, "-h")) {
		usage(stdout);
		return 0;
	}
	fprintf(stderr,
		"xputrace continuous: one of start, save, status, stop is wanted (see xputrace continuous --help)\n");
	return EXIT_USAGE;
}

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
	const char *instance, *directory; /* directory NULL: the library's */
	unsigned int sample_every;
	enum xpt_level level;
	uint64_t window_bytes, window_time;
	uint64_t after, cooldown, files, bytes;
	bool background;
};

static bool take_trigger(void *context, const char *value, const char **reason)
{
	static char why[256];

	*reason = why;
	return !xpt_continuous_options_add_trigger(((struct start_context *)context)->options, value, why, sizeof(why));
}

static bool take_instance(void *context, const char *value, const char **reason)
{
	struct start_context *start = context;

	(void)reason;
	start->instance = value;
	return !xpt_continuous_options_set_name(start->options, value);
}

#define FIELD(name) .offset = offsetof(struct start_context, name)

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'o', "output-dir", "DIR", "where saved files go; made if missing (default: " XPT_CONTINUOUS_DIR ")",
	  OPTION_STRING, FIELD(directory) },
	{ 'w', "window", "SIZE", "memory for what is kept: 64M, 1G (default 64M)", OPTION_SIZE, FIELD(window_bytes),
	  .min = XPT_WINDOW_BYTES_MIN, .max = XPT_WINDOW_BYTES_MAX },
	{ 0, "window-time", "TIME", "keep nothing older (default 60s); 0: as much as fits", OPTION_DURATION,
	  FIELD(window_time), .min = XPT_WINDOW_TIME_MIN, .max = XPT_WINDOW_TIME_MAX, .zero = true },
	{ 0, "save-on", "TRIGGER",
	  "save the window when this happens, may be given several times:\n'latency > 20ms', 'p99 > 10ms over 5s' (also p50..., mean,\n"
	  "max), error",
	  OPTION_CALLBACK, .take = take_trigger },
	{ 0, "after", "TIME", "and what happens in this time after it (default 1s)", OPTION_DURATION, FIELD(after),
	  .max = XPT_SAVE_AFTER_MAX, .zero = true },
	{ 0, "cooldown", "TIME", "and not again before this time is over (default 30s)", OPTION_DURATION,
	  FIELD(cooldown), .max = XPT_WINDOW_TIME_MAX, .zero = true },
	{ 0, "max-files", "N", "and no more files than this (default 100; 0: no limit)", OPTION_NUMBER, FIELD(files) },
	{ 0, "max-bytes", "SIZE", "nor bytes in them (default 10G; 0: no limit)", OPTION_SIZE, FIELD(bytes),
	  .zero = true },
	{ 0, "instance", "NAME", "what save, status and stop call it (default: " XPT_CONTINUOUS_NAME ")",
	  OPTION_CALLBACK, .take = take_instance, .expected = "letters, digits, '-', '_' and '.', 64 at most" },
	{ 0, "background", NULL, "return once it runs; messages go to the system's log", OPTION_FLAG,
	  FIELD(background) },
	{ 's', "sample", "N", "record one inference in N of each program", OPTION_INT, FIELD(sample_every), .min = 1,
	  .max = 1000000 },
	{ .group = level_option, FIELD(level) },
	{ 0, "counters", "NAME[,NAME...]", "read these counters meanwhile; `xputrace list counters`\nnames them",
	  OPTION_CALLBACK, FIELD(session.counters), .take = take_counters },
	{ .group = counters_options },
	{ .group = session_options },
	{}
};

static const struct command_line line = {
	.name = "continuous start",
	.summary = "Record all the time into a window in memory; save what has just happened when asked.",
	.usage = "  xputrace continuous start -p PID[,PID...] [OPTION...]\n"
		 "  xputrace continuous start --process NAME [OPTION...]\n"
		 "  xputrace continuous start -a [OPTION...]\n"
		 "  xputrace continuous start [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
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
	if (!error && start->directory)
		error = xpt_continuous_options_set_output_dir(options, start->directory);
	if (!error)
		error = xpt_continuous_options_set_sampling(options, start->sample_every);
	if (!error)
		error = xpt_continuous_options_set_level(options, start->level);
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
		.sample_every = 1,
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
	if (!result) {
		int error = set_options(&start);

		result = error ? exit_failed(error) : 0;
	}
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

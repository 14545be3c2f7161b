/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/inspect.h>

#include "base/core/json.h"
#include "cli/commands.h"
#include "cli/session.h"

struct inspect_context {
	struct session_options session;	     /* first: see session.h */
	struct xpt_inspect_options *scratch; /* what is given is tried on it */
	/* NULL, 0, false: from the environment. */
	const char *directory, *cores, *types, *activities;
	uint64_t max_events;
	uint64_t session_id; /* ~0: not given */
	bool on_fail;
	bool honour;
};

static bool take_cores(void *context, const char *value, const char **reason)
{
	struct inspect_context *inspect = context;

	(void)reason;
	inspect->cores = value;
	return !xpt_inspect_options_filter_cores(inspect->scratch, value);
}

static bool take_types(void *context, const char *value, const char **reason)
{
	struct inspect_context *inspect = context;

	(void)reason;
	inspect->types = value;
	return !xpt_inspect_options_filter_types(inspect->scratch, value);
}

/* At first none is enabled. */
static int set_activities(struct xpt_inspect_options *options, const char *names)
{
	char *copy = strdup(names), *rest = copy, *name;
	int error = copy ? xpt_inspect_options_set_activity(options, "all", 0) : -ENOMEM;

	while (!error && (name = strsep(&rest, ",")))
		error = xpt_inspect_options_set_activity(options, name, 1);
	free(copy);
	return error;
}

static bool take_activities(void *context, const char *value, const char **reason)
{
	struct inspect_context *inspect = context;

	(void)reason;
	inspect->activities = value;
	return !set_activities(inspect->scratch, value);
}

#define FIELD(name) .offset = offsetof(struct inspect_context, name)

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'o', "output-dir", "DIR", "where each process gets a folder (default: ./output)", OPTION_STRING,
	  FIELD(directory) },
	{ .group = duration_option },
	{ 0, "on-fail", NULL, "only inferences that fail, each with what was before it", OPTION_FLAG, FIELD(on_fail) },
	{ 0, "cores", "LIST", "only inferences on these cores: 0,2,4-7", OPTION_CALLBACK, .take = take_cores,
	  .expected = "numbers and ranges with commas between: 0,2,4-7" },
	{ 0, "types", "LIST",
	  "only events of these types or groups, ^ before those that\nare not: hardware,execute,^reset",
	  OPTION_CALLBACK, .take = take_types,
	  .expected = "names with commas between, ^ before those to leave out (see xputrace inspect --help)" },
	{ 0, "max-events", "N", "keep the latest N events of each core (default 1000000)", OPTION_NUMBER,
	  FIELD(max_events), .min = 1, .max = 1000000000 },
	{ 0, "activities", "LIST", "some of system_profile, device_profile, host_memory,\ncpu_util (default: all)",
	  OPTION_CALLBACK, .take = take_activities,
	  .expected = "some of system_profile, device_profile, host_memory, cpu_util, or all" },
	{ 0, "session-id", "N", "a number to write into the output (default 1)", OPTION_NUMBER, FIELD(session_id),
	  .max = INT32_MAX },
	{ 0, "honour-target-env", NULL,
	  "as NEURON_RT_INSPECT_* of the process says that is\ntraced (-p), but for its output directory", OPTION_FLAG,
	  FIELD(honour) },
	{ 0, "counters", "NAME[,NAME...]", "read these counters meanwhile, too", OPTION_CALLBACK,
	  FIELD(session.counters), .take = take_counters },
	{ .group = summary_json_option, FIELD(session.summary_json) },
	{ .group = session_options },
	{}
};

static const struct command_line line = {
	.name = "inspect",
	.summary = "Record processes, and write a directory of results for each at the end.",
	.usage = "  xputrace inspect -p PID[,PID...] [OPTION...]\n"
		 "  xputrace inspect --process NAME [OPTION...]\n"
		 "  xputrace inspect -a [OPTION...]\n"
		 "  xputrace inspect [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.more = "Ctrl-C, SIGTERM, the end of --duration or of the targets end it. Then each process has a folder\n"
		"HOST_pid_PID with recording.xpt, trace.json, report.txt, usage.csv and index.json.\n"
		"Options may also be given as XPUTRACE_INSPECT_* in the environment; see xputrace-inspect(1).\n\n"
		"examples:\n"
		"  sudo xputrace inspect -p $(pidof server) -d 10s -o /var/tmp/inspected\n"
		"  sudo xputrace inspect --process server --on-fail\n"
		"  sudo xputrace inspect -p 4711 --cores 0-3 --types execute,operator,hardware\n\n"
		"exit status: 0 written, 1 failed, 2 wrong usage",
};

/* The command line overrides the environment. */
static int set_given(struct xpt_inspect_options *options, const struct inspect_context *inspect)
{
	uid_t user;
	gid_t group;
	int error = 0;

	if (inspect->directory)
		error = xpt_inspect_options_set_output_dir(options, inspect->directory);
	if (!error && inspect->cores)
		error = xpt_inspect_options_filter_cores(options, inspect->cores);
	if (!error && inspect->types)
		error = xpt_inspect_options_filter_types(options, inspect->types);
	if (!error && inspect->activities)
		error = set_activities(options, inspect->activities);
	if (!error && inspect->max_events)
		error = xpt_inspect_options_set_max_events_per_core(options, inspect->max_events);
	if (!error && inspect->session_id != ~0ull)
		error = xpt_inspect_options_set_session_id(options, (int)inspect->session_id);
	if (!error && sudo_caller(&user, &group))
		error = xpt_inspect_options_set_owner(options, user, group);
	return error;
}

static int set_options(struct xpt_inspect_options *options, const struct inspect_context *inspect)
{
	const struct session_options *session = &inspect->session;
	const struct xpt_session_options targets = { .size = sizeof(targets), WATCH_OPTIONS(session) };
	int error = xpt_inspect_options_set_targets(options, &targets);

	if (!error)
		error = xpt_inspect_options_from_environment(options);
	for (size_t i = 0; inspect->honour && i < session->pid_count && !error; i++) {
		error = xpt_inspect_options_from_process(options, session->pids[i]);
		/* What one process was given is nothing to the others. */
		if (error == -EINVAL && session->pid_count > 1) {
			print_message(NULL, XPT_LOG_WARN, "the environment of that process is not honoured");
			error = 0;
		}
	}
	/* The command implies one of them. */
	if (!error)
		error = xpt_inspect_options_set_inspect(options, !inspect->on_fail);
	if (!error && inspect->on_fail)
		error = xpt_inspect_options_set_on_fail(options, 1);
	return error ?: set_given(options, inspect);
}

static void on_end(void *inspect)
{
	xpt_inspect_interrupt(inspect);
}

/* context: the summary, with the array of processes open. */
static void on_written(void *context, const char *directory, const char *index)
{
	struct text *text = context;
	const char *members = strchr(index, '{');

	json_begin(text, NULL, '{');
	json_add_text(text, "directory", directory);
	text_literal(text, ",");
	text_bytes(text, members + 1, strrchr(members, '}') + 1 - (members + 1));
}

static int run(const struct inspect_context *context, const struct xpt_inspect_options *options)
{
	uint64_t duration = context->session.duration ?: XPT_FOREVER;
	struct summary_json summary;
	struct xpt_inspect *inspect;
	int error, ended;

	messages_detach();
	error = xpt_inspect_begin_with_options(options, &inspect);
	if (error)
		return exit_status(error);
	end_on_signals(on_end, inspect);
	if (!context->session.quiet)
		print_message(NULL, XPT_LOG_INFO, "recording into memory; it is written at the end (Ctrl-C)");
	ended = xpt_inspect_wait(inspect, duration);
	end_on_signals(NULL, NULL);
	end_soon(false);
	summary_json_begin(&summary, context->session.summary_json, "inspect");
	if (summary.path) {
		json_begin(&summary.text, "processes", '[');
		xpt_inspect_on_written(inspect, on_written, &summary.text);
	}
	error = xpt_inspect_stop(inspect);
	if (!error && ended < 0 && ended != -EINTR)
		error = ended;
	if (summary.path)
		json_end(&summary.text, ']');
	return summary_json_end(&summary, error ? exit_failed(error) : 0);
}

int command_inspect(int argc, char **argv)
{
	static struct inspect_context context = { .session_id = ~0ull };
	struct xpt_inspect_options *options = NULL;
	int result;

	if (xpt_inspect_options_create(&context.scratch) || xpt_inspect_options_create(&options))
		return exit_failed(-ENOMEM);
	result = session_options_parse(&line, argc, argv, &context);
	if (!result && context.honour && !context.session.pid_count)
		result = session_options_refuse(&line, "--honour-target-env requires -p PID");
	if (!result && set_options(options, &context))
		result = EXIT_USAGE;
	if (!result)
		result = run(&context, options);
	xpt_inspect_options_free(context.scratch);
	xpt_inspect_options_free(options);
	return result == PARSE_HELP ? 0 : result;
}

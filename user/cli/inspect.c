/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/inspect.h>

#include "base/core/json.h"
#include "base/file/output.h"
#include "cli/session.h"

struct inspect_context {
	struct session_options session; /* first: see session.h */
	struct string_list settings;	/* NAME=value, owned */
	/* NULL, 0: from the environment. */
	const char *directory;
	int format;
	uint64_t max_events;
	uint64_t session_id; /* ~0: not given */
	bool on_fail;
	bool honour;
};

static bool add_setting(struct inspect_context *inspect, const char *name, const char *value)
{
	char *setting;

	if (asprintf(&setting, "%s=%s", name, value) < 0 || !string_list_add(&inspect->settings, setting)) {
		errno = ENOMEM;
		return false;
	}
	return !xpt_inspect_check(setting);
}

static bool take_cores(void *context, const char *value, const char **reason)
{
	(void)reason;
	return add_setting(context, "EVENT_FILTER_CORE", value);
}

static bool take_types(void *context, const char *value, const char **reason)
{
	(void)reason;
	return add_setting(context, "EVENT_FILTER_TYPE", value);
}

static bool take_activities(void *context, const char *value, const char **reason)
{
	(void)reason;
	return add_setting(context, "ACTIVITIES", value);
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
	{ 0, "format", "FORMAT", "of the trace: chrome (trace.json, default) or perfetto\n(trace.pftrace)",
	  OPTION_CHOICE, FIELD(format),
	  .choices = { { "chrome", XPT_OUTPUT_CHROME }, { "perfetto", XPT_OUTPUT_PERFETTO } } },
	{ 0, "session-id", "N", "a number to write into the output (default 1)", OPTION_NUMBER, FIELD(session_id),
	  .max = INT32_MAX },
	{ 0, "honour-target-env", NULL,
	  "apply NEURON_RT_INSPECT_* of the traced process (-p),\nexcept its output directory", OPTION_FLAG,
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
		"HOST_pid_PID with recording.xpt, trace.json (or\n"
		"trace.pftrace), report.txt, usage.csv and index.json.\n"
		"Options may also be given as XPUTRACE_INSPECT_* in the environment; see xputrace-inspect(1).\n\n"
		"examples:\n"
		"  sudo xputrace inspect -p $(pidof server) -d 10s -o /var/tmp/inspected\n"
		"  sudo xputrace inspect --process server --on-fail\n"
		"  sudo xputrace inspect -p 4711 --cores 0-3 --types execute,operator,hardware\n\n"
		"exit status: 0 written, 1 failed, 2 wrong usage",
};

/* The command implies one of enable and on-fail. */
static bool add_settings(struct inspect_context *inspect)
{
	char number[24];

	if (inspect->directory && !add_setting(inspect, "OUTPUT_DIR", inspect->directory))
		return false;
	snprintf(number, sizeof(number), "%" PRIu64, inspect->max_events);
	if (inspect->max_events && !add_setting(inspect, "MAX_EVENTS_PER_CORE", number))
		return false;
	snprintf(number, sizeof(number), "%" PRIu64, inspect->session_id);
	if (inspect->session_id != ~0ull && !add_setting(inspect, "SESSION_ID", number))
		return false;
	if (inspect->format && !add_setting(inspect, "FORMAT", output_name((enum xpt_output)inspect->format)))
		return false;
	if (inspect->on_fail && !add_setting(inspect, "ON_FAIL", "1"))
		return false;
	return add_setting(inspect, "ENABLE", inspect->on_fail ? "0" : "1");
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

static int create(struct inspect_context *context, struct summary_json *summary, struct xpt_inspect **inspect)
{
	const struct session_options *session = &context->session;
	XPT_OPTS(xpt_session_options, targets, WATCH_OPTIONS(session));
	XPT_OPTS(xpt_inspect_options, options, .targets = &targets, .use_environment = true,
		 .use_target_environment = context->honour);

	options.settings = context->settings.items;
	options.setting_count = context->settings.count;
	options.has_owner = sudo_caller(&options.user, &options.group);
	if (session->summary_json)
		options.written = on_written;
	options.written_context = &summary->text;
	return xpt_inspect_create(&options, inspect);
}

static int run(struct inspect_context *context)
{
	uint64_t duration = context->session.duration ?: XPT_FOREVER;
	struct summary_json summary;
	struct xpt_inspect *inspect;
	int error, ended;

	messages_detach();
	error = create(context, &summary, &inspect);
	if (error)
		return exit_status(error);
	error = xpt_inspect_start(inspect);
	if (error) {
		xpt_inspect_destroy(inspect);
		return exit_status(error);
	}
	end_on_signals(on_end, inspect);
	if (!context->session.quiet)
		print_message(NULL, XPT_LOG_INFO, "recording into memory; it is written at the end (Ctrl-C)");
	ended = xpt_inspect_wait(inspect, duration);
	end_on_signals(NULL, NULL);
	end_soon(false);
	summary_json_begin(&summary, context->session.summary_json, "inspect");
	if (summary.path)
		json_begin(&summary.text, "processes", '[');
	error = xpt_inspect_stop(inspect);
	xpt_inspect_destroy(inspect);
	if (!error && ended < 0 && ended != -EINTR)
		error = ended;
	if (summary.path)
		json_end(&summary.text, ']');
	return summary_json_end(&summary, error ? exit_failed(error) : 0);
}

int command_inspect(int argc, char **argv)
{
	static struct inspect_context context = { .session_id = ~0ull };
	int result = session_options_parse(&line, argc, argv, &context);

	if (!result && context.honour && !context.session.pid_count)
		result = session_options_refuse(&line, "--honour-target-env requires -p PID");
	if (!result)
		result = add_settings(&context) ? run(&context) : exit_failed(errno ? -errno : -EINVAL);
	return result;
}

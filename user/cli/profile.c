/* SPDX-License-Identifier: BSD-2-Clause */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/profile.h>

#include "cli/commands.h"
#include "cli/session.h"
#include "cli/summary.h"

#define SAMPLES_DEFAULT 100
#define PATIENCE 2000000000ull /* ns without the program, until a message about what it waits for */

struct profile_context {
	struct session_options session; /* first: see session.h */
	struct xpt_profile_options options;
	struct xpt_program_choice choice;
	const char *program; /* as it was given */
	struct watch watch;
	struct seen_programs seen;
	bool found, reported_waiting;

	/* Of the callback; read when it cannot come any more. */
	struct xpt_report_files *files;
	struct totals totals;
	enum xpt_profile_end end;
	uint64_t skipped;
	bool reported;
	int error; /* of writing; the library has reported it */
};

static bool take_program(void *context, const char *value, const char **reason)
{
	struct profile_context *profile = context;

	if (profile->program) {
		*reason = "only one program a profile: start another profile, or use xputrace stream";
		return false;
	}
	profile->program = value;
	return choice_parse(value, &profile->choice, reason);
}

static bool take_delay(void *context, const char *value, const char **reason)
{
	uint64_t *delay = context, milliseconds;

	(void)reason;
	if (!parse_number(value, &milliseconds))
		return parse_duration(value, delay);
	if (milliseconds > UINT64_MAX / 1000000)
		return false;
	*delay = milliseconds * 1000000;
	return true;
}

#define FIELD(name) .offset = offsetof(struct profile_context, name)

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'P', "program", "NAME|HANDLE",
	  "the program: its name, or its handle as 0x7f3a10002b40;\nname=0x12 is the name 0x12", OPTION_CALLBACK,
	  .take = take_program },
	{ 0, "samples", "N", "so many inferences (default 100)", OPTION_NUMBER, FIELD(options.samples), .min = 1,
	  .max = XPT_SAMPLES_MAX },
	{ .group = report_options },
	{ 0, "skip", "N", "leave out the first N inferences", OPTION_NUMBER, FIELD(options.skip) },
	{ 0, "delay", "MS", "leave out what begins in the first MS milliseconds;\nalso 2s, 1m", OPTION_CALLBACK,
	  FIELD(options.delay), .take = take_delay, .expected = "a number of milliseconds, or a time such as 2s" },
	{ 'o', "output", "FILE",
	  "where to write (default: standard output for latency,\nxputrace-profile.json for trace); -: standard output",
	  OPTION_STRING, FIELD(session.output) },
	{ 'd', "duration", "TIME", "stop after TIME with what there is: 10s, 500ms, 2m", OPTION_DURATION,
	  FIELD(session.duration) },
	{ .group = summary_json_option, FIELD(session.summary_json) },
	{ .group = session_options },
	{}
};

static const struct command_line line = {
	.name = "profile",
	.summary = "Record N inferences of one program, from outside: latency CSV or Chrome trace.",
	.usage = "  xputrace profile --program NAME|HANDLE -p PID[,PID...] [OPTION...]\n"
		 "  xputrace profile --program NAME|HANDLE -a [OPTION...]\n"
		 "  xputrace profile --program NAME|HANDLE [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.more = "It ends when the samples are there. Ctrl-C, SIGTERM, the end of --duration, of the program or of\n"
		"the targets end it earlier, with what there is. A program that has not run yet is waited for.\n\n"
		"examples:\n"
		"  sudo xputrace profile -p 4711 --program resnet50 --samples 1000 -o latency.csv\n"
		"  sudo xputrace profile -a --program 0x7f3a10002b40 --type trace\n"
		"  sudo xputrace profile --program bert --skip 10 --summary -- ./infer bert\n\n"
		"exit status: 0 report written, 1 no samples or failed, 2 wrong usage",
};

static void on_report(void *context, const struct xpt_profile_report *report)
{
	struct profile_context *profile = context;

	for (size_t i = 0; i < report->program_count; i++) {
		totals_add(&profile->totals, &report->programs[i]);
		profile->skipped += report->programs[i].skipped;
	}
	profile->end = report->end_reason;
	if (profile->totals.sum.taken) {
		profile->error = xpt_report_files_write(profile->files, report);
		profile->reported = true;
	}
	xpt_session_interrupt(profile->watch.session);
}

/* A mistyped name should not mean waiting for ever. */
static bool on_update(void *context, uint64_t elapsed, char *tail, size_t size)
{
	struct profile_context *profile = context;
	char text[160];

	if (!profile->found)
		profile->found = seen_update(&profile->seen, profile->watch.session, &profile->choice, 1);
	snprintf(tail, size, "%s", profile->found ? "sampling" : "waiting for the program");
	if (profile->found || profile->reported_waiting || elapsed < PATIENCE || profile->session.quiet)
		return false;
	profile->reported_waiting = true;
	snprintf(text, sizeof(text), "waiting for program %.60s; %s", profile->program,
		 profile->seen.count ? "programs seen so far:" : "no program has been seen yet");
	print_message(NULL, XPT_LOG_INFO, text);
	seen_print(&profile->seen);
	return false;
}

static void report_no_samples(const struct profile_context *profile)
{
	char text[200];

	if (!profile->found) {
		snprintf(text, sizeof(text), "program %.60s was not seen; %s", profile->program,
			 profile->seen.count ? "programs that were:" : "nor was any other");
		print_message(NULL, XPT_LOG_ERROR, text);
		seen_print(&profile->seen);
		return;
	}
	snprintf(text, sizeof(text), "no sample of program %.60s: ", profile->program);
	if (profile->totals.sum.lost)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%" PRIu64 " inferences were lost",
			 profile->totals.sum.lost);
	else if (profile->options.skip || profile->options.delay)
		strcat(text, "it ran nothing after what --skip and --delay leave out");
	else
		strcat(text, "it ran nothing in that time");
	print_message(NULL, XPT_LOG_ERROR, text);
}

static void print_result(const struct profile_context *profile)
{
	const char *path = xpt_report_files_path(profile->files);
	const struct program_total *sum = &profile->totals.sum;

	print_command_status(profile->session.command, xpt_session_command_status(profile->watch.session));
	totals_print(&profile->totals, stderr, terminal_columns(STDERR_FILENO));
	fprintf(stderr,
		"%" PRIu64 " of %" PRIu64 " samples, %" PRIu64 " inferences, %" PRIu64 " lost, %" PRIu64 " failed",
		sum->taken, profile->options.samples, sum->inferences, sum->lost, sum->failed);
	if (profile->skipped)
		fprintf(stderr, ", %" PRIu64 " left out at the beginning", profile->skipped);
	fputs(profile->end == XPT_PROFILE_RELEASED ? "; the program was released\n" : "\n", stderr);
	if (!session_writes_to_stdout(&profile->session))
		fprintf(stderr, "wrote %s%s\n", path,
			profile->session.type == XPT_PROFILE_TRACE ?
				": open it in https://ui.perfetto.dev or chrome://tracing" :
				"");
}

static int sample(struct profile_context *profile)
{
	struct xpt_profile *handle;
	int result;

	profile->options.size = sizeof(profile->options);
	profile->options.program = &profile->choice;
	profile->options.type = profile->session.type;
	profile->options.summary = profile->session.summary;
	profile->options.callback = on_report;
	profile->options.context = profile;
	result = exit_status(xpt_profile_create(profile->watch.session, &profile->options, &handle));
	if (result)
		return result;
	result = exit_status(xpt_profile_start(handle)) ?: watch_run(&profile->watch);
	if (!result) {
		if (!profile->found)
			profile->found = seen_update(&profile->seen, profile->watch.session, &profile->choice, 1);
		xpt_profile_stop(handle); /* an error: it has stopped by itself */
		xpt_profile_wait(handle, XPT_FOREVER);
	}
	xpt_profile_destroy(handle);
	return result;
}

static int run(struct profile_context *profile)
{
	struct xpt_report_files_options files = { .single = 1 };
	char path[PATH_MAX];
	int result, error;

	profile->watch = (struct watch){ .options = &profile->session, .on_update = on_update, .context = profile };
	result = watch_create(&profile->watch);
	if (result)
		return result;
	result = files_open(&profile->session, &files, &profile->files);
	if (result)
		goto out;
	result = sample(profile);
	profile->found |= profile->totals.count > 0;
	if (!result && !profile->reported) {
		report_no_samples(profile);
		result = EXIT_FAILED;
	} else if (!result && !profile->error && !profile->session.quiet) {
		print_result(profile);
	}
	snprintf(path, sizeof(path), "%s", xpt_report_files_path(profile->files));
	error = xpt_report_files_close(profile->files);
	if (profile->error || error)
		result = EXIT_FAILED;
	result = watch_summary(&profile->watch, "profile", &profile->totals, path, result);
out:
	watch_destroy(&profile->watch);
	totals_free(&profile->totals);
	seen_free(&profile->seen);
	return result;
}

int command_profile(int argc, char **argv)
{
	static struct profile_context profile = { .options = { .samples = SAMPLES_DEFAULT } };
	int result = session_options_parse(&line, argc, argv, &profile);

	if (result)
		return result == PARSE_HELP ? 0 : result;
	if (!profile.program)
		return session_options_refuse(&line, "requires --program NAME or --program HANDLE");
	if (!profile.session.output)
		profile.session.output = profile.session.type == XPT_PROFILE_TRACE ? "xputrace-profile.json" : "-";
	return run(&profile);
}

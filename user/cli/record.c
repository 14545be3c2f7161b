/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <xputrace/recording.h>

#include "cli/commands.h"
#include "cli/options.h"

#define PIDS_MAX 1024
#define NAMES_MAX 1024

struct record_context {
	struct runtime_choice runtimes; /* first: see options.h */
	struct xpt_recording_options options;
	pid_t pids[PIDS_MAX];
	struct xpt_handle_name names[NAMES_MAX];
	bool quiet, format_given;
	uint64_t last_calls, last_elapsed; /* for the rate in the status line */
};

/* The one that signals end; a signal handler has no other way to know. */
static struct xpt_recording *volatile current;

static void on_signal(int number)
{
	(void)number;
	if (current)
		xpt_recording_stop(current);
}

static bool take_pids(void *context, const char *value, const char **reason)
{
	struct record_context *record = context;
	char *end;

	do {
		long pid = strtol(value, &end, 10);

		if (end == value || pid <= 0 || pid > 0x7fffffff || (*end && *end != ',')) {
			*reason = "process numbers, separated by commas, are wanted";
			return false;
		}
		if (record->options.pid_count == PIDS_MAX) {
			*reason = "too many processes; use --all-processes";
			return false;
		}
		record->pids[record->options.pid_count++] = pid;
		value = end + 1;
	} while (*end);
	return true;
}

static bool take_all(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct record_context *)context)->options.all_processes = 1;
	return true;
}

static bool take_output(void *context, const char *value, const char **reason)
{
	if (!*value) {
		*reason = "a file name, or - for standard output, is wanted";
		return false;
	}
	((struct record_context *)context)->options.output = value;
	return true;
}

static bool take_format(void *context, const char *value, const char **reason)
{
	struct record_context *record = context;

	record->format_given = true;
	if (!strcmp(value, "chrome"))
		record->options.format = XPT_OUTPUT_CHROME;
	else if (!strcmp(value, "xpt"))
		record->options.format = XPT_OUTPUT_RECORDING;
	else if (!strcmp(value, "none"))
		record->options.format = XPT_OUTPUT_NONE;
	else
		*reason = "the formats are chrome, xpt and none";
	return !*reason;
}

static bool take_duration(void *context, const char *value, const char **reason)
{
	*reason = "a time like 10s, 500ms or 2m is wanted";
	return parse_duration(value, &((struct record_context *)context)->options.duration);
}

static bool take_name(void *context, const char *value, const char **reason)
{
	struct record_context *record = context;
	const char *equals = strchr(value, '=');
	char handle[32];

	if (!equals || !equals[1] || (size_t)(equals - value) >= sizeof(handle)) {
		*reason = "HANDLE=NAME is wanted, for example 0x7f3a10002b40=resnet50";
		return false;
	}
	if (record->options.name_count == NAMES_MAX) {
		*reason = "too many names";
		return false;
	}
	memcpy(handle, value, equals - value);
	handle[equals - value] = '\0';
	*reason = "the handle is a number, as reports show it: 0x7f3a10002b40";
	record->names[record->options.name_count].name = equals + 1;
	return parse_number(handle, &record->names[record->options.name_count++].handle);
}

static bool take_sample(void *context, const char *value, const char **reason)
{
	uint64_t number;

	*reason = "a number from 1 to 1000000 is wanted";
	if (!parse_number(value, &number) || !number || number > 1000000)
		return false;
	((struct record_context *)context)->options.sample_every = number;
	return true;
}

static bool take_buffer(void *context, const char *value, const char **reason)
{
	uint64_t bytes;

	*reason = "a size from 64K to 1G is wanted";
	if (!parse_size(value, &bytes) || bytes < (64 << 10) || bytes > (1u << 30))
		return false;
	((struct record_context *)context)->options.buffer_bytes = bytes;
	return true;
}

static bool take_link(void *context, const char *value, const char **reason)
{
	static const char *const names[] = { "auto", "session", "multi", "perf" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(value, names[i])) {
			((struct record_context *)context)->options.link = (enum xpt_link)i;
			return true;
		}
	}
	*reason = "the kinds are auto, session, multi and perf";
	return false;
}

static bool take_quiet(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct record_context *)context)->quiet = true;
	return true;
}

static bool take_verbose(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct record_context *)context)->options.log_level = XPT_LOG_DEBUG;
	return true;
}

static const struct option_entry entries[] = {
	{ 'p', "pid", "PID[,PID...]", "trace these running processes and their children", take_pids },
	{ 'a', "all-processes", NULL, "trace every process that uses a described runtime,\nalso those that start later",
	  take_all },
	{ 'o', "output", "FILE",
	  "trace.json: Chrome trace (default: xputrace.json);\nFILE.xpt: recording for `xputrace report`;\n"
	  "-: Chrome trace on standard output",
	  take_output },
	{ 0, "format", "FORMAT", "chrome, xpt or none, whatever the file is called", take_format },
	{ 'd', "duration", "TIME", "stop after TIME: 10s, 500ms, 2m", take_duration },
	{ 's', "sample", "N", "record one inference in N of each program; counts\nstay exact", take_sample },
	RUNTIME_OPTIONS,
	{ 'n', "name", "HANDLE=NAME", "name a program that was loaded before", take_name },
	{ 'b', "buffer", "SIZE", "memory for records on their way, all CPUs together\n(default 8M)", take_buffer },
	{ 0, "link", "KIND", "auto, session, multi or perf: how probes are linked", take_link },
	{ 'q', "quiet", NULL, "no status line, no summary, only warnings", take_quiet },
	{ 'v', "verbose", NULL, "say more about what is done", take_verbose },
};

static const struct command_line line = {
	.name = "record",
	.summary = "Trace running processes, or a command, into a Chrome trace or a recording.",
	.usage = "  xputrace record -p PID[,PID...] [OPTION...]\n"
		 "  xputrace record -a [OPTION...]\n"
		 "  xputrace record [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.option_count = sizeof(entries) / sizeof(entries[0]),
	.more = "Ctrl-C, SIGTERM, the end of --duration or of the targets end the recording; then the\n"
		"summary is printed. The targets are not stopped or changed; a COMMAND is held for some\n"
		"milliseconds when it maps libraries, so that not one call is missed.\n\n"
		"examples:\n"
		"  sudo xputrace record -p $(pidof server) -d 10s -o trace.json\n"
		"  sudo xputrace record -s 16 -a -o night.xpt\n"
		"  sudo xputrace record -o trace.json -- python3 infer.py\n\n"
		"exit status: 0 recorded, 1 failed (also when the output could not be written), 2 wrong usage",
};

static void on_status(void *context, const struct xpt_recording_status *status)
{
	struct record_context *record = context;
	uint64_t seconds = status->elapsed / 1000000000, span = status->elapsed - record->last_elapsed;
	double rate = span ? (status->calls - record->last_calls) * 1e9 / span : 0;
	char text[160];

	snprintf(text, sizeof(text), "%02llu:%02llu  %u processes  %u programs  %.0f calls/s  %llu lost  %.1f MB",
		 (unsigned long long)seconds / 60, (unsigned long long)seconds % 60, status->processes,
		 status->programs, rate, (unsigned long long)status->lost, status->bytes / 1e6);
	status_draw(text);
	if (span >= 1000000000) {
		record->last_elapsed = status->elapsed;
		record->last_calls = status->calls;
	}
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

/* A file that root wrote for somebody who called sudo belongs to them. */
static void give_to_caller(const char *path)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	struct stat status;
	int file;

	if (!uid || !gid || !strcmp(path, "-"))
		return;
	file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return;
	if (!fstat(file, &status) && S_ISREG(status.st_mode) && status.st_uid == 0 && status.st_nlink == 1 &&
	    fchown(file, atoi(uid), atoi(gid)))
		print_message(NULL, XPT_LOG_WARN, "cannot give the output to the user who called sudo");
	close(file);
}

static void set_signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

static void tell_command(const struct record_context *record, int status)
{
	char text[256];

	if (status == -1 && record->options.command)
		snprintf(text, sizeof(text), "%s still runs", record->options.command[0]);
	else if (status == -1)
		return;
	else if (WIFSIGNALED(status))
		snprintf(text, sizeof(text), "%s was ended by signal %d (%s)", record->options.command[0],
			 WTERMSIG(status), strsignal(WTERMSIG(status)));
	else
		snprintf(text, sizeof(text), "%s ended with status %d", record->options.command[0],
			 WEXITSTATUS(status));
	print_message(NULL, XPT_LOG_INFO, text);
}

static int run(struct record_context *record)
{
	struct xpt_recording *recording;
	bool to_stdout = !strcmp(record->options.output, "-");
	int summary = to_stdout ? STDERR_FILENO : STDOUT_FILENO, end, error;

	error = xpt_recording_create(&record->options, &recording);
	if (error == -E2BIG || error == -EINVAL)
		return EXIT_USAGE;
	if (error)
		return EXIT_FAILED;
	current = recording;
	set_signals();
	error = xpt_recording_start(recording);
	end = error ?: xpt_recording_run(recording);
	error = xpt_recording_finish(recording);
	status_clear();
	if (end >= 0 && !record->quiet) {
		tell_command(record, xpt_recording_command_status(recording));
		fflush(stdout);
		xpt_recording_summary(recording, summary, terminal_columns(summary));
		if (!error && !to_stdout && record->options.format == XPT_OUTPUT_CHROME)
			fprintf(stderr, "\nwrote %s: open it in https://ui.perfetto.dev or chrome://tracing\n",
				record->options.output);
		else if (!error && !to_stdout && record->options.format == XPT_OUTPUT_RECORDING)
			fprintf(stderr, "\nwrote %s: `xputrace report %s -o trace.json` makes a trace of it\n",
				record->options.output, record->options.output);
	}
	current = NULL;
	xpt_recording_destroy(recording);
	if (record->options.format != XPT_OUTPUT_NONE)
		give_to_caller(record->options.output);
	return end < 0 || error ? EXIT_FAILED : 0;
}

int command_record(int argc, char **argv)
{
	static struct record_context record;
	int first, result;

	record.options.size = sizeof(record.options);
	record.options.output = "xputrace.json";
	record.options.log = print_message;
	record.options.log_level = XPT_LOG_INFO;
	result = options_parse(&line, argc, argv, &record, &first);
	if (result)
		return result == PARSE_HELP ? 0 : result;
	if (first < argc)
		record.options.command = argv + first;
	if (!!record.options.pid_count + !!record.options.command + !!record.options.all_processes != 1) {
		fprintf(stderr,
			"xputrace record: say what to trace, one of: -p PID, -a, or -- COMMAND (see xputrace record --help)\n");
		return EXIT_USAGE;
	}
	if (!record.format_given)
		record.options.format = ends_with(record.options.output, ".xpt") ? XPT_OUTPUT_RECORDING :
										   XPT_OUTPUT_CHROME;
	record.options.pids = record.pids;
	record.options.names = record.names;
	record.options.runtime_files = record.runtimes.files.items;
	record.options.runtime_file_count = record.runtimes.files.count;
	record.options.runtimes = record.runtimes.only.items;
	record.options.runtime_count = record.runtimes.only.count;
	if (record.quiet && record.options.log_level == XPT_LOG_INFO)
		record.options.log_level = XPT_LOG_WARN;
	if (!record.quiet && isatty(STDERR_FILENO)) {
		record.options.status = on_status;
		record.options.status_context = &record;
	}
	return run(&record);
}

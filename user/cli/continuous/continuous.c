/* SPDX-License-Identifier: BSD-2-Clause */
/* xputrace continuous: start is the collector itself; save, status and stop ask one that runs. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <syslog.h>
#include <unistd.h>

#include <xputrace/continuous.h>
#include <xputrace/report.h>

#include "cli/continuous/saving.h"
#include "cli/session.h"

/* ---- commands that run in the background ---- */

static int waiting = -1; /* the starting process reads its other end */
/* Read by whichever thread has a message: */
static atomic_bool detached; /* standard error leads nowhere */

/* The parent's part: its status is that of the start. */
static void wait_for_start(pid_t child, int pipe_end)
{
	char ready;
	int status;
	ssize_t got;

	do
		got = read(pipe_end, &ready, 1);
	while (got < 0 && errno == EINTR);
	if (got == 1)
		_exit(0);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED);
}

/* Standard streams that are closed lead nowhere from here on: what is opened later does not become one of them. */
static void service_streams(void)
{
	int nowhere;

	do
		nowhere = open("/dev/null", O_RDWR);
	while (nowhere >= 0 && nowhere <= STDERR_FILENO);
	if (nowhere >= 0)
		close(nowhere);
}

/*
 * Continues in a process of its own, in a session of its own. Returns there; the calling process waits, and exits: with
 * 0 once service_ready() is called there, or with the status that the new one ends with before. When it is killed while
 * it waits, so is the new one.
 */
static void service_background(void)
{
	pid_t starter = getpid(), child;
	int ends[2];

	if (pipe2(ends, O_CLOEXEC)) {
		perror("xputrace: pipe");
		exit(EXIT_FAILED);
	}
	fflush(NULL);
	child = fork();
	if (child < 0) {
		perror("xputrace: fork");
		exit(EXIT_FAILED);
	}
	if (child) {
		close(ends[1]);
		wait_for_start(child, ends[0]);
	}
	close(ends[0]);
	/* Who interrupts the start wants none. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != starter)
		exit(EXIT_FAILED);
	setsid();
	waiting = ends[1];
}

void notify_manager(void)
{
	const char *path = getenv("NOTIFY_SOCKET"), ready[] = "READY=1";
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	size_t length = path ? strlen(path) : 0;
	int manager;

	if (!length || length >= sizeof(address.sun_path) || (*path != '/' && *path != '@'))
		return;
	memcpy(address.sun_path, path, length);
	if (*path == '@')
		address.sun_path[0] = '\0';
	manager = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (manager < 0)
		return;
	/* Whether it listens is its own affair. */
	sendto(manager, ready, sizeof(ready) - 1, MSG_NOSIGNAL, (struct sockaddr *)&address,
	       offsetof(struct sockaddr_un, sun_path) + length);
	close(manager);
}

/* It runs: notifies the waiting process, and the service manager (NOTIFY_SOCKET). In the background messages go to the system's log from here on. */
static void service_ready(void)
{
	int nowhere;

	notify_manager();
	if (waiting < 0)
		return;
	prctl(PR_SET_PDEATHSIG, 0);
	if (write(waiting, "", 1) < 0)
		perror("xputrace: pipe");
	close(waiting);
	waiting = -1;
	openlog("xputrace", LOG_PID, LOG_DAEMON);
	nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
	for (int stream = STDIN_FILENO; nowhere >= 0 && stream <= STDERR_FILENO; stream++)
		dup2(nowhere, stream);
	if (nowhere >= 0)
		close(nowhere);
	detached = true;
}

/* As print_message(), but dropped where that had to wait, once it runs; or into the system's log. */
static void service_message(void *context, enum xpt_log_level level, const char *text)
{
	static const int priorities[] = {
		[XPT_LOG_DEBUG] = LOG_DEBUG,
		[XPT_LOG_INFO] = LOG_INFO,
		[XPT_LOG_WARN] = LOG_WARNING,
		[XPT_LOG_ERROR] = LOG_ERR,
	};

	if (detached)
		syslog(priorities[level], "%s", text);
	else
		print_message(context, level, text);
}

/* ---- start ---- */

struct start_context {
	struct session_options session; /* first: see session.h */
	struct saving saving;
	bool background;
};

/* As the library checks it; here, the message has the option. */
static bool take_instance(void *name, const char *value, const char **reason)
{
	(void)reason;
	*(const char **)name = value;
	return *value && *value != '.' && strlen(value) <= 64 &&
	       !value[strspn(value, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.")];
}

#define FIELD(name) .offset = offsetof(struct start_context, name)

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ .group = saving_options, FIELD(saving) },
	{ 0, "instance", "NAME", "what save, status and stop call it (default: " XPT_CONTINUOUS_NAME ")",
	  OPTION_CALLBACK, FIELD(saving.options.name), .take = take_instance,
	  .expected = "letters, digits, '-', '_' and '.', 64 at most" },
	{ 0, "background", NULL, "return once it runs; messages go to the system's log", OPTION_FLAG,
	  FIELD(background) },
	{ 's', "sample", "N", "record one inference in N of each program", OPTION_INT,
	  FIELD(saving.options.sample_every), .min = 1, .max = 1000000 },
	{ 0, "counters", "NAME[,NAME...]", "read these counters meanwhile; `xputrace list counters`\nnames them",
	  OPTION_CALLBACK, FIELD(session.counters), .take = take_counters },
	{ .group = counters_options },
	{ .group = session_options },
	{}
};

static const struct command_line line = {
	.name = "continuous start",
	.summary = "Flight recorder: record into a window in memory, save the last seconds when asked.",
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

static int create(struct start_context *start, struct xpt_continuous **continuous)
{
	const struct session_options *session = &start->session;
	XPT_OPTS(xpt_session_options, targets, WATCH_OPTIONS(session));
	struct xpt_continuous_options *options = &start->saving.options;

	targets.log = service_message;
	options->targets = &targets;
	options->counters_every = session->counters_every;
	options->counters_per_inference = session->counters_per_inference;
	return xpt_continuous_create(options, continuous);
}

static void print_started(const struct start_context *start)
{
	char text[200], instance[100] = "";

	if (strcmp(start->saving.options.name, XPT_CONTINUOUS_NAME))
		snprintf(instance, sizeof(instance), " --instance %s", start->saving.options.name);
	snprintf(text, sizeof(text),
		 "recording into memory; `xputrace continuous save%s` writes the window into a file", instance);
	service_message(NULL, XPT_LOG_INFO, text);
}

static int run(struct start_context *start)
{
	const struct session_options *session = &start->session;
	struct xpt_continuous *continuous;
	int error;

	if (!start->background)
		messages_detach();
	/* The thread of --on-save is there before the files are. */
	error = saving_begin(&start->saving, start->saving.options.name, service_message);
	if (error)
		return exit_status(error);
	error = create(start, &continuous);
	if (!error) {
		error = xpt_continuous_start(continuous);
		if (error)
			xpt_continuous_destroy(continuous);
	}
	if (error) {
		saving_end(&start->saving);
		return exit_status(error);
	}
	end_on_signals(on_end, continuous);
	saving_on_signal(continuous);
	if (!session->quiet)
		print_started(start);
	service_ready();
	error = xpt_continuous_wait(continuous, XPT_FOREVER);
	if (!session->quiet)
		print_command_status(session->command, xpt_continuous_command_status(continuous));
	end_on_signals(NULL, NULL);
	saving_on_signal(NULL);
	end_soon(false);
	xpt_continuous_destroy(continuous);
	saving_end(&start->saving);
	return error < 0 && error != -EINTR ? exit_failed(error) : 0;
}

static int start_command(int argc, char **argv)
{
	static struct start_context start = { .saving = { SAVING_DEFAULTS, .options.name = XPT_CONTINUOUS_NAME } };
	int result;

	service_streams();
	result = session_options_parse(&line, argc, argv, &start);
	if (!result && session_counters_missing(&line, &start.session))
		result = EXIT_USAGE;
	if (!result) {
		saving_on_signal(NULL);
		if (start.background)
			service_background();
		result = run(&start);
	}
	return result;
}

/* ---- save, status, stop ---- */

struct remote_context {
	struct xpt_remote remote;
	struct xpt_save_options save;
	const char *output; /* a trace of what was saved; NULL: none */
	int json;	    /* 0: text */
	bool quiet;
};

static bool take_program(void *context, const char *value, const char **reason)
{
	struct xpt_save_options *save = context;
	struct xpt_program_choice choice = {};

	if (!choice_parse(value, &choice, reason))
		return false;
	save->program = choice.name;
	save->handle = choice.handle;
	return true;
}

static bool take_core(void *context, const char *value, const char **reason)
{
	struct xpt_save_options *save = context;
	char *end;

	(void)reason;
	errno = 0;
	save->core = strtoll(value, &end, 10);
	save->has_core = 1;
	return !errno && *value && !*end;
}

#undef FIELD
#define FIELD(name) .offset = offsetof(struct remote_context, name)

static const struct option_entry remote_options[] = {
	{ 0, "instance", "NAME", "of the collector (default: " XPT_CONTINUOUS_NAME ")", OPTION_STRING,
	  FIELD(remote.name) },
	{ 0, "timeout", "TIME", "longest wait for an answer (default 60s)", OPTION_DURATION, FIELD(remote.timeout) },
	{}
};

static const struct option_entry save_entries[] = {
	{ 'p', "pid", "PID", "only what this process did", OPTION_INT, FIELD(save.pid), .min = 1, .max = INT32_MAX,
	  .expected = "a process ID" },
	{ 'P', "program", "NAME|HANDLE", "the latest inference of this program", OPTION_CALLBACK, FIELD(save),
	  .take = take_program },
	{ 'c', "core", "N", "the latest inference on this core", OPTION_CALLBACK, FIELD(save), .take = take_core,
	  .expected = "the number of a core" },
	{ 'n', "last", "N", "the last N inferences, of that program or on that core", OPTION_NUMBER,
	  FIELD(save.inferences), .min = 1 },
	{ 't', "time", "TIME", "only what began in the last TIME", OPTION_DURATION, FIELD(save.time) },
	{ 'o', "output", "FILE",
	  "and make a trace of it: trace.json, Chrome's; trace.pftrace,\nPerfetto's own format; with .gz behind it: compressed",
	  OPTION_STRING, FIELD(output) },
	{ .group = remote_options },
	{ 0, "format", "FORMAT", "table (default): the file's name; json: all about it", OPTION_CHOICE, FIELD(json),
	  .choices = TABLE_CHOICES },
	{ 'q', "quiet", NULL, "the file's name only", OPTION_FLAG, FIELD(quiet) },
	{}
};

static const struct command_line save_line = {
	.name = "continuous save",
	.summary = "Write what a running collector has in its window into a file: all of it, or a part.",
	.usage = "  xputrace continuous save [OPTION...]",
	.options = save_entries,
	.more = "The file's name is printed on standard output when the file is on the disk. Recording goes on\n"
		"meanwhile. With its operators, jobs of drivers and counters as far as they are recorded.\n\n"
		"examples:\n"
		"  sudo xputrace continuous save                       the whole window\n"
		"  sudo xputrace continuous save --core 3              the latest inference on core 3\n"
		"  sudo xputrace continuous save -P resnet50 -n 100    the last 100 of a program\n"
		"  sudo xputrace continuous save -p 4711 -t 5s         5 s of one process\n"
		"  sudo xputrace continuous save -o last.pftrace       and a trace of it\n\n"
		"exit status: 0 saved, 1 failed (also when there is no such inference), 2 wrong usage",
};

static const struct option_entry status_entries[] = { { .group = remote_options },
						      { 0, "format", "FORMAT", "table (default) or json", OPTION_CHOICE,
							FIELD(json), .choices = TABLE_CHOICES },
						      {} };

static const struct command_line status_line = {
	.name = "continuous status",
	.summary = "Show the window of a running collector, and its overhead.",
	.usage = "  xputrace continuous status [OPTION...]",
	.options = status_entries,
	.more = "exit status: 0 it runs, 1 it does not, 2 wrong usage",
};

static const struct command_line stop_line = {
	.name = "continuous stop",
	.summary = "End a running collector; nothing is saved.",
	.usage = "  xputrace continuous stop [OPTION...]",
	.options = remote_options,
	.more = "It returns when all probes are off.\n\n"
		"exit status: 0 it has ended, 1 there was none, 2 wrong usage",
};

/* 0, PARSE_HELP or EXIT_USAGE. */
static int parse(const struct command_line *line, int argc, char **argv, struct remote_context *context)
{
	int first, result;

	context->remote = (struct xpt_remote){ .size = sizeof(context->remote),
					       .log = print_message,
					       .log_level = XPT_LOG_INFO };
	context->save.size = sizeof(context->save);
	result = options_parse(line, argc, argv, context, &first);
	if (result || first == argc)
		return result;
	fprintf(stderr, "xputrace %s: '%s' is not an option (see xputrace %s --help)\n", line->name, argv[first],
		line->name);
	return EXIT_USAGE;
}

static void print_saved(const struct xpt_saved *saved)
{
	printf("{");
	list_string("path", saved->path, ",");
	printf("\"bytes\":%" PRIu64 ",\"begin_ns\":\"%" PRIu64 "\",\"end_ns\":\"%" PRIu64 "\",\"records\":%" PRIu64
	       ",\"inferences\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"duration_ns\":%" PRIu64 "}\n",
	       saved->bytes, saved->begin, saved->end, saved->records, saved->inferences, saved->lost, saved->duration);
}

/* By this process: the collector has other things to do. */
static int make_trace(const struct remote_context *context, const struct xpt_saved *saved)
{
	XPT_OPTS(xpt_report_options, options, .input = saved->path, .output = context->output,
		 .format = is_perfetto_name(context->output) ? XPT_OUTPUT_PERFETTO : XPT_OUTPUT_CHROME,
		 .summary_descriptor = -1, .log = print_message, .log_level = XPT_LOG_WARN);
	int error = xpt_report_create(&options);

	if (!error && !context->quiet && !context->json)
		print_trace_written(context->output, options.format);
	return error;
}

static int remote_save(int argc, char **argv)
{
	struct remote_context context = {};
	struct xpt_saved saved = { .size = sizeof(saved) };
	int result = parse(&save_line, argc, argv, &context);

	if (result)
		return result;
	result = xpt_remote_save(&context.remote, &context.save, &saved);
	if (result)
		return exit_failed(result);
	if (context.json)
		print_saved(&saved);
	else
		printf("%s\n", saved.path);
	fflush(stdout);
	if (!context.quiet && !context.json)
		fprintf(stderr, "%.3f s, %" PRIu64 " records, %.1f MB%s\n", (saved.end - saved.begin) / 1e9,
			saved.records, saved.bytes / 1e6,
			context.output ? "" : "; `xputrace report FILE -o trace.json` makes a trace of it");
	if (context.output)
		result = make_trace(&context, &saved);
	return result ? exit_failed(result) : 0;
}

struct row {
	const char *name, *title;
	uint64_t value;
	enum { PLAIN, TIME, BYTES } unit;
};

static void print_row(const struct row *row)
{
	switch (row->unit) {
	case TIME:
		printf("%-22s %.3f s\n", row->title, row->value / 1e9);
		break;
	case BYTES:
		printf("%-22s %.1f MB\n", row->title, row->value / 1e6);
		break;
	default:
		printf("%-22s %" PRIu64 "\n", row->title, row->value);
	}
}

static void print_status(const struct xpt_continuous_status *status, bool json)
{
	const struct row rows[] = {
		{ "pid", "collector's PID", (uint64_t)status->pid, PLAIN },
		{ "elapsed_ns", "running for", status->elapsed, TIME },
		{ "processes", "processes", status->processes, PLAIN },
		{ "calls", "calls recorded", status->calls, PLAIN },
		{ "lost", "records lost", status->lost, PLAIN },
		{ "window_ns", "window", status->window_time, TIME },
		{ "window_bytes", "its memory", status->window_bytes, BYTES },
		{ "window_records", "records in it", status->window_records, PLAIN },
		{ "window_inferences", "inferences in it", status->window_inferences, PLAIN },
		{ "evicted_records", "records evicted", status->evicted_records, PLAIN },
		{ "evicted_inferences", "inferences evicted", status->evicted_inferences, PLAIN },
		{ "saves", "files saved", status->saves, PLAIN },
		{ "saved_bytes", "bytes in them", status->saved_bytes, BYTES },
		{ "failed_saves", "saves that failed", status->failed_saves, PLAIN },
		{ "triggered", "triggers fired", status->triggered, PLAIN },
		{ "suppressed", "of them without a file", status->suppressed, PLAIN },
		{ "cpu_ns", "CPU time", status->cpu_time, TIME },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (json)
			printf("%s\"%s\":%" PRIu64, i ? "," : "{", rows[i].name, rows[i].value);
		else
			print_row(&rows[i]);
	}
	if (json)
		printf("}\n");
}

static int remote_status(int argc, char **argv)
{
	struct xpt_continuous_status status = { .size = sizeof(status) };
	struct remote_context context = {};
	int result = parse(&status_line, argc, argv, &context);

	if (result)
		return result;
	result = xpt_remote_status(&context.remote, &status);
	if (result)
		return exit_failed(result);
	print_status(&status, context.json);
	return 0;
}

static int remote_stop(int argc, char **argv)
{
	struct remote_context context = {};
	int result = parse(&stop_line, argc, argv, &context);

	if (result)
		return result;
	result = xpt_remote_stop(&context.remote);
	return result ? exit_failed(result) : 0;
}

/* ---- the command ---- */

static void usage(FILE *out)
{
	fprintf(out, "Flight recorder: record into a window in memory, save the last seconds when asked.\n\n"
		     "usage:\n"
		     "  xputrace continuous start    attach and record, until it is stopped\n"
		     "  xputrace continuous save     write the latest inference, or more of the window, into a file\n"
		     "  xputrace continuous status   show what is in the window\n"
		     "  xputrace continuous stop     end it; nothing is saved\n\n"
		     "  xputrace continuous COMMAND --help   options and examples of each\n");
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
	fprintf(stderr, "xputrace continuous: expected start, save, status or stop (see xputrace continuous --help)\n");
	return EXIT_USAGE;
}

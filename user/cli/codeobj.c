/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/codeobj.h>

#include "cli/codeobj_output.h"
#include "cli/commands.h"
#include "cli/confined.h"
#include "cli/running.h"
#include "cli/session_options.h"

struct codeobj_context {
	struct session_options session; /* first: see session_options.h */
	enum xpt_codeobj_mode mode;
	const char *folder; /* NULL: none was given */
	uint64_t object_limit, process_limit, total_limit;
	bool snapshot;
	struct codeobj_shown shown;
	bool json;
};

static bool take_mode(void *context, const char *value, const char **reason)
{
	static const char *const names[] = { "symbols", "memory", "all" };

	for (int i = 0; i < 3; i++) {
		if (!strcmp(value, names[i])) {
			((struct codeobj_context *)context)->mode = (enum xpt_codeobj_mode)i;
			return true;
		}
	}
	*reason = "the modes are symbols, memory and all";
	return false;
}

static bool take_folder(void *context, const char *value, const char **reason)
{
	*reason = "the name of a directory is wanted";
	((struct codeobj_context *)context)->folder = value;
	return *value;
}

static bool take_snapshot(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct codeobj_context *)context)->snapshot = true;
	return true;
}

static bool take_functions(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct codeobj_context *)context)->shown.functions = true;
	return true;
}

static bool take_libraries(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct codeobj_context *)context)->shown.libraries = true;
	return true;
}

static bool take_json(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct codeobj_context *)context)->json = true;
	return true;
}

static bool take_limit(const char *value, uint64_t *limit, const char **reason)
{
	*reason = "a size like 64M or 2G is wanted";
	return parse_size(value, limit);
}

static bool take_object_limit(void *context, const char *value, const char **reason)
{
	return take_limit(value, &((struct codeobj_context *)context)->object_limit, reason);
}

static bool take_process_limit(void *context, const char *value, const char **reason)
{
	return take_limit(value, &((struct codeobj_context *)context)->process_limit, reason);
}

static bool take_total_limit(void *context, const char *value, const char **reason)
{
	return take_limit(value, &((struct codeobj_context *)context)->total_limit, reason);
}

#define OUTPUT_OPTIONS                                                                                                \
	{ 0, "functions", NULL, "and the parts and functions of each object", take_functions },                       \
		{ 0, "libraries", NULL, "and shared libraries that programs loaded for themselves", take_libraries }, \
	{                                                                                                             \
		0, "json", NULL, "print what index.json has instead of the table", take_json                          \
	}

static const struct option_entry entries[] = {
	TARGET_OPTIONS,
	{ 'o', "output-dir", "DIR",
	  "where objects go, each once, and index.json (default:\n./codeobj; with --mode symbols: nowhere)",
	  take_folder },
	{ 0, "mode", "MODE",
	  "symbols: what is in them, no bytes; memory (default): and the\nbytes of those given in memory; "
	  "all: and of files",
	  take_mode },
	{ 'd', "duration", "TIME", "stop after TIME: 10s, 500ms, 2m", take_duration },
	{ 0, "snapshot", NULL, "only what is loaded already", take_snapshot },
	WAIT_OPTIONS,
	CODE_WAIT_OPTION,
	{ 0, "object-limit", "SIZE", "keep no bytes of larger objects (default 1G)", take_object_limit },
	{ 0, "process-limit", "SIZE", "nor more of a process (default 4G)", take_process_limit },
	{ 0, "total-limit", "SIZE", "nor more of all (default 16G)", take_total_limit },
	OUTPUT_OPTIONS,
	RUNTIME_OPTIONS,
	{ 0, "link", "KIND", "auto, session, multi or perf: how probes are linked", take_link },
	{ 'q', "quiet", NULL, "no table, only warnings", take_quiet },
	{ 'v', "verbose", NULL, "say more about what is done", take_verbose },
};

static const struct command_line line = {
	.name = "codeobj",
	.summary = "Record the code objects that processes load onto devices: when, from where, and what is in them.",
	.usage = "  xputrace codeobj -p PID[,PID...] [OPTION...]\n"
		 "  xputrace codeobj --process NAME [OPTION...]\n"
		 "  xputrace codeobj -a [OPTION...]\n"
		 "  xputrace codeobj [OPTION...] -- COMMAND [ARGUMENT...]\n"
		 "  xputrace codeobj show FILE|DIR [OPTION...]",
	.options = entries,
	.option_count = sizeof(entries) / sizeof(entries[0]),
	.more = "Ctrl-C, SIGTERM, the end of --duration or of the targets end it. Bytes are those that the\n"
		"runtime was given, as they were when the call began: a call that loads a large\n"
		"object waits some milliseconds until it has been read, unless --no-wait is given.\n"
		"`xputrace codeobj show` prints what is in an object, or in a folder, and needs no root.\n\n"
		"examples:\n"
		"  sudo xputrace codeobj -p $(pidof server) --snapshot --mode symbols\n"
		"  sudo xputrace codeobj -o kernels -- python3 infer.py\n"
		"  xputrace codeobj show kernels --functions\n"
		"  xputrace codeobj show kernels.hsaco\n\n"
		"exit status: 0 recorded, 1 failed (also when the output could not be written), 2 wrong usage",
};

static const struct option_entry show_entries[] = { OUTPUT_OPTIONS };

static const struct command_line show_line = {
	.name = "codeobj show",
	.summary = "Print what is in a code object, or in a folder that xputrace codeobj has written.",
	.usage = "  xputrace codeobj show FILE|DIR [OPTION...]",
	.options = show_entries,
	.option_count = sizeof(show_entries) / sizeof(show_entries[0]),
};

/* 0 or -errno. */
static int print_list(const struct codeobj_context *context, const struct xpt_codeobj_list *list)
{
	int error;

	if (context->json)
		return xpt_codeobj_list_write(list, STDOUT_FILENO);
	error = codeobj_table(stdout, list, &context->shown);
	return fflush(stdout) ? -errno : error;
}

static int tell_output(int error)
{
	char text[200];

	if (!error)
		return 0;
	snprintf(text, sizeof(text), "standard output cannot be written: %s", strerror(-error));
	print_message(NULL, XPT_LOG_ERROR, text);
	return EXIT_FAILED;
}

/* ---- show ---- */

static int show(int argc, char **argv)
{
	struct codeobj_context context = { 0 };
	int first, rest = 0, error, result = options_parse(&show_line, argc, argv, &context, &first);
	struct xpt_codeobj_list *list;
	char index[PATH_MAX], whole[PATH_MAX];
	const char *path;

	if (result)
		return result == PARSE_HELP ? 0 : result;
	path = first < argc ? argv[first] : NULL;
	if (path) { /* options may stand behind it, too */
		argv[first] = argv[0];
		result = options_parse(&show_line, argc - first, argv + first, &context, &rest);
		if (result)
			return result == PARSE_HELP ? 0 : result;
	}
	if (!path || first + rest < argc)
		return session_options_refuse(&show_line, "one file or folder is wanted");
	/* What it stands for in URIs: without rights no links can be read. */
	if (realpath(path, whole))
		path = whole;
	snprintf(index, sizeof(index), "%.*s/index.json", (int)(sizeof(index) - sizeof("/index.json")), path);
	confined_begin((const struct confined_file[]){ { .path = path, .folder = true }, { .path = index } }, 2);
	error = xpt_codeobj_read(path, print_message, NULL, &list);
	if (error)
		return exit_failed(error);
	result = tell_output(print_list(&context, list));
	xpt_codeobj_list_free(list);
	return result;
}

/* ---- capture ---- */

static void on_end(void *capture)
{
	xpt_codeobj_capture_interrupt(capture);
}

static int create(const struct codeobj_context *context, struct xpt_codeobj_capture **capture)
{
	const struct session_options *session = &context->session;
	struct xpt_codeobj_options options = {
		.size = sizeof(options),
		.pids = session->pids,
		.pid_count = session->pid_count,
		.process_names = session->process_names.items,
		.process_name_count = session->process_names.count,
		.command = session->command,
		.all_processes = session->all_processes,
		.runtime_files = session->runtimes.files.items,
		.runtime_file_count = session->runtimes.files.count,
		.runtimes = session->runtimes.only.items,
		.runtime_count = session->runtimes.only.count,
		.link = session->link,
		.output = context->folder,
		.no_wait = session->no_wait,
		.wait_limit = session->wait_limit,
		.code_wait_limit = session->code_wait_limit,
		.object_limit = context->object_limit,
		.process_limit = context->process_limit,
		.total_limit = context->total_limit,
		.log = print_message,
		.log_level = session->log_level,
	};

	sudo_caller(&options.user, &options.group);
	return xpt_codeobj_capture_create(capture, context->mode, 0, &options);
}

/* folder: that was written; NULL: none was. */
static int print_captured(const struct codeobj_context *context, struct xpt_codeobj_capture *capture,
			  const char *folder)
{
	const struct xpt_codeobj_list *list;
	int error = xpt_codeobj_capture_get(capture, &list), result;
	char text[200];

	if (error) {
		snprintf(text, sizeof(text), "what was recorded cannot be listed: %s", strerror(-error));
		print_message(NULL, XPT_LOG_ERROR, text);
		return EXIT_FAILED;
	}
	result = context->json || !context->session.quiet ? tell_output(print_list(context, list)) : 0;
	if (!context->session.quiet && codeobj_summary(stderr, list, context->snapshot, folder))
		result = EXIT_FAILED;
	return result;
}

static void tell_waiting(const struct codeobj_context *context)
{
	const struct session_options *session = &context->session;

	if (!session->quiet && !context->snapshot)
		print_message(NULL, XPT_LOG_INFO,
			      session->command || session->duration ?
				      "recording loads of code objects" :
				      "recording loads of code objects (Ctrl-C to stop)");
}

static int run(const struct codeobj_context *context)
{
	const struct session_options *session = &context->session;
	struct xpt_codeobj_capture *capture;
	int error, stopped, result;

	messages_detach();
	error = create(context, &capture);
	if (error)
		return exit_status(error);
	end_on_signals(on_end, capture);
	error = xpt_codeobj_capture_start(capture);
	if (!error && !context->snapshot) {
		tell_waiting(context);
		error = xpt_codeobj_capture_wait(capture, session->duration ?: XPT_FOREVER);
		error = error < 0 && error != -EINTR ? error : 0;
	}
	end_on_signals(NULL, NULL);
	end_soon(false);
	stopped = xpt_codeobj_capture_stop(capture);
	if (!error && !session->quiet)
		tell_command(session->command, xpt_codeobj_capture_command_status(capture));
	result = error ? exit_failed(error) : print_captured(context, capture, stopped ? NULL : context->folder);
	xpt_codeobj_capture_free(capture);
	return stopped ? exit_failed(stopped) : result;
}

int command_codeobj(int argc, char **argv)
{
	static struct codeobj_context context = { .mode = XPT_CODEOBJ_COPY_MEMORY };
	const struct session_options *session = &context.session;
	int result;

	if (argc > 1 && !strcmp(argv[1], "show"))
		return show(argc - 1, argv + 1);
	result = session_options_parse(&line, argc, argv, &context);
	if (result)
		return result == PARSE_HELP ? 0 : result;
	if (context.snapshot && (session->command || session->duration))
		return session_options_refuse(&line, "--snapshot is of processes that run, and takes no time");
	if (!context.folder && context.mode != XPT_CODEOBJ_SYMBOLS)
		context.folder = "codeobj";
	return run(&context);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/codeobj.h>

#include "base/file/output.h"
#include "cli/session.h"

struct codeobj_shown {
	bool functions; /* contents of each, a line each */
	bool libraries; /* shared libraries of processes, too, that no runtime was given */
};

/* ---- the table ---- */

#define WORD_COLUMNS 12 /* of kinds, machines and runtimes, at most */
#define SHA_SHOWN 12	/* digits */

/* An object with the number of its loads. */
struct row {
	const struct xpt_codeobj *object; /* the first load of it */
	size_t index;			  /* of that */
	size_t loads;
};

/* What has a hash is the same object where that is the same. */
static int compare_hashes(const void *left, const void *right)
{
	const struct row *a = left, *b = right;
	int order = strcmp(a->object->sha256, b->object->sha256);

	return order ?: a->index < b->index ? -1 : 1;
}

static int compare_places(const void *left, const void *right)
{
	const struct row *a = left, *b = right;

	return a->index < b->index ? -1 : 1;
}

/* A program's own code for the host, that no runtime was given: there are dozens, and few want to see them. */
static bool is_library(const struct xpt_codeobj *object)
{
	return object->pid && !object->runtime && !strcmp(object->kind, "elf");
}

/* In the order of the first loads. The number of rows. */
static size_t make_rows(const struct xpt_codeobj_list *list, struct row *rows)
{
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++)
		rows[i] = (struct row){ list->objects[i], i, 1 };
	qsort(rows, list->count, sizeof(*rows), compare_hashes);
	for (size_t i = 0; i < list->count; i++) {
		const char *sha256 = rows[i].object->sha256;

		if (count && *sha256 && !strcmp(sha256, rows[count - 1].object->sha256))
			rows[count - 1].loads++;
		else
			rows[count++] = rows[i];
	}
	qsort(rows, count, sizeof(*rows), compare_places);
	return count;
}

/* Columns of words: no wider than what is in them. */
struct columns {
	size_t kind, machine, runtime;
};

static void widen(size_t *columns, const char *word)
{
	size_t length = word ? strlen(word) : 1;

	length = length < WORD_COLUMNS ? length : WORD_COLUMNS;
	*columns = length > *columns ? length : *columns;
}

static struct columns measure(const struct row *rows, size_t count)
{
	struct columns columns = { strlen("KIND"), strlen("MACHINE"), strlen("RUNTIME") };

	for (size_t i = 0; i < count; i++) {
		widen(&columns.kind, rows[i].object->kind);
		widen(&columns.machine, rows[i].object->machine);
		widen(&columns.runtime, rows[i].object->runtime);
	}
	return columns;
}

static uint64_t first_load(const struct xpt_codeobj_list *list)
{
	uint64_t first = ~0ull;

	for (size_t i = 0; i < list->count; i++) {
		uint64_t loaded = list->objects[i]->loaded;

		first = loaded && loaded < first ? loaded : first;
	}
	return first;
}

static size_t count_kernels(const struct xpt_codeobj *object)
{
	size_t count = 0;

	for (size_t i = 0; i < object->function_count; i++)
		count += object->functions[i].kernel != 0;
	return count;
}

static void print_row(FILE *out, const struct row *row, const struct columns *columns, uint64_t since)
{
	const struct xpt_codeobj *object = row->object;

	if (object->loaded)
		fprintf(out, "%11.6f", (double)(object->loaded - since) / 1e9);
	else
		fprintf(out, "%11s", object->pid ? "before" : "-");
	fprintf(out, " %5zu  ", row->loads);
	print_name(out, object->kind, columns->kind);
	fprintf(out, " ");
	print_name(out, object->machine ?: "-", columns->machine);
	fprintf(out, " %10" PRIu64 " %7zu  %-*.*s  ", object->data_size, count_kernels(object), SHA_SHOWN, SHA_SHOWN,
		*object->sha256 ? object->sha256 : "-");
	print_name(out, object->runtime ?: "-", columns->runtime);
	fprintf(out, " ");
	print_name(out, *object->uri ? object->uri : "-", 0);
	fprintf(out, "\n");
	if (object->missing)
		fprintf(out, "%18s  %" PRIu64 " bytes are missing\n", "", object->missing);
	if (object->error) {
		fprintf(out, "%18s  ", "");
		print_name(out, object->error, 0);
		fprintf(out, "\n");
	}
}

static void print_functions(FILE *out, const struct xpt_codeobj *object)
{
	for (size_t i = 0; i < object->part_count; i++) {
		const struct xpt_codeobj_part *part = &object->parts[i];

		fprintf(out, "%18s  %#12" PRIx64 " %10" PRIu64 "  %-8s  ", "", part->offset, part->length,
			part->external ? "file" : part->kind);
		print_name(out, part->name, 0);
		fprintf(out, "\n");
	}
	for (size_t i = 0; i < object->function_count; i++) {
		const struct xpt_codeobj_function *function = &object->functions[i];

		fprintf(out, "%18s  %#12" PRIx64 " %10" PRIu64 "  %-8s  ", "", function->offset, function->size,
			function->kernel ? "kernel" : "function");
		print_name(out, function->name, 0);
		fprintf(out, "\n");
	}
	if (object->functions_left_out)
		fprintf(out, "%18s  and %" PRIu64 " more\n", "", object->functions_left_out);
}

/* What is no part of the rows, where there is some. */
static void print_counts(FILE *out, const struct xpt_codeobj_list *list, size_t rows, size_t libraries)
{
	const struct {
		uint64_t count;
		const char *what;
	} counts[] = {
		{ list->over_limit, "not kept for a limit" },
		{ list->incomplete, "incomplete" },
		{ list->lost, "lost" },
	};

	fprintf(out, "%zu objects, %zu loads", rows, list->count);
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (counts[i].count)
			fprintf(out, ", %" PRIu64 " %s", counts[i].count, counts[i].what);
	}
	if (libraries)
		fprintf(out, "; %zu objects are shared libraries: --libraries prints them", libraries);
	fprintf(out, "\n");
}

/* Those that are printed come first, in their order. Their number. */
static size_t choose(struct row *rows, size_t count, bool libraries)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++) {
		if (libraries || !is_library(rows[i].object))
			rows[kept++] = rows[i];
	}
	return kept;
}

/* A line an object, however often it was loaded. 0 or -ENOMEM. */
static int codeobj_table(FILE *out, const struct xpt_codeobj_list *list, const struct codeobj_shown *shown)
{
	struct row *rows = calloc(list->count + 1, sizeof(*rows));
	uint64_t since = first_load(list);
	struct columns columns;
	size_t count, all;

	if (!rows)
		return -ENOMEM;
	all = make_rows(list, rows);
	count = choose(rows, all, shown->libraries);
	columns = measure(rows, count);
	if (count)
		fprintf(out, "%11s %5s  %-*s %-*s %10s %7s  %-*s  %-*s %s\n", "LOADED(S)", "LOADS", (int)columns.kind,
			"KIND", (int)columns.machine, "MACHINE", "SIZE", "KERNELS", SHA_SHOWN, "SHA256",
			(int)columns.runtime, "RUNTIME", "WHERE");
	for (size_t i = 0; i < count; i++) {
		print_row(out, &rows[i], &columns, since);
		if (shown->functions)
			print_functions(out, rows[i].object);
	}
	print_counts(out, list, all, all - count);
	free(rows);
	return 0;
}

/* ---- the summary ---- */

static void print_waits(FILE *out, const struct xpt_codeobj_list *list)
{
	uint64_t all = 0, longest = 0;
	size_t count = 0;

	for (size_t i = 0; i < list->count; i++) {
		uint64_t waited = list->objects[i]->waited;

		count += waited != 0;
		all += waited;
		longest = waited > longest ? waited : longest;
	}
	if (count)
		fprintf(out, "%zu calls waited: %.1f ms in all, %.1f ms at longest\n", count, (double)all / 1e6,
			(double)longest / 1e6);
}

static int print_written(FILE *out, const struct xpt_codeobj_list *list, const char *folder)
{
	struct row *rows = calloc(list->count + 1, sizeof(*rows));
	size_t count, files = 0;
	uint64_t bytes = 0;

	if (!rows)
		return -ENOMEM;
	count = make_rows(list, rows);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].object->file) {
			files++;
			bytes += rows[i].object->data_size;
		}
	}
	free(rows);
	fprintf(out, "wrote ");
	print_name(out, folder, 0);
	fprintf(out, ": index.json and %zu objects of %" PRIu64 " bytes: `xputrace codeobj show ", files, bytes);
	print_name(out, folder, 0);
	fprintf(out, "` prints them\n");
	return 0;
}

/*
 * What a capture has done besides: how long calls waited, and what was written to the folder; NULL: nothing was. A hint
 * where nothing was recorded. 0 or -ENOMEM.
 */
static int codeobj_summary(FILE *out, const struct xpt_codeobj_list *list, bool snapshot, const char *folder)
{
	if (!list->count && snapshot)
		fprintf(out, "no code objects found in files; those in memory are captured only while they are loaded, "
			     "without --snapshot\n");
	else if (!list->count)
		fprintf(out,
			"no code objects were loaded: start before the program loads its models, or with -- COMMAND\n");
	if (list->lost)
		fprintf(out, "lost: %" PRIu64 " loads without a record\n", list->lost);
	if (list->over_limit)
		fprintf(out,
			"the bytes of %" PRIu64
			" loads were not kept: see --object-limit, --process-limit, --total-limit\n",
			list->over_limit);
	print_waits(out, list);
	return folder ? print_written(out, list, folder) : 0;
}

/* ---- the command line ---- */

struct codeobj_context {
	struct session_options session; /* first: see session.h */
	enum xpt_codeobj_mode mode;
	const char *folder; /* NULL: none was given */
	uint64_t object_limit, process_limit, total_limit;
	bool snapshot;
	struct codeobj_shown shown;
	bool json;
};

#define FIELD(name) .offset = offsetof(struct codeobj_context, name)

/* And of `codeobj show`. */
static const struct option_entry show_entries[] = {
	{ 0, "functions", NULL, "and the parts and functions of each object", OPTION_FLAG, FIELD(shown.functions) },
	{ 0, "libraries", NULL, "and shared libraries that programs loaded for themselves", OPTION_FLAG,
	  FIELD(shown.libraries) },
	{ 0, "json", NULL, "print what index.json has instead of the table", OPTION_FLAG, FIELD(json) },
	{}
};

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'o', "output-dir", "DIR",
	  "where objects go, each once, and index.json (default:\n./codeobj; with --mode symbols: nowhere)",
	  OPTION_STRING, FIELD(folder) },
	{ 0, "mode", "MODE",
	  "symbols: what is in them, no bytes; memory (default): and the\nbytes of those given in memory; "
	  "all: and of files",
	  OPTION_CHOICE, FIELD(mode),
	  .choices = { { "symbols", XPT_CODEOBJ_SYMBOLS },
		       { "memory", XPT_CODEOBJ_COPY_MEMORY },
		       { "all", XPT_CODEOBJ_COPY_ALL } } },
	{ .group = duration_option },
	{ 0, "snapshot", NULL, "only what is loaded already", OPTION_FLAG, FIELD(snapshot) },
	{ .group = wait_options },
	{ .group = code_wait_option },
	{ 0, "object-limit", "SIZE", "keep no bytes of larger objects (default 1G)", OPTION_SIZE, FIELD(object_limit) },
	{ 0, "process-limit", "SIZE", "nor more of a process (default 4G)", OPTION_SIZE, FIELD(process_limit) },
	{ 0, "total-limit", "SIZE", "nor more of all (default 16G)", OPTION_SIZE, FIELD(total_limit) },
	{ .group = show_entries },
	{ .group = runtime_options, FIELD(session.runtimes) },
	{ .group = link_option },
	{ 'q', "quiet", NULL, "no table, only warnings", OPTION_FLAG, FIELD(session.quiet) },
	{ .group = verbose_option },
	{}
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

static const struct command_line show_line = {
	.name = "codeobj show",
	.summary = "Print what is in a code object, or in a folder that xputrace codeobj has written.",
	.usage = "  xputrace codeobj show FILE|DIR [OPTION...]",
	.options = show_entries,
	.any_order = true,
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

static int output_status(int error)
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
	int first, error, result = options_parse(&show_line, argc, argv, &context, &first);
	struct xpt_codeobj_list *list;
	char index[PATH_MAX], whole[PATH_MAX];
	const char *path;

	if (result)
		return result;
	if (first + 1 != argc)
		return session_options_refuse(&show_line, "expected one file or directory");
	path = argv[first];
	/* What it stands for in URIs: without rights no links can be read. */
	if (realpath(path, whole))
		path = whole;
	snprintf(index, sizeof(index), "%.*s/index.json", (int)(sizeof(index) - sizeof("/index.json")), path);
	confined_begin((const struct confined_file[]){ { .path = path, .folder = true }, { .path = index } }, 2);
	error = xpt_codeobj_read(path, print_message, NULL, &list);
	if (error)
		return exit_failed(error);
	result = output_status(print_list(&context, list));
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
	int error = xpt_codeobj_capture_get(capture, &list), result = 0;
	char text[200];

	if (!error) {
		result = context->json || !context->session.quiet ? output_status(print_list(context, list)) : 0;
		error = context->session.quiet ? 0 : codeobj_summary(stderr, list, context->snapshot, folder);
	}
	if (!error)
		return result;
	snprintf(text, sizeof(text), "cannot list code objects: %s", strerror(-error));
	print_message(NULL, XPT_LOG_ERROR, text);
	return EXIT_FAILED;
}

static void print_started(const struct codeobj_context *context)
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
		print_started(context);
		error = xpt_codeobj_capture_wait(capture, session->duration ?: XPT_FOREVER);
		error = error < 0 && error != -EINTR ? error : 0;
	}
	end_on_signals(NULL, NULL);
	end_soon(false);
	stopped = xpt_codeobj_capture_stop(capture);
	if (!error && !session->quiet)
		print_command_status(session->command, xpt_codeobj_capture_command_status(capture));
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
		return result;
	if (context.snapshot && (session->command || session->duration))
		return session_options_refuse(&line,
					      "--snapshot is for running processes, without COMMAND and --duration");
	if (!context.folder && context.mode != XPT_CODEOBJ_SYMBOLS)
		context.folder = "codeobj";
	return run(&context);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xputrace/stream.h>

#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/core/json.h"
#include "base/core/text.h"

static bool take_region(void *context, const char *value, const char **reason)
{
	const char *colon = strchr(value, ':');

	if (!colon || colon == value || !colon[1] || colon[1] == ':') {
		*reason = "expected FILE:FUNCTION, such as 'libdecode.so*:decode_*'";
		return false;
	}
	return string_list_add(context, value);
}

bool take_pids(void *context, const char *value, const char **reason)
{
	struct session_options *options = context;
	char *end;

	do {
		long pid = strtol(value, &end, 10);

		if (end == value || pid <= 0 || pid > 0x7fffffff || (*end && *end != ',')) {
			*reason = "expected process IDs, separated by commas";
			return false;
		}
		if (options->pid_count == PIDS_MAX) {
			*reason = "too many processes; use --all-processes";
			return false;
		}
		options->pids[options->pid_count++] = pid;
		value = end + 1;
	} while (*end);
	return true;
}

static bool take_process(void *context, const char *value, const char **reason)
{
	*reason = "expected the name of a process, as ps -e prints it";
	return *value && !strchr(value, '/') && string_list_add(context, value);
}

#define FINGERPRINT_DIGITS 8

/* The name is not copied. */
static bool add_name(struct session_options *options, const char *value, const char **reason)
{
	const char *equals = strchr(value, '=');
	struct xpt_handle_name *name = &options->names[options->name_count];
	char handle[32], *end;

	if (!equals || !equals[1] || (size_t)(equals - value) >= sizeof(handle)) {
		*reason = "expected HANDLE=NAME, FINGERPRINT=NAME or @FILE, for example 0x7f3a10002b40=resnet50";
		return false;
	}
	if (options->name_count == NAMES_MAX) {
		*reason = "too many names";
		return false;
	}
	memcpy(handle, value, equals - value);
	handle[equals - value] = '\0';
	*name = (struct xpt_handle_name){ .name = equals + 1 };
	if (strlen(handle) == FINGERPRINT_DIGITS && strspn(handle, "0123456789abcdefABCDEF") == FINGERPRINT_DIGITS)
		name->fingerprint = strtoul(handle, &end, 16);
	*reason = "expected a handle such as 0x7f3a10002b40, or a fingerprint such as 3f9a21c4, as traces have them";
	if (!name->fingerprint && !parse_number(handle, &name->handle))
		return false;
	options->name_count++;
	return true;
}

/* A line a name; empty ones, and those that begin with #, are ignored. */
static bool add_names(struct session_options *options, const char *path, const char **reason)
{
	static char text[400];
	char *line = NULL;
	size_t room = 0;
	FILE *file = fopen(path, "r");
	unsigned int number = 0;
	ssize_t length;
	bool added = true;

	*reason = text;
	if (!file) {
		snprintf(text, sizeof(text), "cannot read %.200s: %s", path, strerror(errno));
		return false;
	}
	while (added && (length = getline(&line, &room, file)) >= 0) {
		const char *first = line + strspn(line, " \t\r\n"), *why;
		char *name;

		number++;
		while (length > first - line && strchr(" \t\r\n", line[length - 1]))
			line[--length] = '\0';
		if (!*first || *first == '#')
			continue;
		why = "out of memory";
		name = strdup(first);
		free(options->name_lines[options->name_count]);
		options->name_lines[options->name_count] = name;
		added = name && add_name(options, name, &why);
		if (!added)
			snprintf(text, sizeof(text), "%.200s:%u: %.150s", path, number, why);
	}
	if (added && ferror(file)) {
		snprintf(text, sizeof(text), "cannot read %.200s: %s", path, strerror(errno));
		added = false;
	}
	free(line);
	fclose(file);
	return added;
}

static bool take_name(void *context, const char *value, const char **reason)
{
	return *value == '@' ? add_names(context, value + 1, reason) : add_name(context, value, reason);
}

/* "2", "0.5%", "none" */
static bool take_budget(void *context, const char *value, const char **reason)
{
	double *budget = context;
	char *end;

	(void)reason;
	if (!strcmp(value, "none")) {
		*budget = XPT_BUDGET_NONE;
		return true;
	}
	if (*value != '.' && (*value < '0' || *value > '9'))
		return false;
	*budget = strtod(value, &end);
	return end != value && (!*end || !strcmp(end, "%")) && *budget >= XPT_BUDGET_MIN && *budget <= XPT_BUDGET_MAX;
}

#define FIELD(name) .offset = offsetof(struct session_options, name)

const struct option_entry target_options[] = {
	{ 'p', "pid", "PID[,PID...]", "trace these running processes and their children", OPTION_CALLBACK,
	  .take = take_pids },
	{ 0, "process", "NAME",
	  "trace processes with this name, also those that start later;\nmay be given several times", OPTION_CALLBACK,
	  FIELD(process_names), .take = take_process },
	{ 'a', "all-processes", NULL, "trace every process that uses a described runtime,\nalso those that start later",
	  OPTION_FLAG, FIELD(all_processes) },
	{}
};

const struct option_entry wait_options[] = {
	{ 0, "no-wait", NULL, "never let a thread wait until it has its probes, or its\ncode object has been read",
	  OPTION_FLAG, FIELD(no_wait) },
	{ 0, "wait-limit", "TIME", "longest time that a thread waits for its probes (default: 1s)", OPTION_DURATION,
	  FIELD(wait_limit), .max = XPT_WAIT_LIMIT_MAX },
	{}
};

const struct option_entry code_wait_option[] = {
	{ 0, "code-wait-limit", "TIME",
	  "longest time that a call waits until its code object has\nbeen read (default: 500ms)", OPTION_DURATION,
	  FIELD(code_wait_limit), .max = XPT_WAIT_LIMIT_MAX },
	{}
};

const struct option_entry duration_option[] = {
	{ 'd', "duration", "TIME", "stop after TIME: 10s, 500ms, 2m", OPTION_DURATION, FIELD(duration) },
	{},
};

const struct option_entry level_option[] = {
	{ 0, "level", "LEVEL",
	  "basic: loads and inferences only; standard (default): all\ndescribed calls; detailed: and operators",
	  OPTION_CHOICE,
	  .choices = { { "basic", XPT_LEVEL_BASIC },
		       { "standard", XPT_LEVEL_STANDARD },
		       { "detailed", XPT_LEVEL_DETAILED } } },
	{}
};

const struct option_entry counters_options[] = {
	{ 0, "counters-every", "TIME", "read them at this interval (default 10ms)", OPTION_DURATION,
	  FIELD(counters_every), .min = 100000, .max = 3600000000000 },
	{ 0, "counters-per-inference", NULL, "and around each inference: up to 4 perf events", OPTION_FLAG,
	  FIELD(counters_per_inference) },
	{}
};

const struct option_entry report_options[] = {
	{ 0, "counters", "NAME[,NAME...]",
	  "read these counters around each inference: up to 4 perf events;\n`xputrace list counters` names them",
	  OPTION_CALLBACK, FIELD(counters), .take = take_counters },
	{ 0, "type", "TYPE",
	  "latency: CSV, a row an inference (default);\ntrace: Chrome trace; perfetto: Perfetto's own format",
	  OPTION_CHOICE, FIELD(type),
	  .choices = { { "latency", XPT_PROFILE_LATENCY },
		       { "trace", XPT_PROFILE_TRACE },
		       { "perfetto", XPT_PROFILE_PERFETTO } } },
	{ 0, "layout", "LAYOUT", "of the CSV: flat, one table (default); qaic, as the Cloud\nAI 100 runtime writes it",
	  OPTION_CHOICE, FIELD(layout), .choices = { { "flat", LAYOUT_FLAT }, { "qaic", LAYOUT_QAIC } } },
	{ 0, "summary", NULL, "latency: one row a program with mean and percentiles instead", OPTION_FLAG,
	  FIELD(summary) },
	{}
};

const struct option_entry warn_size_option[] = {
	{ 0, "warn-size", "SIZE", "warn before a Chrome trace gets larger than that (default: 1 GB)", OPTION_SIZE,
	  FIELD(warn_bytes) },
	{},
};

const struct option_entry link_option[] = {
	{ 0, "link", "KIND", "auto, session, multi or perf: how probes are linked", OPTION_CHOICE, FIELD(link),
	  .choices = { { "auto", XPT_LINK_AUTO },
		       { "session", XPT_LINK_SESSION },
		       { "multi", XPT_LINK_MULTI },
		       { "perf", XPT_LINK_PERF } } },
	{},
};

const struct option_entry verbose_option[] = {
	{ 'v', "verbose", NULL, "print more messages", OPTION_SET, FIELD(log_level), .value = XPT_LOG_DEBUG },
	{},
};

const struct option_entry collect_options[] = {
	{ .group = runtime_options, FIELD(runtimes) },
	{ 0, "region", "FILE:FUNCTION",
	  "make functions of a program or library regions: patterns of\nits name and of theirs, by symbol or as ns::Class::name",
	  OPTION_CALLBACK, FIELD(regions), .take = take_region },
	{ 0, "drivers", "NAME[,NAME...]",
	  "follow the jobs of these drivers; auto (default): of all\nthat are loaded; none", OPTION_STRING,
	  FIELD(drivers), .expected = "auto, none, or names of drivers (see xputrace list drivers)" },
	{ 0, "driver", "FILE.json", "add the description of a driver", OPTION_LIST, FIELD(driver_files) },
	{ 'b', "buffer", "SIZE", "memory for records on their way, all CPUs together\n(default 8M)", OPTION_SIZE,
	  FIELD(buffer_bytes), .min = 64 << 10, .max = 1 << 30 },
	{ .group = link_option },
	{ .group = wait_options },
	{ 0, "budget", "PERCENT",
	  "CPU time that tracing and the collector may take, as a share\nof the targets', 0.1 to 100; none (default: none; of\n"
	  "agent and continuous: 2)",
	  OPTION_CALLBACK, FIELD(budget), .take = take_budget, .expected = "a percentage from 0.1 to 100, or none" },
	{}
};

#define MOMENT "a time since the recording began, such as 1.5s or 200ms"

const struct option_entry reading_options[] = {
	{ 'P', "program", "NAME|HANDLE",
	  "only inferences of this program, with what lies in them; a\nhandle is written 0x7f3a10002b40, the name 0x12 as\n"
	  "name=0x12; may be given several times",
	  OPTION_CALLBACK, .take = take_chosen_program },
	{ 'm', "match", "EXPRESSION",
	  "and of programs with a name in which this regular\nexpression is found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 'p', "pid", "PID[,PID...]", "only these processes", OPTION_CALLBACK, .take = take_pids },
	{ 0, "from", "TIME", "only what began from this time on, since the recording\nbegan: 1.5s, 200ms",
	  OPTION_DURATION, FIELD(from), .zero = true, .expected = MOMENT },
	{ 0, "to", "TIME", "only what began before this time", OPTION_DURATION, FIELD(to), .expected = MOMENT },
	{}
};

const struct option_entry stacks_options[] = {
	{ 0, "stacks", "N",
	  "who calls the runtime: stacks of calls that begin an\ninference, at most N a second (default: 100)",
	  OPTION_INT, .offset = offsetof(struct stacks_choice, calls), .min = 1, .max = 1000, .without = "100" },
	{ 0, "samples", "HZ",
	  "where threads compute in calls: their stacks, so often a second\non each CPU (default: 99)", OPTION_INT,
	  .offset = offsetof(struct stacks_choice, samples), .min = 1, .max = 1000, .without = "99" },
	{}
};

const struct option_entry why_option[] = {
	{ 0, "why", NULL,
	  "record when and why threads do not run during inferences,\nwho runs in their place and who wakes them",
	  OPTION_FLAG, FIELD(why) },
	{}
};

const struct option_entry session_options[] = {
	{ .group = collect_options },
	{ 'n', "name", "HANDLE=NAME",
	  "name a program that was loaded before, also by its\nFINGERPRINT; @FILE: with such lines", OPTION_CALLBACK,
	  .take = take_name },
	{ .group = why_option },
	{ 'q', "quiet", NULL, "no status line, no summary, only warnings", OPTION_FLAG, FIELD(quiet) },
	{ .group = verbose_option },
	{}
};

/* One of -p, -a and a command; no summary of what has none. */
static const char *contradiction(const struct session_options *options, bool dashes)
{
	bool processes = options->pid_count || options->process_names.count;
	static char text[256];

	if ((processes || options->all_processes) && options->command && !dashes) {
		snprintf(text, sizeof(text), "unexpected argument '%.150s'; output file: -o %.50s", options->command[0],
			 options->command[1] ? "FILE" : options->command[0]);
		return text;
	}
	if (processes + !!options->command + !!options->all_processes != 1)
		return "say what to trace, one of: -p PID, --process NAME, -a, or -- COMMAND";
	if (options->type != XPT_PROFILE_LATENCY && options->summary)
		return "--summary requires --type latency";
	if (options->type != XPT_PROFILE_LATENCY && options->layout)
		return "--layout requires --type latency";
	return NULL;
}

int session_options_parse(const struct command_line *line, int argc, char **argv, void *context)
{
	struct session_options *options = context;
	const char *reason;
	int first, result, tracefs;

	options->log_level = XPT_LOG_INFO;
	result = options_parse(line, argc, argv, context, &first);
	if (result)
		return result;
	if (first < argc)
		options->command = argv + first;
	else if (options->all_by_default && !options->pid_count && !options->process_names.count)
		options->all_processes = true;
	reason = contradiction(options, first > 1 && !strcmp(argv[first - 1], "--"));
	if (reason)
		return session_options_refuse(line, reason);
	if (options->quiet && options->log_level == XPT_LOG_INFO)
		options->log_level = XPT_LOG_WARN;
	/* Later it has no right to. */
	tracefs = file_mount_detached("tracefs");
	if (tracefs >= 0)
		snprintf(options->tracefs, sizeof(options->tracefs), "/proc/self/fd/%d", tracefs);
	privileges_reduce(options->link);
	return 0;
}

int session_options_refuse(const struct command_line *line, const char *reason)
{
	fprintf(stderr, "xputrace %s: ", line->name);
	print_name(stderr, reason, 0);
	fprintf(stderr, " (see xputrace %s --help)\n", line->name);
	return EXIT_USAGE;
}

bool session_counters_missing(const struct command_line *line, const struct session_options *options)
{
	if (options->counters.count || (!options->counters_every && !options->counters_per_inference))
		return false;
	session_options_refuse(line, "no counters specified: --counters NAME[,NAME...]");
	return true;
}

bool session_writes_to_stdout(const struct session_options *options)
{
	return !strcmp(options->output, "-");
}

/* ---- programs ---- */

bool take_chosen_match(void *context, const char *value, const char **reason)
{
	struct session_options *options = context;

	*reason = "expected one expression: a|b finds a and b";
	if (options->match)
		return false;
	options->match = value;
	return true;
}

bool take_chosen_program(void *context, const char *value, const char **reason)
{
	struct session_options *options = context;
	struct xpt_program_choice *more;

	if (options->choice_count == XPT_CHOICES_MAX) {
		*reason = "too many programs; use --match";
		return false;
	}
	more = realloc(options->choices, (options->choice_count + 1) * sizeof(*more));
	if (!more) {
		*reason = "out of memory";
		return false;
	}
	options->choices = more;
	return choice_parse(value, &options->choices[options->choice_count++], reason);
}

bool choices_refused(const struct command_line *line, const struct session_options *options)
{
	struct text safe = {};
	char reason[200];
	size_t position, columns;

	if (!options->match || !xpt_stream_check_match(options->match, &position, reason, sizeof(reason)))
		return false;
	columns = text_terminal(&safe, options->match, position, 0);
	text_free(&safe);
	fprintf(stderr, "xputrace %s: --match: %s\n  ", line->name, reason);
	print_name(stderr, options->match, 0);
	fprintf(stderr, "\n  %*s^\n", (int)columns, "");
	return true;
}

#define FORCED "name="

bool choice_parse(const char *text, struct xpt_program_choice *choice, const char **reason)
{
	*choice = (struct xpt_program_choice){ .size = sizeof(*choice), .name = text };
	*reason = "expected a name, or a handle such as 0x7f3a10002b40";
	if (!strncmp(text, FORCED, strlen(FORCED))) {
		choice->name = text + strlen(FORCED);
		return *choice->name;
	}
	if (strncmp(text, "0x", 2) || !text[2] || text[2 + strspn(text + 2, "0123456789abcdefABCDEF")])
		return *text;
	choice->name = NULL;
	return parse_number(text, &choice->handle) && choice->handle;
}

/* "nrt model 1" */
static bool is_nameless(const struct seen_program *program)
{
	size_t length = strlen(program->runtime);
	const char *rest = program->name + length;

	return !strncmp(program->name, program->runtime, length) &&
	       (!strncmp(rest, " model ", 7) || !strncmp(rest, " kernel ", 8));
}

void seen_add(struct seen_programs *seen, const struct xpt_program_info *program)
{
	struct seen_program *item = &seen->items[seen->count];

	for (size_t i = 0; i < seen->count; i++) {
		const struct seen_program *other = &seen->items[i];

		if (other->pid == program->pid && other->handle == program->handle &&
		    !strcmp(other->name, program->name) && !strcmp(other->runtime, program->runtime))
			return;
	}
	if (seen->count == SEEN_MAX) {
		seen->more = true;
		return;
	}
	*item = (struct seen_program){ strdup(program->runtime), strdup(program->name), program->pid, program->handle };
	if (item->runtime && item->name) {
		seen->count++;
		seen->nameless |= is_nameless(item);
		return;
	}
	free(item->runtime);
	free(item->name);
}

void seen_print(const struct seen_programs *seen)
{
	for (size_t i = 0; i < seen->count; i++) {
		const struct seen_program *program = &seen->items[i];

		fputs("  ", stderr);
		print_name(stderr, program->name, 32);
		fprintf(stderr, "  %-13s process %-8d 0x%" PRIx64 "\n", program->runtime, program->pid,
			program->handle);
	}
	if (seen->more)
		fputs("  and more\n", stderr);
	if (seen->nameless)
		fputs("  Programs that were loaded before and have no name: --program HANDLE chooses one, --name HANDLE=NAME names it.\n",
		      stderr);
}

void seen_free(struct seen_programs *seen)
{
	for (size_t i = 0; i < seen->count; i++) {
		free(seen->items[i].runtime);
		free(seen->items[i].name);
	}
	*seen = (struct seen_programs){};
}

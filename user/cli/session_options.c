/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/session_options.h"
#include "cli/commands.h"
#include "cli/privileges.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

bool take_region(void *context, const char *value, const char **reason)
{
	const char *colon = strchr(value, ':');

	if (!colon || colon == value || !colon[1] || colon[1] == ':') {
		*reason = "must be FILE:FUNCTION, such as 'libdecode.so*:decode_*'";
		return false;
	}
	return string_list_add(&((struct session_options *)context)->regions, value);
}

bool take_driver_file(void *context, const char *value, const char **reason)
{
	*reason = "out of memory";
	return string_list_add(&((struct session_options *)context)->driver_files, value);
}

bool take_drivers(void *context, const char *value, const char **reason)
{
	*reason = "auto, none, or names of drivers are wanted (see xputrace list drivers)";
	((struct session_options *)context)->drivers = value;
	return *value;
}

bool take_pids(void *context, const char *value, const char **reason)
{
	struct session_options *options = context;
	char *end;

	do {
		long pid = strtol(value, &end, 10);

		if (end == value || pid <= 0 || pid > 0x7fffffff || (*end && *end != ',')) {
			*reason = "process numbers, separated by commas, are wanted";
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

bool take_process(void *context, const char *value, const char **reason)
{
	*reason = "the name of a process is wanted, as ps -e shows it";
	return *value && !strchr(value, '/') &&
	       string_list_add(&((struct session_options *)context)->process_names, value);
}

bool take_all(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct session_options *)context)->all_processes = 1;
	return true;
}

bool take_no_wait(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct session_options *)context)->no_wait = true;
	return true;
}

bool take_wait_limit(void *context, const char *value, const char **reason)
{
	*reason = "expected a time such as 200ms or 5s";
	return parse_duration(value, &((struct session_options *)context)->wait_limit);
}

bool take_code_wait_limit(void *context, const char *value, const char **reason)
{
	*reason = "expected a time such as 200ms or 5s";
	return parse_duration(value, &((struct session_options *)context)->code_wait_limit);
}

bool take_output(void *context, const char *value, const char **reason)
{
	*reason = "a file name, or - for standard output, is wanted";
	((struct session_options *)context)->output = value;
	return *value;
}

bool take_duration(void *context, const char *value, const char **reason)
{
	*reason = "a time like 10s, 500ms or 2m is wanted";
	return parse_duration(value, &((struct session_options *)context)->duration);
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

/* A line a name; empty ones, and those that begin with #, say nothing. */
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

bool take_name(void *context, const char *value, const char **reason)
{
	return *value == '@' ? add_names(context, value + 1, reason) : add_name(context, value, reason);
}

bool take_buffer(void *context, const char *value, const char **reason)
{
	uint64_t bytes;

	*reason = "a size from 64K to 1G is wanted";
	if (!parse_size(value, &bytes) || bytes < (64 << 10) || bytes > (1u << 30))
		return false;
	((struct session_options *)context)->buffer_bytes = bytes;
	return true;
}

bool take_link(void *context, const char *value, const char **reason)
{
	static const char *const names[] = { "auto", "session", "multi", "perf" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (!strcmp(value, names[i])) {
			((struct session_options *)context)->link = (enum xpt_link)i;
			return true;
		}
	}
	*reason = "the kinds are auto, session, multi and perf";
	return false;
}

bool take_counters(void *context, const char *value, const char **reason)
{
	*reason = "names of counters are wanted (see xputrace list counters)";
	return string_list_add_counters(&((struct session_options *)context)->counters, value);
}

bool take_counters_every(void *context, const char *value, const char **reason)
{
	uint64_t *every = &((struct session_options *)context)->counters_every;

	*reason = "a time from 100us to 1h is wanted";
	return parse_duration(value, every) && *every >= 100000 && *every <= 3600000000000;
}

bool take_per_inference(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct session_options *)context)->counters_per_inference = 1;
	return true;
}

bool take_quiet(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct session_options *)context)->quiet = true;
	return true;
}

bool take_verbose(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct session_options *)context)->log_level = XPT_LOG_DEBUG;
	return true;
}

bool take_warn_size(void *context, const char *value, const char **reason)
{
	*reason = "expected a size like 64K, 100M or 1G";
	return parse_size(value, &((struct session_options *)context)->warn_bytes);
}

bool take_summary_json(void *context, const char *value, const char **reason)
{
	return take_summary_json_path(&((struct session_options *)context)->summary_json, value, reason);
}

bool take_type(void *context, const char *value, const char **reason)
{
	bool trace = !strcmp(value, "trace");

	*reason = "the types are latency and trace";
	((struct session_options *)context)->type = trace ? XPT_PROFILE_TRACE : XPT_PROFILE_LATENCY;
	return trace || !strcmp(value, "latency");
}

bool take_summary(void *context, const char *value, const char **reason)
{
	(void)value;
	(void)reason;
	((struct session_options *)context)->summary = true;
	return true;
}

bool take_layout(void *context, const char *value, const char **reason)
{
	struct session_options *options = context;

	*reason = "the layouts are flat and qaic";
	options->layout_given = true;
	options->qaic = !strcmp(value, "qaic");
	return options->qaic || !strcmp(value, "flat");
}

/* One of -p, -a and a command; no summary of what has none. */
static const char *contradiction(const struct session_options *options, bool dashes)
{
	bool processes = options->pid_count || options->process_names.count;
	static char text[256];

	if ((processes || options->all_processes) && options->command && !dashes) {
		snprintf(text, sizeof(text), "'%.150s' is no option; to write there: -o %.50s", options->command[0],
			 options->command[1] ? "FILE" : options->command[0]);
		return text;
	}
	if (processes + !!options->command + !!options->all_processes != 1)
		return "say what to trace, one of: -p PID, --process NAME, -a, or -- COMMAND";
	if (options->type == XPT_PROFILE_TRACE && options->summary)
		return "--summary is for --type latency";
	if (options->type == XPT_PROFILE_TRACE && options->layout_given)
		return "--layout is for --type latency";
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
	session_options_refuse(line, "--counters says which counters are to be read");
	return true;
}

bool session_writes_to_stdout(const struct session_options *options)
{
	return !strcmp(options->output, "-");
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* What record, profile and stream have in common on the command line: what is watched, how, and how much is said. */
#ifndef XPT_CLI_SESSION_OPTIONS_H
#define XPT_CLI_SESSION_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/profile_report.h>
#include <xputrace/target.h>

#include "cli/options.h"
#include "cli/summary_json.h"

#define PIDS_MAX 1024
#define NAMES_MAX 1024

struct session_options {
	struct runtime_choice runtimes; /* first: see options.h */
	struct string_list regions;
	struct string_list driver_files;
	const char *drivers; /* NULL: auto */
	char tracefs[32];    /* path of one of its own; "": none */
	pid_t pids[PIDS_MAX];
	size_t pid_count;
	int all_processes;
	struct string_list process_names;
	char *const *command; /* NULL: none */
	struct xpt_handle_name names[NAMES_MAX];
	size_t name_count;
	char *name_lines[NAMES_MAX + 1]; /* of files: names point into them */
	const char *output;		 /* "-": standard output */
	uint64_t duration;		 /* ns; 0: no limit */
	size_t buffer_bytes;
	enum xpt_link link;
	bool no_wait;
	uint64_t wait_limit, code_wait_limit; /* ns; 0: the library's */
	enum xpt_log_level log_level;
	bool quiet;
	struct string_list counters;
	uint64_t counters_every; /* ns; 0: the library's */
	int counters_per_inference;

	const char *summary_json; /* NULL: none */
	uint64_t warn_bytes;	  /* of record and report; 0: the library's */

	/* Of record and stream; see choosing.h: */
	struct xpt_program_choice *choices;
	size_t choice_count;
	const char *match; /* NULL: none */

	/* Of profile and stream: */
	enum xpt_profile_type type;
	bool summary;
	bool layout_given, qaic; /* --layout; qaic: the Cloud AI 100 layout, else flat */
};

/*
 * Parses a command line whose context begins with struct session_options, and checks that it says what to watch. 0,
 * PARSE_HELP, or EXIT_USAGE (said). From then on the process has the rights only that tracing needs.
 */
int session_options_parse(const struct command_line *line, int argc, char **argv, void *context);

/* Says why the command line cannot be meant; EXIT_USAGE. */
int session_options_refuse(const struct command_line *line, const char *reason);

/* Says that counters are to be read in some way and not which: true. */
bool session_counters_missing(const struct command_line *line, const struct session_options *options);

bool session_writes_to_stdout(const struct session_options *options);

/* What they mean to the library's options of recordings and sessions alike: the beginning of an initialiser. */
#define WATCH_OPTIONS(from)                                                                               \
	.pids = (from)->pids, .pid_count = (from)->pid_count, .command = (from)->command,                 \
	.all_processes = (from)->all_processes, .process_names = (from)->process_names.items,             \
	.process_name_count = (from)->process_names.count, .runtime_files = (from)->runtimes.files.items, \
	.runtime_file_count = (from)->runtimes.files.count, .runtimes = (from)->runtimes.only.items,      \
	.runtime_count = (from)->runtimes.only.count, .regions = (from)->regions.items,                   \
	.region_count = (from)->regions.count, .driver_files = (from)->driver_files.items,                \
	.driver_file_count = (from)->driver_files.count, .drivers = (from)->drivers,                      \
	.tracefs = *(from)->tracefs ? (from)->tracefs : NULL, .names = (from)->names,                     \
	.name_count = (from)->name_count, .buffer_bytes = (from)->buffer_bytes, .link = (from)->link,     \
	.no_wait = (from)->no_wait, .wait_limit = (from)->wait_limit, .counters = (from)->counters.items, \
	.counter_count = (from)->counters.count, .log = print_message, .log_level = (from)->log_level

/* The options, for tables of commands whose context begins with struct session_options. */
bool take_driver_file(void *context, const char *value, const char **reason);
bool take_region(void *context, const char *value, const char **reason);
bool take_drivers(void *context, const char *value, const char **reason);
bool take_pids(void *context, const char *value, const char **reason);
bool take_process(void *context, const char *value, const char **reason);
bool take_all(void *context, const char *value, const char **reason);
bool take_output(void *context, const char *value, const char **reason);
bool take_duration(void *context, const char *value, const char **reason);
bool take_name(void *context, const char *value, const char **reason);
bool take_buffer(void *context, const char *value, const char **reason);
bool take_no_wait(void *context, const char *value, const char **reason);
bool take_wait_limit(void *context, const char *value, const char **reason);
bool take_code_wait_limit(void *context, const char *value, const char **reason);
bool take_link(void *context, const char *value, const char **reason);
bool take_counters(void *context, const char *value, const char **reason);
bool take_counters_every(void *context, const char *value, const char **reason);
bool take_per_inference(void *context, const char *value, const char **reason);
bool take_quiet(void *context, const char *value, const char **reason);
bool take_verbose(void *context, const char *value, const char **reason);
bool take_type(void *context, const char *value, const char **reason);
bool take_warn_size(void *context, const char *value, const char **reason);
bool take_summary_json(void *context, const char *value, const char **reason);
bool take_summary(void *context, const char *value, const char **reason);
bool take_layout(void *context, const char *value, const char **reason);

#define TARGET_OPTIONS                                                                                              \
	{ 'p', "pid", "PID[,PID...]", "trace these running processes and their children", take_pids },              \
		{ 0, "process", "NAME",                                                                             \
		  "trace processes with this name, also those that start later;\nmay be given several times",       \
		  take_process },                                                                                   \
	{                                                                                                           \
		'a', "all-processes", NULL,                                                                         \
			"trace every process that uses a described runtime,\nalso those that start later", take_all \
	}
#define WAIT_OPTIONS                                                                                                \
	{ 0, "no-wait", NULL, "never let a thread wait until it has its probes, or its\ncode object has been read", \
	  take_no_wait },                                                                                           \
	{                                                                                                           \
		0, "wait-limit", "TIME", "longest time that a thread waits for its probes (default: 1s)",           \
			take_wait_limit                                                                             \
	}
#define CODE_WAIT_OPTION                                                                                        \
	{                                                                                                       \
		0, "code-wait-limit", "TIME",                                                                   \
			"longest time that a call waits until its code object has\nbeen read (default: 500ms)", \
			take_code_wait_limit                                                                    \
	}
#define SESSION_OPTIONS                                                                                                                   \
	RUNTIME_OPTIONS,                                                                                                                  \
		{ 0, "region", "FILE:FUNCTION",                                                                                           \
		  "make functions of a program or library regions: patterns of\nits name and of theirs, by symbol or as ns::Class::name", \
		  take_region },                                                                                                          \
		{ 0, "drivers", "NAME[,NAME...]",                                                                                         \
		  "follow the jobs of these drivers; auto (default): of all\nthat are loaded; none", take_drivers },                      \
		{ 0, "driver", "FILE.json", "add the description of a driver", take_driver_file },                                        \
		{ 'n', "name", "HANDLE=NAME",                                                                                             \
		  "name a program that was loaded before, also by its\nFINGERPRINT; @FILE: with such lines",                              \
		  take_name },                                                                                                            \
		{ 'b', "buffer", "SIZE", "memory for records on their way, all CPUs together\n(default 8M)",                              \
		  take_buffer },                                                                                                          \
		{ 0, "link", "KIND", "auto, session, multi or perf: how probes are linked", take_link }, WAIT_OPTIONS,                    \
		{ 'q', "quiet", NULL, "no status line, no summary, only warnings", take_quiet },                                          \
	{                                                                                                                                 \
		'v', "verbose", NULL, "say more about what is done", take_verbose                                                         \
	}
#define WARN_SIZE_OPTION                                                                                    \
	{                                                                                                   \
		0, "warn-size", "SIZE", "warn before a Chrome trace gets larger than that (default: 1 GB)", \
			take_warn_size                                                                      \
	}
#define SUMMARY_JSON_OPTION                                                     \
	{                                                                       \
		0, "summary-json", "FILE", SUMMARY_JSON_HELP, take_summary_json \
	}
#define REPORT_OPTIONS                                                                                                \
	{ 0, "counters", "NAME[,NAME...]",                                                                            \
	  "read these counters around each inference: up to 4 perf events;\n`xputrace list counters` names them",     \
	  take_counters },                                                                                            \
		{ 0, "type", "TYPE", "latency: CSV, a row an inference (default);\ntrace: Chrome trace", take_type }, \
		{ 0, "layout", "LAYOUT",                                                                              \
		  "of the CSV: flat, one table (default); qaic, as the Cloud\nAI 100 runtime writes it",              \
		  take_layout },                                                                                      \
	{                                                                                                             \
		0, "summary", NULL, "latency: one row a program with mean and percentiles instead", take_summary      \
	}

#endif

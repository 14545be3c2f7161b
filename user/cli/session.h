/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of the command line: its options, which programs are chosen and which were seen, and its run. */
#ifndef XPT_CLI_SESSION_H
#define XPT_CLI_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/profile_report.h>
#include <xputrace/session.h>
#include <xputrace/target.h>

#include "cli/commands.h"

#define PIDS_MAX 1024
#define NAMES_MAX 1024

struct session_options {
	struct runtime_choice runtimes;
	struct string_list regions;
	struct string_list driver_files;
	const char *drivers; /* NULL: auto */
	char tracefs[32];    /* path of one of its own; "": none */
	pid_t pids[PIDS_MAX];
	size_t pid_count;
	bool all_processes;
	bool all_by_default; /* set by a command that needs no target */
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
	double budget;			      /* percent; 0: the library's default */
	int why;
	enum xpt_log_level log_level;
	bool quiet;
	struct string_list counters;
	uint64_t counters_every; /* ns; 0: the library's */
	bool counters_per_inference;

	const char *summary_json; /* NULL: none */
	uint64_t warn_bytes;	  /* of record and report; 0: the library's */

	/* Of record and stream: */
	struct xpt_program_choice *choices;
	size_t choice_count;
	const char *match; /* NULL: none */

	/* Of report and explain: */
	uint64_t from, to; /* ns since the recording began; to 0: its end */

	/* Of profile and stream: */
	enum xpt_profile_type type;
	bool summary;
	enum { LAYOUT_DEFAULT, LAYOUT_FLAT, LAYOUT_QAIC } layout; /* LAYOUT_DEFAULT: flat */
};

/*
 * Parses a command line with a context that begins with struct session_options, and checks that there is something to
 * trace. 0, PARSE_HELP, or EXIT_USAGE (reported). From then on the process has the rights only that tracing needs.
 */
int session_options_parse(const struct command_line *line, int argc, char **argv, void *context);

/* Reports why the command line is wrong; EXIT_USAGE. */
int session_options_refuse(const struct command_line *line, const char *reason);

/* Reports options for counters without any counters: true. */
bool session_counters_missing(const struct command_line *line, const struct session_options *options);

bool session_writes_to_stdout(const struct session_options *options);

/* What they mean to the library's options of recordings and sessions alike: the beginning of an initialiser. */
#define WATCH_OPTIONS(from)                                                                                           \
	.pids = (from)->pids, .pid_count = (from)->pid_count, .command = (from)->command,                             \
	.all_processes = (from)->all_processes, .process_names = (from)->process_names.items,                         \
	.process_name_count = (from)->process_names.count, .runtime_files = (from)->runtimes.files.items,             \
	.runtime_file_count = (from)->runtimes.files.count, .runtimes = (from)->runtimes.only.items,                  \
	.runtime_count = (from)->runtimes.only.count, .regions = (from)->regions.items,                               \
	.region_count = (from)->regions.count, .driver_files = (from)->driver_files.items,                            \
	.driver_file_count = (from)->driver_files.count, .drivers = (from)->drivers,                                  \
	.tracefs = *(from)->tracefs ? (from)->tracefs : NULL, .names = (from)->names,                                 \
	.name_count = (from)->name_count, .name_size = sizeof(*(from)->names), .buffer_bytes = (from)->buffer_bytes,  \
	.link = (from)->link, .no_wait = (from)->no_wait, .wait_limit = (from)->wait_limit, .budget = (from)->budget, \
	.why = (from)->why, .counters = (from)->counters.items, .counter_count = (from)->counters.count,              \
	.log = print_message, .log_level = (from)->log_level

/* Stacks a second; 0: none. */
struct stacks_choice {
	unsigned int calls, samples;
};

/* Options that commands share; without another word, of struct session_options. */
extern const struct option_entry target_options[];
extern const struct option_entry wait_options[];
extern const struct option_entry code_wait_option[];
extern const struct option_entry duration_option[];
extern const struct option_entry level_option[]; /* of an enum xpt_level */
extern const struct option_entry counters_options[];
extern const struct option_entry report_options[];
extern const struct option_entry warn_size_option[];
extern const struct option_entry link_option[];
extern const struct option_entry stacks_options[]; /* of a struct stacks_choice */
extern const struct option_entry why_option[], verbose_option[];
extern const struct option_entry reading_options[]; /* which inferences of a recording */
extern const struct option_entry collect_options[]; /* what is traced of targets, and how */
extern const struct option_entry session_options[]; /* these, and what only some commands have */

/* Callback, of struct session_options: process IDs with commas between. */
bool take_pids(void *session, const char *value, const char **reason);

/* ---- programs ---- */

/* Of commands with a context that begins with struct session_options. */
bool take_chosen_match(void *context, const char *value, const char **reason);
bool take_chosen_program(void *context, const char *value, const char **reason);

/* Reports where the expression is wrong, with a mark below the place: true. False: there is none, or it is right. */
bool choices_refused(const struct command_line *line, const struct session_options *options);

#define SEEN_MAX 20 /* shown; of what comes beyond it only "and more" */

struct seen_program {
	char *runtime, *name; /* owned */
	pid_t pid;
	uint64_t handle;
};

struct seen_programs {
	struct seen_program items[SEEN_MAX];
	size_t count;
	bool more, nameless; /* nameless: some bear only their handle */
};

/* "0x7f3a10002b40" is a handle, anything else a name; "name=0x12" is the name 0x12. False: neither (reason). */
bool choice_parse(const char *text, struct xpt_program_choice *choice, const char **reason);

/* Adds a program, unless it is there already. */
void seen_add(struct seen_programs *seen, const struct xpt_program_info *program);
/* Lists them on standard error, with a word on programs without a name. */
void seen_print(const struct seen_programs *seen);
void seen_free(struct seen_programs *seen);

#endif

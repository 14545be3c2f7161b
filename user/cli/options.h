/* SPDX-License-Identifier: BSD-2-Clause */
/* Command lines as tables: one entry an option serves parsing, --help and the message for a wrong value. */
#ifndef XPT_CLI_OPTIONS_H
#define XPT_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/recording.h>

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define PARSE_HELP 3 /* options_parse(): --help was asked for and answered */

struct option_entry {
	char letter; /* 0: none */
	const char *name;
	const char *argument; /* how --help calls it; NULL: the option takes none */
	const char *help;     /* one or more lines */
	/* Takes value (NULL without argument). On a wrong one returns false and leaves the reason in *reason. */
	bool (*take)(void *context, const char *value, const char **reason);
};

struct command_line {
	const char *name;    /* "record" */
	const char *summary; /* one line */
	const char *usage;   /* lines after "usage:", each a whole command */
	const struct option_entry *options;
	size_t option_count;
	const char *more; /* paragraphs and examples that --help ends with; NULL: none */
};

/* Parses argv[1..]; *first is the index of the first argument that is no option. 0, PARSE_HELP, or the exit status (said). */
int options_parse(const struct command_line *line, int argc, char **argv, void *context, int *first);

/* A word that may have been meant by the one given, and nearer than *nearest (~0: none), which becomes its distance. */
bool is_nearer(const char *given, const char *word, unsigned int *nearest);

/* "10s", "500ms", "2m", "1h", a bare number is seconds; ns. False: not a duration, or zero. */
bool parse_duration(const char *text, uint64_t *nanoseconds);
/* "64K", "8M", "1G"; bytes. */
bool parse_size(const char *text, uint64_t *bytes);
/* Decimal or 0x hexadecimal, the whole text. */
bool parse_number(const char *text, uint64_t *value);

/* Name of a format of traces: chrome, ort, or qnn-csv. */
bool parse_trace_format(const char *text, enum xpt_output *format, const char **reason);
const char *output_name(enum xpt_output format); /* as --format has it: "chrome" */
/* Says that the trace was written, and what to do with it. */
void tell_trace(const char *path, enum xpt_output format);
/* "basic", "standard", "detailed". */
bool parse_level(const char *text, enum xpt_level *level, const char **reason);

/* Number of a process. */
bool parse_pid(const char *text, pid_t *pid);
/* Number of a CPU or device, from 0 on. */
bool parse_index(const char *text, int *index);

/* A list that grows by one. */
struct string_list {
	const char **items;
	size_t count;
};
bool string_list_add(struct string_list *list, const char *item); /* the string is not copied */
/* Splits at commas into copies. */
bool string_list_split(struct string_list *list, const char *text);
/* Adds copies of names of counters with commas between; one within slashes is of a name. False: one is empty. */
bool string_list_add_counters(struct string_list *list, const char *text);

/* Which runtimes: for commands whose context begins with this. */
struct runtime_choice {
	struct string_list files, only;
};
bool take_runtime(void *context, const char *value, const char **reason);
bool take_only(void *context, const char *value, const char **reason);
#define RUNTIME_OPTIONS                                                                                    \
	{ 'r', "runtime", "FILE.json", "add the description of a runtime", take_runtime },                 \
	{                                                                                                  \
		0, "only", "NAME[,NAME...]", "only these runtimes (see xputrace list runtimes)", take_only \
	}

#endif

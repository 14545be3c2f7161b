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
#define PARSE_HELP 3 /* options_parse(): --help was given, and printed */

enum option_type {
	OPTION_FLAG,	 /* bool: becomes true */
	OPTION_SET,	 /* int or enum: becomes .value */
	OPTION_STRING,	 /* const char *; not empty */
	OPTION_LIST,	 /* struct string_list, which gets one more; not empty */
	OPTION_WORDS,	 /* struct string_list, which gets copies of the words between commas */
	OPTION_INT,	 /* int or unsigned int, from .min to .max */
	OPTION_NUMBER,	 /* uint64_t */
	OPTION_DURATION, /* uint64_t, ns; a bare number is seconds */
	OPTION_SIZE,	 /* uint64_t or size_t, bytes */
	OPTION_CHOICE,	 /* int or enum: the value of one of .choices */
	OPTION_CALLBACK, /* .take; with .expected, or it gives a reason */
};

struct option_choice {
	const char *name;
	int value;
};

/* Tables end with an empty entry. */
struct option_entry {
	char letter; /* 0: none */
	const char *name;
	const char *argument; /* how --help calls it; NULL: the option takes none */
	const char *help;     /* one or more lines */
	enum option_type type;
	size_t offset; /* of the field in the context */
	int value;
	uint64_t min, max;		 /* max 0: no limit */
	bool zero;			 /* a duration or size may be 0, whatever min is */
	const char *expected;		 /* "a time up to 60s", for the message; NULL: made from type and limits */
	struct option_choice choices[6]; /* until one without a name */
	/* Takes the value into the field. On a wrong one returns false; *reason: a whole message instead of .expected. */
	bool (*take)(void *field, const char *value, const char **reason);
	/* Instead of all of the above but offset: the options of this table, with fields in the struct that lies there. */
	const struct option_entry *group;
};

struct command_line {
	const char *name;    /* "record" */
	const char *summary; /* one line */
	const char *usage;   /* lines after "usage:", each a whole command */
	const struct option_entry *options;
	bool any_order;	  /* options may also follow other arguments */
	const char *more; /* paragraphs and examples that --help ends with; NULL: none */
};

/*
 * Parses argv[1..] into the context; *first is the index of the first argument that is no option; with any_order, all from there on
 * are none. 0, PARSE_HELP, or the exit status (reported).
 */
int options_parse(const struct command_line *line, int argc, char **argv, void *context, int *first);

/* A word that may have been meant by the one given, and nearer than *nearest (~0: none), which becomes its distance. */
bool is_nearer(const char *given, const char *word, unsigned int *nearest);

/* "10s", "500ms", "2m", "1h", a bare number is seconds; ns. False: not a duration, or zero. */
bool parse_duration(const char *text, uint64_t *nanoseconds);
/* Decimal or 0x hexadecimal, the whole text. */
bool parse_number(const char *text, uint64_t *value);

const char *output_name(enum xpt_output format); /* as --format has it: "chrome" */
/* Prints that the trace was written, and what opens it. */
void print_trace_written(const char *path, enum xpt_output format);

/* A list that grows by one. */
struct string_list {
	const char **items;
	size_t count;
};
bool string_list_add(struct string_list *list, const char *item); /* the string is not copied */
/* Callback, of a struct string_list: adds copies of names of counters with commas between; one within slashes is of a name. */
bool take_counters(void *list, const char *text, const char **reason);

#define TABLE_CHOICES             \
	{                         \
		{ "table", 0 },   \
		{                 \
			"json", 1 \
		}                 \
	}

/* Which runtimes. */
struct runtime_choice {
	struct string_list files, only;
};
extern const struct option_entry runtime_options[]; /* of a struct runtime_choice */

#endif

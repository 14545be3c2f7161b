/* SPDX-License-Identifier: BSD-2-Clause */
/* What commands share: command lines, messages, standard output, signals, rights, sums of programs. */
#ifndef XPT_CLI_COMMANDS_H
#define XPT_CLI_COMMANDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <xputrace/counters.h>
#include <xputrace/error.h>
#include <xputrace/profile_report.h>
#include <xputrace/recording.h>

#include "base/core/text.h"

int command_record(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_stream(int argc, char **argv);
int command_top(int argc, char **argv);
int command_agent(int argc, char **argv);
int command_report(int argc, char **argv);
int command_explain(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_list(int argc, char **argv);
int command_continuous(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_codeobj(int argc, char **argv);
int command_counters(int argc, char **argv);
int command_check(int argc, char **argv);
int choose_process(void); /* without a command, on a terminal */

/* ---- command lines as tables: one entry an option serves parsing, --help and the message for a wrong value ---- */

#define EXIT_FAILED 1
#define EXIT_USAGE 2
#define PARSE_HELP (-1) /* options_parse(): --help was given, and printed */

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
	uint64_t min, max; /* max 0: no limit */
	bool zero;	   /* a duration or size may be 0, whatever min is */
	const char *
		without; /* the value where no argument is given, which only stands behind a '=' then; NULL: it must be */
	const char *expected;		  /* "a time up to 60s", for the message; NULL: made from type and limits */
	struct option_choice choices[14]; /* until one without a name */
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
/* The format of a flame graph, by the end of the file's name: folded unless that is .pprof, .pb.gz, .svg or .json. */
enum xpt_output flame_format(const char *path);
bool is_flame_format(int format);
bool is_page_name(const char *path);	 /* "night.html" */
bool is_perfetto_name(const char *path); /* "trace.pftrace", "trace.pftrace.gz" */
bool is_sqlite_name(const char *path);	 /* "out.db", "out.sqlite" */
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

/* Of --format; an element of the choices each. */
#define FLAME_CHOICES                                                                                    \
	{ "folded", XPT_OUTPUT_FOLDED }, { "pprof", XPT_OUTPUT_PPROF }, { "svg", XPT_OUTPUT_FLAME_SVG }, \
	{                                                                                                \
		"speedscope", XPT_OUTPUT_SPEEDSCOPE                                                      \
	}

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
extern const struct option_entry runtime_options[];	/* of a struct runtime_choice */
extern const struct option_entry flame_option[];	/* of an enum xpt_flame */
extern const struct option_entry summary_json_option[]; /* of a const char *; NULL: not given */

/* ---- messages and standard output ---- */

/* Messages of the library, to standard error. context is unused. */
void print_message(void *context, enum xpt_log_level level, const char *text);
/* The exit status of a function of the library that has failed with error. Reports why, if no message has. */
int exit_failed(int error);
/* The same of a function that creates or starts something: 0 without an error, wrong options are wrong usage. */
int exit_status(int error);
/* Something on standard output is not what it should be. */
void output_failed(int error);
/* At the end of the command with this status: the one of the process, which fails, too, if standard output cannot be written. */
int exit_output(int status);
/* A name that a target has given, cut or filled up to columns (0: as it is), with nothing in it that moves the cursor. */
void print_name(FILE *out, const char *name, size_t columns);
/* A member of a JSON object on standard output, and what follows it. */
void list_string(const char *key, const char *value, const char *end);
/* Columns of the terminal behind a descriptor; 0: it is none. */
unsigned int terminal_columns(int descriptor);
/*
 * From here on a process of its own writes to standard error: no message blocks its thread. What is left at the end of
 * the program is waited for, but not for long after a signal.
 */
void messages_detach(void);
/* The status line is redrawn in place; a message needs a line of its own. */
void status_clear(void);
void status_draw(const char *text);
/* How much of a recording has been read: bytes; total 0: not known. As the library calls it. */
void draw_progress(void *context, uint64_t done, uint64_t total);

/* ---- the end of a command ---- */

/* SIGINT, SIGTERM and SIGHUP call end(object), inside the handler; they are ignored after end_on_signals(NULL, NULL). */
void end_on_signals(void (*end)(void *object), void *object);

/* Time of the first of them, ns of CLOCK_MONOTONIC; 0: there was none yet. */
const uint64_t *stop_time(void);
/*
 * Only output is left to do: the program ends within 2 s of a signal, also of one that came before, when standard output blocks;
 * within 1 s of a second one whatever it waits for. files_done: no file is written any more that might be standard output.
 */
void end_soon(bool files_done);

struct running_figures {
	uint64_t elapsed; /* ns */
	unsigned int processes, programs;
	uint64_t calls, lost;
};

/* Calls a second are counted over at least one second; begins as zeros. */
struct status_line {
	uint64_t last_calls, last_elapsed;
};

/* Draws the figures, followed by tail. */
void status_line_draw(struct status_line *line, const struct running_figures *figures, const char *tail);

/* Prints how the command has ended. status: as from wait(); -1: it still runs. command NULL: there was none. */
void print_command_status(char *const *command, int status);

/* Notifies the service manager (NOTIFY_SOCKET), if there is one, that the command is ready. */
void notify_manager(void);

/* ---- rights ---- */

/*
 * Gives up all capabilities but those that tracing needs with links of this kind; a command that root runs gets them all back by
 * exec. Without root's user ID nothing is changed. The reason why it failed is a warning.
 */
void privileges_reduce(enum xpt_link link);

/*
 * The same once all counters and outputs are open: what is left is to read in /proc what drivers report for each process that has
 * opened a device. of_cpus: and to open counters of CPUs again that were offline.
 */
void privileges_reduce_to_counting(bool of_cpus);

/* Names them, and what each is for. */
void privileges_print(FILE *out);

/* One that the user has named. */
struct confined_file {
	const char *path; /* NULL: none; "-": the standard one */
	bool output;
	bool folder; /* what is directly in it may be opened as O_PATH, too */
};

/*
 * Gives up all rights (base/core/process.h) but those to read and write what is open. Another process, which reads nothing, keeps them and
 * opens the files in the list whenever they are asked for: inputs for reading, outputs as
 * output_open() or output_begin(). Until the end. That it is not possible is a warning. To be called before any file is read, by the
 * only thread.
 */
void confined_begin(const struct confined_file *files, unsigned int count);

/* Bytes of an output that was opened since; -1: it is no regular file. */
long long confined_output_size(const char *path);

/* Those of the wanted counters that the device reports, started; NULL: none. */
struct xpt_counters *device_counters_start(int gpu_index, const char *const *wanted, size_t count);

/* ---- what was recorded: sums for each program, printed as a table ---- */

/* Programs with a line of their own; those that come later are put together, so that memory has a limit. */
#define TOTALS_MAX 1024

struct program_total {
	char *runtime, *name; /* owned; NULL: the others together */
	pid_t pid;
	uint64_t inferences, taken, lost, failed;
	struct xpt_latencies *latencies; /* NULL: there was no memory */
};

/* Begins as zeros. */
struct totals {
	struct program_total programs[TOTALS_MAX + 1]; /* the last one: others */
	size_t count;				       /* without the others */
	struct program_total sum;		       /* of all */
	bool inexact;				       /* no memory for latencies of some */
};

/* A process, runtime and name is one program, whatever its handle. */
void totals_add(struct totals *totals, const struct xpt_program_report *program);
/* columns: width of the terminal, 0: nothing is cut. */
void totals_print(const struct totals *totals, FILE *out, unsigned int columns);
void totals_free(struct totals *totals);

/* ---- --summary-json ---- */

struct summary_json {
	const char *path; /* NULL: none is written; "-": standard output */
	struct text text; /* the object, open: json_add_*() add to it */
};

/* Before anything is added; path may be NULL: then nothing needs to be added. */
void summary_json_begin(struct summary_json *summary, const char *path, const char *command);
/* Members of an object that the library has made; frees it. NULL: none. */
void summary_json_members(struct summary_json *summary, char *json);
/* The file that was written; path NULL or "": none was. */
void summary_json_output(struct summary_json *summary, const char *path, const char *format);
void summary_json_totals(struct summary_json *summary, const struct totals *totals);
/* Writes the text to a file ("-": standard output) and frees it. The exit status: that of the command, or EXIT_FAILED (reported) where it could not be written. */
int output_text(const char *path, struct text *text, int status);
/* The same of the summary. */
int summary_json_end(struct summary_json *summary, int status);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What commands share: messages, standard output, signals, rights. One file a command. */
#ifndef XPT_CLI_COMMANDS_H
#define XPT_CLI_COMMANDS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include <xputrace/error.h>
#include <xputrace/recording.h>

int command_record(int argc, char **argv);
int command_profile(int argc, char **argv);
int command_stream(int argc, char **argv);
int command_report(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_list(int argc, char **argv);
int command_continuous(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_codeobj(int argc, char **argv);
int command_counters(int argc, char **argv);
int command_check(int argc, char **argv);

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

/* Who called sudo. False: nobody did, or its variables are damaged. */
bool sudo_caller(uid_t *user, gid_t *group);

/* ---- rights ---- */

/*
 * Gives up all capabilities but those that tracing needs with links of this kind; a command that root runs gets them all back by
 * exec. Without root's user ID nothing is changed. The reason why it failed is a warning.
 */
void privileges_reduce(enum xpt_link link);

/*
 * The same once all counters and outputs are open: what is left is to read in /proc what drivers report for each process that has
 * opened a device.
 */
void privileges_reduce_to_counting(void);

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

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* One file a command; each gets argv with its own name first and returns the exit status. */
#ifndef XPT_CLI_COMMANDS_H
#define XPT_CLI_COMMANDS_H

#include <stdio.h>

#include <xputrace/error.h>

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
/* The exit status of a function of the library that has failed with error. Says why, if no message has. */
int exit_failed(int error);
/* The same of a function that creates or starts something: 0 without an error, wrong options are wrong usage. */
int exit_status(int error);
/* Something on standard output is not what it should be. */
void output_failed(int error);
/* At the end of the command with this status: the one of the process, which fails, too, if standard output cannot be written. */
int exit_output(int status);
/* A name that a target has given, cut or filled up to columns (0: as it is), with nothing in it that moves the cursor. */
void print_name(FILE *out, const char *name, size_t columns);
/* Columns of the terminal behind a descriptor; 0: it is none. */
unsigned int terminal_columns(int descriptor);
/*
 * From here on a process of its own writes to standard error: no message holds up whoever has it. What is left at the end of the
 * program is waited for, but not for long after a signal.
 */
void messages_detach(void);
/* The status line is drawn over what stands there; a message needs a line of its own. */
void status_clear(void);
void status_draw(const char *text);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* What record, profile and stream do while they run, and when they end. */
#ifndef XPT_CLI_RUNNING_H
#define XPT_CLI_RUNNING_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

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

/* Draws the figures and what stands behind them: tail. */
void status_line_draw(struct status_line *line, const struct running_figures *figures, const char *tail);

/* Says how the command has ended. status: as from wait(); -1: it still runs. command NULL: there was none. */
void tell_command(char *const *command, int status);

/* Who called sudo. False: nobody did, or what it says of them is damaged. */
bool sudo_caller(uid_t *user, gid_t *group);

#endif

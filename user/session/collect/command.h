/* SPDX-License-Identifier: BSD-2-Clause */
/* A command that is started for a recording: made, but held before its first instruction until it is released. */
#ifndef XPT_SESSION_COLLECT_COMMAND_H
#define XPT_SESSION_COLLECT_COMMAND_H

#include <sys/types.h>

struct command {
	pid_t pid;   /* 0: none */
	int release; /* writing end of the pipe that the child waits at; -1: released */
	int failure; /* reading end of the pipe that reports why exec failed; -1 */
	int status;  /* as wait() gives it; -1: still runs */
};

/* Forks the child, which waits. Signals are reset in it. Negative errno. */
int command_start(char *const *arguments, struct command *command);
/* Lets the child exec. */
int command_release(struct command *command);
/* After the exec: 0, or the negative errno that exec failed with. Does not block once the child has run exec. */
int command_exec_error(struct command *command);
/* Checks whether it has ended: 1 and status is set; 0 still runs. */
int command_reap(struct command *command);
/* A child that was never released ends; descriptors are closed. A running command continues. */
void command_close(struct command *command);

#endif

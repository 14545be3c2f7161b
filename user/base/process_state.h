/* SPDX-License-Identifier: BSD-2-Clause */
/* Who is behind a process number: what base/ needs of /proc, with system calls only, so that it is safe after a fork. */
#ifndef XPT_BASE_PROCESS_STATE_H
#define XPT_BASE_PROCESS_STATE_H

#include <linux/types.h>
#include <stdbool.h>
#include <sys/types.h>

struct process_state {
	pid_t parent;
	char state;	  /* as in /proc/PID/stat; 'T': stopped */
	__u64 start_time; /* clock ticks after boot: tells a PID that was used again */
};

/* false: there is no such process, or /proc cannot be read. */
bool process_state_read(pid_t pid, struct process_state *result);

/* state is that of pid. The first thread of a process may have ended before the others: then these are looked at. */
bool process_is_stopped(pid_t pid, char state);

/* A stop signal has been sent to a process, not to one of its threads, and waits for being taken. */
bool process_stop_pending(pid_t pid);

/* Calls visit for each entry of a directory that begins with a digit but 0, until it returns true: the result then. */
bool process_each_number(const char *path, bool (*visit)(void *context, pid_t number), void *context);

/* The decimal number that text begins with; 0 when there is none. */
__u64 process_state_number(const char *text);

#endif

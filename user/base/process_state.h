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

/* The decimal number that text begins with; 0 when there is none. */
__u64 process_state_number(const char *text);

#endif

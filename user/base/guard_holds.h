/* SPDX-License-Identifier: BSD-2-Clause */
/* How the guard lets processes go that were stopped; system calls only, so that it is safe after a fork. */
#ifndef XPT_BASE_GUARD_HOLDS_H
#define XPT_BASE_GUARD_HOLDS_H

#include <linux/types.h>
#include <sys/types.h>

/* Continues the process, if it is the one that began then, in clock ticks after boot. */
void guard_let_go(pid_t pid, __u64 start_time);

/* map: as handed over with guard_holds(); -1: there is none. */
void guard_let_go_all(int map);
/*
 * Those that are held for longer than limit, in ns: they are not stopped again until the collector has looked at them.
 * Milliseconds after which to look again; -1: never.
 */
int guard_let_go_overdue(int map, __u64 limit);

#endif

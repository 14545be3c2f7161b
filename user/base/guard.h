/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small process that outlives a collector that is killed, and completes the file that was being written.
 *
 * What it needs lies in memory that both share, so a kill between any two instructions of the collector leaves it
 * something consistent. It acts once, when the collector has died without guard_stop(), and exits. It keeps no terminal,
 * no working directory and no descriptor but the file's.
 */
#ifndef XPT_BASE_GUARD_H
#define XPT_BASE_GUARD_H

#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

struct guard;

#define GUARD_TAIL_MAX 1024 /* bytes that complete a file */

/*
 * Starts the guard. Call it before threads are made and before much memory is in use (it is a fork). 0 or -errno.
 * The collector is the calling process; its parent and children don't matter.
 */
int guard_start(struct guard **result);
/* Ends the guard in order and frees. NULL is allowed. */
void guard_stop(struct guard *guard);
pid_t guard_pid(const struct guard *guard);

/*
 * Hands over the one file to complete; the descriptor stays the caller's. -EBUSY when there is one already, or what
 * sendmsg() gives. Nothing is done to the file as long as guard_file_state() has not been called.
 */
int guard_file(struct guard *guard, int descriptor);
/*
 * If the collector dies, the file gets tail at offset length and ends behind it. Called by one thread. -E2BIG when the
 * tail is longer than GUARD_TAIL_MAX: the state before stays.
 */
int guard_file_state(struct guard *guard, __u64 length, const char *tail, size_t tail_length);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small process that outlives a collector that is killed, and tidies up after it: lets go the processes that were
 * held by a stop signal, and completes the file that was being written. While the collector lives, it lets go those that
 * are held for too long.
 *
 * Everything that it will need is said to it beforehand through memory and a map that both share, so a kill between any
 * two instructions of the collector leaves it something consistent. It tidies up once, when the collector has died
 * without guard_stop(), and always exits: about one second later at most. It keeps no terminal, no working directory and
 * no descriptor but those that are handed over.
 */
#ifndef XPT_BASE_GUARD_H
#define XPT_BASE_GUARD_H

#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

struct guard;

#define GUARD_WATCHED_MAX 1024 /* processes */
#define GUARD_TAIL_MAX 1024    /* bytes that complete a file */

/*
 * Starts the guard. Call it before threads are made and before much memory is in use (it is a fork). 0 or -errno.
 * The collector is the calling process; its parent and children don't matter.
 */
int guard_start(struct guard **result);
/* Ends the guard in order and frees; processes still held are let go. NULL is allowed. */
void guard_stop(struct guard *guard);
pid_t guard_pid(const struct guard *guard);

/*
 * Hands over the map in which the kernel side keeps the processes that it has stopped: from their number, a __u32, to a
 * struct xpt_hold (bpf/wire.h). One that is there for longer than limit, in ns, is let go by the guard and marked as
 * unattended, also while the collector lives, but is stopped itself or waits for something; all of them when it dies.
 * The descriptor stays the caller's. -EBUSY when there is one already, or what sendmsg() gives.
 */
int guard_holds(struct guard *guard, int map, __u64 limit);

/*
 * The kernel side may stop pid or its descendants without a word in the map. If the collector
 * dies, those found stopped during the first second after it are continued. -ENOSPC: table full.
 */
int guard_watch(struct guard *guard, pid_t pid, __u64 start_time);
void guard_unwatch(struct guard *guard, pid_t pid);

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

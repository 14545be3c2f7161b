/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * An accelerator that any machine has: it exists only in what is reported of it. Its driver's events are system calls that
 * fail at once, kcmp(device, engine, event, context, number), whose tracepoint tests/e2e/emulated.json describes; its jobs
 * are executed by threads that sleep. It keeps its own times, and takes the ioctls of the tests' other accelerator
 * (tests/vm/driver), except jobs that hang.
 */
#ifndef EMULATED_H
#define EMULATED_H

#include <stdbool.h>

/*
 * Whether that is its name: "emulated", or "emulated:" and any of, with commas between
 *	device=N	number of the device, as its events tell it, less 2^30 (0)
 *	engines=N	1 to 8 (2)
 *	slots=N		jobs that an engine runs at once, 1 to 16 (1)
 *	lost=N		of every Nth job of a program, beginning with the first, the end is not told (0: none)
 *	apart		the engines are in another process
 * Each process that opens it has engines of its own, also where they tell the same numbers.
 */
bool emulated_is(const char *name);
/* As open(): a descriptor, which is its own context; or -1 and errno. Only one name a process. */
int emulated_open(const char *name);
/*
 * As ioctl(), for XPTACCEL_SUBMIT and XPTACCEL_WAIT. Each makes one true ioctl, too, of type 'T' and number 0x51 or
 * 0x21, on /dev/null: it does nothing.
 */
int emulated_ioctl(int descriptor, unsigned long number, void *arguments);

#endif

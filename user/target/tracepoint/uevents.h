/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel reports that a module was loaded or a device node was added: drivers may have more events or nodes than before. */
#ifndef XPT_TARGET_TRACEPOINT_UEVENTS_H
#define XPT_TARGET_TRACEPOINT_UEVENTS_H

#include <stdbool.h>

/* A descriptor that is readable when something has happened; to be closed. -errno: the kernel does not report it here. */
int uevents_open(void);
/* Reads all that is there. True: a module or a device node was added, or messages were lost. */
bool uevents_read(int descriptor);

#endif

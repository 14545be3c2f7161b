/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes of the collector's own: they outlive a kill -9 of it for as long as they like. */
#ifndef XPT_BASE_FILE_DETACHED_H
#define XPT_BASE_FILE_DETACHED_H

#include <stddef.h>

/*
 * Calls run(context) in a process that is nobody's child to wait for, as a program that uses the library has children of its own.
 * It has a session of its own, all signals blocked, the root directory as its working directory, and of the caller's
 * descriptors only those kept, with their numbers (-1: none). It ends when run returns. name: at most 15 bytes. 0 or -errno.
 */
int detached_start(const char *name, const int *kept, size_t count, void (*run)(void *context), void *context);

#endif

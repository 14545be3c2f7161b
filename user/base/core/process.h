/* SPDX-License-Identifier: BSD-2-Clause */
/* Threads and processes of the library's own, and what they may do. */
#ifndef XPT_BASE_CORE_PROCESS_H
#define XPT_BASE_CORE_PROCESS_H

#include <pthread.h>
#include <stddef.h>

/* A thread that gets none of the program's signals. name: at most 15 bytes. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *context, const char *name);

/* From here on the calling thread, and those that it starts, have no capabilities, and get none by exec. 0 or -errno. */
int thread_drop_capabilities(void);

/* CPUs that the calling thread may use; 0: not known. */
unsigned int cpus_allowed(void);

/* ---- processes of the collector's own: they outlive a kill -9 of it for as long as they like ---- */

/*
 * Calls run(context) in a process that is nobody's child to wait for, as a program that uses the library has children of its own.
 * It has a session of its own, all signals blocked, the root directory as its working directory, and of the caller's
 * descriptors only those kept, with their numbers (-1: none). It ends when run returns. name: at most 15 bytes. 0 or -errno.
 */
int detached_start(const char *name, const int *kept, size_t count, void (*run)(void *context), void *context);

/* ---- a process that reads what strangers wrote, and can do nothing else ---- */

/*
 * From here on the calling process, which has one thread, can read and write what is open, get memory and end: it has no
 * capabilities, no new privileges, as root a user of its own, and a seccomp filter; everything else fails with EPERM. descriptors: -1,
 * or for a process that writes no files: the most that may be open; files take no byte, nothing is sent but with write(), and it ends with
 * its parent. 0 or -errno: then some rights are left.
 */
int confine(int descriptors);
/* The same for one that also reads the memory of other processes (process_vm_readv()): it keeps CAP_SYS_PTRACE. */
int confine_to_memory(int descriptors);

#endif

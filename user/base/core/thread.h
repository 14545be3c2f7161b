/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XPT_BASE_CORE_THREAD_H
#define XPT_BASE_CORE_THREAD_H

#include <pthread.h>

/* A thread that gets none of the program's signals. name: at most 15 bytes. 0 or -errno. */
int thread_start(pthread_t *thread, void *(*run)(void *), void *context, const char *name);

#endif

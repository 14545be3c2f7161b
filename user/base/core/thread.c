/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/thread.h"

#include <signal.h>

int thread_start(pthread_t *thread, void *(*run)(void *), void *context, const char *name)
{
	sigset_t all, before;
	int error;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(thread, NULL, run, context);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!error)
		pthread_setname_np(*thread, name);
	return -error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/detached.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* From one to another, both included. */
static void close_span(unsigned int first, unsigned int last)
{
	struct rlimit limit = { .rlim_cur = 1024 };

	if (first > last || !syscall(SYS_close_range, first, last, 0))
		return;
	getrlimit(RLIMIT_NOFILE, &limit); /* before Linux 5.9 */
	for (unsigned int i = first; i <= last && i < limit.rlim_cur && i < 1u << 16; i++)
		close(i);
}

/* Leaves those kept where they are: there may be no room for another descriptor. */
static void close_others(const int *kept, size_t count)
{
	unsigned int first = 0, next;

	do {
		next = ~0u;
		for (size_t i = 0; i < count; i++) {
			if (kept[i] >= 0 && (unsigned int)kept[i] >= first && (unsigned int)kept[i] < next)
				next = kept[i];
		}
		if (next != first)
			close_span(first, next - (next != ~0u));
		first = next + 1;
	} while (next != ~0u);
}

int detached_start(const char *name, const int *kept, size_t count, void (*run)(void *context), void *context)
{
	sigset_t all, before;
	int status = 0, error = 0;
	pid_t pid;

	/* No handler of this program ever runs in the process, and no signal of a terminal ends it. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid = fork();
	if (pid < 0)
		error = -errno;
	if (!pid) {
		pid = fork();
		if (pid)
			_exit(pid < 0 ? errno : 0);
		setsid();
		prctl(PR_SET_NAME, name);
		close_others(kept, count);
		if (chdir("/"))
			_exit(1);
		run(context);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid > 0 && WIFEXITED(status))
		error = -WEXITSTATUS(status);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return error;
}

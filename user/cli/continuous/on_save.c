/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/continuous/on_save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"

#define VARIABLES 8

struct run {
	char path[sizeof(((struct xpt_saved *)0)->path)];
	char *variables[VARIABLES + 1]; /* "XPUTRACE_..." */
};

struct on_save {
	struct on_save_options options;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	struct run *waiting[ON_SAVE_WAITING_MAX];
	unsigned int count;
	uint64_t dropped;
	uint64_t deadline; /* ns of CLOCK_MONOTONIC: of all that waits, once it is ended; ~0: none yet */
};

__attribute__((format(printf, 2, 3))) static void warn_of(const struct on_save *on_save, const char *format, ...)
{
	char text[sizeof(((struct run *)0)->path) + 200];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	on_save->options.log(NULL, XPT_LOG_WARN, text);
}

static void run_free(struct run *run)
{
	for (unsigned int i = 0; run && i < VARIABLES; i++)
		free(run->variables[i]);
	free(run);
}

__attribute__((format(printf, 2, 3))) static bool add_variable(struct run *run, const char *format, ...)
{
	unsigned int count = 0;
	va_list arguments;
	int length;

	while (run->variables[count])
		count++;
	va_start(arguments, format);
	length = vasprintf(&run->variables[count], format, arguments);
	va_end(arguments);
	if (length < 0)
		run->variables[count] = NULL;
	return length >= 0;
}

static struct run *run_create(const struct on_save *on_save, const struct xpt_saved *saved, const char *reason)
{
	struct run *run = calloc(1, sizeof(*run));

	if (!run)
		return NULL;
	snprintf(run->path, sizeof(run->path), "%s", saved->path);
	if (add_variable(run, "XPUTRACE_FILE=%s", saved->path) && add_variable(run, "XPUTRACE_REASON=%s", reason) &&
	    add_variable(run, "XPUTRACE_INSTANCE=%s", on_save->options.instance) &&
	    add_variable(run, "XPUTRACE_BYTES=%" PRIu64, saved->bytes) &&
	    add_variable(run, "XPUTRACE_BEGIN_NS=%" PRIu64, saved->begin) &&
	    add_variable(run, "XPUTRACE_END_NS=%" PRIu64, saved->end) &&
	    add_variable(run, "XPUTRACE_RECORDS=%" PRIu64, saved->records) &&
	    add_variable(run, "XPUTRACE_LOST=%" PRIu64, saved->lost))
		return run;
	run_free(run);
	return NULL;
}

void on_save_file(void *context, const struct xpt_saved *saved, const char *reason)
{
	struct on_save *on_save = context;
	struct run *run = run_create(on_save, saved, reason);
	uint64_t dropped = 0;

	pthread_mutex_lock(&on_save->lock);
	if (run && on_save->count < ON_SAVE_WAITING_MAX) {
		on_save->waiting[on_save->count++] = run;
		run = NULL;
		pthread_cond_signal(&on_save->changed);
	} else {
		dropped = ++on_save->dropped;
	}
	pthread_mutex_unlock(&on_save->lock);
	if (dropped)
		warn_of(on_save, "%s is not run for %s: too many files wait for it (%" PRIu64 " dropped)",
			on_save->options.program, saved->path, dropped);
	run_free(run);
}

/* ---- one run ---- */

/* The recorder's environment with the variables of the run in front. NULL: no memory. */
static char **environment_of(const struct run *run)
{
	size_t count = 0;
	char **result;

	while (environ[count])
		count++;
	result = calloc(VARIABLES + count + 1, sizeof(*result));
	if (!result)
		return NULL;
	memcpy(result, run->variables, VARIABLES * sizeof(*result));
	count = VARIABLES;
	for (char **each = environ; *each; each++)
		if (strncmp(*each, "XPUTRACE_", strlen("XPUTRACE_")) &&
		    strncmp(*each, "NOTIFY_SOCKET=", strlen("NOTIFY_SOCKET=")))
			result[count++] = *each;
	return result;
}

/* Nothing of the recorder is open in it but standard error, which standard output leads to as well. */
static int set_up(posix_spawn_file_actions_t *actions, posix_spawnattr_t *attributes)
{
	sigset_t all, none;
	int error;

	sigfillset(&all);
	sigemptyset(&none);
	error = posix_spawn_file_actions_addopen(actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	if (!error)
		error = posix_spawn_file_actions_adddup2(actions, STDERR_FILENO, STDOUT_FILENO);
	if (!error)
		error = posix_spawn_file_actions_addclosefrom_np(actions, STDERR_FILENO + 1);
	if (!error)
		error = posix_spawnattr_setsigdefault(attributes, &all);
	if (!error)
		error = posix_spawnattr_setsigmask(attributes, &none);
	if (!error)
		error = posix_spawnattr_setpgroup(attributes, 0);
	if (!error)
		error = posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK |
								     POSIX_SPAWN_SETPGROUP);
	return error;
}

/* 0 or an errno. The program leads a process group of its own. */
static int spawn(const struct on_save *on_save, struct run *run, pid_t *child)
{
	char *arguments[] = { (char *)on_save->options.program, run->path, NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	char **environment = environment_of(run);
	int error = ENOMEM;

	if (!environment)
		return error;
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attributes);
	error = set_up(&actions, &attributes);
	if (!error)
		error = posix_spawn(child, on_save->options.program, &actions, &attributes, arguments, environment);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	free(environment);
	return error;
}

static uint64_t deadline_of(struct on_save *on_save, uint64_t own)
{
	uint64_t deadline;

	pthread_mutex_lock(&on_save->lock);
	deadline = on_save->deadline < own ? on_save->deadline : own;
	pthread_mutex_unlock(&on_save->lock);
	return deadline;
}

/* False: it has not ended in time. The deadline of all may be set meanwhile. */
static bool wait_for(struct on_save *on_save, pid_t child)
{
	uint64_t own = clock_monotonic() + on_save->options.limit;
	struct pollfd ended = { .fd = (int)syscall(SYS_pidfd_open, child, 0), .events = POLLIN };
	siginfo_t info = {};

	while (!info.si_pid && clock_monotonic() < deadline_of(on_save, own)) {
		/* Where there is no descriptor left, it is looked at now and then. */
		poll(&ended, 1, ended.fd < 0 ? 100 : 1000);
		if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) && errno != EINTR)
			break;
	}
	if (ended.fd >= 0)
		close(ended.fd);
	return info.si_pid;
}

static void run_program(struct on_save *on_save, struct run *run)
{
	const char *program = on_save->options.program;
	int status = 0, error;
	bool in_time;
	pid_t child;

	error = spawn(on_save, run, &child);
	if (error) {
		warn_of(on_save, "%s cannot be run for %s: %s", program, run->path, strerror(error));
		return;
	}
	in_time = wait_for(on_save, child);
	if (!in_time)
		kill(-child, SIGKILL);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (!in_time)
		warn_of(on_save, "%s took too long for %s: killed", program, run->path);
	else if (WIFSIGNALED(status))
		warn_of(on_save, "%s was killed by signal %d for %s", program, WTERMSIG(status), run->path);
	else if (WEXITSTATUS(status))
		warn_of(on_save, "%s failed with status %d for %s", program, WEXITSTATUS(status), run->path);
}

/* ---- the thread ---- */

/* The next one; NULL: no more come. */
static struct run *next_run(struct on_save *on_save)
{
	struct run *run = NULL;

	pthread_mutex_lock(&on_save->lock);
	while (!on_save->count && on_save->deadline == UINT64_MAX)
		pthread_cond_wait(&on_save->changed, &on_save->lock);
	if (on_save->count && clock_monotonic() < on_save->deadline) {
		run = on_save->waiting[0];
		memmove(on_save->waiting, on_save->waiting + 1, --on_save->count * sizeof(struct run *));
	}
	pthread_mutex_unlock(&on_save->lock);
	return run;
}

static void *serve(void *context)
{
	struct on_save *on_save = context;
	struct run *run;

	pthread_setname_np(pthread_self(), "xpt-on-save");
	while ((run = next_run(on_save))) {
		run_program(on_save, run);
		run_free(run);
	}
	return NULL;
}

int on_save_create(const struct on_save_options *options, struct on_save **result)
{
	struct on_save *on_save = calloc(1, sizeof(*on_save));
	sigset_t all, before;
	int error;

	if (!on_save)
		return -ENOMEM;
	on_save->options = *options;
	on_save->deadline = UINT64_MAX;
	pthread_mutex_init(&on_save->lock, NULL);
	pthread_cond_init(&on_save->changed, NULL);
	/* Signals are for the thread that waits. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&on_save->thread, NULL, serve, on_save);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (error) {
		free(on_save);
		return -error;
	}
	*result = on_save;
	return 0;
}

void on_save_destroy(struct on_save *on_save)
{
	if (!on_save)
		return;
	pthread_mutex_lock(&on_save->lock);
	on_save->deadline = clock_monotonic() + on_save->options.limit;
	pthread_cond_signal(&on_save->changed);
	pthread_mutex_unlock(&on_save->lock);
	pthread_join(on_save->thread, NULL);
	for (unsigned int i = 0; i < on_save->count; i++) {
		warn_of(on_save, "%s is not run for %s: the recorder has ended (%" PRIu64 " dropped)",
			on_save->options.program, on_save->waiting[i]->path, ++on_save->dropped);
		run_free(on_save->waiting[i]);
	}
	pthread_cond_destroy(&on_save->changed);
	pthread_mutex_destroy(&on_save->lock);
	free(on_save);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A process that starts a guard and then waits to be killed, and what it prepares before. */
struct collector {
	pid_t pid;
	pid_t guard;
	void (*prepare)(struct guard *guard, void *context);
	void *context;
};

static void collector_run(struct collector *collector, int ready)
{
	struct guard *guard;
	pid_t pid;

	if (guard_start(&guard))
		_exit(1);
	collector->prepare(guard, collector->context);
	pid = guard_pid(guard);
	if (write(ready, &pid, sizeof(pid)) != sizeof(pid))
		_exit(1);
	for (;;)
		pause();
}

/* The test becomes the parent of processes that lose theirs, so that it can wait for the guard's end. */
static void collector_start(struct collector *collector)
{
	int ready[2];

	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	cr_assert_eq(pipe(ready), 0);
	collector->pid = fork();
	cr_assert_geq(collector->pid, 0);
	if (!collector->pid) {
		close(ready[0]);
		collector_run(collector, ready[1]);
	}
	close(ready[1]);
	cr_assert_eq(read(ready[0], &collector->guard, sizeof(pid_t)), (ssize_t)sizeof(pid_t));
	close(ready[0]);
}

static void collector_kill(struct collector *collector)
{
	int status;

	cr_assert_eq(kill(collector->pid, SIGKILL), 0);
	cr_assert_eq(waitpid(collector->pid, NULL, 0), collector->pid);
	cr_assert_eq(waitpid(collector->guard, &status, 0), collector->guard);
	cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void state_of_two(struct guard *guard, void *context)
{
	int descriptor = open(context, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (descriptor < 0 || guard_file(guard, descriptor) || guard_file(guard, descriptor) != -EBUSY)
		_exit(1);
	if (guard_file_state(guard, 1, "wrong", 5) || guard_file_state(guard, 10, "]tail", 5))
		_exit(1);
	/* As if killed in the middle of the next write: torn, and longer than it will be. */
	if (pwrite(descriptor, "0123456789abcdefghijklmnopqrstuvwxyz", 36, 0) != 36)
		_exit(1);
}

static size_t read_file(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t length;

	cr_assert_not_null(file);
	length = fread(text, 1, size, file);
	fclose(file);
	return length;
}

/* The file is complete, and removed. */
static void check_complete(const char *path)
{
	char text[64];

	cr_assert_eq(read_file(path, text, sizeof(text)), 15);
	cr_assert_arr_eq(text, "0123456789]tail", 15);
	unlink(path);
}

static void interrupt(struct guard *guard, void *context)
{
	state_of_two(guard, context);
	kill(guard_pid(guard), SIGTERM);
	kill(guard_pid(guard), SIGINT);
	kill(guard_pid(guard), SIGHUP);
	kill(guard_pid(guard), SIGUSR1);
}

Test(base_guard, signals_do_not_end_it)
{
	char path[] = "/tmp/base_guard.XXXXXX";
	struct collector collector = { .prepare = interrupt, .context = path };

	close(mkstemp(path));
	collector_start(&collector);
	collector_kill(&collector);
	check_complete(path);
}

struct forking {
	char path[32];
	pid_t child;
};

/* What may hold a copy of the collector's socket: a child between fork and exec. */
static void fork_child(struct guard *guard, void *context)
{
	struct forking *forking = context; /* in shared memory */
	pid_t child;

	state_of_two(guard, forking->path);
	child = fork();
	if (!child) {
		alarm(20);
		for (;;)
			pause();
	}
	forking->child = child; /* not by the child, for which it is 0 */
}

Test(base_guard, copies_of_its_socket_do_not_keep_it_waiting)
{
	struct forking *forking = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct collector collector = { .prepare = fork_child, .context = forking };

	strcpy(forking->path, "/tmp/base_guard.XXXXXX");
	close(mkstemp(forking->path));
	collector_start(&collector);
	collector_kill(&collector);
	check_complete(forking->path);
	kill(forking->child, SIGKILL);
	waitpid(forking->child, NULL, 0);
	munmap(forking, 4096);
}

Test(base_guard, killed_collector_leaves_a_complete_file)
{
	char path[] = "/tmp/base_guard.XXXXXX";
	struct collector collector = { .prepare = state_of_two, .context = path };

	close(mkstemp(path));
	collector_start(&collector);
	collector_kill(&collector);
	check_complete(path);
}

static void file_cut_by_others(struct guard *guard, void *context)
{
	state_of_two(guard, context);
	if (truncate(context, 3))
		_exit(1);
}

Test(base_guard, file_that_somebody_has_cut_is_left_alone)
{
	char path[] = "/tmp/base_guard.XXXXXX", text[64];
	struct collector collector = { .prepare = file_cut_by_others, .context = path };

	close(mkstemp(path));
	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_eq(read_file(path, text, sizeof(text)), 3);
	unlink(path);
}

static void nothing(struct guard *guard, void *context)
{
	(void)guard;
	(void)context;
}

Test(base_guard, it_keeps_no_terminal_pipe_or_directory)
{
	struct collector collector = { .prepare = nothing };
	char path[64], target[64];
	struct dirent *entry;
	size_t count = 0;
	ssize_t length;
	DIR *directory;
	int spare = open("/dev/null", O_RDONLY); /* inherited by the collector, without CLOEXEC */

	collector_start(&collector);
	/* The guard tidies up on its own time. */
	snprintf(path, sizeof(path), "/proc/%d/fd/0", collector.guard);
	while (readlink(path, target, sizeof(target)) > 0)
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/%d/fd/%d", collector.guard, spare);
	while (spare > 4 && readlink(path, target, sizeof(target)) > 0)
		usleep(1000);
	snprintf(path, sizeof(path), "/proc/%d/fd", collector.guard);
	directory = opendir(path);
	cr_assert_not_null(directory);
	while ((entry = readdir(directory)))
		count += entry->d_name[0] != '.';
	closedir(directory);
	cr_assert_leq(count, 2);
	snprintf(path, sizeof(path), "/proc/%d/cwd", collector.guard);
	length = readlink(path, target, sizeof(target));
	cr_assert_eq(length, 1);
	cr_assert_eq(getsid(collector.guard), collector.guard);
	collector_kill(&collector);
}

Test(base_guard, stop_in_order_touches_no_file)
{
	char path[] = "/tmp/base_guard.XXXXXX", text[64];
	struct guard *guard;
	pid_t pid;

	close(mkstemp(path));
	cr_assert_eq(guard_start(&guard), 0);
	pid = guard_pid(guard);
	state_of_two(guard, path);
	guard_stop(guard);
	cr_assert_eq(read_file(path, text, sizeof(text)), 36);
	cr_assert_eq(kill(pid, 0), -1, "the guard is still there");
	cr_assert_eq(errno, ESRCH);
	guard_stop(NULL);
	unlink(path);
}

/* The map says it; the collector need not even have seen it. */
Test(base_guard, limits)
{
	char tail[GUARD_TAIL_MAX + 1] = "";
	struct guard *guard;

	cr_assert_eq(guard_start(&guard), 0);
	cr_assert_eq(guard_file_state(guard, 0, tail, GUARD_TAIL_MAX), 0);
	cr_assert_eq(guard_file_state(guard, 0, tail, GUARD_TAIL_MAX + 1), -E2BIG);
	guard_stop(guard);
}

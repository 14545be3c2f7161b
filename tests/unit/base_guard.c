/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process_state.h"

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

struct stat_line {
	char state;
	__u64 start_time;
};

static struct stat_line read_stat(pid_t pid)
{
	struct stat_line result = { 0 };
	char path[64], text[1024], *at;
	int field;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	cr_assert_not_null(file);
	cr_assert_not_null(fgets(text, sizeof(text), file));
	fclose(file);
	at = strrchr(text, ')') + 2;
	result.state = *at;
	for (field = 3; field < 22; field++)
		at = strchr(at, ' ') + 1;
	result.start_time = strtoull(at, NULL, 10);
	return result;
}

static pid_t stopped_process(void)
{
	pid_t pid = fork();
	int status;

	cr_assert_geq(pid, 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	kill(pid, SIGSTOP);
	cr_assert_eq(waitpid(pid, &status, WUNTRACED), pid);
	cr_assert(WIFSTOPPED(status));
	return pid;
}

static void end_process(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

struct target {
	pid_t pid;
	__u64 start_time;
};

static struct target target_start(void)
{
	struct target target = { .pid = stopped_process() };

	target.start_time = read_stat(target.pid).start_time;
	return target;
}

static void hold(struct guard *guard, void *context)
{
	struct target *target = context;

	if (guard_hold(guard, target->pid, target->start_time, 0))
		_exit(1);
}

static void hold_and_release(struct guard *guard, void *context)
{
	struct target *target = context;

	hold(guard, context);
	guard_release(guard, target->pid);
}

static void watch(struct guard *guard, void *context)
{
	struct target *target = context;

	if (guard_watch(guard, target->pid, target->start_time))
		_exit(1);
}

Test(base_guard, killed_collector_lets_held_processes_go)
{
	struct target target = target_start();
	struct collector collector = { .prepare = hold, .context = &target };

	collector_start(&collector);
	cr_assert_eq(read_stat(target.pid).state, 'T');
	collector_kill(&collector);
	cr_assert_neq(read_stat(target.pid).state, 'T');
	end_process(target.pid);
}

Test(base_guard, another_process_with_the_same_number_is_left_alone)
{
	struct target target = target_start();
	struct collector collector = { .prepare = hold, .context = &target };

	target.start_time--;
	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_eq(read_stat(target.pid).state, 'T');
	end_process(target.pid);
}

Test(base_guard, released_process_is_left_alone)
{
	struct target target = target_start();
	struct collector collector = { .prepare = hold_and_release, .context = &target };

	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_eq(read_stat(target.pid).state, 'T');
	end_process(target.pid);
}

static void interrupt_hold(struct guard *guard, void *context)
{
	hold(guard, context);
	kill(guard_pid(guard), SIGTERM);
	kill(guard_pid(guard), SIGINT);
	kill(guard_pid(guard), SIGHUP);
	kill(guard_pid(guard), SIGUSR1);
}

Test(base_guard, signals_do_not_end_it)
{
	struct target target = target_start();
	struct collector collector = { .prepare = interrupt_hold, .context = &target };

	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_neq(read_stat(target.pid).state, 'T');
	end_process(target.pid);
}

/* What may hold a copy of the collector's socket: a child between fork and exec. */
static void fork_hold(struct guard *guard, void *context)
{
	pid_t *pids = context; /* in shared memory */
	struct target target = { .pid = pids[0] };
	pid_t child;

	target.start_time = read_stat(target.pid).start_time;
	hold(guard, &target);
	child = fork();
	if (!child) {
		alarm(20);
		for (;;)
			pause();
	}
	pids[1] = child; /* not by the child, for which it is 0 */
}

Test(base_guard, copies_of_its_socket_do_not_keep_it_waiting)
{
	pid_t *pids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct collector collector = { .prepare = fork_hold, .context = pids };

	pids[0] = stopped_process();
	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_neq(read_stat(pids[0]).state, 'T');
	end_process(pids[0]);
	end_process(pids[1]);
	munmap(pids, 4096);
}

/* A child of the watched process, which the collector never heard of. */
Test(base_guard, stopped_descendants_of_watched_processes_go_on)
{
	struct target target;
	struct collector collector = { .prepare = watch, .context = &target };
	pid_t grandchild;
	int pipes[2];

	cr_assert_eq(pipe(pipes), 0);
	target.pid = fork();
	if (!target.pid) {
		pid_t pid = fork();

		if (pid)
			pid = write(pipes[1], &pid, sizeof(pid));
		alarm(30);
		for (;;)
			pause();
	}
	cr_assert_eq(read(pipes[0], &grandchild, sizeof(grandchild)), (ssize_t)sizeof(grandchild));
	target.start_time = read_stat(target.pid).start_time;
	collector_start(&collector);
	kill(grandchild, SIGSTOP);
	while (read_stat(grandchild).state != 'T')
		usleep(1000);
	collector_kill(&collector);
	cr_assert_neq(read_stat(grandchild).state, 'T');
	kill(grandchild, SIGKILL);
	end_process(target.pid);
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

Test(base_guard, killed_collector_leaves_a_complete_file)
{
	char path[] = "/tmp/base_guard.XXXXXX", text[64];
	struct collector collector = { .prepare = state_of_two, .context = path };

	close(mkstemp(path));
	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_eq(read_file(path, text, sizeof(text)), 15);
	cr_assert_arr_eq(text, "0123456789]tail", 15);
	unlink(path);
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
	struct target target = target_start();
	struct guard *guard;
	pid_t pid;

	close(mkstemp(path));
	cr_assert_eq(guard_start(&guard), 0);
	pid = guard_pid(guard);
	state_of_two(guard, path);
	cr_assert_eq(guard_hold(guard, target.pid, target.start_time, 0), 0);
	guard_stop(guard);
	cr_assert_eq(read_file(path, text, sizeof(text)), 36);
	cr_assert_eq(kill(pid, 0), -1, "the guard is still there");
	cr_assert_eq(errno, ESRCH);
	/* A hold that was forgotten ends here at the latest. */
	cr_assert_neq(read_stat(target.pid).state, 'T');
	end_process(target.pid);
	guard_stop(NULL);
	unlink(path);
}

Test(base_guard, what_is_held_for_too_long_goes_on_while_the_collector_lives)
{
	struct target target = target_start(), other = target_start();
	struct guard *guard;

	cr_assert_eq(guard_start(&guard), 0);
	cr_assert_eq(guard_hold(guard, other.pid, other.start_time, clock_monotonic() + 3600000000000ull), 0);
	cr_assert_eq(guard_hold(guard, target.pid, target.start_time, clock_monotonic() + 50000000), 0);
	cr_expect_eq(read_stat(target.pid).state, 'T');
	for (int i = 0; i < 3000 && read_stat(target.pid).state == 'T'; i++)
		usleep(1000);
	cr_expect_neq(read_stat(target.pid).state, 'T');
	cr_expect_eq(read_stat(other.pid).state, 'T', "its time has not come");
	guard_stop(guard);
	end_process(target.pid);
	end_process(other.pid);
}

static void *wait_for_ever(void *nothing)
{
	for (;;)
		pause();
	return nothing;
}

/* Its first thread ends, and another one goes on. */
static pid_t process_without_its_first_thread(void)
{
	pid_t pid = fork();
	pthread_t thread;

	cr_assert_geq(pid, 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&thread, NULL, wait_for_ever, NULL))
		_exit(1);
	syscall(SYS_exit, 0);
	_exit(1);
}

static void watch_one(struct guard *guard, void *context)
{
	struct target *target = context;

	if (guard_watch(guard, target->pid, target->start_time))
		_exit(1);
}

Test(base_guard, a_process_goes_on_whose_first_thread_has_ended)
{
	struct target target = { .pid = process_without_its_first_thread() };
	struct collector collector = { .prepare = watch_one, .context = &target };

	while (read_stat(target.pid).state != 'Z')
		usleep(1000);
	target.start_time = read_stat(target.pid).start_time;
	kill(target.pid, SIGSTOP);
	while (!process_is_stopped(target.pid, 'Z'))
		usleep(1000);
	collector_start(&collector);
	collector_kill(&collector);
	cr_expect(!process_is_stopped(target.pid, 'Z'));
	end_process(target.pid);
}

Test(base_guard, limits)
{
	char tail[GUARD_TAIL_MAX + 1] = "";
	struct guard *guard;
	int i;

	cr_assert_eq(guard_start(&guard), 0);
	cr_assert_eq(guard_file_state(guard, 0, tail, GUARD_TAIL_MAX), 0);
	cr_assert_eq(guard_file_state(guard, 0, tail, GUARD_TAIL_MAX + 1), -E2BIG);
	/* Start times that match nobody, so that nobody is continued in the end. */
	for (i = 0; i < GUARD_HELD_MAX; i++)
		cr_assert_eq(guard_hold(guard, 1000 + i, 1, 0), 0);
	cr_assert_eq(guard_hold(guard, 1, 1, 0), -ENOSPC);
	guard_release(guard, 1500);
	cr_assert_eq(guard_hold(guard, 1, 1, 0), 0);
	guard_stop(guard);
}

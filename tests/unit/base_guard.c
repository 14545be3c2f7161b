/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/guard.h"

#include <bpf/bpf.h>
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

#include "bpf/wire.h"

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

#define HOUR 3600000000000ull /* ns */

struct target {
	pid_t pid;
	__u64 start_time;
	int map; /* that says that it is held */
};

static struct target target_start(void)
{
	struct target target = { .pid = stopped_process() };

	target.start_time = read_stat(target.pid).start_time;
	return target;
}

/* As the kernel side has it. */
static int holds_create(void)
{
	int map = bpf_map_create(BPF_MAP_TYPE_HASH, "holds", sizeof(__u32), sizeof(struct xpt_hold), 4096, NULL);

	if (map == -EPERM)
		cr_skip_test("only root may create maps");
	cr_assert_geq(map, 0, "%s", strerror(-map));
	return map;
}

/* started: in clock ticks, as the number of the process tells it. */
static int hold_since(int map, pid_t pid, __u64 started, __u64 time)
{
	struct xpt_hold hold = { .time = time, .started = started * 10000000 + 1234567 };

	return bpf_map_update_elem(map, &pid, &hold, BPF_ANY);
}

static bool is_held(int map, pid_t pid)
{
	struct xpt_hold hold;

	return !bpf_map_lookup_elem(map, &pid, &hold);
}

static bool is_unattended(int map, pid_t pid)
{
	struct xpt_hold hold;

	return !bpf_map_lookup_elem(map, &pid, &hold) && hold.unattended;
}

static struct target target_held(void)
{
	struct target target = target_start();

	target.map = holds_create();
	cr_assert_eq(hold_since(target.map, target.pid, target.start_time, clock_monotonic()), 0);
	return target;
}

static void target_end(const struct target *target)
{
	end_process(target->pid);
	close(target->map);
}

static void hold(struct guard *guard, void *context)
{
	const struct target *target = context;

	if (guard_holds(guard, target->map, HOUR) || guard_holds(guard, target->map, HOUR) != -EBUSY)
		_exit(1);
}

static void hold_and_release(struct guard *guard, void *context)
{
	const struct target *target = context;

	hold(guard, context);
	if (bpf_map_delete_elem(target->map, &target->pid))
		_exit(1);
}

static void watch(struct guard *guard, void *context)
{
	struct target *target = context;

	if (guard_watch(guard, target->pid, target->start_time))
		_exit(1);
}

Test(base_guard, killed_collector_lets_held_processes_go)
{
	struct target target = target_held();
	struct collector collector = { .prepare = hold, .context = &target };

	collector_start(&collector);
	cr_assert_eq(read_stat(target.pid).state, 'T');
	collector_kill(&collector);
	cr_assert_neq(read_stat(target.pid).state, 'T');
	cr_assert(!is_held(target.map, target.pid));
	target_end(&target);
}

Test(base_guard, another_process_with_the_same_number_is_left_alone)
{
	struct target target = target_held();
	struct collector collector = { .prepare = hold, .context = &target };

	cr_assert_eq(hold_since(target.map, target.pid, target.start_time - 1, clock_monotonic()), 0);
	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_eq(read_stat(target.pid).state, 'T');
	target_end(&target);
}

Test(base_guard, released_process_is_left_alone)
{
	struct target target = target_held();
	struct collector collector = { .prepare = hold_and_release, .context = &target };

	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_eq(read_stat(target.pid).state, 'T');
	target_end(&target);
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
	struct target target = target_held();
	struct collector collector = { .prepare = interrupt_hold, .context = &target };

	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_neq(read_stat(target.pid).state, 'T');
	target_end(&target);
}

/* What may hold a copy of the collector's socket: a child between fork and exec. */
static void fork_hold(struct guard *guard, void *context)
{
	pid_t *pids = context; /* in shared memory */
	pid_t child;

	if (guard_holds(guard, pids[2], HOUR))
		_exit(1);
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
	struct target target = target_held();
	pid_t *pids = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct collector collector = { .prepare = fork_hold, .context = pids };

	pids[0] = target.pid;
	pids[2] = target.map;
	collector_start(&collector);
	collector_kill(&collector);
	cr_assert_neq(read_stat(pids[0]).state, 'T');
	target_end(&target);
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
	struct target target = target_held();
	struct guard *guard;
	pid_t pid;

	close(mkstemp(path));
	cr_assert_eq(guard_start(&guard), 0);
	pid = guard_pid(guard);
	state_of_two(guard, path);
	hold(guard, &target);
	guard_stop(guard);
	cr_assert_eq(read_file(path, text, sizeof(text)), 36);
	cr_assert_eq(kill(pid, 0), -1, "the guard is still there");
	cr_assert_eq(errno, ESRCH);
	/* A hold that was forgotten ends here at the latest. */
	cr_assert_neq(read_stat(target.pid).state, 'T');
	target_end(&target);
	guard_stop(NULL);
	unlink(path);
}

/* The map says it; the collector need not even have seen it. */
Test(base_guard, what_is_held_for_too_long_goes_on_while_the_collector_lives)
{
	struct target target = target_held(), other = target_start(), reused = target_start();
	const __u64 now = clock_monotonic(), limit = 200000000;
	struct guard *guard;

	cr_assert_eq(hold_since(target.map, target.pid, target.start_time, now), 0);
	cr_assert_eq(hold_since(target.map, other.pid, other.start_time, now + HOUR), 0);
	cr_assert_eq(hold_since(target.map, reused.pid, reused.start_time - 1, now), 0);
	cr_assert_eq(guard_start(&guard), 0);
	cr_assert_eq(guard_holds(guard, target.map, limit), 0);
	while (read_stat(target.pid).state == 'T' && clock_monotonic() < now + HOUR / 60)
		usleep(1000);
	cr_expect_neq(read_stat(target.pid).state, 'T');
	cr_expect_geq(clock_monotonic(), now + limit);
	while (!is_unattended(target.map, reused.pid) && clock_monotonic() < now + HOUR / 60)
		usleep(1000);
	cr_expect_eq(read_stat(reused.pid).state, 'T', "another process");
	cr_expect(is_unattended(target.map, target.pid) && !is_unattended(target.map, other.pid));
	/* Until the collector has looked it is let go by the guard no more, and stopped by nobody. */
	kill(target.pid, SIGSTOP);
	usleep(300000);
	cr_expect_eq(read_stat(target.pid).state, 'T', "who did this, continues it");
	cr_expect_eq(read_stat(other.pid).state, 'T', "its time has not come");
	guard_stop(guard);
	cr_expect_neq(read_stat(other.pid).state, 'T');
	target_end(&target);
	end_process(other.pid);
	end_process(reused.pid);
}

/* More than any other table of the guard has. */
Test(base_guard, many_are_held)
{
	struct target target = target_held();
	struct guard *guard;

	for (int i = 0; i < 4000; i++)
		cr_assert_eq(hold_since(target.map, 100000000 + i, 1, 1), 0);
	cr_assert_eq(hold_since(target.map, target.pid, target.start_time, 1), 0);
	cr_assert_eq(guard_start(&guard), 0);
	hold(guard, &target);
	guard_stop(guard);
	cr_expect_neq(read_stat(target.pid).state, 'T');
	cr_expect(!is_held(target.map, 100000000) && !is_held(target.map, 100003999));
	target_end(&target);
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
	for (i = 0; i < GUARD_WATCHED_MAX; i++)
		cr_assert_eq(guard_watch(guard, 1000 + i, 1), 0);
	cr_assert_eq(guard_watch(guard, 1, 1), -ENOSPC);
	guard_unwatch(guard, 1500);
	cr_assert_eq(guard_watch(guard, 1, 1), 0);
	guard_stop(guard);
}

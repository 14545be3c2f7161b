/* SPDX-License-Identifier: BSD-2-Clause */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "target/process/process.h"

/* Against what the process itself knows: getrusage(), wait4(), and what it has mapped. */

#define ALL (USAGE_CPU | USAGE_MEMORY)
#define TICK 10000000ull /* ns, of the kernels in use */
#define MIB (1ull << 20)
#define SLACK MIB /* what a process takes and gives back by itself, and what each CPU may keep of the counts */

/* ---- a child that does something, reports it, and waits for more to do ---- */

struct child {
	pid_t pid;
	int done, more; /* pipes */
};

static struct child usage_start(void (*run)(struct child *self))
{
	int done[2], more[2];
	struct child child;

	cr_assert_eq(pipe(done), 0);
	cr_assert_eq(pipe(more), 0);
	child.pid = fork();
	cr_assert_geq(child.pid, 0);
	if (!child.pid) {
		close(done[0]);
		close(more[1]);
		child.done = done[1];
		child.more = more[0];
		run(&child);
		_exit(0);
	}
	close(done[1]);
	close(more[0]);
	child.done = done[0];
	child.more = more[1];
	return child;
}

/* In the child: what was asked for has been done. Returns when there is more to do. */
static void signal_done(const struct child *self)
{
	char byte = 0;

	if (write(self->done, &byte, 1) != 1 || read(self->more, &byte, 1) != 1)
		_exit(1);
}

static void wait_done(const struct child *child)
{
	char byte;

	cr_assert_eq(read(child->done, &byte, 1), 1);
}

static void go_on(const struct child *child)
{
	cr_assert_eq(write(child->more, "", 1), 1);
}

static struct process_usage get(const struct usage_source *source)
{
	struct process_usage usage;

	cr_assert_eq(usage_read(source, ALL, &usage), 0);
	cr_assert_eq(usage.have, ALL);
	return usage;
}

/* ---- CPU time ---- */

static __u64 cpu_now(void)
{
	return clock_read(CLOCK_PROCESS_CPUTIME_ID);
}

static void burn(__u64 nanoseconds)
{
	__u64 until = cpu_now() + nanoseconds;

	while (cpu_now() < until)
		;
}

static __u64 of_timeval(struct timeval time)
{
	return (__u64)time.tv_sec * 1000000000ull + (__u64)time.tv_usec * 1000ull;
}

static void burn_twice(struct child *self)
{
	signal_done(self);
	burn(200 * 1000000ull);
	signal_done(self);
}

Test(target_process_process_usage, cpu_time)
{
	struct child child = usage_start(burn_twice);
	struct process_usage before, after;
	const char *slow = getenv("XPUTRACE_E2E_SLOW"); /* how many times longer an emulated processor takes */
	__u64 used, more = (slow ? atoi(slow) : 1) * 10000000ull;
	struct usage_source source;
	struct rusage truth;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	before = get(&source);
	go_on(&child);
	wait_done(&child);
	after = get(&source);
	go_on(&child);
	cr_assert_eq(wait4(child.pid, NULL, 0, &truth), child.pid);
	used = of_timeval(truth.ru_utime) + of_timeval(truth.ru_stime);
	cr_expect_geq(after.cpu - before.cpu, 200 * 1000000ull);
	cr_expect_lt(after.cpu - before.cpu, 200 * 1000000ull + more, "%llu",
		     (unsigned long long)(after.cpu - before.cpu));
	/* After the last reading it has only ended. */
	cr_expect_leq(after.cpu, used + 1000);
	cr_expect_gt(after.cpu + more, used, "%llu of %llu", (unsigned long long)after.cpu, (unsigned long long)used);
	cr_expect_leq(after.user + after.system, after.cpu);
	cr_expect_gt(after.user + after.system + 2 * TICK, after.cpu, "two are cut to whole ticks");
	cr_expect_lt(after.user, of_timeval(truth.ru_utime) + TICK);
	cr_expect_gt(after.user + 2 * TICK, of_timeval(truth.ru_utime));
	cr_expect_gt(after.time, before.time);
	cr_expect_eq(usage_read(&source, ALL, &after), -ESRCH);
	usage_close(&source);
}

static void *burn_in_thread(void *context)
{
	burn(50 * 1000000ull);
	return context;
}

static void burn_in_threads(struct child *self)
{
	pthread_t thread;

	for (int i = 0; i < 2; i++) {
		if (pthread_create(&thread, NULL, burn_in_thread, NULL) || pthread_join(thread, NULL))
			_exit(1);
	}
	signal_done(self);
}

Test(target_process_process_usage, threads_that_have_ended_count)
{
	struct child child = usage_start(burn_in_threads);
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	usage = get(&source);
	cr_expect_geq(usage.cpu, 100 * 1000000ull);
	cr_expect_eq(usage.threads, 1);
	go_on(&child);
	cr_assert_eq(waitpid(child.pid, NULL, 0), child.pid);
	usage_close(&source);
}

static struct child *outlived;

static void *outlive(void *context)
{
	char state = 'R', path[32];

	/* The first thread has ended when its state says so. */
	snprintf(path, sizeof(path), "/proc/self/stat");
	while (state != 'Z') {
		FILE *file = fopen(path, "re");

		if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
			_exit(1);
		fclose(file);
	}
	signal_done(outlived);
	_exit(0);
	return context;
}

static void end_first_thread(struct child *self)
{
	pthread_t thread;

	outlived = self;
	if (pthread_create(&thread, NULL, outlive, NULL))
		_exit(1);
	/* The thread alone, as a runtime's own threads would leave it. */
	syscall(SYS_exit, 0);
}

Test(target_process_process_usage, a_process_outlives_its_first_thread)
{
	struct child child = usage_start(end_first_thread);
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	cr_assert_eq(usage_read(&source, ALL, &usage), 0);
	cr_expect_eq(usage.have, USAGE_CPU, "its memory is not shown there");
	cr_expect_eq(usage.threads, 2);
	cr_expect_gt(usage.cpu, 0);
	go_on(&child);
	cr_assert_eq(waitpid(child.pid, NULL, 0), child.pid);
	cr_expect_eq(usage_read(&source, ALL, &usage), -ESRCH);
	usage_close(&source);
}

/* ---- memory ---- */

static char file_name[] = "/tmp/xputrace-usage-XXXXXX";

static void touch(volatile char *bytes, size_t length)
{
	for (size_t i = 0; i < length; i += 4096)
		(void)bytes[i];
}

static void use_memory(struct child *self)
{
	int file = open(file_name, O_RDONLY | O_CLOEXEC);
	char *anonymous, *mapped;

	signal_done(self);
	anonymous = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (anonymous == MAP_FAILED)
		_exit(1);
	signal_done(self);
	memset(anonymous, 1, 64 * MIB);
	signal_done(self);
	mapped = mmap(NULL, 32 * MIB, PROT_READ, MAP_SHARED, file, 0);
	if (mapped == MAP_FAILED)
		_exit(1);
	touch(mapped, 32 * MIB);
	signal_done(self);
	munmap(anonymous, 64 * MIB);
	signal_done(self);
}

static void expect_grown(const char *what, __u64 before, __u64 after, __s64 expected)
{
	__s64 grown = (__s64)(after - before);

	cr_expect(grown >= expected - (__s64)SLACK && grown <= expected + (__s64)SLACK, "%s: %lld, not %lld", what,
		  (long long)grown, (long long)expected);
}

Test(target_process_process_usage, usage_memory)
{
	int file = mkstemp(file_name);
	struct usage_source source;
	struct process_usage usage[5];
	struct child child;
	struct rusage truth;

	cr_assert_geq(file, 0);
	cr_assert_eq(posix_fallocate(file, 0, 32 * MIB), 0);
	child = usage_start(use_memory);
	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	for (int i = 0; i < 5; i++) {
		wait_done(&child);
		usage[i] = get(&source);
		go_on(&child);
	}
	cr_assert_eq(wait4(child.pid, NULL, 0, &truth), child.pid);
	unlink(file_name);
	close(file);
	expect_grown("mapped only", usage[0].resident, usage[1].resident, 0);
	expect_grown("written to", usage[1].resident, usage[2].resident, 64 * MIB);
	expect_grown("written to", usage[1].anonymous, usage[2].anonymous, 64 * MIB);
	expect_grown("of a file", usage[2].resident, usage[3].resident, 32 * MIB);
	expect_grown("of a file", usage[2].anonymous, usage[3].anonymous, 0);
	expect_grown("given back", usage[3].resident, usage[4].resident, -64 * (__s64)MIB);
	expect_grown("given back", usage[3].anonymous, usage[4].anonymous, -64 * (__s64)MIB);
	expect_grown("peak", usage[0].resident, usage[4].peak, 96 * MIB);
	expect_grown("peak as reported at its end", (__u64)truth.ru_maxrss * 1024, usage[4].peak, 0);
	usage_close(&source);
}

/* The kernel's own sums over all page tables. */
static __u64 rolled_up(const char *name)
{
	FILE *file = fopen("/proc/self/smaps_rollup", "re");
	unsigned long long kilobytes = 0;
	char line[256];

	if (!file)
		cr_skip_test("there is no smaps_rollup");
	while (fgets(line, sizeof(line), file))
		if (!strncmp(line, name, strlen(name)))
			kilobytes = strtoull(line + strlen(name), NULL, 10);
	fclose(file);
	return kilobytes * 1024;
}

Test(target_process_process_usage, memory_as_the_page_tables_have_it)
{
	struct usage_source source;
	struct process_usage usage;
	void *bytes = malloc(20 * MIB);

	cr_assert_not_null(bytes);
	memset(bytes, 1, 20 * MIB);
	cr_assert_eq(usage_open(&source, getpid(), 0), 0);
	usage = get(&source);
	expect_grown("resident", usage.resident, rolled_up("Rss:"), 0);
	expect_grown("anonymous", usage.anonymous, rolled_up("Anonymous:"), 0);
	expect_grown("swap", usage.swap, rolled_up("Swap:"), 0);
	cr_expect_geq(usage.peak + SLACK, usage.resident);
	usage_close(&source);
	free(bytes);
}

Test(target_process_process_usage, only_what_is_wanted)
{
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, getpid(), 0), 0);
	cr_assert_eq(usage_read(&source, USAGE_CPU, &usage), 0);
	cr_expect(usage.have == USAGE_CPU && usage.cpu && !usage.resident);
	cr_assert_eq(usage_read(&source, USAGE_MEMORY, &usage), 0);
	cr_expect(usage.have == USAGE_MEMORY && !usage.cpu && !usage.user && usage.resident);
	cr_assert_eq(usage_read(&source, 0, &usage), 0);
	cr_expect(!usage.have && usage.threads && usage.time);
	usage_close(&source);
}

/* ---- which process ---- */

static void take_hostile_name(struct child *self)
{
	if (prctl(PR_SET_NAME, ") Z 1\nVmRSS: 9"))
		_exit(1);
	signal_done(self);
}

Test(target_process_process_usage, hostile_names)
{
	struct child child = usage_start(take_hostile_name);
	struct usage_source source;
	struct process_usage usage;

	cr_assert_eq(usage_open(&source, child.pid, 0), 0);
	wait_done(&child);
	usage = get(&source);
	cr_expect_eq(usage.threads, 1);
	cr_expect_gt(usage.resident, 10 * 1024);
	go_on(&child);
	cr_assert_eq(waitpid(child.pid, NULL, 0), child.pid);
	usage_close(&source);
}

Test(target_process_process_usage, usage_nobody_there)
{
	pid_t child = fork();
	struct usage_source source;
	siginfo_t info;

	if (!child)
		_exit(0);
	cr_assert_eq(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	cr_expect_eq(usage_open(&source, child, 0), -ESRCH, "it has ended");
	cr_assert_eq(waitpid(child, NULL, 0), child);
	cr_expect_eq(usage_open(&source, child, 0), -ESRCH);
	cr_expect_eq(usage_open(&source, 0, 0), -ESRCH);
}

Test(target_process_process_usage, another_start_is_another_process)
{
	struct usage_source source;
	__u64 start_time;

	cr_assert_eq(usage_open(&source, getpid(), 0), 0);
	start_time = source.start_time;
	usage_close(&source);
	cr_assert_eq(usage_open(&source, getpid(), start_time), 0);
	usage_close(&source);
	cr_expect_eq(usage_open(&source, getpid(), start_time + 1), -ESRCH);
	cr_expect_eq(usage_open(&source, getpid(), start_time - 1), -ESRCH);
}

/* The next child gets this number, in a namespace where nobody else makes any. */
static bool next_pid(pid_t pid)
{
	FILE *file = fopen("/proc/sys/kernel/ns_last_pid", "we");
	bool written = file && fprintf(file, "%d", (int)pid - 1) > 0;

	return file && !fclose(file) && written;
}

static pid_t sleeping_child(void)
{
	pid_t child = fork();

	if (!child) {
		pause();
		_exit(0);
	}
	return child;
}

enum reuse { REUSE_SEEN, REUSE_CANNOT, REUSE_SAME, REUSE_OLD_SOURCE, REUSE_OLD_START };

static enum reuse reuse_number(void)
{
	struct usage_source source, second;
	struct process_usage usage;
	enum reuse result = REUSE_SEEN;
	pid_t first, again;
	__u64 later;

	if (mount("proc", "/proc", "proc", 0, NULL))
		return REUSE_CANNOT;
	first = sleeping_child();
	if (first <= 0 || usage_open(&source, first, 0) || usage_read(&source, ALL, &usage))
		return REUSE_CANNOT;
	kill(first, SIGKILL);
	waitpid(first, NULL, 0);
	/* Start times have the resolution of a tick. */
	later = clock_monotonic() + 3 * TICK;
	while (clock_monotonic() < later)
		;
	again = next_pid(first) ? sleeping_child() : -1;
	if (again != first)
		return REUSE_SAME;
	if (usage_read(&source, ALL, &usage) != -ESRCH)
		result = REUSE_OLD_SOURCE;
	else if (usage_open(&second, again, source.start_time) != -ESRCH || usage_open(&second, again, 0))
		result = REUSE_OLD_START;
	kill(again, SIGKILL);
	return result;
}

Test(target_process_process_usage, a_number_that_is_used_again)
{
	pid_t child = fork();
	int status;

	if (!child) {
		if (unshare(CLONE_NEWPID | CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
			_exit(REUSE_CANNOT);
		child = fork();
		if (!child)
			_exit(reuse_number());
		_exit(waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 99);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert(WIFEXITED(status));
	if (WEXITSTATUS(status) == REUSE_CANNOT)
		cr_skip_test("cannot make a namespace of processes");
	cr_expect_eq(WEXITSTATUS(status), REUSE_SEEN, "%d", WEXITSTATUS(status));
}

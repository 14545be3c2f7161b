/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program whose inferences do one thing each: run, sleep, are preempted, stopped, wait for a lock, read from a disk... It measures
 * itself what its thread did, around each, as the kernel reports it to every thread:
 *
 *	states [REPEAT]
 *
 * prints a line an inference: NAME START_NS WALL_NS OUTER_NS CPU_NS WAITED_NS VOLUNTARY INVOLUNTARY MINOR MAJOR
 * OUTER_NS: from before the first to after the last thing that was measured: so much longer than WALL_NS may the others be of.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define FILE_BYTES (16u << 20)
#define PIECE_BYTES (1u << 20)
#define TOUCHED_PAGES 2000

struct activity {
	const char *name;
	int (*run)(void);
};

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static atomic_int wanted, competing;
static int first_cpu, second_cpu = -1, file = -1, written = -1, schedstat, stopper;
static char *piece;

static unsigned long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "states: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
}

static void burn(unsigned long long nanoseconds)
{
	unsigned long long end = now(CLOCK_THREAD_CPUTIME_ID) + nanoseconds;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static int spin(void)
{
	burn(20 * MS);
	return 0;
}

static int nap(void)
{
	return usleep(25000);
}

/* Another process stops this one for 20 ms and lets it continue, while it sleeps. */
static int nap_stopped(void)
{
	const struct timespec nap = { .tv_nsec = 100 * (long)MS };

	return write(stopper, "", 1) != 1 || nanosleep(&nap, NULL);
}

/* Beside a thread on the same CPU that only spins. */
static int compete(void)
{
	competing = 1;
	burn(30 * MS);
	competing = 0;
	return 0;
}

/* Another thread has the mutex and keeps it for 30 ms. */
static int lock(void)
{
	if (pthread_mutex_lock(&held))
		return 1;
	return pthread_mutex_unlock(&held);
}

static int wait_poll(void)
{
	struct pollfd none = { .fd = -1 };

	return poll(&none, 1, 15) != 0;
}

static int read_direct(void)
{
	for (off_t at = 0; at < FILE_BYTES; at += PIECE_BYTES)
		if (pread(file, piece, PIECE_BYTES, at) != PIECE_BYTES)
			return 1;
	return 0;
}

static int touch(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = TOUCHED_PAGES * page;
	char *fresh = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fresh == MAP_FAILED || madvise(fresh, bytes, MADV_NOHUGEPAGE))
		return 1;
	for (size_t at = 0; at < bytes; at += page)
		fresh[at] = 1;
	return munmap(fresh, bytes);
}

/* Pages of a file that have to be read again. */
static int read_pages(void)
{
	volatile char *pages = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, file, 0);

	if (pages == MAP_FAILED || posix_fadvise(file, 0, FILE_BYTES, POSIX_FADV_DONTNEED) ||
	    madvise((void *)pages, FILE_BYTES, MADV_RANDOM))
		return 1;
	for (size_t at = 0; at < FILE_BYTES; at += PIECE_BYTES / 16)
		(void)pages[at];
	return munmap((void *)pages, FILE_BYTES);
}

/* That has to write out what was written to the file before. */
static int call_ioctl(void)
{
	struct fiemap map = { .fm_length = FILE_BYTES, .fm_flags = FIEMAP_FLAG_SYNC };

	return ioctl(written, FS_IOC_FIEMAP, &map);
}

static int migrate(void)
{
	for (int i = 0; i < 10; i++) {
		pin(i % 2 ? first_cpu : second_cpu);
		burn(MS);
	}
	pin(first_cpu);
	return 0;
}

static const struct activity activities[] = {
	{ "spin", spin },	 { "sleep", nap },	    { "compete", compete },	{ "futex", lock },
	{ "poll", wait_poll },	 { "direct", read_direct }, { "touch", touch },		{ "migrate", migrate },
	{ "fault", read_pages }, { "ioctl", call_ioctl },   { "stopped", nap_stopped },
};

/* The inference of a program. */
__attribute__((noinline, visibility("default"))) int states_run(const struct activity *activity)
{
	int failed = activity->run();

	__asm__ volatile("" ::: "memory"); /* no tail call */
	return failed;
}

__attribute__((noinline, visibility("default"))) int states_load(const struct activity *activity, const char *name)
{
	__asm__ volatile("" : : "r"(activity), "r"(name) : "memory");
	return 0;
}

static void *hold(void *unused)
{
	for (;;) {
		while (!wanted)
			usleep(100);
		pthread_mutex_lock(&held);
		wanted = 0;
		usleep(30000);
		pthread_mutex_unlock(&held);
	}
	return unused;
}

static void *compete_beside(void *unused)
{
	pin(first_cpu);
	for (;;) {
		while (!competing)
			usleep(200);
		while (competing)
			;
	}
	return unused;
}

static void stop_parent(int requests)
{
	const pid_t parent = getppid();
	char request;

	while (read(requests, &request, 1) == 1) {
		usleep(20000);
		if (getppid() != parent) /* it has ended, and its number may be another one's */
			return;
		kill(parent, SIGSTOP);
		usleep(20000);
		if (getppid() == parent)
			kill(parent, SIGCONT);
	}
}

static unsigned long long read_waited(void)
{
	char text[128] = "";
	unsigned long long ran, waited = 0;

	if (pread(schedstat, text, sizeof(text) - 1, 0) > 0)
		sscanf(text, "%llu %llu", &ran, &waited);
	return waited;
}

static void prepare(void)
{
	cpu_set_t set;
	char path[] = "states.XXXXXX";
	int created;

	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(first_cpu, &set))
		first_cpu++;
	for (int cpu = first_cpu + 1; cpu < CPU_SETSIZE && second_cpu < 0; cpu++)
		if (CPU_ISSET(cpu, &set))
			second_cpu = cpu;
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY);
	piece = aligned_alloc(4096, PIECE_BYTES);
	memset(piece, 1, PIECE_BYTES);
	created = mkstemp(path);
	for (size_t at = 0; at < FILE_BYTES; at += PIECE_BYTES)
		if (write(created, piece, PIECE_BYTES) != PIECE_BYTES)
			die(path);
	fsync(created);
	if (ioctl(created, FS_IOC_FIEMAP, &(struct fiemap){ .fm_length = FILE_BYTES }))
		close(created);
	else
		written = created;
	file = open(path, O_RDONLY | O_DIRECT);
	unlink(path);
}

static void run(const struct activity *activity)
{
	struct rusage before, after;
	unsigned long long outer, start, waited, cpu, end;
	int failed;

	if (activity->run == lock)
		for (wanted = 1; wanted;)
			usleep(100);
	if (activity->run == call_ioctl && pwrite(written, piece, PIECE_BYTES, 0) != PIECE_BYTES)
		die("pwrite");
	outer = now(CLOCK_MONOTONIC);
	waited = read_waited();
	getrusage(RUSAGE_THREAD, &before);
	cpu = now(CLOCK_THREAD_CPUTIME_ID);
	start = now(CLOCK_MONOTONIC);
	failed = states_run(activity);
	end = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_THREAD_CPUTIME_ID) - cpu;
	getrusage(RUSAGE_THREAD, &after);
	waited = read_waited() - waited;
	outer = now(CLOCK_MONOTONIC) - outer;
	if (failed)
		die(activity->name);
	printf("%s %llu %llu %llu %llu %llu %ld %ld %ld %ld\n", activity->name, start, end - start, outer, cpu, waited,
	       after.ru_nvcsw - before.ru_nvcsw, after.ru_nivcsw - before.ru_nivcsw, after.ru_minflt - before.ru_minflt,
	       after.ru_majflt - before.ru_majflt);
	fflush(stdout);
}

int main(int count, char **arguments)
{
	int repeat = count > 1 ? atoi(arguments[1]) : 1;
	pthread_t holder, beside;
	int requests[2];
	pid_t child;

	if (pipe(requests) || (child = fork()) < 0)
		die("fork");
	if (!child) {
		close(requests[1]);
		stop_parent(requests[0]);
		return 0;
	}
	stopper = requests[1];
	prepare();
	if (pthread_create(&holder, NULL, hold, NULL) || pthread_create(&beside, NULL, compete_beside, NULL))
		die("pthread_create");
	pin(first_cpu);
	for (size_t i = 0; i < sizeof(activities) / sizeof(activities[0]); i++)
		states_load(&activities[i], activities[i].name);
	for (int round = 0; round < repeat; round++) {
		for (size_t i = 0; i < sizeof(activities) / sizeof(activities[0]); i++) {
			if (((activities[i].run == read_direct || activities[i].run == read_pages) && file < 0) ||
			    (activities[i].run == call_ioctl && written < 0) ||
			    (activities[i].run == migrate && second_cpu < 0))
				continue;
			run(&activities[i]);
		}
	}
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Programs whose inferences take a fraction of a millisecond, but for one in a hundred, which takes longer for a reason that is the
 * program's name: another thread has its CPU, or a lock; it sleeps, touches new memory, or one of its two operators or what is
 * outside of them takes longer.
 *
 *	slow [COUNT]
 *
 * runs each COUNT times, after one that is called warm-up, and prints a line an inference: NAME NS SLOW (0 or 1). The thread is a real-time one where that is permitted,
 * so that nobody else makes it slow.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define MS 1000000ull
#define STEP (MS / 10)	/* each operator */
#define LONGER (8 * MS) /* a slow inference */
#define TOUCHED_PAGES 4000

struct program {
	const char *name;
	int slow;
	int (*longer)(void);
};

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
static sem_t rival_go, holder_go, holder_has;
static int cpu;

static unsigned long long now(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return (unsigned long long)time.tv_sec * 1000000000 + (unsigned long long)time.tv_nsec;
}

static void die(const char *what)
{
	fprintf(stderr, "slow: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void burn(unsigned long long nanoseconds)
{
	unsigned long long end = now(CLOCK_THREAD_CPUTIME_ID) + nanoseconds;

	while (now(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

static void realtime(const char *name, int priority)
{
	const struct sched_param param = { .sched_priority = priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		die("sched_setaffinity");
	prctl(PR_SET_NAME, name);
	sched_setscheduler(0, SCHED_FIFO, &param);
}

/* On the same CPU, and more important. */
static void *rival(void *unused)
{
	realtime("rival", 20);
	for (;;) {
		sem_wait(&rival_go);
		burn(LONGER);
	}
	return unused;
}

static void *holder(void *unused)
{
	realtime("holder", 15);
	for (;;) {
		sem_wait(&holder_go);
		pthread_mutex_lock(&held);
		sem_post(&holder_has);
		usleep(LONGER / 1000);
		pthread_mutex_unlock(&held);
	}
	return unused;
}

static int be_preempted(void)
{
	return sem_post(&rival_go);
}

/* The holder has it already. */
static int lock(void)
{
	return pthread_mutex_lock(&held) || pthread_mutex_unlock(&held);
}

static int nap(void)
{
	return usleep(LONGER / 1000);
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

static int spin(void)
{
	burn(LONGER);
	return 0;
}

static int nothing(void)
{
	return 0;
}

/* While the first one runs, a tracer finds where the operators are called from. */
static struct program programs[] = {
	{ "warm-up", 0, spin }, { "preempted", 0, be_preempted }, { "futex", 0, lock }, { "sleep", 0, nap },
	{ "touch", 0, touch },	{ "operator", 0, nothing },	  { "noise", 0, spin },
};

__attribute__((noinline, visibility("default"))) void step_first(const struct program *program)
{
	burn(STEP);
	__asm__ volatile("" : : "r"(program) : "memory");
}

__attribute__((noinline, visibility("default"))) void step_second(const struct program *program)
{
	burn(program->slow && program->longer == nothing ? LONGER : STEP);
	__asm__ volatile("" ::: "memory");
}

__attribute__((noinline, visibility("default"))) int slow_run(const struct program *program)
{
	int failed;

	step_first(program);
	step_second(program);
	failed = program->slow ? program->longer() : 0;
	__asm__ volatile("" ::: "memory");
	return failed;
}

__attribute__((noinline, visibility("default"))) int slow_load(const struct program *program, const char *name)
{
	__asm__ volatile("" : : "r"(program), "r"(name) : "memory");
	return 0;
}

static void run(struct program *program, int slow)
{
	unsigned long long start, end;

	program->slow = slow;
	if (slow && program->longer == lock) {
		sem_post(&holder_go);
		sem_wait(&holder_has);
	}
	start = now(CLOCK_MONOTONIC);
	if (slow_run(program))
		die(program->name);
	end = now(CLOCK_MONOTONIC);
	printf("%s %llu %d\n", program->name, end - start, slow);
	usleep(50);
}

int main(int count, char **arguments)
{
	const int repeat = count > 1 ? atoi(arguments[1]) : 300;
	const size_t number = sizeof(programs) / sizeof(programs[0]);
	pthread_t thread;
	cpu_set_t set;

	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	sem_init(&rival_go, 0, 0);
	sem_init(&holder_go, 0, 0);
	sem_init(&holder_has, 0, 0);
	if (pthread_create(&thread, NULL, rival, NULL) || pthread_create(&thread, NULL, holder, NULL))
		die("pthread_create");
	for (size_t i = 0; i < number; i++)
		slow_load(&programs[i], programs[i].name);
	for (int at = 0; at < 4; at++)
		run(&programs[0], 0);
	realtime("slow", 10);
	for (size_t i = 1; i < number; i++)
		for (int at = 0; at < repeat; at++)
			run(&programs[i], at % 100 == 50);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a thread does before and during calls that thread.json describes, and what it costs the thread. Takes commands on standard
 * input, one a line, and answers each with one line of JSON:
 *
 *	switch COUNT THREADS	two threads of one CPU hand over to each other COUNT times; THREADS of them are in a call
 *	stack BYTES CALLS	CALLS calls more than a millisecond apart, with BYTES of stack above them: the median
 *	spin MILLISECONDS	a call that does nothing else but look at the clock: how long it was kept from that, by what took less
 *				than a change of threads
 *
 * Runs in real time where it may, on one CPU: the machine's other work stands in no thread's way.
 */
#include <inttypes.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS 1100000 /* between calls: more than 1/1000 s */
#define CALLS_MAX 10000
#define STACK_MAX 65536
#define KEPT_MIN 300   /* ns: a look at the clock takes less */
#define KEPT_MAX 50000 /* ns: another thread takes more */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

/* ---- what is traced ---- */

struct turn {
	atomic_uint whose; /* 0 or 1 */
	unsigned int left; /* hand-overs */
};

static void hand_over(struct turn *turn, unsigned int self)
{
	for (;;) {
		while (atomic_load(&turn->whose) != self)
			syscall(SYS_futex, &turn->whose, FUTEX_WAIT_PRIVATE, !self, NULL);
		atomic_store(&turn->whose, !self);
		syscall(SYS_futex, &turn->whose, FUTEX_WAKE_PRIVATE, 1);
		if (turn->left <= 1)
			return;
		turn->left--;
	}
}

__attribute__((noinline)) int bench_wait(struct turn *turn, unsigned int self)
{
	hand_over(turn, self);
	return 0;
}

/* A register that it has to save makes it begin with an instruction that the kernel emulates. */
#if defined(__x86_64__)
#define SAVED "rbx"
#else
#define SAVED "x19"
#endif

__attribute__((noinline)) int bench_call(void *program)
{
	__asm__ volatile("" ::"r"(program) : "memory", SAVED);
	return 0;
}

/* ns that it was kept from looking at the clock, within so many. */
__attribute__((noinline)) int bench_spin(uint64_t duration, uint64_t *kept)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), last = start, now;

	while (last - start < duration) {
		now = clock_ns(CLOCK_MONOTONIC);
		if (now - last >= KEPT_MIN && now - last < KEPT_MAX)
			*kept += now - last;
		last = now;
	}
	return 0;
}

/* ---- commands ---- */

static void *second_in_call(void *turn)
{
	bench_wait(turn, 1);
	return NULL;
}

static void *second(void *turn)
{
	hand_over(turn, 1);
	return NULL;
}

static uint64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw + usage.ru_nivcsw;
}

static int time_switches(unsigned int count, unsigned int in_call)
{
	struct turn turn = { .left = count };
	uint64_t before, cpu;
	pthread_t thread;

	if (pthread_create(&thread, NULL, in_call > 1 ? second_in_call : second, &turn))
		return 1;
	sched_yield(); /* until the other waits for its turn */
	before = switches();
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	bench_wait(&turn, 0);
	cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	before = switches() - before;
	atomic_store(&turn.whose, 1);
	syscall(SYS_futex, &turn.whose, FUTEX_WAKE_PRIVATE, 1);
	pthread_join(thread, NULL);
	printf("{\"switches\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}\n", before, cpu);
	return 0;
}

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

static void time_calls(unsigned int calls)
{
	static uint64_t took[CALLS_MAX];
	uint64_t next = clock_ns(CLOCK_MONOTONIC), before;

	for (unsigned int i = 0; i < calls; i++) {
		while (clock_ns(CLOCK_MONOTONIC) < next)
			;
		before = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		bench_call(took);
		took[i] = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before;
		next = clock_ns(CLOCK_MONOTONIC) + PAUSE_NS;
	}
	qsort(took, calls, sizeof(*took), compare);
	printf("{\"calls\":%u,\"ns\":%" PRIu64 "}\n", calls, took[calls / 2]);
}

static __attribute__((noinline)) void time_calls_below(unsigned int bytes, unsigned int calls)
{
	volatile char *room = __builtin_alloca(bytes + 1);

	memset((char *)room, 1, bytes + 1);
	time_calls(calls);
	room[0] = 0;
}

static void spin(unsigned int milliseconds)
{
	uint64_t cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), kept = 0;

	bench_spin(milliseconds * UINT64_C(1000000), &kept);
	cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	printf("{\"kept_ns\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}\n", kept, cpu);
}

static int run(const char *line)
{
	unsigned int number, calls; /* or threads */

	if (sscanf(line, "switch %u %u", &number, &calls) == 2)
		return time_switches(number, calls);
	if (sscanf(line, "stack %u %u", &number, &calls) == 2 && number <= STACK_MAX && calls <= CALLS_MAX)
		time_calls_below(number, calls);
	else if (sscanf(line, "spin %u", &number) == 1)
		spin(number);
	else
		return 2;
	return 0;
}

int main(void)
{
	const struct sched_param priority = { .sched_priority = 1 };
	int status = 0;
	char line[128];
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sysconf(_SC_NPROCESSORS_ONLN) - 1, &set);
	sched_setaffinity(0, sizeof(set), &set);
	sched_setscheduler(0, SCHED_FIFO, &priority);
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("{\"ready\":true}\n");
	while (!status && fgets(line, sizeof(line), stdin))
		status = run(line);
	return status;
}

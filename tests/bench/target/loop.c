/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Calls tiny functions that differ in their first instruction, and says what a call has cost. Takes commands on
 * standard input, one a line, and answers each with one line of JSON:
 *
 *	time FUNCTION MILLISECONDS		calls without pause on one CPU, timed
 *	cold FUNCTION MILLISECONDS		each call timed by itself, with the caches displaced before it
 *	load FUNCTION THREADS MILLISECONDS RATE	calls from several threads at once, RATE a second together; 0: without pause
 *	crowd FUNCTION PROGRAMS MILLISECONDS RATE	calls from one thread, each with the handle of the next program
 *	serve FUNCTION PROGRAMS MILLISECONDS RATE WORK ON OFF	as a server: WORK steps of arithmetic before each call, RATE requests
 *						a second (0: without pause) for ON milliseconds, none for OFF, by turns; one line for
 *						each second
 *	fork FUNCTION WORKERS MILLISECONDS WORK	the same without pause by processes that live for a second each
 */
#include <xputrace/region.h>

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifdef BENCH_LTTNG /* by whoever has it installed: tests/bench/regions.py */
#define LTTNG_UST_TRACEPOINT_DEFINE
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#include "lttng_pair.h"
#endif

#define BATCH 1024 /* calls between two looks at the clock */
#define THREADS_MAX 64
#define DISPLACED (2 << 20) /* bytes written between two cold calls: more than the second cache has */
#define LINE 64
#define COLD_MAX 65536 /* cold calls of one command */
#define PAUSE_NS 50000 /* of a paced thread that has nothing to do */

/*
 * plain: begins with the instruction that saves the frame pointer. landing: the same behind the mark that compilers put
 * at every entry. nop: what tracers ask compilers for. stepped: writes its first argument at once, so that a probe that
 * reads it can be nowhere else.
 */
#define FUNCTION(name, body)                                                                                    \
	__asm__(".text\n.p2align 6\n.globl " name "\n.type " name ", %function\n" name ":\n" body ".size " name \
		", . - " name "\n")

#if defined(__x86_64__)
FUNCTION("bench_plain", "push %rbp\nmov %rsp, %rbp\nxor %eax, %eax\npop %rbp\nret\n");
FUNCTION("bench_landing", "endbr64\npush %rbp\nmov %rsp, %rbp\nxor %eax, %eax\npop %rbp\nret\n");
FUNCTION("bench_nop", ".byte 0x0f, 0x1f, 0x44, 0x00, 0x00\npush %rbp\nmov %rsp, %rbp\nxor %eax, %eax\npop %rbp\nret\n");
FUNCTION("bench_stepped", "lea (%rdi,%rsi), %rdi\nxor %eax, %eax\nret\n");
#elif defined(__aarch64__)
FUNCTION("bench_plain", "stp x29, x30, [sp, #-16]!\nmov x29, sp\nmov w0, wzr\nldp x29, x30, [sp], #16\nret\n");
FUNCTION("bench_landing",
	 "hint #34\nstp x29, x30, [sp, #-16]!\nmov x29, sp\nmov w0, wzr\nldp x29, x30, [sp], #16\nret\n");
FUNCTION("bench_nop", "nop\nstp x29, x30, [sp, #-16]!\nmov x29, sp\nmov w0, wzr\nldp x29, x30, [sp], #16\nret\n");
FUNCTION("bench_stepped", "add x0, x0, x1\nmov w0, wzr\nret\n");
#else
#error "unknown architecture"
#endif

typedef int (*bench_fn)(uint64_t handle, uint64_t size);
int bench_plain(uint64_t handle, uint64_t size);
int bench_landing(uint64_t handle, uint64_t size);
int bench_nop(uint64_t handle, uint64_t size);
int bench_stepped(uint64_t handle, uint64_t size);

/* Not functions that are traced, but pairs of marks. */
static int bench_region(uint64_t handle, uint64_t size)
{
	static struct xpt_region region = XPT_REGION_INIT("bench");

	(void)handle;
	(void)size;
	xpt_region_start(&region);
	xpt_region_stop(&region);
	return 0;
}

#ifdef BENCH_LTTNG
static int bench_lttng(uint64_t handle, uint64_t size)
{
	(void)handle;
	(void)size;
	lttng_ust_tracepoint(bench, begin, "bench");
	lttng_ust_tracepoint(bench, end, "bench");
	return 0;
}
#endif

static const struct function {
	const char *name;
	bench_fn call;
	uint64_t handle;
} functions[] = {
	{ "bench_plain", bench_plain, 0x1000 },	  { "bench_landing", bench_landing, 0x2000 },
	{ "bench_nop", bench_nop, 0x3000 },	  { "bench_stepped", bench_stepped, 0x4000 },
	{ "bench_region", bench_region, 0x5000 },
#ifdef BENCH_LTTNG
	{ "bench_lttng", bench_lttng, 0x6000 },
#endif
};

struct worker {
	pthread_t thread;
	const struct function *function;
	uint64_t start, end; /* CLOCK_MONOTONIC, ns */
	double rate;	     /* calls a nanosecond; 0: without pause */
	uint64_t calls;
	unsigned int programs; /* that the calls go to in turn */
};

static uint64_t clock_read(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static uint64_t now(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

static const struct function *function_find(const char *name)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
		if (!strcmp(functions[i].name, name))
			return &functions[i];
	}
	return NULL;
}

static void call(const struct function *function, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		function->call(function->handle, i);
}

/* The last CPU that it may use: interrupts and everybody else's work prefer the first. */
static void pin(void)
{
	cpu_set_t allowed, one;

	if (sched_getaffinity(0, sizeof(allowed), &allowed))
		return;
	for (int cpu = CPU_SETSIZE - 1; cpu >= 0; cpu--) {
		if (!CPU_ISSET(cpu, &allowed))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		sched_setaffinity(0, sizeof(one), &one);
		return;
	}
}

/* cpu_ns: what the thread itself has used; ns also has what others have used of its CPU. */
static void time_calls(const struct function *function, uint64_t nanoseconds)
{
	uint64_t start, cpu_start, passed, used, calls = 0;
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	pin();
	start = now();
	cpu_start = clock_read(CLOCK_THREAD_CPUTIME_ID);
	do {
		call(function, BATCH);
		calls += BATCH;
		passed = now() - start;
	} while (passed < nanoseconds);
	used = clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu_start;
	sched_setaffinity(0, sizeof(allowed), &allowed);
	printf("{\"calls\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 "}\n", calls, passed, used);
}

static int compare(const void *a, const void *b)
{
	uint64_t first = *(const uint64_t *)a, second = *(const uint64_t *)b;

	return (first > second) - (first < second);
}

/* ns: the median of all calls, with one reading of the clock in each. */
static void time_cold(const struct function *function, uint64_t nanoseconds)
{
	static volatile char displaced[DISPLACED];
	static uint64_t took[COLD_MAX];
	uint64_t end, before;
	size_t calls = 0;
	cpu_set_t allowed;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	pin();
	end = now() + nanoseconds;
	do {
		for (size_t at = 0; at < DISPLACED; at += LINE)
			displaced[at]++;
		before = now();
		call(function, 1);
		took[calls++] = now() - before;
	} while (calls < COLD_MAX && now() < end);
	sched_setaffinity(0, sizeof(allowed), &allowed);
	qsort(took, calls, sizeof(*took), compare);
	printf("{\"calls\":%zu,\"ns\":%" PRIu64 "}\n", calls, took[calls / 2]);
}

static void call_crowd(const struct worker *worker, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		worker->function->call(worker->function->handle + (worker->calls + i) % worker->programs, i);
}

/* A thread that comes late makes up for it: the number of calls is that of the rate. */
static void *work(void *argument)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	struct worker *worker = argument;
	uint64_t time, due;

	while ((time = now()) < worker->end) {
		due = BATCH;
		if (worker->rate > 0)
			due = (time - worker->start) * worker->rate - worker->calls;
		if (worker->programs > 1)
			call_crowd(worker, due);
		else
			call(worker->function, due);
		worker->calls += due;
		if (worker->rate > 0)
			nanosleep(&pause, NULL);
	}
	return NULL;
}

static int load(const struct function *function, unsigned int threads, unsigned int programs, uint64_t nanoseconds,
		double rate)
{
	struct worker workers[THREADS_MAX] = {};
	uint64_t start = now(), calls = 0;

	if (!threads || threads > THREADS_MAX)
		return -1;
	for (unsigned int i = 0; i < threads; i++) {
		workers[i] = (struct worker){
			.function = function,
			.start = start,
			.end = start + nanoseconds,
			.rate = rate / threads / 1e9,
			.programs = programs,
		};
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			return -1;
	}
	for (unsigned int i = 0; i < threads; i++) {
		pthread_join(workers[i].thread, NULL);
		calls += workers[i].calls;
	}
	printf("{\"calls\":%" PRIu64 ",\"ns\":%" PRIu64 "}\n", calls, now() - start);
	return 0;
}

/* ---- a server ---- */

#define SECOND 1000000000ull
#define LATENCIES_MAX (1 << 20)

static volatile uint64_t worked;

static void do_work(uint64_t steps)
{
	uint64_t value = steps;

	for (uint64_t i = 0; i < steps; i++)
		value = value * 6364136223846793005ull + 1442695040888963407ull;
	worked = value;
}

struct serving {
	const struct function *function;
	unsigned int programs;
	uint64_t end, work, on, off; /* ns; steps; ns */
	double rate;		     /* requests a second */
};

/* When request n is due: they come at even intervals while they come. */
static uint64_t due_at(const struct serving *serving, uint64_t start, uint64_t number)
{
	uint64_t active = number * 1e9 / serving->rate;

	return start + active + (serving->off ? active / serving->on * serving->off : 0);
}

static void wait_until(uint64_t time)
{
	const struct timespec until = { time / SECOND, time % SECOND };

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL))
		;
}

/* One second: what was served, what it took, and the latency of the slowest in a hundred. */
static void print_second(uint64_t served, uint64_t used, uint64_t *latencies)
{
	size_t count = served < LATENCIES_MAX ? served : LATENCIES_MAX;

	qsort(latencies, count, sizeof(*latencies), compare);
	printf("{\"requests\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"p99_ns\":%" PRIu64 "}\n", served, used,
	       count ? latencies[count - 1 - count / 100] : 0);
}

static void serve(const struct serving *serving)
{
	static uint64_t latencies[LATENCIES_MAX];
	uint64_t start = now(), second = start, cpu = clock_read(CLOCK_THREAD_CPUTIME_ID), served = 0, number = 0;
	uint64_t begun, ended = start, due;

	while (ended - start < serving->end) {
		begun = due = now();
		if (serving->rate > 0) {
			due = due_at(serving, start, number);
			if (due > begun)
				wait_until(due);
			else if (!serving->off && begun - due > SECOND) /* more than it can serve */
				due = begun;
		} else if (serving->off && (begun - start) % (serving->on + serving->off) >= serving->on) {
			wait_until(begun + serving->on + serving->off - (begun - start) % (serving->on + serving->off));
			due = now();
		}
		do_work(serving->work);
		serving->function->call(serving->function->handle + number % serving->programs, number);
		ended = now();
		if (ended - second >= SECOND) {
			print_second(served, clock_read(CLOCK_THREAD_CPUTIME_ID) - cpu, latencies);
			cpu = clock_read(CLOCK_THREAD_CPUTIME_ID);
			second += (ended - second) / SECOND * SECOND;
			served = 0;
		}
		if (served < LATENCIES_MAX)
			latencies[served] = ended - due;
		served++;
		number++;
	}
	printf("{\"done\":%" PRIu64 "}\n", number);
}

/* Requests of all processes, and what they took, with what it takes to fork them. */
static void serve_forking(const struct serving *serving, unsigned int workers)
{
	uint64_t *served = mmap(NULL, sizeof(*served), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start = now(), end;

	fflush(stdout);
	while (served != MAP_FAILED && now() - start < serving->end) {
		struct rusage before, after;
		uint64_t requests = *served;

		getrusage(RUSAGE_CHILDREN, &before);
		for (unsigned int i = 0; i < workers; i++) {
			if (fork())
				continue;
			for (end = now() + SECOND; now() < end; __atomic_fetch_add(served, 1, __ATOMIC_RELAXED)) {
				do_work(serving->work);
				serving->function->call(serving->function->handle, 0);
			}
			_exit(0);
		}
		while (wait(NULL) > 0)
			;
		getrusage(RUSAGE_CHILDREN, &after);
		printf("{\"requests\":%" PRIu64 ",\"cpu_ns\":%llu,\"p99_ns\":0}\n", *served - requests,
		       (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec -
			before.ru_stime.tv_sec) *
				       SECOND +
			       (after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec -
				before.ru_stime.tv_usec) *
				       1000);
	}
	printf("{\"done\":%" PRIu64 "}\n", served == MAP_FAILED ? 0 : *served);
}

/* False: not one of the two commands that serve, or not complete. */
static int serve_command(const char *line, const char *command, const struct function *function)
{
	struct serving serving = { .function = function, .programs = 1 };
	unsigned int workers;

	if (!strcmp(command, "serve") &&
	    sscanf(line, "%*s %*s %u %" SCNu64 " %lf %" SCNu64 " %" SCNu64 " %" SCNu64, &serving.programs, &serving.end,
		   &serving.rate, &serving.work, &serving.on, &serving.off) == 6 &&
	    serving.programs) {
		serving.end *= 1000000;
		serving.on *= 1000000;
		serving.off *= 1000000;
		serve(&serving);
		return 1;
	}
	if (!strcmp(command, "fork") &&
	    sscanf(line, "%*s %*s %u %" SCNu64 " %" SCNu64, &workers, &serving.end, &serving.work) == 3) {
		serving.end *= 1000000;
		serve_forking(&serving, workers);
		return 1;
	}
	return 0;
}

int main(void)
{
	char line[160], command[8], name[32];
	const struct function *function;
	uint64_t milliseconds;
	unsigned int count;
	double rate;

	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("{\"ready\":true,\"pid\":%d}\n", getpid());
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "%7s %31s", command, name) != 2 || !(function = function_find(name)))
			return 2;
		if (!strcmp(command, "time") && sscanf(line, "%*s %*s %" SCNu64, &milliseconds) == 1) {
			time_calls(function, milliseconds * 1000000);
			continue;
		}
		if (!strcmp(command, "cold") && sscanf(line, "%*s %*s %" SCNu64, &milliseconds) == 1) {
			time_cold(function, milliseconds * 1000000);
			continue;
		}
		if (serve_command(line, command, function))
			continue;
		if (sscanf(line, "%*s %*s %u %" SCNu64 " %lf", &count, &milliseconds, &rate) != 3)
			return 2;
		if (!strcmp(command, "load") && !load(function, count, 1, milliseconds * 1000000, rate))
			continue;
		if (strcmp(command, "crowd") || load(function, 1, count, milliseconds * 1000000, rate))
			return 2;
	}
	return 0;
}

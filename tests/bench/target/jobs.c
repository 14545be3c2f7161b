/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events as a driver would make them: three system calls a job, whose tracepoint jobs.json describes as queue, run and
 * done. The call itself fails at once. Takes commands on standard input, one a line, and answers each with one line of
 * JSON:
 *
 *	time MILLISECONDS	jobs without pause on one CPU, timed
 *	load MILLISECONDS RATE	RATE jobs a second
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define BATCH 100	  /* jobs between two looks at the clock */
#define NOBODY 0x7fffffff /* no process has this number */
#define ENGINE 1
#define CONTEXT 100

enum step { QUEUE = 1, RUN, DONE };

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static void job(uint64_t number)
{
	for (enum step step = QUEUE; step <= DONE; step++)
		syscall(SYS_kcmp, (long)NOBODY, (long)ENGINE, (long)step, (long)CONTEXT, (long)number);
}

static void answer(uint64_t jobs, uint64_t cpu, uint64_t elapsed)
{
	printf("{\"jobs\":%" PRIu64 ",\"cpu_ns\":%" PRIu64 ",\"ns\":%" PRIu64 "}\n", jobs, cpu, elapsed);
	fflush(stdout);
}

static uint64_t batch(uint64_t *next)
{
	for (unsigned int i = 0; i < BATCH; i++)
		job((*next)++);
	return BATCH;
}

static void time_jobs(unsigned int milliseconds, uint64_t *next)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), jobs = 0;
	uint64_t end = start + milliseconds * UINT64_C(1000000), now;

	do {
		jobs += batch(next);
		now = clock_ns(CLOCK_MONOTONIC);
	} while (now < end);
	answer(jobs, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, now - start);
}

static void load_jobs(unsigned int milliseconds, uint64_t rate, uint64_t *next)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID), jobs = 0, now = start;
	uint64_t wanted = rate * milliseconds / 1000;

	while (jobs < wanted) {
		now = clock_ns(CLOCK_MONOTONIC);
		if ((now - start) / 1000 * rate / 1000000 >= jobs)
			jobs += batch(next);
	}
	answer(jobs, clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu, clock_ns(CLOCK_MONOTONIC) - start);
}

int main(void)
{
	unsigned int milliseconds;
	uint64_t next = 0, rate;
	cpu_set_t set;
	char line[128];

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	sched_setaffinity(0, sizeof(set), &set);
	printf("{\"ready\":true}\n");
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		if (sscanf(line, "time %u", &milliseconds) == 1)
			time_jobs(milliseconds, &next);
		else if (sscanf(line, "load %u %" SCNu64, &milliseconds, &rate) == 2)
			load_jobs(milliseconds, rate, &next);
		else
			fprintf(stderr, "jobs: no such command: %s", line);
	}
	return 0;
}

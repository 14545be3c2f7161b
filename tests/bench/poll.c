/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Reads counters: as often as it can, and a thousand times a second.
 *
 *	poll [--cpu N] NAME...
 *
 * With --cpu it runs on that CPU and reads only what is counted there, as the counters of a device are.
 *
 * Answers with one line of JSON: the median time of a reading in ns, the spread of its reads in ns, and the share of a core
 * that a thousand readings a second take, less that of a loop that only waits.
 */
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <xputrace/counters.h>

#define READINGS 20000
#define SLOW_READINGS 2000
#define PERIOD 1000000 /* ns */

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
}

static int compare(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* Share of a core. session NULL: only waits. */
static double share(struct xpt_counters *session, struct xpt_counter_value *values)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), cpu = clock_ns(CLOCK_PROCESS_CPUTIME_ID), next = start;
	struct timespec until;

	for (int i = 0; i < SLOW_READINGS; i++) {
		next += PERIOD;
		until = (struct timespec){ (time_t)(next / 1000000000), (long)(next % 1000000000) };
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		if (session)
			xpt_counters_poll(session, values, sizeof(*values));
	}
	return (double)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu) / (double)(clock_ns(CLOCK_MONOTONIC) - start);
}

static void stay_on(int cpu)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	sched_setaffinity(0, sizeof(one), &one);
}

static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	(void)context;
	(void)level;
	fprintf(stderr, "%s\n", text);
}

int main(int argc, char **argv)
{
	static uint64_t times[READINGS];
	int skip = argc > 3 && !strcmp(argv[1], "--cpu") ? 3 : 1, cpu = skip > 1 ? atoi(argv[2]) : XPT_COUNTERS_ALL;
	const struct xpt_counters_options options = {
		.size = sizeof(options),
		.names = (const char *const *)argv + skip,
		.name_count = (size_t)(argc - skip),
		.cpu_index = cpu,
		.gpu_index = XPT_COUNTERS_ALL,
		.log = on_message,
		.log_level = XPT_LOG_INFO,
	};
	struct xpt_counter_value *values = calloc((size_t)argc, sizeof(*values));
	struct xpt_counters *session;
	uint64_t spread;
	double idle, busy;

	if (cpu >= 0)
		stay_on(cpu);
	if (!values || xpt_counters_open(&options, &session) || xpt_counters_start(session))
		return 1;
	for (int i = 0; i < READINGS; i++) {
		times[i] = clock_ns(CLOCK_MONOTONIC);
		xpt_counters_poll(session, values, sizeof(*values));
		times[i] = clock_ns(CLOCK_MONOTONIC) - times[i];
	}
	spread = xpt_counters_spread(session);
	qsort(times, READINGS, sizeof(*times), compare);
	idle = share(NULL, NULL);
	busy = share(session, values);
	printf("{\"poll_ns\":%" PRIu64 ",\"spread_ns\":%" PRIu64 ",\"share\":%.6f}\n", times[READINGS / 2], spread,
	       busy - idle);
	xpt_counters_destroy(session);
	free(values);
	return 0;
}

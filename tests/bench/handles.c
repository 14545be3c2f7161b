/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Profiling handles on one process, many at once: what they cost the collector, and how long after its boundary a report
 * comes.
 *
 *	handles PID DESCRIPTION [--handles N] [--report-every MS] [--sample-every N] [--trace] [--summary]
 *
 * N streams of everything that runs. Prints {"ready":true} when they have started; stops when standard input is closed,
 * and prints one JSON object: processor time of all threads since ready, counts of all handles together, and for every
 * report at a boundary the time from there to the callback.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <xputrace/stream.h>

#define HANDLES_MAX 64
#define DELAYS_MAX 65536

/* Written by the thread of the callbacks only, until the streams have been flushed. */
static struct {
	uint64_t reports, inferences, samples, lost, programs_most;
	uint64_t delays[DELAYS_MAX]; /* ns */
	size_t delay_count;
} seen;

static uint64_t clock_read(clockid_t clock)
{
	struct timespec time;

	clock_gettime(clock, &time);
	return time.tv_sec * 1000000000ull + time.tv_nsec;
}

static void on_report(void *context, const struct xpt_profile_report *report)
{
	uint64_t now = clock_read(CLOCK_MONOTONIC);

	(void)context;
	seen.reports++;
	if (report->end_reason == XPT_PROFILE_INTERVAL && seen.delay_count < DELAYS_MAX)
		seen.delays[seen.delay_count++] = now - report->end;
	if (report->program_count > seen.programs_most)
		seen.programs_most = report->program_count;
	for (size_t i = 0; i < report->program_count; i++) {
		seen.inferences += report->programs[i].inferences;
		seen.samples += report->programs[i].taken;
		seen.lost += report->programs[i].lost;
	}
}

static void on_message(void *context, enum xpt_log_level level, const char *message)
{
	(void)context;
	(void)level;
	fprintf(stderr, "handles: %s\n", message);
}

static uint64_t processor_time(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000ull +
	       (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000ull;
}

static void print_figures(uint64_t processor, uint64_t elapsed)
{
	printf("{\"cpu_ns\":%" PRIu64 ",\"ns\":%" PRIu64 ",\"reports\":%" PRIu64 ",\"inferences\":%" PRIu64
	       ",\"samples\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"programs\":%" PRIu64 ",\"delays_ns\":[",
	       processor, elapsed, seen.reports, seen.inferences, seen.samples, seen.lost, seen.programs_most);
	for (size_t i = 0; i < seen.delay_count; i++)
		printf("%s%" PRIu64, i ? "," : "", seen.delays[i]);
	puts("]}");
}

static int streams_run(struct xpt_session *session, const struct xpt_stream_options *options, size_t count)
{
	struct xpt_stream *streams[HANDLES_MAX];
	uint64_t start, processor;
	size_t made = 0;
	int result = 1;
	char byte;

	while (made < count && !xpt_stream_create(session, options, &streams[made]))
		made++;
	if (made < count)
		goto out;
	for (size_t i = 0; i < count; i++)
		if (xpt_stream_start(streams[i]))
			goto out;
	if (xpt_session_start(session))
		goto out;
	processor = processor_time();
	start = clock_read(CLOCK_MONOTONIC);
	puts("{\"ready\":true}");
	fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) == 1)
		;
	for (size_t i = 0; i < count; i++)
		xpt_stream_stop(streams[i]);
	for (size_t i = 0; i < count; i++)
		xpt_stream_flush(streams[i]);
	print_figures(processor_time() - processor, clock_read(CLOCK_MONOTONIC) - start);
	result = 0;
out:
	while (made)
		xpt_stream_destroy(streams[--made]);
	return result;
}

static bool read_options(int argc, char **argv, struct xpt_stream_options *options, size_t *handles)
{
	for (int i = 3; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (!strcmp(argv[i], "--trace"))
			options->type = XPT_PROFILE_TRACE;
		else if (!strcmp(argv[i], "--summary"))
			options->summary = 1;
		else if (!strcmp(argv[i], "--handles"))
			*handles = strtoul(value, NULL, 10), i++;
		else if (!strcmp(argv[i], "--report-every"))
			options->report_every = strtoull(value, NULL, 10) * 1000000, i++;
		else if (!strcmp(argv[i], "--sample-every"))
			options->sample_every = (unsigned int)strtoul(value, NULL, 10), i++;
		else
			return false;
	}
	return argc >= 3 && *handles && *handles <= HANDLES_MAX;
}

int main(int argc, char **argv)
{
	struct xpt_stream_options stream = { .size = sizeof(stream), .match = "", .callback = on_report };
	const char *description = argc > 2 ? argv[2] : NULL, *const only = "bench";
	pid_t pid = argc > 1 ? atoi(argv[1]) : 0;
	struct xpt_session_options options = {
		.size = sizeof(options),
		.pids = &pid,
		.pid_count = 1,
		.runtime_files = &description,
		.runtime_file_count = 1,
		.runtimes = &only,
		.runtime_count = 1,
		.log = on_message,
		.log_level = XPT_LOG_WARN,
	};
	struct xpt_session *session;
	size_t handles = 1;
	int result;

	if (!read_options(argc, argv, &stream, &handles)) {
		fputs("usage: handles PID DESCRIPTION [OPTION]...\n", stderr);
		return 2;
	}
	if (xpt_session_create(&options, &session))
		return 1;
	result = streams_run(session, &stream, handles);
	xpt_session_destroy(session);
	return result;
}

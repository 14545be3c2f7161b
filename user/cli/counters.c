/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <xputrace/counters.h>

#include "base/core/clock.h"
#include "base/file/file.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"
#include "cli/commands.h"

/* One reading of all, and what it is compared with. */
struct counters_reading {
	const struct xpt_counters *session;
	const struct xpt_counter_value *values;
	const struct xpt_counter_value *before; /* the reading before it; NULL: none */
	uint64_t start;				/* CLOCK_MONOTONIC in ns, of the start */
	uint64_t time, time_before;		/* of the readings */
	uint64_t spread;			/* ns */
	bool total;
};

enum counters_format { COUNTERS_CSV, COUNTERS_TRACE };

/* A trace on disk is one whole JSON document after every reading, also when the disk is full. */
struct counters_file {
	enum counters_format format;
	const char *path; /* "-": standard output */
	bool opened;
	struct tailed_file file; /* a process of its own writes; its items are readings */
	struct text text;	 /* not appended yet */
	char *tail;		 /* owned */
	size_t tail_length;
};

/* ---- tables ---- */

#define NAME_COLUMNS 44

/* What is shown of a value: since the reading before, where it is a sum. */
static double counters_shown(const struct counters_reading *reading, size_t index)
{
	const struct xpt_counter_info *info = xpt_counters_info(reading->session, index);
	double value = reading->values[index].value;

	return info->kind == XPT_COUNTER_SUM && reading->before ? value - reading->before[index].value : value;
}

/* Counts are whole numbers, unless they were estimated or have a unit. */
static void print_value(FILE *out, const struct counters_reading *reading, size_t index, int columns)
{
	const struct xpt_counter_info *info = xpt_counters_info(reading->session, index);
	const unsigned int flags = reading->values[index].flags;
	double value = counters_shown(reading, index);

	if (flags & XPT_COUNTER_NEVER || (flags & XPT_COUNTER_GONE && flags & XPT_COUNTER_OFFLINE && !reading->total))
		fprintf(out, "%*s", columns, "<not counted>");
	else if (info->scale == 1 && value == floor(value) && fabs(value) < 1e15)
		fprintf(out, "%*.0f", columns, value);
	else
		fprintf(out, "%*.*f", columns, fabs(value) < 10 ? 6 : fabs(value) < 1000 ? 3 : 1, value);
}

static const char *mark_of(const struct xpt_counter_value *value, char text[64])
{
	text[0] = '\0';
	if (value->flags & XPT_COUNTER_OFFLINE)
		return value->flags & XPT_COUNTER_GONE ? "  (CPU offline)" : "  (a CPU was offline)";
	if (value->flags & XPT_COUNTER_GONE)
		return "  (gone)";
	if (value->flags & XPT_COUNTER_SCALED)
		snprintf(text, 64, "  (counted %.1f %% of the time)",
			 value->enabled ? 100.0 * (double)value->running / (double)value->enabled : 0.0);
	return text;
}

/* Lines of a table: one counter a line with its rate. The number of lines. */
static unsigned int counters_table(FILE *out, const struct counters_reading *reading)
{
	uint64_t since = reading->total || !reading->before ? reading->start : reading->time_before;
	double seconds = (double)(reading->time - since) / 1e9;
	size_t count = xpt_counters_count(reading->session);
	char mark[64];

	fprintf(out, "%-*s %16s %-8s %14s\n", NAME_COLUMNS, "COUNTER", "VALUE", "UNIT", "PER SECOND");
	for (size_t i = 0; i < count; i++) {
		const struct xpt_counter_info *info = xpt_counters_info(reading->session, i);

		print_name(out, info->name, NAME_COLUMNS);
		fprintf(out, " ");
		print_value(out, reading, i, 16);
		fprintf(out, " %-8s ", info->unit);
		if (info->kind == XPT_COUNTER_SUM && seconds > 0)
			fprintf(out, "%14.3f", counters_shown(reading, i) / seconds);
		else
			fprintf(out, "%14s", info->kind == XPT_COUNTER_MEAN ? "mean" : "now");
		fprintf(out, "%s\n", mark_of(&reading->values[i], mark));
	}
	fprintf(out, "%.6f s", (double)(reading->time - reading->start) / 1e9);
	if (reading->spread)
		fprintf(out, ", read within %.1f us", (double)reading->spread / 1e3);
	fprintf(out, "\n");
	return (unsigned int)count + 2;
}

/* "     1.000123  value  unit  name" for each: an interval as perf stat -I shows it. */
static void counters_rows(FILE *out, const struct counters_reading *reading)
{
	char mark[64];

	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		const struct xpt_counter_info *info = xpt_counters_info(reading->session, i);

		fprintf(out, "%14.6f ", (double)(reading->time - reading->start) / 1e9);
		print_value(out, reading, i, 18);
		fprintf(out, " %-8s ", info->unit);
		print_name(out, info->name, 0);
		fprintf(out, "%s\n", mark_of(&reading->values[i], mark));
	}
	fflush(out);
}

/* ---- files ---- */

/* As RFC 4180 has it: names have commas where terms are given. */
static void csv_name(FILE *out, const char *name, const char *unit)
{
	fputs(",\"", out);
	for (; *name; name++)
		fprintf(out, *name == '"' ? "\"\"" : "%c", *name);
	fprintf(out, "%s%s%s\"", *unit ? " (" : "", unit, *unit ? ")" : "");
}

static void json_string(FILE *out, const char *value)
{
	struct text text = {};

	text_json_string(&text, value);
	fprintf(out, "%.*s", (int)text.length, text.data ?: "\"\"");
	text_free(&text);
}

static double least_share(const struct counters_reading *reading)
{
	double least = 1, share;

	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		const struct xpt_counter_value *value = &reading->values[i];

		share = value->enabled ? (double)value->running / (double)value->enabled : 1;
		least = share < least ? share : least;
	}
	return least;
}

static void add_row(FILE *out, const struct counters_reading *reading)
{
	struct timespec realtime, monotonic;
	double time;

	clock_gettime(CLOCK_REALTIME, &realtime);
	clock_gettime(CLOCK_MONOTONIC, &monotonic);
	time = (double)realtime.tv_sec - (double)monotonic.tv_sec +
	       (double)(realtime.tv_nsec - monotonic.tv_nsec) / 1e9;
	fprintf(out, "%.6f", time + (double)reading->time / 1e9);
	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		if (reading->values[i].flags & (XPT_COUNTER_NEVER | XPT_COUNTER_GONE))
			fprintf(out, ",N/A");
		else
			fprintf(out, ",%.12g", counters_shown(reading, i));
	}
	fprintf(out, ",%.4f\n", least_share(reading));
}

/* The value of an interval is placed at its begin: a viewer draws it from there on. A sum is shown as its rate. */
static void add_points(FILE *out, const struct counters_reading *reading)
{
	double seconds = (double)(reading->time - (reading->before ? reading->time_before : reading->start)) / 1e9;

	for (size_t i = 0; i < xpt_counters_count(reading->session); i++) {
		const struct xpt_counter_info *info = xpt_counters_info(reading->session, i);
		bool rate = info->kind == XPT_COUNTER_SUM;
		uint64_t since = reading->before ? reading->time_before : reading->start;
		uint64_t time = info->kind == XPT_COUNTER_LEVEL ? reading->time : since;
		double value = counters_shown(reading, i);
		char unit[64];

		if (reading->values[i].flags & (XPT_COUNTER_NEVER | XPT_COUNTER_GONE) || (rate && seconds <= 0))
			continue;
		fprintf(out, ",\n{\"ph\":\"C\",\"pid\":0,\"ts\":%" PRIu64 ".%03u,\"name\":", time / 1000,
			(unsigned int)(time % 1000));
		json_string(out, info->name);
		fprintf(out, ",\"args\":{");
		snprintf(unit, sizeof(unit), "%s%s", *info->unit ? info->unit : "count", rate ? "/s" : "");
		json_string(out, unit);
		fprintf(out, ":%.12g}}", rate ? value / seconds : value);
	}
}

static void add_tail(FILE *out, const struct xpt_counters *session)
{
	fprintf(out, "\n],\"displayTimeUnit\":\"ns\",\"metadata\":{\"counters\":[");
	for (size_t i = 0; i < xpt_counters_count(session); i++) {
		const struct xpt_counter_info *info = xpt_counters_info(session, i);

		fprintf(out, "%s{\"name\":", i ? "," : "");
		json_string(out, info->name);
		fprintf(out, ",\"unit\":");
		json_string(out, info->unit);
		fprintf(out, ",\"source\":");
		json_string(out, info->source);
		fprintf(out, ",\"shown\":\"%s\"}",
			info->kind == XPT_COUNTER_SUM  ? "per second" :
			info->kind == XPT_COUNTER_MEAN ? "mean" :
							 "now");
	}
	fprintf(out, "]}}\n");
}

static void add_head(FILE *out, enum counters_format format, const struct xpt_counters *session)
{
	if (format == COUNTERS_TRACE) {
		fprintf(out, "{\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":"
			     "{\"name\":\"counters\"}}");
		return;
	}
	fprintf(out, "time(S)");
	for (size_t i = 0; i < xpt_counters_count(session); i++)
		csv_name(out, xpt_counters_info(session, i)->name, xpt_counters_info(session, i)->unit);
	fprintf(out, ",\"counted share\"\n");
}

enum part { HEAD, READING, END };

#define PENDING_MAX (128u << 10) /* bytes of readings that wait while others are being written */

/* Where there is no room, they wait, up to twice as many; then they are lost. */
static int append(struct counters_file *file, bool last)
{
	int error = tailed_file_append(&file->file, &file->text, file->tail, file->tail_length, last);

	if (error == -ENOBUFS && file->text.length < 2 * PENDING_MAX)
		return 0;
	if (error == -ENOBUFS) {
		tailed_file_drop(&file->file);
		error = 0;
	}
	text_clear(&file->text, 2 * PENDING_MAX);
	return error;
}

static int write_part(struct counters_file *file, enum part part, const struct xpt_counters *session,
		      const struct counters_reading *reading)
{
	char *bytes = NULL;
	size_t length = 0;
	FILE *out = open_memstream(&bytes, &length);

	if (!out)
		return -ENOMEM;
	if (part == HEAD)
		add_head(out, file->format, session);
	else if (part == READING && file->format == COUNTERS_TRACE)
		add_points(out, reading);
	else if (part == READING)
		add_row(out, reading);
	if (fclose(out))
		file->text.error = -ENOMEM;
	text_bytes(&file->text, bytes, length);
	free(bytes);
	file->file.items += part == READING;
	if (part == READING && tailed_file_busy(&file->file) && file->text.length < PENDING_MAX)
		return tailed_file_check(&file->file);
	return append(file, part == END);
}

static int make_tail(struct counters_file *file, const struct xpt_counters *session)
{
	FILE *out = open_memstream(&file->tail, &file->tail_length);

	if (!out)
		return -ENOMEM;
	if (file->format == COUNTERS_TRACE)
		add_tail(out, session);
	return fclose(out) ? -ENOMEM : 0;
}

static int counters_file_open(struct counters_file *file, const struct xpt_counters *session)
{
	bool to_file = strcmp(file->path, "-");
	int error = tailed_file_open(&file->file, to_file ? file->path : NULL, to_file ? -1 : file_standard_output());

	if (error)
		return error;
	file->opened = true;
	/* Others may write to standard output, too. */
	file->file.seekable = to_file && file->file.seekable;
	error = make_tail(file, session);
	if (!error)
		error = write_part(file, HEAD, session, NULL);
	return error ?: tailed_file_detach(&file->file, stop_time());
}

static int counters_file_add(struct counters_file *file, const struct counters_reading *reading)
{
	return write_part(file, READING, reading->session, reading);
}

static int counters_file_close(struct counters_file *file, const struct xpt_counters *session)
{
	int error = tailed_file_settle(&file->file), closed;

	if (!error)
		error = write_part(file, END, session, NULL);
	closed = tailed_file_close(&file->file);
	text_free(&file->text);
	free(file->tail);
	return error ?: closed;
}

/* ---- the command line ---- */

#define LIVE_INTERVAL 1000000000ull /* ns, on a terminal */
#define SHORTEST 100000ull	    /* ns: below it, reading is all that would be done */
#define RENEW_EVERY 1000000000ull   /* ns, after which CPUs that are back are counted on again */

struct counters_context {
	struct string_list names; /* owned, each of them */
	struct xpt_counters_options options;
	uint64_t every, duration;
	struct counters_file file; /* path NULL: none */
	bool quiet;
	char *const *command;

	struct xpt_counters *session;
	struct xpt_counter_value *values, *before;
	bool has_before, live;
	unsigned int *seen; /* XPT_COUNTER_OFFLINE of each counter, if any value had it */
	uint64_t start, time, time_before;
	unsigned int lines; /* of the live table on the terminal */
	int target;	    /* pidfd of what is counted; -1: none */
	pid_t child;
	int status; /* of the child; -1: it runs */
};

static volatile sig_atomic_t interrupted;

static void interrupt(void *object)
{
	(void)object;
	interrupted = 1;
}

static bool ends_with(const char *text, const char *ending)
{
	size_t length = strlen(text), tail = strlen(ending);

	return length > tail && !strcmp(text + length - tail, ending);
}

static bool take_output(void *context, const char *value, const char **reason)
{
	struct counters_file *file = context;

	(void)reason;
	file->path = value;
	file->format = ends_with(value, ".json") || ends_with(value, ".json.gz") ? COUNTERS_TRACE : COUNTERS_CSV;
	return !strcmp(value, "-") || file->format == COUNTERS_TRACE || ends_with(value, ".csv") ||
	       ends_with(value, ".csv.gz");
}

#define FIELD(name) .offset = offsetof(struct counters_context, name)

static const struct option_entry entries[] = {
	{ 'e', "event", "NAME[,NAME...]",
	  "counters, by the names of perf: pmu/event/, subsystem:tracepoint, page-faults;\n"
	  "or of any vendor's device: busy, jobs, energy, frequency, memory_used,\n"
	  "memory_busy; may be repeated",
	  OPTION_CALLBACK, FIELD(names), .take = take_counters },
	{ 0, "gpu", "N", "only of this device (xputrace list devices)", OPTION_INT, FIELD(options.gpu_index),
	  .max = UINT16_MAX, .expected = "the number of a device (see xputrace list devices)" },
	{ 0, "cpu", "N", "only on this CPU", OPTION_INT, FIELD(options.cpu_index), .max = UINT16_MAX,
	  .expected = "the number of a CPU" },
	{ 'p', "pid", "PID", "only what this process does, and what it starts", OPTION_INT, FIELD(options.pid),
	  .min = 1, .max = INT32_MAX, .expected = "a process ID" },
	{ 0, "every", "TIME", "show or write the counters at this interval (default on a terminal 1s)", OPTION_DURATION,
	  FIELD(every), .min = SHORTEST },
	{ 'd', "duration", "TIME", "end after this time", OPTION_DURATION, FIELD(duration) },
	{ 'o', "output", "FILE",
	  "write FILE.csv, or counter tracks as a Chrome trace FILE.json; - is CSV on standard output", OPTION_CALLBACK,
	  FIELD(file), .take = take_output, .expected = "FILE.csv, FILE.json, or - for CSV on standard output" },
	{ 0, "no-multiplex", NULL, "fail where not all counters fit into the hardware at once", OPTION_SET,
	  FIELD(options.no_multiplex), .value = 1 },
	{ 'q', "quiet", NULL, "no table", OPTION_FLAG, FIELD(quiet) },
	{}
};

static const struct command_line line = {
	.name = "counters",
	.summary = "Count events of devices and the kernel.",
	.usage = "  sudo xputrace counters -e NAME,... [--every TIME] [-d TIME] [-o FILE]\n"
		 "  sudo xputrace counters -e NAME,... -- COMMAND [ARGUMENT...]",
	.options = entries,
	.more = "With a command, counters of the kernel count what the command does, those of devices what\n"
		"everybody does while it runs. Without one, all count what everybody does (-p: one process).\n"
		"Values of an interval are what was counted in it; a mean is over it.\n\n"
		"examples:\n"
		"  xputrace list counters\n"
		"  sudo xputrace counters -e busy,frequency,memory_used --every 1s\n"
		"  sudo xputrace counters -e i915/rcs0-busy/,i915/actual-frequency/ --every 100ms -o gpu.csv\n"
		"  sudo xputrace counters -e gpu_scheduler:drm_sched_job_run,page-faults -d 10s\n"
		"  sudo xputrace counters -e task-clock,context-switches -- python3 serve.py\n\n"
		"exit status: 0 counted, 1 failed, 2 wrong usage",
};

/* ---- counting ---- */

struct xpt_counters *device_counters_start(int gpu_index, const char *const *wanted, size_t count)
{
	const char *names[count];
	struct xpt_counters *counters;
	size_t found = 0;

	/* Each alone first: a device does not report all of them. */
	for (size_t i = 0; i < count; i++) {
		if (xpt_counters_create(&wanted[i], 1, XPT_COUNTERS_ALL, gpu_index, &counters))
			continue;
		xpt_counters_destroy(counters);
		names[found++] = wanted[i];
	}
	if (!found || xpt_counters_create(names, found, XPT_COUNTERS_ALL, gpu_index, &counters))
		return NULL;
	if (!xpt_counters_start(counters))
		return counters;
	xpt_counters_destroy(counters);
	return NULL;
}

static struct counters_reading reading_of(const struct counters_context *counters, bool total)
{
	return (struct counters_reading){
		.session = counters->session,
		.values = counters->values,
		.before = counters->has_before && !total ? counters->before : NULL,
		.start = counters->start,
		.time = counters->time,
		.time_before = counters->time_before,
		.spread = xpt_counters_spread(counters->session),
		.total = total,
	};
}

/* Names and paths may have anything in them. */
static int report_error(const char *what, const char *reason, int error)
{
	char text[512];

	snprintf(text, sizeof(text), "%.300s: %s", what, reason);
	print_message(NULL, XPT_LOG_ERROR, text);
	return error;
}

static bool writes_to_stdout(const struct counters_context *counters)
{
	return counters->file.path && !strcmp(counters->file.path, "-");
}

static int flush_stdout(void)
{
	if (!fflush(stdout) && !ferror(stdout))
		return 0;
	return report_error("standard output", strerror(errno ?: EIO), errno ? -errno : -EIO);
}

static int show(struct counters_context *counters)
{
	const struct counters_reading reading = reading_of(counters, false);
	int error = counters->file.path ? counters_file_add(&counters->file, &reading) : 0;

	if (error)
		return report_error(counters->file.path, output_reason(error), error);
	if (counters->quiet || !counters->every || writes_to_stdout(counters))
		return 0;
	if (!counters->live) {
		counters_rows(stdout, &reading);
		return flush_stdout();
	}
	if (counters->lines)
		printf("\033[%uA\033[J", counters->lines);
	counters->lines = counters_table(stdout, &reading);
	return flush_stdout();
}

static int poll_counters(struct counters_context *counters)
{
	struct xpt_counter_value *values = counters->before;

	counters->before = counters->values;
	counters->time_before = counters->time;
	counters->values = values;
	counters->time = clock_monotonic();
	xpt_counters_poll(counters->session, values, sizeof(*values));
	for (size_t i = 0; i < counters->names.count; i++) {
		counters->time = values[i].time > counters->time ? values[i].time : counters->time;
		counters->seen[i] |= values[i].flags & XPT_COUNTER_OFFLINE;
	}
	return 0;
}

/* False: nothing is left to wait for: interrupted, or what is counted has ended. */
static bool wait_until(struct counters_context *counters, uint64_t until)
{
	struct pollfd target = { .fd = counters->target, .events = POLLIN };
	struct timespec rest;
	uint64_t time, left;

	while (!interrupted) {
		time = clock_monotonic();
		if (time >= until)
			return true;
		left = until - time < RENEW_EVERY ? until - time : RENEW_EVERY;
		rest = (struct timespec){ (time_t)(left / 1000000000), (long)(left % 1000000000) };
		if (ppoll(&target, 1, &rest, NULL) > 0)
			return false;
		if (left == RENEW_EVERY)
			xpt_counters_renew(counters->session);
	}
	return false;
}

static int count(struct counters_context *counters)
{
	uint64_t end = counters->duration ? counters->start + counters->duration : UINT64_MAX;
	uint64_t next = counters->every ? counters->start + counters->every : UINT64_MAX;
	bool more = true;
	int error = 0;

	while (more && !error) {
		more = wait_until(counters, next < end ? next : end);
		if (clock_monotonic() >= end)
			more = false;
		if (!more)
			break;
		error = poll_counters(counters);
		if (!error)
			error = show(counters);
		counters->has_before = true;
		/* An interval that was missed is not made up for. */
		while (next <= counters->time)
			next += counters->every;
	}
	return error;
}

/* ---- the command ---- */

/* In the child: executes the command once a byte has come, or sends back why it cannot. */
static void execute(char *const *command, int channel)
{
	char byte;
	int error;

	if (read(channel, &byte, 1) != 1)
		_exit(127);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGXFSZ, SIG_DFL);
	execvp(command[0], command);
	error = errno;
	if (write(channel, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(127);
}

/* Started, but not executed before a byte comes through the channel. */
static int prepare_command(struct counters_context *counters, int *channel)
{
	int ends[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
		return -errno;
	counters->child = fork();
	if (counters->child < 0)
		return -errno;
	if (!counters->child) {
		close(ends[0]); /* or it would never see that the other side has closed */
		execute(counters->command, ends[1]);
	}
	close(ends[1]);
	*channel = ends[0];
	return 0;
}

/* Lets it go; its end of the channel closes when it executes. */
static int release_command(struct counters_context *counters, int channel)
{
	int error = 0;

	if (write(channel, "", 1) != 1)
		return -errno;
	if (read(channel, &error, sizeof(error)) != sizeof(error))
		return 0;
	return report_error(counters->command[0], strerror(error), -error);
}

static int start(struct counters_context *counters, int channel)
{
	int error = xpt_counters_start(counters->session);

	counters->start = counters->time = clock_monotonic();
	return error || channel < 0 ? error : release_command(counters, channel);
}

static void print_totals(struct counters_context *counters)
{
	const struct counters_reading reading = reading_of(counters, true);
	FILE *out = writes_to_stdout(counters) ? stderr : stdout;

	for (size_t i = 0; i < counters->names.count; i++)
		counters->values[i].flags |= counters->seen[i];

	if (counters->command && counters->child &&
	    waitpid(counters->child, &counters->status, WNOHANG) == counters->child)
		counters->child = 0;
	print_command_status(counters->command, counters->child ? -1 : counters->status);
	if (counters->every)
		fprintf(out, "\nin all:\n");
	counters_table(out, &reading);
}

static int finish(struct counters_context *counters)
{
	int error;

	end_soon(false);
	xpt_counters_stop(counters->session);
	error = poll_counters(counters);
	if (!error && (counters->file.path || counters->every))
		error = show(counters);
	if (!counters->quiet)
		print_totals(counters);
	return flush_stdout() ?: error;
}

static int open_all(struct counters_context *counters)
{
	int error = xpt_counters_open(&counters->options, &counters->session);

	counters->values = calloc(counters->names.count, sizeof(*counters->values));
	counters->before = calloc(counters->names.count, sizeof(*counters->before));
	counters->seen = calloc(counters->names.count, sizeof(*counters->seen));
	if (!error && (!counters->values || !counters->before || !counters->seen))
		error = -ENOMEM;
	if (!error && counters->options.pid)
		counters->target = (int)syscall(SYS_pidfd_open, counters->options.pid, 0);
	if (error || !counters->file.path)
		return error;
	error = counters_file_open(&counters->file, counters->session);
	return error ? report_error(counters->file.path, output_reason(error), error) : 0;
}

static void report_lost(const struct counters_context *counters)
{
	char text[128];

	snprintf(text, sizeof(text), "%llu readings could not be written",
		 (unsigned long long)tailed_file_lost(&counters->file.file));
	print_message(NULL, XPT_LOG_WARN, text);
}

static int close_all(struct counters_context *counters)
{
	int error = 0;

	if (counters->file.opened) {
		error = counters_file_close(&counters->file, counters->session);
		if (tailed_file_lost(&counters->file.file))
			report_lost(counters);
		if (error == -ETIMEDOUT)
			print_message(NULL, XPT_LOG_ERROR, "the output is blocked and was given up");
	}
	if (counters->target >= 0)
		close(counters->target);
	xpt_counters_destroy(counters->session);
	free(counters->values);
	free(counters->before);
	free(counters->seen);
	return error;
}

static int run(struct counters_context *counters)
{
	int channel = -1, error = 0, ended;

	if (counters->command) {
		error = prepare_command(counters, &channel);
		counters->options.pid = counters->child;
		counters->options.until_exec = counters->options.devices_count_all = 1;
	}
	if (!error)
		error = open_all(counters);
	if (!error)
		privileges_reduce_to_counting(!counters->options.pid);
	end_on_signals(interrupt, NULL);
	if (!error)
		error = start(counters, channel);
	if (!error) {
		error = count(counters);
		ended = finish(counters);
		error = error ? error : ended;
	}
	end_on_signals(NULL, NULL);
	if (channel >= 0)
		close(channel);
	ended = close_all(counters);
	error = error ? error : ended;
	return exit_status(error);
}

int command_counters(int argc, char **argv)
{
	struct counters_context counters = {
		.options = { .size = sizeof(counters.options),
			     .cpu_index = XPT_COUNTERS_ALL,
			     .gpu_index = XPT_COUNTERS_ALL,
			     .log = print_message,
			     .log_level = XPT_LOG_INFO },
		.target = -1,
		.status = -1,
	};
	int first, result = options_parse(&line, argc, argv, &counters, &first);

	if (result)
		return result;
	if (first < argc)
		counters.command = argv + first;
	if (!counters.names.count) {
		fprintf(stderr, "xputrace counters: no counters specified: -e NAME,... (see xputrace list counters)\n");
		return EXIT_USAGE;
	}
	if (counters.command && counters.options.pid) {
		fprintf(stderr, "xputrace counters: --pid and a command are mutually exclusive\n");
		return EXIT_USAGE;
	}
	counters.live = isatty(STDOUT_FILENO) && !counters.command;
	if (!counters.every && counters.live)
		counters.every = LIVE_INTERVAL;
	counters.options.names = counters.names.items;
	counters.options.name_count = counters.names.count;
	result = run(&counters);
	for (size_t i = 0; i < counters.names.count; i++)
		free((char *)counters.names.items[i]);
	free(counters.names.items);
	return result;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* top: the programs of a session as rows, from the reports of a stream; plain tables with --batch. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <xputrace/device.h>

#include "base/core/cgroup.h"
#include "base/core/text.h"
#include "base/core/vec.h"
#include "base/file/output.h"
#include "cli/top/top.h"

/* ---- rows ---- */

static void copy_name(char *to, size_t size, const char *name)
{
	size_t length = text_cut(name, strlen(name), size - 1);

	memcpy(to, name, length);
	to[length] = '\0';
}

static void clear_interval(struct top_row *row)
{
	row->ran = 0;
	row->rate = 0;
	row->tokens = row->p50 = row->p99 = row->cpu = row->waited = row->blocked = row->queue = row->device = -1;
}

/* NULL: no memory, or too many, or one that has never run. */
static struct top_row *find_row(struct top *top, const struct xpt_program_report *program)
{
	struct cgroup_ids ids;
	struct top_row *row;

	for (size_t i = 0; i < top->count; i++)
		if (top->rows[i].id == program->id)
			return &top->rows[i];
	if (!program->inferences || top->count == TOP_ROWS_MAX || vec_reserve(top->rows, top->count))
		return NULL;
	row = &top->rows[top->count++];
	*row = (struct top_row){ .id = program->id, .pid = program->pid, .handle = program->handle };
	clear_interval(row);
	copy_name(row->process, sizeof(row->process), program->process ?: "");
	copy_name(row->runtime, sizeof(row->runtime), program->runtime ?: "");
	if (row->pid) {
		cgroup_read(&ids, row->pid);
		copy_name(row->container, sizeof(row->container), ids.container);
	}
	return row;
}

/* Sum of a column over the samples of a report, in its unit; negative: no sample has it. */
static double column_value(const struct xpt_program_report *program, enum xpt_column column)
{
	XPT_OPTS(xpt_column_summary, summary);

	if (xpt_latencies_get(program->latencies, column, &summary))
		return -1;
	return summary.mean * summary.count;
}

static void set_states(struct top_row *row, const struct xpt_program_report *program)
{
	double cpu = column_value(program, XPT_COLUMN_CPU_TIME);
	double waited = column_value(program, XPT_COLUMN_WAITED_TIME);
	double blocked = column_value(program, XPT_COLUMN_BLOCKED_TIME);
	double sum = cpu + waited + blocked;

	if (cpu < 0 || waited < 0 || blocked < 0 || sum <= 0)
		return;
	row->cpu = cpu / sum;
	row->waited = waited / sum;
	row->blocked = blocked / sum;
}

static void update_row(struct top_row *row, const struct xpt_program_report *program, double seconds)
{
	XPT_OPTS(xpt_column_summary, summary);
	double prefill = column_value(program, XPT_COLUMN_PREFILL_TOKENS);
	double decode = column_value(program, XPT_COLUMN_DECODE_TOKENS);

	copy_name(row->name, sizeof(row->name), program->name ?: "(others)");
	row->total += program->inferences;
	row->errors += program->failed;
	row->lost += program->lost;
	row->released |= program->released;
	row->ran = program->inferences;
	row->rate = program->inferences / seconds;
	if (!xpt_latencies_get(program->latencies, XPT_COLUMN_TOTAL_ROUND_TRIP, &summary)) {
		row->p50 = summary.p50 * 1e3;
		row->p99 = summary.p99 * 1e3;
	}
	set_states(row, program);
	if (program->timed) {
		row->queue = (double)program->queue_time / program->timed;
		row->device = (double)program->device_time / program->timed;
	}
	if (prefill >= 0 || decode >= 0)
		row->tokens = ((prefill < 0 ? 0 : prefill) + (decode < 0 ? 0 : decode)) / seconds;
}

/* Rows of the last interval; released programs stay for one more. */
static void update_rows(struct top *top, const struct xpt_profile_report *report)
{
	double seconds = (report->end - report->start) / 1e9;
	size_t kept = 0;

	for (size_t i = 0; i < top->count; i++) {
		clear_interval(&top->rows[i]);
		if (!top->rows[i].released)
			top->rows[kept++] = top->rows[i];
	}
	top->count = kept;
	for (size_t i = 0; i < report->program_count; i++) {
		const struct xpt_program_report *program = XPT_AT(report->programs, report->program_size, i);
		struct top_row *row = find_row(top, program);

		if (row)
			update_row(row, program, seconds > 0 ? seconds : 1);
	}
}

/* ---- plain tables ---- */

#define STACKS_PRINTED 5 /* of a program and kind */

/* One after the other, texts filled at the right, numbers at the left. Ends with nothing in text. */
static void print_cell(struct text *text, size_t used, enum top_column column, unsigned int width)
{
	int fill = width > used ? (int)(width - used) : 0;

	printf("%s%*s%.*s%*s", column ? " " : "", top_is_text(column) ? 0 : fill, "", (int)text->length,
	       text->data ?: "", top_is_text(column) && column < TOP_COLUMNS - 1 ? fill : 0, "");
	text->length = 0;
}

static void print_head(struct top *top, const struct xpt_profile_report *report)
{
	struct xpt_session_status status = { .size = sizeof(status) };
	time_t seconds = report->end_realtime / 1000000000;
	struct tm local;
	char clock[16];

	localtime_r(&seconds, &local);
	strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	xpt_session_status(top->library, &status);
	printf("%s%s  %.2f s  %u processes  %u programs  %" PRIu64 " calls  %" PRIu64 " lost\n",
	       top->printed ? "\n" : "", clock, (report->end - report->start) / 1e9, status.processes, status.programs,
	       status.calls, status.lost);
}

/* Of the programs that have some, those of the interval. */
static void print_stacks(const struct xpt_profile_report *report, unsigned int columns)
{
	for (size_t i = 0; i < report->program_count; i++) {
		const struct xpt_program_report *program = XPT_AT(report->programs, report->program_size, i);
		struct top_stacks stacks = {};
		struct text text = {};

		top_stacks_add(&stacks, program, report->end);
		top_stacks_text(&text, &stacks, columns, STACKS_PRINTED);
		if (text.error)
			output_failed(text.error);
		if (text.length) {
			printf("stacks of ");
			print_name(stdout, program->name, 0);
			printf(" (%d)\n%.*s", program->pid, (int)text.length, text.data);
		}
		text_free(&text);
		top_stacks_clear(&stacks);
	}
}

/* A table of the rows, those that ran most first. */
static void print_table(struct top *top, const struct xpt_profile_report *report)
{
	const unsigned int columns = terminal_columns(STDOUT_FILENO);
	struct top_layout layout;
	struct text text = {};

	top_sort(top->rows, top->count, TOP_RATE, false);
	top_fit(&layout, top->rows, top->count, columns);
	print_head(top, report);
	for (enum top_column column = 0; column < TOP_COLUMNS; column++) {
		text_string(&text, top_title(column));
		if (layout.width[column])
			print_cell(&text, text.length, column, layout.width[column]);
		text.length = 0;
	}
	printf("\n");
	for (size_t i = 0; i < top->count; i++) {
		for (enum top_column column = 0; column < TOP_COLUMNS; column++) {
			if (!layout.width[column])
				continue;
			print_cell(&text, top_cell(&text, &top->rows[i], column, layout.width[column]), column,
				   layout.width[column]);
		}
		printf("\n");
	}
	if (text.error)
		output_failed(text.error);
	text_free(&text);
	top_poll_devices(top);
	for (size_t i = 0; i < top->device_count; i++) {
		print_name(stdout, top->devices[i].name, 24);
		printf(" %s\n", top->devices[i].text);
	}
	print_stacks(report, columns);
	fflush(stdout);
	top->printed++;
}

static void on_report(void *context, const struct xpt_profile_report *report)
{
	struct top *top = context;

	pthread_mutex_lock(&top->lock);
	if (!top->done) {
		update_rows(top, report);
		if (top->batch)
			print_table(top, report);
		top->done = top->batch && (ferror(stdout) || (top->tables && top->printed >= top->tables));
		if (top->done)
			xpt_session_interrupt(top->library);
	}
	pthread_mutex_unlock(&top->lock);
	top_wake(top);
}

/* ---- devices ---- */

static const char *const device_counters[] = { "busy", "jobs", "memory_used", "energy" };

enum { DEVICE_COUNTERS = sizeof(device_counters) / sizeof(*device_counters) };

static int on_device(void *context, const struct xpt_device_info *info)
{
	struct top *top = context;
	struct top_device *device = &top->devices[top->device_count];
	const char *node = strrchr(info->node, '/');

	if (top->device_count == TOP_DEVICES_MAX)
		return 1;
	*device = (struct top_device){ .counters = device_counters_start(info->index, device_counters,
									 DEVICE_COUNTERS) };
	if (!device->counters)
		return 0;
	device->count = xpt_counters_count(device->counters);
	copy_name(device->name, sizeof(device->name), node ? node + 1 : info->address);
	copy_name(device->driver, sizeof(device->driver), info->driver);
	top->device_count++;
	return 0;
}

static void add_device_value(struct top_device *device, struct text *text, const char *name,
			     const struct xpt_counter_value *value)
{
	double seconds = (value->time - device->time_before) / 1e9;

	if (value->flags & (XPT_COUNTER_GONE | XPT_COUNTER_NEVER))
		return;
	if (!strcmp(name, "busy")) {
		top_add(text, "busy %.1f%%  ", value->value);
	} else if (!strcmp(name, "memory_used")) {
		top_add(text, "memory %.1f MiB  ", value->value / (1 << 20));
	} else if (!strcmp(name, "energy")) {
		top_add(text, "energy %.1f J  ", value->value);
	} else {
		if (device->time_before && seconds > 0)
			top_add(text, "jobs %.1f/s  ", (value->value - device->jobs_before) / seconds);
		device->jobs_before = value->value;
		device->time_before = value->time;
	}
}

void top_poll_devices(struct top *top)
{
	for (size_t i = 0; i < top->device_count; i++) {
		struct top_device *device = &top->devices[i];
		struct xpt_counter_value values[DEVICE_COUNTERS];
		struct text text = {};

		xpt_counters_poll(device->counters, values, sizeof(values[0]));
		for (size_t each = 0; each < device->count; each++)
			add_device_value(device, &text, xpt_counters_info(device->counters, each)->name, &values[each]);
		copy_name(device->text, sizeof(device->text), text.length ? text.data : "");
		text_free(&text);
	}
}

/* ---- the session ---- */

#define FIELD(name) .offset = offsetof(struct top, name)

static const struct option_entry entries[] = {
	{ .group = target_options },
	{ 'm', "match", "EXPRESSION",
	  "only programs with a name in which this regular\nexpression is found (ECMAScript syntax)", OPTION_CALLBACK,
	  .take = take_chosen_match },
	{ 'd', "interval", "TIME", "time between two updates, 100ms to 1h (default 500ms)", OPTION_DURATION,
	  FIELD(interval), .min = 100000000, .max = 3600000000000 },
	{ 0, "batch", NULL, "print plain tables on standard output, one an interval", OPTION_FLAG, FIELD(batch) },
	{ 'n', "tables", "N", "with --batch: end after N tables", OPTION_NUMBER, FIELD(tables), .min = 1,
	  .max = 1000000000 },
	{ 0, "save-dir", "DIR",
	  "keep the last seconds in memory, as a flight recorder\ndoes; the key s saves them in this directory, e explains\nthem",
	  OPTION_STRING, FIELD(save_dir) },
	{ 0, "ops", NULL, "keep the operators of each inference, too", OPTION_FLAG, FIELD(operators) },
	{ .group = stacks_options, FIELD(stacks) },
	{ .group = why_option },
	{ .group = collect_options },
	{ .group = verbose_option },
	{}
};

static const struct command_line line = {
	.name = "top",
	.summary = "Show live what each program does: rate, latency, states of its threads, device time.",
	.usage = "  xputrace top [OPTION...]\n"
		 "  xputrace top -p PID[,PID...] [OPTION...]\n"
		 "  xputrace top [OPTION...] -- COMMAND [ARGUMENT...]",
	.options = entries,
	.more = "Without a target all processes that use a described runtime are shown. Shares are of the time in calls:\n"
		"on a CPU, waiting for one, blocked. All figures but ERR and TOTAL are of the last interval.\n\n"
		"keys: < > or the letters that ? lists: sort; / filter; Enter open a program, Esc back;\n"
		"space pause; s save the last seconds (--save-dir); q quit;\n"
		"of the open program: e explain these seconds, S its stacks (--stacks, --samples)\n\n"
		"examples:\n"
		"  sudo xputrace top\n"
		"  sudo xputrace top -p 4711 --interval 2s\n"
		"  sudo xputrace top -p 4711 --samples\n"
		"  sudo xputrace top -a --batch -n 10 >tables.txt\n\n"
		"exit status: 0 ended as asked, 1 failed, 2 wrong usage",
};

void top_wake(void *object)
{
	const struct top *top = object;
	uint64_t one = 1;

	if (write(top->changed, &one, sizeof(one)) < 0)
		return; /* it is full of wake-ups */
}

static void on_signal(void *object)
{
	struct top *top = object;

	xpt_session_interrupt(top->library);
	top_wake(top);
}

void top_catch_signals(struct top *top)
{
	end_on_signals(on_signal, top);
}

/* On the screen a message has its line; what is worth reading later is printed at the end, too. */
static void on_message(void *context, enum xpt_log_level level, const char *text)
{
	struct top *top = context;

	bool drawn;

	pthread_mutex_lock(&top->message_lock);
	drawn = top->drawn;
	if (drawn)
		copy_name(top->message, sizeof(top->message), text);
	if (drawn && level >= XPT_LOG_WARN)
		copy_name(top->warning, sizeof(top->warning), text);
	pthread_mutex_unlock(&top->message_lock);
	if (drawn)
		top_wake(top);
	else
		print_message(NULL, level, text);
}

int top_watch(struct top *top, const char *match)
{
	XPT_OPTS(xpt_stream_options, options, .report_every = top->interval,
		 .match = match			     ?:
				  top->session.match ?:
						       "",
		 .summary = 1, .callback = on_report, .context = top, .stacks = top->stacks.calls,
		 .samples = top->stacks.samples);
	int error;

	if (top->stream)
		xpt_stream_destroy(top->stream);
	top->stream = NULL;
	pthread_mutex_lock(&top->lock);
	top->count = 0;
	pthread_mutex_unlock(&top->lock);
	error = xpt_stream_create(top->library, &options, &top->stream);
	return error ?: xpt_stream_start(top->stream);
}

/* The window that the key s saves. 0 or -errno. */
static int keep_window(struct top *top)
{
	XPT_OPTS(xpt_continuous_options, options, .session = top->library, .output_dir = top->save_dir,
		 .level = top->operators ? XPT_LEVEL_DETAILED : XPT_LEVEL_STANDARD);

	options.has_owner = sudo_caller(&options.user, &options.group);
	return top->save_dir ? xpt_continuous_create(&options, &top->window) : 0;
}

/* Until all tables are printed, the targets end or a signal comes. 0, or the exit status. */
static int print_tables(struct top *top)
{
	int result = xpt_session_wait(top->library, XPT_FOREVER);

	if (result != 1 && result != -EINTR)
		return exit_failed(result);
	end_soon(false);
	xpt_stream_stop(top->stream);
	xpt_stream_flush(top->stream);
	return 0;
}

/*
 * The terminal is for the screen alone: a command that is started gets nothing to read, and what it prints is not shown, but standard
 * error where that is no terminal. 0 or -errno.
 */
static int take_terminal(struct top *top)
{
	int keys = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3), screen = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int messages = isatty(STDERR_FILENO) ? fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3) : -1;
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
	FILE *stream = messages < 0 ? NULL : fdopen(messages, "w");

	top->keys = keys < 0 ? NULL : fdopen(keys, "r");
	top->screen = screen < 0 ? NULL : fdopen(screen, "w");
	if (!top->keys || !top->screen || nothing < 0)
		return -errno;
	if (stream) {
		setvbuf(stream, NULL, _IOLBF, 0);
		stderr = stream;
		dup2(nothing, STDERR_FILENO);
	}
	dup2(nothing, STDIN_FILENO);
	dup2(nothing, STDOUT_FILENO);
	close(nothing);
	return 0;
}

static int run(struct top *top)
{
	XPT_OPTS(xpt_session_options, options, WATCH_OPTIONS(&top->session));
	int result;

	options.log = on_message;
	options.log_context = top;
	result = exit_status(xpt_session_create(&options, &top->library));
	if (result)
		return result;
	xpt_device_list(on_device, top);
	top_catch_signals(top);
	result = exit_status(keep_window(top) ?: top_watch(top, NULL) ?: xpt_session_start(top->library));
	if (!result)
		result = top->batch ? print_tables(top) : top_screen(top);
	end_on_signals(NULL, NULL);
	if (top->stream)
		xpt_stream_destroy(top->stream);
	xpt_continuous_destroy(top->window);
	xpt_session_destroy(top->library);
	for (size_t i = 0; i < top->device_count; i++)
		xpt_counters_destroy(top->devices[i].counters);
	free(top->rows);
	return result;
}

int command_top(int argc, char **argv)
{
	static struct top top = {
		.session.all_by_default = true,
		.interval = TOP_INTERVAL,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.message_lock = PTHREAD_MUTEX_INITIALIZER,
	};
	int result = session_options_parse(&line, argc, argv, &top);

	if (result)
		return result;
	if (top.tables && !top.batch)
		return session_options_refuse(&line, "--tables requires --batch");
	if (top.operators && !top.save_dir)
		return session_options_refuse(&line, "--ops requires --save-dir DIR");
	if (top.save_dir && top.batch)
		return session_options_refuse(&line, "--save-dir is for a terminal: --batch has no keys");
	if (choices_refused(&line, &top.session))
		return EXIT_USAGE;
	if (!top.batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		return session_options_refuse(&line, "standard input and output are not a terminal: use --batch");
	top.changed = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (top.changed < 0)
		return exit_failed(-errno);
	if (top.batch)
		messages_detach();
	else
		result = exit_status(take_terminal(&top));
	return result ?: run(&top);
}

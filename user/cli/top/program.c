/* SPDX-License-Identifier: BSD-2-Clause */
/* One program on the screen of top: its times, its slowest inference, its stacks; an explanation of its last seconds. */
#include "cli/top/screen.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <xputrace/explain.h>

#include "base/core/clock.h"
#include "base/core/text.h"

#define STACKS_SPAN 10000000000ull /* ns: of two intervals at least */

static const struct {
	enum xpt_column column;
	const char *title;
} times[] = {
	{ XPT_COLUMN_TOTAL_ROUND_TRIP, "total" },	   { XPT_COLUMN_ENQUEUE, "enqueue call" },
	{ XPT_COLUMN_PREPROCESS, "before submit" },	   { XPT_COLUMN_SUBMIT, "submit" },
	{ XPT_COLUMN_EXECUTE_TO_CHANNEL, "device queue" }, { XPT_COLUMN_DEVICE_EXECUTE, "on the device" },
	{ XPT_COLUMN_POSTPROCESS, "after the device" },	   { XPT_COLUMN_FIRST_TOKEN, "first token" },
	{ XPT_COLUMN_OUTPUT_TOKEN, "output token" },	   { XPT_COLUMN_CPU_TIME, "on a CPU" },
	{ XPT_COLUMN_WAITED_TIME, "waiting for a CPU" },   { XPT_COLUMN_BLOCKED_TIME, "blocked" },
};

static void add_sample(struct opened *opened, const struct xpt_sample *sample)
{
	XPT_OPTS(xpt_sample, copy);
	uint64_t time;

	if (xpt_sample_column(sample, XPT_COLUMN_TOTAL_ROUND_TRIP, &time) || time < opened->slowest_time)
		return;
	memcpy(&copy, sample, sample->size < sizeof(copy) ? sample->size : sizeof(copy));
	copy.size = sizeof(copy);
	opened->slowest = copy;
	opened->slowest_time = time;
}

static void on_samples(void *context, const struct xpt_profile_report *report)
{
	struct opened *opened = context;
	uint64_t span;

	pthread_mutex_lock(&opened->lock);
	for (size_t i = 0; i < report->program_count; i++) {
		const struct xpt_program_report *program = XPT_AT(report->programs, report->program_size, i);

		if (program->id != opened->row.id)
			continue;
		opened->inferences += program->inferences;
		opened->errors += program->failed;
		opened->lost += program->lost;
		if (opened->latencies)
			xpt_latencies_merge(opened->latencies, program->latencies);
		for (size_t each = 0; each < program->sample_count; each++)
			add_sample(opened, XPT_AT(program->samples, program->sample_size, each));
		top_stacks_add(&opened->stacks, program, report->end);
	}
	span = 2 * (report->end - report->start) > STACKS_SPAN ? 2 * (report->end - report->start) : STACKS_SPAN;
	top_stacks_drop(&opened->stacks, report->end > span ? report->end - span : 0);
	pthread_mutex_unlock(&opened->lock);
}

void close_program(struct screen *screen)
{
	struct opened *opened = &screen->opened;

	if (opened->stream)
		xpt_stream_destroy(opened->stream);
	xpt_latencies_free(opened->latencies);
	opened->row.id = 0;
	top_stacks_clear(&opened->stacks);
	opened->stream = NULL;
	opened->latencies = NULL;
	screen->stacks_only = false;
}

void open_program(struct screen *screen, const struct top_row *row)
{
	struct opened *opened = &screen->opened;
	XPT_OPTS(xpt_stream_options, options, .report_every = screen->top->interval, .callback = on_samples,
		 .context = opened, .stacks = screen->top->stacks.calls, .samples = screen->top->stacks.samples);
	XPT_OPTS(xpt_program_choice, choice);
	int error;

	if (!row->id)
		return;
	opened->row = *row;
	opened->inferences = opened->errors = opened->lost = opened->slowest_time = opened->slowest.size = 0;
	opened->latencies = xpt_latencies_create();
	choice.pid = opened->row.pid;
	choice.handle = opened->row.handle;
	choice.name = opened->row.handle ? NULL : opened->row.name;
	error = xpt_stream_create(screen->top->library, &options, &opened->stream);
	if (!error)
		error = xpt_stream_add(opened->stream, &choice) ?: xpt_stream_start(opened->stream);
	else
		opened->stream = NULL;
	if (!error)
		return;
	close_program(screen);
	snprintf(screen->notice, sizeof(screen->notice), "cannot open the program: %s", strerror(-error));
}

static void draw_slowest(const struct opened *opened, int line)
{
	const struct xpt_sample *sample = &opened->slowest;
	char status[80] = "";

	if (!sample->size) {
		draw_line(line, "No inference has ended since it was opened.");
		return;
	}
	draw_line(line, "Slowest inference since it was opened: number %" PRIu64 ", %.1f s ago, %.1f us",
		  sample->number, (clock_monotonic() - sample->time[XPT_TIME_CALL_ENDS]) / 1e9,
		  opened->slowest_time / 1e3);
	if (sample->has_status)
		snprintf(status, sizeof(status), ", status %" PRId64 "%s%s", sample->status,
			 sample->status_name ? " " : "", sample->status_name ?: "");
	draw_line(line + 1, "  thread %u%s%s", sample->tid, status, sample->failed ? " (error)" : "");
	if (sample->has_states)
		draw_line(line + 2, "  CPU %.1f us, waiting %.1f us (preempted %ux), blocked %.1f us (%ux)",
			  sample->cpu_time / 1e3, sample->waited_time / 1e3, sample->involuntary_switches,
			  sample->blocked_time / 1e3, sample->voluntary_switches);
	if (sample->jobs)
		draw_line(line + 3, "  %u device jobs: queued %.1f us, on the device %.1f us", sample->jobs,
			  sample->queue_time / 1e3, sample->device_time / 1e3);
}

static void draw_times(const struct opened *opened, int *line)
{
	XPT_OPTS(xpt_column_summary, summary);

	attrset(A_REVERSE | coloured(COLOUR_TITLE));
	mvhline(*line, 0, ' ', COLS);
	draw_line((*line)++, "%-18s %9s %9s %9s %9s %9s %9s", "TIME us", "COUNT", "MIN", "MEAN", "P50", "P99", "MAX");
	attrset(A_NORMAL);
	for (size_t i = 0; opened->latencies && i < sizeof(times) / sizeof(*times); i++)
		if (!xpt_latencies_get(opened->latencies, times[i].column, &summary))
			draw_line((*line)++, "%-18s %9" PRIu64 " %9.1f %9.1f %9.1f %9.1f %9.1f", times[i].title,
				  summary.count, summary.min, summary.mean, summary.p50, summary.p99, summary.max);
	draw_slowest(opened, *line + 1);
	*line += 6;
}

/* As many of the lines as there is room for. */
static void draw_stacks(const struct top_stacks *stacks, int line)
{
	struct text text = {};
	size_t at = 0;

	top_stacks_text(&text, stacks, (unsigned int)COLS, (size_t)LINES);
	if (!text.length)
		draw_line(line, "No stack was taken in the last seconds.");
	while (!text.error && at < text.length && line < LINES - 1) {
		size_t length = (size_t)((char *)memchr(text.data + at, '\n', text.length - at) - text.data) - at;

		draw_line(line++, "%.*s", (int)length, text.data + at);
		at += length + 1;
	}
	text_free(&text);
}

void draw_program(struct screen *screen)
{
	struct opened *opened = &screen->opened;
	const struct top_row *row = &opened->row;
	int line = 5;

	attrset(A_BOLD);
	draw_line(1, "%s", row->name);
	attrset(A_NORMAL);
	draw_line(2, "%s %d  %s  0x%" PRIx64 "%s%s", row->process, row->pid, row->runtime, row->handle,
		  *row->container ? "  container " : "", row->container);
	pthread_mutex_lock(&opened->lock);
	draw_line(3, "%" PRIu64 " inferences, %" PRIu64 " failed, %" PRIu64 " lost since it was opened",
		  opened->inferences, opened->errors, opened->lost);
	if (!screen->stacks_only)
		draw_times(opened, &line);
	if (takes_stacks(screen->top))
		draw_stacks(&opened->stacks, line);
	pthread_mutex_unlock(&opened->lock);
}

/* Lines that are on the screen; those before the first one are passed over. */
void draw_explanation(const struct screen *screen)
{
	const char *line = screen->explanation;
	unsigned int number = 0;

	for (int at = 1; *line && at < LINES - 1; number++) {
		size_t length = strcspn(line, "\n");

		if (number >= screen->explained)
			draw_line(at++, "%.*s", (int)length, line);
		line += length + (line[length] == '\n');
	}
}

void close_explanation(struct screen *screen)
{
	free(screen->explanation);
	screen->explanation = NULL;
}

void explain_program(struct screen *screen)
{
	static struct xpt_saved saved;
	const struct top_row *row = &screen->opened.row;
	XPT_OPTS(xpt_program_choice, choice, .pid = row->pid, .handle = row->handle,
		 .name = row->handle ? NULL : row->name);
	XPT_OPTS(xpt_explain_options, options, .input = saved.path, .programs = &choice, .program_count = 1,
		 .program_size = sizeof(choice), .most = 1);
	struct xpt_explain *explanation = NULL;
	int error;

	if (!save_window(screen, &saved))
		return;
	error = xpt_explain_create(&options, &explanation);
	close_explanation(screen);
	if (!error)
		error = xpt_explain_text(explanation, (unsigned int)COLS, &screen->explanation);
	xpt_explain_destroy(explanation);
	screen->explained = 0;
	if (error)
		snprintf(screen->notice, sizeof(screen->notice), "cannot explain it: %s",
			 error == -ENOENT ? "it has not run in the last seconds" : strerror(-error));
}

void press_in_explanation(struct screen *screen, int key)
{
	unsigned int page = LINES > 3 ? (unsigned int)LINES - 3 : 1, lines = 0;
	long first = screen->explained;

	for (const char *line = screen->explanation; (line = strchr(line, '\n')); line++)
		lines++;
	first += key == KEY_DOWN  ? 1 :
		 key == KEY_UP	  ? -1 :
		 key == KEY_NPAGE ? (long)page :
		 key == KEY_PPAGE ? -(long)page :
				    0;
	if (key == KEY_HOME || first < 0)
		first = 0;
	if (key == KEY_END || first >= (long)lines)
		first = lines > page ? lines - page : 0;
	screen->explained = (unsigned int)first;
}

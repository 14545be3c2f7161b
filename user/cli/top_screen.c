/* SPDX-License-Identifier: BSD-2-Clause */
/* top on a terminal: the table, one program opened, keys and the mouse. */
#include "cli/top.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <ncurses.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <xputrace/explain.h>

#include "base/core/clock.h"
#include "base/core/text.h"

#define ESCAPE 27
#define FILTER_MAX 200 /* bytes */
#define POLL_MAX 1000  /* ms until the clock is drawn anew, and the end of the targets is noticed */

enum colour { COLOUR_TITLE = 1, COLOUR_ERROR, COLOUR_IDLE };

/* One program, by a stream of its own that has its samples. */
struct opened {
	struct top_row row; /* id 0: none is open */
	struct xpt_stream *stream;
	pthread_mutex_t lock;		 /* of what follows */
	struct xpt_latencies *latencies; /* since it was opened; NULL: no memory */
	uint64_t inferences, errors, lost;
	struct xpt_sample slowest; /* size 0: there is none */
	uint64_t slowest_time;	   /* ns */
};

struct screen {
	struct top *top;
	struct top_row *rows; /* as shown */
	size_t count;
	struct top_layout layout;
	enum top_column sort;
	bool reverse, paused, ended, help;
	uint32_t selected; /* id; 0: the first */
	size_t first;	   /* row at the top */
	bool filtering;
	char filter[FILTER_MAX], typed[FILTER_MAX];
	char notice[256]; /* shown until the next key; "": none */
	struct opened opened;
	char *explanation;	/* of the opened program, lines; NULL: it is not shown */
	unsigned int explained; /* number of its first line that is shown */
};

/* ---- drawing ---- */

static bool has_colours(void)
{
	const char *never = getenv("NO_COLOR");

	return has_colors() && (!never || !*never);
}

static void begin_colours(void)
{
	if (!has_colours())
		return;
	start_color();
	use_default_colors();
	init_pair(COLOUR_TITLE, COLOR_CYAN, -1);
	init_pair(COLOUR_ERROR, COLOR_RED, -1);
	init_pair(COLOUR_IDLE, COLOR_BLUE, -1);
}

static chtype coloured(enum colour colour)
{
	return has_colours() ? COLOR_PAIR(colour) : 0;
}

static __attribute__((format(printf, 2, 3))) void draw_line(int line, const char *format, ...)
{
	struct text safe = {};
	char text[512];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	text_terminal(&safe, text, strlen(text), COLS);
	if (line >= 0 && line < LINES && !safe.error)
		mvaddnstr(line, 0, safe.data ?: "", (int)safe.length);
	text_free(&safe);
}

static void draw_cell(int line, int *at, const struct text *text, size_t used, enum top_column column,
		      unsigned int width)
{
	int fill = width > used && !top_is_text(column) ? (int)(width - used) : 0;

	if (*at + fill < COLS)
		mvaddnstr(line, *at + fill, text->data ?: "", (int)text->length);
	*at += (int)width + 1;
}

static void draw_titles(const struct screen *screen, int line)
{
	int at = 0;

	attrset(A_REVERSE | coloured(COLOUR_TITLE));
	mvhline(line, 0, ' ', COLS);
	for (enum top_column column = 0; column < TOP_COLUMNS; column++) {
		const char *title = top_title(column);
		const struct text text = { .data = (char *)title, .length = strlen(title) };

		if (!screen->layout.width[column])
			continue;
		attrset(A_REVERSE | coloured(COLOUR_TITLE) | (column == screen->sort ? A_BOLD | A_UNDERLINE : 0));
		draw_cell(line, &at, &text, text.length, column, screen->layout.width[column]);
	}
	attrset(A_NORMAL);
}

static void draw_row(const struct screen *screen, int line, const struct top_row *row, bool selected)
{
	struct text text = {};
	chtype attributes = selected ? A_REVERSE : 0;
	int at = 0;

	if (!selected && !row->ran)
		attributes = A_DIM | coloured(COLOUR_IDLE);
	attrset(attributes);
	if (selected)
		mvhline(line, 0, ' ', COLS);
	for (enum top_column column = 0; column < TOP_COLUMNS && !text.error; column++) {
		size_t used;

		if (!screen->layout.width[column])
			continue;
		text.length = 0;
		used = top_cell(&text, row, column, screen->layout.width[column]);
		if (column == TOP_ERRORS && row->errors && !selected)
			attrset(coloured(COLOUR_ERROR));
		draw_cell(line, &at, &text, used, column, screen->layout.width[column]);
		attrset(attributes);
	}
	attrset(A_NORMAL);
	text_free(&text);
}

static void draw_status(const struct screen *screen)
{
	struct xpt_session_status status = { .size = sizeof(status) };
	time_t now = time(NULL);
	struct tm local;
	char clock[16];

	localtime_r(&now, &local);
	strftime(clock, sizeof(clock), "%H:%M:%S", &local);
	xpt_session_status(screen->top->library, &status);
	attrset(A_BOLD);
	draw_line(0, "xputrace top  %s  %u processes  %u programs  %" PRIu64 " lost%s%s%s%s", clock, status.processes,
		  status.programs, status.lost, screen->paused ? "  PAUSED" : "", screen->ended ? "  ENDED" : "",
		  *screen->filter ? "  /" : "", screen->filter);
	attrset(A_NORMAL);
}

static void draw_bottom(struct screen *screen)
{
	char message[sizeof(screen->top->message)];

	pthread_mutex_lock(&screen->top->message_lock);
	memcpy(message, screen->top->message, sizeof(message));
	pthread_mutex_unlock(&screen->top->message_lock);
	if (screen->filtering)
		draw_line(LINES - 1, "/%s", screen->typed);
	else if (*screen->notice)
		draw_line(LINES - 1, "%s", screen->notice);
	else if (*message)
		draw_line(LINES - 1, "%s", message);
	else
		draw_line(LINES - 1,
			  screen->explanation	? "Esc back  up, down scroll  q quit" :
			  screen->opened.row.id ? "Esc back  e explain  space pause  q quit" :
						  "Enter open  < > sort  / filter  space pause  ? help  q quit");
}

static int table_lines(const struct screen *screen)
{
	int lines = LINES - 3 - (int)screen->top->device_count;

	return lines > 1 ? lines : 1;
}

static size_t selected_row(const struct screen *screen)
{
	for (size_t i = 0; i < screen->count; i++)
		if (screen->rows[i].id == screen->selected)
			return i;
	return 0;
}

static void draw_table(struct screen *screen)
{
	size_t selected = selected_row(screen), lines = table_lines(screen);

	top_fit(&screen->layout, screen->rows, screen->count, COLS);
	if (selected < screen->first)
		screen->first = selected;
	if (selected >= screen->first + lines)
		screen->first = selected - lines + 1;
	if (screen->first + lines > screen->count)
		screen->first = screen->count > lines ? screen->count - lines : 0;
	draw_titles(screen, 1);
	for (size_t i = 0; i < lines && screen->first + i < screen->count; i++)
		draw_row(screen, 2 + (int)i, &screen->rows[screen->first + i], screen->first + i == selected);
	if (!screen->count)
		draw_line(3, *screen->filter ? "No program with such a name has run yet." : "No program has run yet.");
	for (size_t i = 0; i < screen->top->device_count; i++)
		draw_line(LINES - 1 - (int)screen->top->device_count + (int)i, "%s (%s)  %s",
			  screen->top->devices[i].name, screen->top->devices[i].driver, screen->top->devices[i].text);
}

static void draw_help(void)
{
	static const char *const lines[] = {
		"up, down, page up, page down, home, end, mouse   select a program",
		"Enter, double click   open it: all its times, and its slowest inference",
		"Esc, left   back",
		"< >   sort by the column before, behind;  R   the other way round",
		"/   only programs with a name in which an expression is found",
		"space   pause, go on",
		"s   save the last seconds (with --save-dir)",
		"e   of an open program: save them, and explain where its time goes",
		"q   quit",
	};
	int line = 2;

	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++)
		draw_line(line++, "%s", lines[i]);
	line++;
	draw_line(line++, "Sorted by:");
	for (enum top_column column = 0; column < TOP_COLUMNS; column++)
		mvprintw(line + column / 5, (int)(column % 5) * 15, "%c %s", top_key(column), top_title(column));
	line += (TOP_COLUMNS + 4) / 5 + 1;
	draw_line(line++, "CPU%%, WAIT%%, BLK%%: shares of the time in calls on a CPU, waiting for one, blocked.");
	draw_line(line, "ERR and TOTAL are since the start, all others of the last interval.");
}

/* ---- one program ---- */

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
	}
	pthread_mutex_unlock(&opened->lock);
}

static void close_program(struct screen *screen)
{
	struct opened *opened = &screen->opened;

	if (opened->stream)
		xpt_stream_destroy(opened->stream);
	xpt_latencies_free(opened->latencies);
	opened->row.id = 0;
	opened->stream = NULL;
	opened->latencies = NULL;
}

static void open_program(struct screen *screen)
{
	struct opened *opened = &screen->opened;
	XPT_OPTS(xpt_stream_options, options, .report_every = screen->top->interval, .callback = on_samples,
		 .context = opened);
	XPT_OPTS(xpt_program_choice, choice);
	int error;

	if (!screen->count || !screen->rows[selected_row(screen)].id)
		return;
	opened->row = screen->rows[selected_row(screen)];
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

static void draw_program(struct screen *screen)
{
	struct opened *opened = &screen->opened;
	const struct top_row *row = &opened->row;
	XPT_OPTS(xpt_column_summary, summary);
	int line = 5;

	attrset(A_BOLD);
	draw_line(1, "%s", row->name);
	attrset(A_NORMAL);
	draw_line(2, "%s %d  %s  0x%" PRIx64 "%s%s", row->process, row->pid, row->runtime, row->handle,
		  *row->container ? "  container " : "", row->container);
	pthread_mutex_lock(&opened->lock);
	draw_line(3, "%" PRIu64 " inferences, %" PRIu64 " failed, %" PRIu64 " lost since it was opened",
		  opened->inferences, opened->errors, opened->lost);
	attrset(A_REVERSE | coloured(COLOUR_TITLE));
	mvhline(line, 0, ' ', COLS);
	draw_line(line++, "%-18s %9s %9s %9s %9s %9s %9s", "TIME us", "COUNT", "MIN", "MEAN", "P50", "P99", "MAX");
	attrset(A_NORMAL);
	for (size_t i = 0; opened->latencies && i < sizeof(times) / sizeof(*times); i++)
		if (!xpt_latencies_get(opened->latencies, times[i].column, &summary))
			draw_line(line++, "%-18s %9" PRIu64 " %9.1f %9.1f %9.1f %9.1f %9.1f", times[i].title,
				  summary.count, summary.min, summary.mean, summary.p50, summary.p99, summary.max);
	draw_slowest(opened, line + 1);
	pthread_mutex_unlock(&opened->lock);
}

/* Lines that are on the screen; those before the first one are passed over. */
static void draw_explanation(const struct screen *screen)
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

static void draw(struct screen *screen)
{
	erase();
	draw_status(screen);
	if (screen->help)
		draw_help();
	else if (screen->explanation)
		draw_explanation(screen);
	else if (screen->opened.row.id)
		draw_program(screen);
	else
		draw_table(screen);
	draw_bottom(screen);
	refresh();
}

/* ---- rows ---- */

static void copy_rows(struct screen *screen)
{
	struct top *top = screen->top;
	struct top_row *rows;

	if (screen->paused)
		return;
	pthread_mutex_lock(&top->lock);
	rows = reallocarray(screen->rows, top->count ?: 1, sizeof(*rows));
	if (rows) {
		screen->rows = rows;
		screen->count = top->count;
		if (top->count)
			memcpy(rows, top->rows, top->count * sizeof(*rows));
	}
	pthread_mutex_unlock(&top->lock);
	top_sort(screen->rows, screen->count, screen->sort, screen->reverse);
	top_poll_devices(top);
}

static void sort_by(struct screen *screen, enum top_column column)
{
	screen->sort = column;
	top_sort(screen->rows, screen->count, screen->sort, screen->reverse);
}

/* The next column that is shown, in steps of +1 or -1. */
static void sort_beside(struct screen *screen, int step)
{
	int column = (int)screen->sort;

	do
		column = (column + step + TOP_COLUMNS) % TOP_COLUMNS;
	while (!screen->layout.width[column] && column != (int)screen->sort);
	sort_by(screen, column);
}

static void select_row(struct screen *screen, long row)
{
	if (row >= (long)screen->count)
		row = (long)screen->count - 1;
	if (screen->count)
		screen->selected = screen->rows[row < 0 ? 0 : row].id;
}

/* ---- keys ---- */

static void set_filter(struct screen *screen)
{
	char reason[160];
	size_t position;
	int error = xpt_stream_check_match(screen->typed, &position, reason, sizeof(reason));

	if (error) {
		snprintf(screen->notice, sizeof(screen->notice), "%s at %zu: %s", screen->typed, position + 1,
			 error == -EINVAL ? reason : strerror(-error));
		return;
	}
	memcpy(screen->filter, screen->typed, sizeof(screen->filter));
	error = top_watch(screen->top, *screen->filter ? screen->filter : NULL);
	if (error)
		snprintf(screen->notice, sizeof(screen->notice), "cannot filter: %s", strerror(-error));
	screen->paused = false;
	screen->count = 0;
}

static void type_filter(struct screen *screen, int key)
{
	size_t length = strlen(screen->typed);

	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		screen->filtering = false;
		set_filter(screen);
	} else if (key == ESCAPE) {
		screen->filtering = false;
	} else if (key == KEY_BACKSPACE || key == 127 || key == 8) {
		while (length && ((unsigned char)screen->typed[--length] & 0xc0) == 0x80)
			;
		screen->typed[length] = '\0';
	} else if (key >= ' ' && key <= 0xff && length + 1 < sizeof(screen->typed)) {
		screen->typed[length] = (char)key;
		screen->typed[length + 1] = '\0';
	}
}

static void click(struct screen *screen)
{
	MEVENT event;
	int at = 0;

	if (getmouse(&event) != OK || screen->opened.row.id || screen->help)
		return;
	if (event.bstate & BUTTON4_PRESSED) {
		select_row(screen, (long)selected_row(screen) - 1);
		return;
	}
	if (event.bstate & BUTTON5_PRESSED) {
		select_row(screen, (long)selected_row(screen) + 1);
		return;
	}
	if (event.y == 1) {
		for (enum top_column column = 0; column < TOP_COLUMNS; column++) {
			if (!screen->layout.width[column])
				continue;
			if (event.x >= at && event.x <= at + (int)screen->layout.width[column])
				sort_by(screen, column);
			at += (int)screen->layout.width[column] + 1;
		}
		return;
	}
	if (event.y < 2 || event.y >= 2 + table_lines(screen) || screen->first + event.y - 2 >= screen->count)
		return;
	select_row(screen, (long)screen->first + event.y - 2);
	if (event.bstate & BUTTON1_DOUBLE_CLICKED)
		open_program(screen);
}

static void move_selection(struct screen *screen, int key)
{
	long row = (long)selected_row(screen);

	if (key == KEY_UP)
		select_row(screen, row - 1);
	else if (key == KEY_DOWN)
		select_row(screen, row + 1);
	else if (key == KEY_PPAGE)
		select_row(screen, row - table_lines(screen));
	else if (key == KEY_NPAGE)
		select_row(screen, row + table_lines(screen));
	else if (key == KEY_HOME)
		select_row(screen, 0);
	else if (key == KEY_END)
		select_row(screen, (long)screen->count - 1);
}

static void press_in_table(struct screen *screen, int key)
{
	switch (key) {
	case '<':
		sort_beside(screen, -1);
		break;
	case '>':
		sort_beside(screen, 1);
		break;
	case 'R':
		screen->reverse = !screen->reverse;
		sort_by(screen, screen->sort);
		break;
	case '/':
		screen->filtering = true;
		memcpy(screen->typed, screen->filter, sizeof(screen->typed));
		break;
	case '\n':
	case '\r':
	case KEY_ENTER:
		open_program(screen);
		break;
	default:
		for (enum top_column column = 0; column < TOP_COLUMNS; column++)
			if (key == top_key(column))
				sort_by(screen, column);
		move_selection(screen, key);
	}
}

/* *saved is filled in. False: nothing was saved, and the notice has the reason. */
static bool save(struct screen *screen, struct xpt_saved *saved)
{
	int error;

	if (!screen->top->window) {
		snprintf(screen->notice, sizeof(screen->notice),
			 "nothing is kept to be saved: start with --save-dir DIR");
		return false;
	}
	saved->size = sizeof(*saved);
	error = xpt_continuous_save(screen->top->window, NULL, saved);
	if (error)
		snprintf(screen->notice, sizeof(screen->notice), "not saved: %s", strerror(-error));
	else
		snprintf(screen->notice, sizeof(screen->notice), "saved the last %.1f s as %.200s",
			 (saved->end - saved->begin) / 1e9, saved->path);
	return !error;
}

static void close_explanation(struct screen *screen)
{
	free(screen->explanation);
	screen->explanation = NULL;
}

/* The last seconds of the program that is open, as `xputrace explain` has them. */
static void explain(struct screen *screen)
{
	static struct xpt_saved saved;
	const struct top_row *row = &screen->opened.row;
	XPT_OPTS(xpt_program_choice, choice, .pid = row->pid, .handle = row->handle,
		 .name = row->handle ? NULL : row->name);
	XPT_OPTS(xpt_explain_options, options, .input = saved.path, .programs = &choice, .program_count = 1,
		 .program_size = sizeof(choice), .most = 1);
	struct xpt_explain *explanation = NULL;
	int error;

	if (!save(screen, &saved))
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

static void press_in_explanation(struct screen *screen, int key)
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

/* False: quit. */
static bool press(struct screen *screen, int key)
{
	static struct xpt_saved saved;
	bool help = screen->help, back = key == ESCAPE || key == KEY_LEFT || key == KEY_BACKSPACE || key == 127;

	if (screen->filtering) {
		type_filter(screen, key);
		return true;
	}
	if (key == KEY_RESIZE)
		return true;
	screen->notice[0] = '\0';
	screen->help = false;
	pthread_mutex_lock(&screen->top->message_lock);
	screen->top->message[0] = '\0';
	pthread_mutex_unlock(&screen->top->message_lock);
	if (key == 'q')
		return false;
	if (key == ' ')
		screen->paused = !screen->paused;
	else if (key == '?')
		screen->help = !help;
	else if (key == KEY_MOUSE)
		click(screen);
	else if (screen->explanation && back)
		close_explanation(screen);
	else if (screen->explanation)
		press_in_explanation(screen, key);
	else if (screen->opened.row.id && back)
		close_program(screen);
	else if (key == 's')
		save(screen, &saved);
	else if (screen->opened.row.id && key == 'e')
		explain(screen);
	else if (!screen->opened.row.id)
		press_in_table(screen, key);
	return true;
}

/* ---- the run ---- */

/* Until somebody quits or a signal comes. 0, or what the session has failed with. */
static int run(struct screen *screen)
{
	struct pollfd inputs[] = { { .fd = fileno(screen->top->keys), .events = POLLIN },
				   { .fd = screen->top->changed, .events = POLLIN } };
	uint64_t count;
	int key, result;

	for (;;) {
		copy_rows(screen);
		draw(screen);
		poll(inputs, 2, POLL_MAX);
		while (read(screen->top->changed, &count, sizeof(count)) < 0 && errno == EINTR)
			;
		while ((key = getch()) != ERR)
			if (!press(screen, key))
				return 0;
		if (inputs[0].revents & (POLLHUP | POLLERR | POLLNVAL) || *stop_time())
			return 0;
		result = screen->ended ? 0 : xpt_session_wait(screen->top->library, 0);
		screen->ended |= result == 1;
		if (result < 0 && result != -EINTR)
			return result;
	}
}

/* From now on, or no more, messages have a line of the screen. */
static void set_drawn(struct top *top, bool drawn)
{
	pthread_mutex_lock(&top->message_lock);
	top->drawn = drawn;
	pthread_mutex_unlock(&top->message_lock);
}

int top_screen(struct top *top)
{
	struct screen screen = { .top = top, .sort = TOP_RATE, .opened.lock = PTHREAD_MUTEX_INITIALIZER };
	SCREEN *terminal;
	int result;

	/* What is shown is UTF-8, whatever the locale. */
	if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
		setlocale(LC_CTYPE, "C.UTF-8");
	terminal = newterm(NULL, top->screen, top->keys);
	if (!terminal) {
		print_message(NULL, XPT_LOG_ERROR,
			      "this terminal is unknown or cannot be drawn on: set TERM, or use --batch");
		return EXIT_FAILED;
	}
	set_drawn(top, true);
	top_catch_signals(top);
	begin_colours();
	cbreak();
	noecho();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	mousemask(BUTTON1_PRESSED | BUTTON1_CLICKED | BUTTON1_DOUBLE_CLICKED | BUTTON4_PRESSED | BUTTON5_PRESSED, NULL);
	mouseinterval(200);
	result = run(&screen);
	close_program(&screen);
	close_explanation(&screen);
	endwin();
	delscreen(terminal);
	set_drawn(top, false);
	free(screen.rows);
	if (*top->warning)
		print_message(NULL, XPT_LOG_WARN, top->warning);
	return exit_status(result);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* top on a terminal: the table, keys and the mouse. */
#include "cli/top/screen.h"

#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/core/text.h"

#define ESCAPE 27
#define POLL_MAX 1000 /* ms until the clock is drawn anew, and the end of the targets is noticed */

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

chtype coloured(enum colour colour)
{
	return has_colours() ? COLOR_PAIR(colour) : 0;
}

void draw_line(int line, const char *format, ...)
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
			  screen->opened.row.id ? takes_stacks(screen->top) ?
						  "Esc back  e explain  S stacks  space pause  q quit" :
						  "Esc back  e explain  space pause  q quit" :
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
		"Enter, double click   open it: all its times, its slowest inference, its stacks",
		"Esc, left   back",
		"< >   sort by the column before, behind;  R   the other way round",
		"/   only programs with a name in which an expression is found",
		"space   pause, go on",
		"s   save the last seconds (with --save-dir)",
		"e   of an open program: save them, and explain where its time goes",
		"S   of an open program: only its stacks of the last seconds (with --stacks, --samples)",
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

static void open_selected(struct screen *screen)
{
	if (screen->count)
		open_program(screen, &screen->rows[selected_row(screen)]);
}

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
		open_selected(screen);
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
		open_selected(screen);
		break;
	default:
		for (enum top_column column = 0; column < TOP_COLUMNS; column++)
			if (key == top_key(column))
				sort_by(screen, column);
		move_selection(screen, key);
	}
}

bool save_window(struct screen *screen, struct xpt_saved *saved)
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
		save_window(screen, &saved);
	else if (screen->opened.row.id && key == 'e')
		explain_program(screen);
	else if (screen->opened.row.id && key == 'S' && takes_stacks(screen->top))
		screen->stacks_only = !screen->stacks_only;
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Columns of top: titles, widths, what a cell shows, the order of rows. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/core/text.h"
#include "cli/top/top.h"

static const struct {
	const char *title;
	unsigned int width; /* of TOP_PROGRAM at least */
	char key;
	bool text;
	bool optional;	    /* shown only where a row has a value */
	unsigned int order; /* those with the highest go first where the screen is too narrow; 0: never */
} columns[TOP_COLUMNS] = {
	[TOP_PROGRAM] = { "PROGRAM", 14, 'n', true, false, 0 },
	[TOP_PID] = { "PID", 7, 'i', false, false, 2 },
	[TOP_PROCESS] = { "PROCESS", 10, 'o', true, false, 5 },
	[TOP_RATE] = { "INF/S", 7, 'r', false, false, 0 },
	[TOP_P50] = { "P50", 6, '5', false, false, 0 },
	[TOP_P99] = { "P99", 6, '9', false, false, 0 },
	[TOP_CPU] = { "CPU%", 4, 'c', false, false, 3 },
	[TOP_WAIT] = { "WAIT%", 5, 'w', false, false, 3 },
	[TOP_BLOCKED] = { "BLK%", 4, 'b', false, false, 3 },
	[TOP_QUEUE] = { "QUEUE", 6, 'u', false, true, 1 },
	[TOP_DEVICE] = { "DEVICE", 6, 'd', false, true, 1 },
	[TOP_ERRORS] = { "ERR", 4, 'e', false, false, 4 },
	[TOP_TOKENS] = { "TOK/S", 6, 'k', false, true, 1 },
	[TOP_TOTAL] = { "TOTAL", 10, 't', false, false, 7 },
	[TOP_CONTAINER] = { "CONTAINER", CONTAINER_DIGITS, 'a', true, true, 6 },
};

#define NAME_COLUMNS 40 /* of a program in a table of any width */

const char *top_title(enum top_column column)
{
	return columns[column].title;
}

char top_key(enum top_column column)
{
	return columns[column].key;
}

bool top_is_text(enum top_column column)
{
	return columns[column].text;
}

/* Negative: not observed. */
static double number(const struct top_row *row, enum top_column column)
{
	switch (column) {
	case TOP_PID:
		return row->pid;
	case TOP_RATE:
		return row->rate;
	case TOP_P50:
		return row->p50;
	case TOP_P99:
		return row->p99;
	case TOP_CPU:
		return row->cpu;
	case TOP_WAIT:
		return row->waited;
	case TOP_BLOCKED:
		return row->blocked;
	case TOP_QUEUE:
		return row->queue;
	case TOP_DEVICE:
		return row->device;
	case TOP_ERRORS:
		return row->errors;
	case TOP_TOKENS:
		return row->tokens;
	default:
		return row->total;
	}
}

static const char *text_of(const struct top_row *row, enum top_column column)
{
	return column == TOP_PROGRAM ? row->name : column == TOP_PROCESS ? row->process : row->container;
}

static bool has_value(const struct top_row *rows, size_t count, enum top_column column)
{
	for (size_t i = 0; i < count; i++)
		if (columns[column].text ? *text_of(&rows[i], column) : number(&rows[i], column) >= 0)
			return true;
	return false;
}

void top_fit(struct top_layout *layout, const struct top_row *rows, size_t count, unsigned int width)
{
	unsigned int used = 0, last;

	for (enum top_column i = 0; i < TOP_COLUMNS; i++) {
		bool shown = !columns[i].optional || !width || has_value(rows, count, i);

		layout->width[i] = shown ? columns[i].width : 0;
		used += shown ? columns[i].width + (i > 0) : 0;
	}
	while (width && used > width) {
		last = 0;
		for (enum top_column i = 1; i < TOP_COLUMNS; i++)
			if (layout->width[i] && columns[i].order >= columns[last].order)
				last = i;
		if (!columns[last].order)
			break;
		used -= layout->width[last] + 1;
		layout->width[last] = 0;
	}
	if (!width)
		layout->width[TOP_PROGRAM] = NAME_COLUMNS;
	else if (used < width)
		layout->width[TOP_PROGRAM] += width - used;
}

void top_add(struct text *text, const char *format, ...)
{
	char line[64];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	text_string(text, line);
}

/* Three digits and a unit, at most six columns. */
static void add_time(struct text *text, double nanoseconds)
{
	static const struct {
		double factor;
		const char *name;
	} units[] = { { 1, "ns" }, { 1e3, "us" }, { 1e6, "ms" }, { 1e9, "s" } };
	size_t unit = 0;

	while (unit < 3 && nanoseconds >= 999.5 * units[unit].factor)
		unit++;
	nanoseconds /= units[unit].factor;
	top_add(text, "%.*f%s",
		!unit || nanoseconds >= 99.95 ? 0 :
		nanoseconds >= 9.995	      ? 1 :
						2,
		nanoseconds, units[unit].name);
}

/* At most six columns below 10 million. */
static void add_rate(struct text *text, double rate)
{
	if (rate >= 999950)
		top_add(text, "%.2fM", rate / 1e6);
	else
		top_add(text, "%.*f", rate >= 999.95 ? 0 : 1, rate);
}

size_t top_cell(struct text *text, const struct top_row *row, enum top_column column, unsigned int width)
{
	size_t length = text->length;
	double value;

	if (columns[column].text && *text_of(row, column))
		return text_terminal(text, text_of(row, column), strlen(text_of(row, column)), width);
	value = columns[column].text ? -1 : number(row, column);
	if (value < 0 || (column == TOP_PID && !row->pid))
		text_literal(text, "-");
	else if (column == TOP_CPU || column == TOP_WAIT || column == TOP_BLOCKED)
		top_add(text, "%.0f", 100 * value);
	else if (column == TOP_RATE || column == TOP_TOKENS)
		add_rate(text, value);
	else if (column == TOP_P50 || column == TOP_P99 || column == TOP_QUEUE || column == TOP_DEVICE)
		add_time(text, value);
	else
		top_add(text, "%.0f", value);
	return text->length - length;
}

struct order {
	enum top_column column;
	bool reverse;
};

static int compare(const void *left, const void *right, void *context)
{
	const struct top_row *a = left, *b = right;
	const struct order *order = context;
	double first, second;
	int result;

	if (columns[order->column].text) {
		result = strcmp(text_of(a, order->column), text_of(b, order->column));
	} else {
		first = number(a, order->column);
		second = number(b, order->column);
		result = (first < second) - (first > second);
	}
	if (order->reverse)
		result = -result;
	return result ?: (a->id > b->id) - (a->id < b->id);
}

void top_sort(struct top_row *rows, size_t count, enum top_column column, bool reverse)
{
	struct order order = { column, reverse };

	if (count)
		qsort_r(rows, count, sizeof(*rows), compare, &order);
}

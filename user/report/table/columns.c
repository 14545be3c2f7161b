/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/table/columns.h"

#include <string.h>

#define NAME_LEAST 10 /* a first column is not cut below this */

struct column_cell {
	size_t start;  /* in text */
	size_t length; /* bytes */
	size_t width;  /* columns of the screen */
};

void columns_define(struct columns *columns, const char *title, bool left)
{
	columns->column[columns->count++] = (struct column){ .title = title, .left = left, .width = strlen(title) };
}

void columns_titles(struct columns *columns, const char *const *titles, size_t count)
{
	for (size_t i = 0; i < count; i++)
		columns_define(columns, titles[i] + (*titles[i] == '<'), *titles[i] == '<');
}

/* Ends the cell with text from start. */
static void add_cell(struct columns *columns, size_t start, size_t width)
{
	struct column_cell cell = { .start = start, .length = columns->text.length - start, .width = width };
	size_t index = columns->cells.length / sizeof(cell);
	struct column *column = &columns->column[index % columns->count];

	if (width > column->width)
		column->width = width;
	text_bytes(&columns->cells, &cell, sizeof(cell));
}

void columns_name(struct columns *columns, const char *name)
{
	size_t start = columns->text.length;

	add_cell(columns, start, text_terminal(&columns->text, name, strlen(name), 0));
}

/* Everything but names is ASCII: as wide as it is long. */
static void add_number(struct columns *columns, size_t start)
{
	add_cell(columns, start, columns->text.length - start);
}

void columns_count(struct columns *columns, __u64 count)
{
	size_t start = columns->text.length;

	text_unsigned(&columns->text, count);
	add_number(columns, start);
}

/*
 * value with `digits` significant digits, but never less than its whole part; by hand, because printf asks the locale.
 */
static void format_digits(struct text *text, double value, int digits)
{
	__u64 scale = 1, limit = 10, scaled;

	for (; digits > 1; digits--) {
		scale *= 10;
		limit *= 10;
	}
	while (scale > 1 && value * scale + 0.5 >= limit)
		scale /= 10;
	scaled = value * scale + 0.5;
	text_unsigned(text, scaled / scale);
	if (scale > 1)
		text_literal(text, ".");
	for (scale /= 10; scale; scale /= 10) {
		char digit = '0' + scaled / scale % 10;

		text_bytes(text, &digit, 1);
	}
}

void columns_format_time(struct text *text, double nanoseconds, bool precise)
{
	static const char units[][3] = { "ns", "us", "ms", "s" };
	double value = nanoseconds > 0 && nanoseconds < 1.8e19 ? nanoseconds : 0;
	size_t unit = 0;

	while (unit < 3 && value >= 999.5) {
		value /= 1000;
		unit++;
	}
	format_digits(text, value, unit == 0 ? 1 : precise ? 4 : 3);
	text_string(text, units[unit]);
}

void columns_format_bytes(struct text *text, __u64 bytes)
{
	static const char units[][4] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double value = bytes;
	size_t unit = 0;

	while (unit < 5 && value >= 1023.5) {
		value /= 1024;
		unit++;
	}
	format_digits(text, value, unit == 0 ? 1 : 3);
	text_string(text, units[unit]);
}

void columns_format_share(struct text *text, double part, double whole)
{
	double hundredths = part / whole * 1e4;
	__u64 value = hundredths < 1e15 ? hundredths + 0.5 : 0;

	text_unsigned(text, value / 100);
	text_literal(text, ".");
	text_unsigned(text, value / 10 % 10);
	text_unsigned(text, value % 10);
	text_literal(text, "%");
}

void columns_unknown(struct columns *columns, size_t count)
{
	while (count--)
		columns_name(columns, "-");
}

void columns_share(struct columns *columns, double part, double whole)
{
	size_t start = columns->text.length;

	if (part > 0 && whole > 0)
		columns_format_share(&columns->text, part, whole);
	else
		text_literal(&columns->text, "-");
	add_number(columns, start);
}

void columns_time(struct columns *columns, double nanoseconds)
{
	size_t start = columns->text.length;

	columns_format_time(&columns->text, nanoseconds, columns->precise);
	add_number(columns, start);
}

void columns_real(struct columns *columns, double value)
{
	char text[32];

	snprintf(text, sizeof(text), "%.6g", value);
	columns_name(columns, text);
}

void columns_rate(struct columns *columns, double rate)
{
	size_t start = columns->text.length;

	format_digits(&columns->text, rate > 0 && rate < 1.8e16 ? rate : 0, 3);
	add_number(columns, start);
}

void columns_bytes(struct columns *columns, __u64 bytes)
{
	size_t start = columns->text.length;

	if (bytes)
		columns_format_bytes(&columns->text, bytes);
	add_number(columns, start);
}

static size_t gap(const struct columns *columns)
{
	return columns->narrow ? 1 : 2;
}

static size_t width_without_first(const struct columns *columns)
{
	size_t width = 0, i;

	for (i = 1; i < columns->count; i++) {
		if (!columns->column[i].hidden)
			width += gap(columns) + columns->column[i].width;
	}
	return width;
}

size_t columns_least_width(const struct columns *columns)
{
	size_t first = columns->column[0].width;

	return width_without_first(columns) + (first < NAME_LEAST ? first : NAME_LEAST);
}

static size_t first_width(const struct columns *columns, size_t width)
{
	size_t first = columns->column[0].width, rest = width_without_first(columns);

	if (!width || rest + first <= width || first < NAME_LEAST)
		return first;
	return rest + NAME_LEAST > width ? NAME_LEAST : width - rest;
}

static void print_spaces(FILE *out, size_t count)
{
	while (count--)
		putc(' ', out);
}

static void print_cell(FILE *out, const struct column *column, size_t column_width, bool last, const char *bytes,
		       size_t length, size_t width)
{
	size_t fill = width < column_width ? column_width - width : 0;

	if (!column->left)
		print_spaces(out, fill);
	fwrite(bytes, 1, length, out);
	if (column->left && !last)
		print_spaces(out, fill);
}

int columns_print(const struct columns *columns, FILE *out, size_t width)
{
	const struct column_cell *cells = (const struct column_cell *)columns->cells.data;
	size_t count = columns->cells.length / sizeof(*cells);
	size_t first = first_width(columns, width);
	struct text name = { 0 };
	int error = columns->text.error ? columns->text.error : columns->cells.error;
	size_t i;

	for (i = 0; !error && i < columns->count + count; i++) {
		size_t in_row = i % columns->count;
		const struct column *column = &columns->column[in_row];
		bool last = in_row == columns->count - 1;
		const char *bytes = column->title;
		size_t length = strlen(bytes), cell_width = length;

		if (i >= columns->count) {
			const struct column_cell *cell = &cells[i - columns->count];

			bytes = columns->text.data + cell->start;
			length = cell->length;
			cell_width = cell->width;
		}
		if (in_row == 0) {
			/* Cutting what has been made safe already changes nothing else in it. */
			name.length = 0;
			cell_width = text_terminal(&name, bytes, length, first);
			error = name.error;
			print_cell(out, column, first, false, name.data, name.length, cell_width);
		} else if (!column->hidden) {
			print_spaces(out, gap(columns));
			print_cell(out, column, column->width, last, bytes, length, cell_width);
		}
		if (last)
			putc('\n', out);
	}
	text_free(&name);
	return error;
}

int columns_print_text(struct text *text, FILE *out)
{
	int error = text->error;

	if (!error && text->length)
		fwrite(text->data, 1, text->length, out);
	text_free(text);
	return error;
}

void columns_clear(struct columns *columns)
{
	size_t i;

	columns->text.length = 0;
	columns->cells.length = 0;
	for (i = 0; i < columns->count; i++)
		columns->column[i].width = strlen(columns->column[i].title);
}

void columns_fit(struct columns *columns, size_t width, void (*fill)(struct columns *columns, const void *context),
		 const void *context)
{
	columns->precise = true;
	fill(columns, context);
	if (!width || columns_least_width(columns) <= width)
		return;
	columns->precise = false;
	columns->narrow = true;
	columns_clear(columns);
	fill(columns, context);
}

int columns_finish(struct columns *columns, FILE *out, size_t width, size_t rows, size_t most)
{
	int error = columns_print(columns, out, width);

	if (rows > most)
		fprintf(out, "(%zu more; see the trace's metadata)\n", rows - most);
	putc('\n', out);
	columns_free(columns);
	return error;
}

void columns_free(struct columns *columns)
{
	text_free(&columns->text);
	text_free(&columns->cells);
}

/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of text: cells are collected row by row, then printed in columns that fit the widest of them. */
#ifndef XPT_REPORT_TABLE_COLUMNS_H
#define XPT_REPORT_TABLE_COLUMNS_H

#include <stdbool.h>
#include <stdio.h>

#include "base/core/text.h"

#define COLUMNS_MAX 16

struct column {
	const char *title;
	bool left;    /* text; else a number, set to the right */
	bool hidden;  /* its cells are collected, but not printed */
	size_t width; /* of the title or the widest cell */
};

struct columns {
	struct column column[COLUMNS_MAX];
	size_t count;
	bool precise;	   /* times have four significant digits, not three */
	bool narrow;	   /* one space between columns, not two */
	struct text text;  /* what the cells show, one after the other */
	struct text cells; /* struct column_cell */
};

/* Another column, before the first cell. The first one is cut when lines are too long. */
void columns_define(struct columns *columns, const char *title, bool left);

/* The same for several. A title that begins with '<' is that of a column of text. */
void columns_titles(struct columns *columns, const char *const *titles, size_t count);
#define COLUMNS_TITLES(columns, ...)                                               \
	do {                                                                       \
		static const char *const titles[] = { __VA_ARGS__ };               \
		columns_titles(columns, titles, sizeof(titles) / sizeof(*titles)); \
	} while (0)

/* The next cell. Names may be hostile; they are made safe for a terminal. */
void columns_name(struct columns *columns, const char *name);
void columns_count(struct columns *columns, __u64 count);
/* Nanoseconds with a fitting unit: 12.34us. */
void columns_time(struct columns *columns, double nanoseconds);
/* Events a second. */
void columns_rate(struct columns *columns, double rate);
/* Of any size and unit, in six significant digits. */
void columns_real(struct columns *columns, double value);
/* 12.34%: part of whole; - where there is none of either. */
void columns_share(struct columns *columns, double part, double whole);
void columns_unknown(struct columns *columns, size_t count); /* count unknown values */
/* 1.50MiB; empty for 0. */
void columns_bytes(struct columns *columns, __u64 bytes);

/* Columns of the screen that a line takes when the first column is cut as far as it may be. */
size_t columns_least_width(const struct columns *columns);
/*
 * Prints the titles and all rows, the first column cut so that lines fit into width where possible; 0: nothing is cut.
 * 0 or -ENOMEM; what out thinks of it is left to ferror().
 */
int columns_print(const struct columns *columns, FILE *out, size_t width);
void columns_clear(struct columns *columns); /* forgets the cells, keeps the columns */
/* Calls fill() for all cells; once more, with fewer digits and spaces, when lines do not fit into width. */
void columns_fit(struct columns *columns, size_t width, void (*fill)(struct columns *columns, const void *context),
		 const void *context);
/* As columns_print(), with how many of the rows are not shown, of which there are most at most, and an empty line; frees. */
int columns_finish(struct columns *columns, FILE *out, size_t width, size_t rows, size_t most);
void columns_free(struct columns *columns);

/* Writes the text, which is between tables, and frees it. As columns_print(). */
int columns_print_text(struct text *text, FILE *out);

/* The formats of the cells for use in other text. */
void columns_format_time(struct text *text, double nanoseconds, bool precise);
void columns_format_share(struct text *text, double part, double whole); /* whole is not 0 */
void columns_format_bytes(struct text *text, __u64 bytes);

#endif

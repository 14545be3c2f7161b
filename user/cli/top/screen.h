/* SPDX-License-Identifier: BSD-2-Clause */
/* What the screen of top is made of: the table, or one program that is open. */
#ifndef XPT_CLI_TOP_SCREEN_H
#define XPT_CLI_TOP_SCREEN_H

#include <ncurses.h>

#include "cli/top/top.h"

#define FILTER_MAX 200 /* bytes */

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
	struct top_stacks stacks;  /* of the last seconds */
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
	bool stacks_only;	/* of the opened program */
};

/* ---- screen.c ---- */

chtype coloured(enum colour colour);
/* Cut to the width, and safe for a terminal. Lines that are not on the screen are not drawn. */
__attribute__((format(printf, 2, 3))) void draw_line(int line, const char *format, ...);
/* Saves the last seconds; *saved is filled in. False: nothing was saved, and the notice has the reason. */
bool save_window(struct screen *screen, struct xpt_saved *saved);

/* ---- program.c ---- */

/* The program of a row, where it has one. */
void open_program(struct screen *screen, const struct top_row *row);
void close_program(struct screen *screen);
void draw_program(struct screen *screen);
/* The last seconds of the program that is open, as `xputrace explain` has them. */
void explain_program(struct screen *screen);
void draw_explanation(const struct screen *screen);
void press_in_explanation(struct screen *screen, int key);
void close_explanation(struct screen *screen);

#endif

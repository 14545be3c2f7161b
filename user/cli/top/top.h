/* SPDX-License-Identifier: BSD-2-Clause */
/* xputrace top: what the programs of a session do now, a row each. */
#ifndef XPT_CLI_TOP_TOP_H
#define XPT_CLI_TOP_TOP_H

#include <pthread.h>

#include <xputrace/continuous.h>
#include <xputrace/counters.h>
#include <xputrace/stream.h>

#include "cli/session.h"

#define TOP_INTERVAL 500000000ull /* ns */
#define TOP_ROWS_MAX 4096
#define TOP_DEVICES_MAX 16
#define CONTAINER_DIGITS 12

/* A program. Names are the target's, cut, and not yet safe for a terminal. Times are ns; negative: not observed. */
struct top_row {
	uint32_t id; /* unique in the session; 0: those together that had no room in a report */
	pid_t pid;
	uint64_t handle;
	char name[256], process[64], runtime[32];
	char container[CONTAINER_DIGITS + 1]; /* "": none is known */
	uint64_t total, errors, lost;	      /* inferences since the start */
	bool released;
	/* Of the last interval: */
	uint64_t ran;
	double rate, tokens; /* a second */
	double p50, p99;
	double cpu, waited, blocked; /* shares, 0 to 1, of the time in calls */
	double queue, device;	     /* mean of an inference */
};

enum top_column {
	TOP_PROGRAM,
	TOP_PID,
	TOP_PROCESS,
	TOP_RATE,
	TOP_P50,
	TOP_P99,
	TOP_CPU,
	TOP_WAIT,
	TOP_BLOCKED,
	TOP_QUEUE,
	TOP_DEVICE,
	TOP_ERRORS,
	TOP_TOKENS,
	TOP_TOTAL,
	TOP_CONTAINER,
	TOP_COLUMNS,
};

struct top_layout {
	unsigned int width[TOP_COLUMNS]; /* of a column on the screen; 0: not shown */
};

/* The title of a column, and its key on the keyboard. */
const char *top_title(enum top_column column);
char top_key(enum top_column column);
bool top_is_text(enum top_column column); /* set to the left */
/* Columns that fit into width; those of values that no row has are left out. width 0: all. */
void top_fit(struct top_layout *layout, const struct top_row *rows, size_t count, unsigned int width);
/* Appends what a cell shows: safe for a terminal, at most width columns if it is text; "-" where nothing was observed. Its columns. */
size_t top_cell(struct text *text, const struct top_row *row, enum top_column column, unsigned int width);
__attribute__((format(printf, 2, 3))) void top_add(struct text *text, const char *format, ...); /* up to 63 bytes */
/* Text with the smallest first, numbers with the largest. */
void top_sort(struct top_row *rows, size_t count, enum top_column column, bool reverse);

/* A device and what its counters say of it. */
struct top_device {
	char name[64]; /* of its node, or its address */
	char driver[32];
	struct xpt_counters *counters;
	size_t count;
	double jobs_before; /* of the reading before */
	uint64_t time_before;
	char text[160]; /* "busy 34.0%  jobs 120/s" */
};

struct top {
	struct session_options session; /* first: see session.h */
	uint64_t interval;
	bool batch;
	uint64_t tables; /* of --batch; 0: until the end */

	const char *save_dir; /* NULL: nothing can be saved */
	bool operators;	      /* what is kept to be saved has them */
	struct stacks_choice stacks;

	struct xpt_session *library;
	struct xpt_continuous *window; /* NULL: none is kept */
	struct xpt_stream *stream;     /* NULL: it could not be made */
	struct top_device devices[TOP_DEVICES_MAX];
	size_t device_count;
	FILE *keys, *screen; /* the terminal; NULL with --batch */
	int changed;	     /* eventfd: a report or a signal has come */

	/* Shared with callbacks. */
	pthread_mutex_t lock;
	struct top_row *rows;
	size_t count;
	uint64_t printed; /* tables */
	bool done;	  /* all tables are printed */

	/* The last messages of the library while there is a screen, not yet safe for a terminal. */
	pthread_mutex_t message_lock;
	bool drawn; /* there is one */
	char message[256], warning[256];
};

static inline bool takes_stacks(const struct top *top)
{
	return top->stacks.calls || top->stacks.samples;
}

/* ---- stacks.c ---- */

/* Stacks of reports. Begins as zeros. */
struct top_stacks {
	struct top_stack *items;
	size_t count;
};

/* time: of the report, ns. */
void top_stacks_add(struct top_stacks *stacks, const struct xpt_program_report *program, uint64_t time);
void top_stacks_drop(struct top_stacks *stacks, uint64_t time); /* those of reports before */
void top_stacks_clear(struct top_stacks *stacks);
/*
 * Lines, safe for a terminal: of each kind its sum and the heaviest stacks, at most as many, with their shares. columns: frames are on further
 * lines where they do not fit, and those that would take too many are left out; 0: a line each.
 */
void top_stacks_text(struct text *text, const struct top_stacks *stacks, unsigned int columns, size_t most);

/* ---- top.c ---- */

/* A stream of the programs that fit match (NULL: of --match, --program or all), with rows of its own from then on. 0 or -errno. */
int top_watch(struct top *top, const char *match);
/* Reads the counters of the devices anew. */
void top_poll_devices(struct top *top);
/* Wakes the screen; safe in signal handlers. */
void top_wake(void *object);

/* SIGINT, SIGTERM and SIGHUP end it; again after who else has taken them. */
void top_catch_signals(struct top *top);

/* The table on a terminal, until somebody quits or a signal comes. 0, or the exit status. */
int top_screen(struct top *top);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Readings of counters as tables, CSV and counter tracks of a Chrome trace. */
#ifndef XPT_CLI_COUNTERS_OUTPUT_H
#define XPT_CLI_COUNTERS_OUTPUT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include <xputrace/counters.h>

#include "base/file/tailed_file.h"

/* One reading of all, and what it is compared with. */
struct counters_reading {
	const struct xpt_counters *session;
	const struct xpt_counter_value *values;
	const struct xpt_counter_value *before; /* the reading before it; NULL: none */
	uint64_t start;				/* CLOCK_MONOTONIC in ns, of the start */
	uint64_t time, time_before;		/* of the readings */
	uint64_t spread;			/* ns */
};

/* What is shown of a value: since the reading before, where it is a sum. */
double counters_shown(const struct counters_reading *reading, size_t index);

/* Lines of a table: one counter a line with its rate. The number of lines. */
unsigned int counters_table(FILE *out, const struct counters_reading *reading, bool total);
/* "     1.000123  value  unit  name" for each: an interval as perf stat -I shows it. */
void counters_rows(FILE *out, const struct counters_reading *reading);

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

/* All: 0 or -errno. */
int counters_file_open(struct counters_file *file, const struct xpt_counters *session);
int counters_file_add(struct counters_file *file, const struct counters_reading *reading);
int counters_file_close(struct counters_file *file, const struct xpt_counters *session);

#endif

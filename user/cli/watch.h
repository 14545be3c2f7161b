/* SPDX-License-Identifier: BSD-2-Clause */
/* A session of the command line, from its options to its end: for commands whose handles profile.h and stream.h describe. */
#ifndef XPT_CLI_WATCH_H
#define XPT_CLI_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <xputrace/profile_report.h>
#include <xputrace/session.h>

#include "cli/running.h"
#include "cli/session_options.h"

struct watch {
	const struct session_options *options;
	/*
	 * Called several times a second by watch_run(): looks after what goes on, and writes the end of the status line into
	 * tail. True: it is over. xpt_session_interrupt() ends it, too, at once.
	 */
	bool (*turn)(void *context, uint64_t elapsed, char *tail, size_t size);
	void *context;

	struct xpt_session *session; /* from watch_create() to watch_destroy() */
	struct status_line status_line;
	uint64_t elapsed; /* ns from the start to the end */
};

/* 0, or the exit status. */
int watch_create(struct watch *watch);
/* Starts the session; returns when a signal, the duration, the end of the targets or turn() ends it. 0, or the exit status. */
int watch_run(struct watch *watch);
/* The handles must be gone. */
void watch_destroy(struct watch *watch);

/* Writes --summary-json, if it is asked for. path: of the last report. The exit status. */
int watch_summary(const struct watch *watch, const char *command, const struct totals *totals, const char *path,
		  int result);

/* Completes files_options, which says how files are numbered or rotated, and opens them. 0, or the exit status. */
int files_open(const struct session_options *options, struct xpt_report_files_options *files_options,
	       struct xpt_report_files **files);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The program that --on-save runs for each saved file: one after the other, beside the recording. */
#ifndef XPT_CLI_CONTINUOUS_ON_SAVE_H
#define XPT_CLI_CONTINUOUS_ON_SAVE_H

#include <stdint.h>

#include <xputrace/continuous.h>

#define ON_SAVE_LIMIT 60000000000ull /* ns */
#define ON_SAVE_WAITING_MAX 16	     /* files for which the program has not been started */

struct on_save;

struct on_save_options {
	const char *program;  /* its path; not copied */
	const char *instance; /* for its environment; not copied */
	uint64_t limit;	      /* ns; a run that takes longer is killed */
	xpt_log_fn log;
};

/* Starts the thread that runs the program. 0 or -errno. */
int on_save_create(const struct on_save_options *options, struct on_save **result);
/* As xpt_continuous_options.saved, with a struct on_save as context: copies, and returns at once. */
void on_save_file(void *context, const struct xpt_saved *saved, const char *reason);
/* Waits, in all no longer than for one run, for those files that wait; the others are reported as dropped. NULL is allowed. */
void on_save_destroy(struct on_save *on_save);

#endif

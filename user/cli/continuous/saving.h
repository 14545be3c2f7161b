/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of commands that save a window: `continuous start`, and `agent` with --save-on. */
#ifndef XPT_CLI_CONTINUOUS_SAVING_H
#define XPT_CLI_CONTINUOUS_SAVING_H

#include <xputrace/continuous.h>

#include "cli/commands.h"
#include "cli/continuous/on_save.h"

struct saving {
	struct xpt_continuous_options
		options; /* 0 where something is to have no limit or no time, until saving_begin() */
	struct string_list triggers;
	struct on_save_options on_save; /* no program: nothing is run */
	struct on_save *runs;		/* NULL: none */
};

/* The beginning of an initialiser. */
#define SAVING_DEFAULTS                                             \
	.options = { .size = sizeof(struct xpt_continuous_options), \
		     .window_bytes = XPT_WINDOW_BYTES,              \
		     .window_time = XPT_WINDOW_TIME,                \
		     .sample_every = 1,                             \
		     .save_after = XPT_SAVE_AFTER,                  \
		     .save_cooldown = XPT_SAVE_COOLDOWN,            \
		     .save_files = XPT_SAVE_FILES,                  \
		     .save_bytes = XPT_SAVE_BYTES },                \
	.on_save.limit = ON_SAVE_LIMIT

extern const struct option_entry saving_options[]; /* of a struct saving */

/*
 * Once they are parsed: makes of them what xpt_continuous_create() gets, and starts the thread that runs the program of --on-save. instance:
 * for the program's environment. 0 or -errno.
 */
int saving_begin(struct saving *saving, const char *instance, xpt_log_fn log);
/* When no file is saved any more: ends that thread, as on_save_destroy(). */
void saving_end(struct saving *saving);

/* SIGUSR2 saves as a trigger does from here on; NULL: it is ignored. */
void saving_on_signal(struct xpt_continuous *continuous);

#endif

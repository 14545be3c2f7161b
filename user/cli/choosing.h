/* SPDX-License-Identifier: BSD-2-Clause */
/* --program and --match of record and stream: which programs are meant. */
#ifndef XPT_CLI_CHOOSING_H
#define XPT_CLI_CHOOSING_H

#include "cli/session_options.h"

/* Of commands whose context begins with struct session_options. */
bool take_chosen_match(void *context, const char *value, const char **reason);
bool take_chosen_program(void *context, const char *value, const char **reason);

/* Says where the expression is wrong, with a mark below the place: true. False: there is none, or it is right. */
bool choices_refused(const struct command_line *line, const struct session_options *options);

#endif

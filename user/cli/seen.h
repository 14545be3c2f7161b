/* SPDX-License-Identifier: BSD-2-Clause */
/* Programs that a session or recording has seen: what a message shows when the one that is wanted is not among them. */
#ifndef XPT_CLI_SEEN_H
#define XPT_CLI_SEEN_H

#include <stdbool.h>
#include <stddef.h>

#include <xputrace/session.h>

#define SEEN_MAX 20 /* shown; of what comes beyond it is said only that there is more */

struct seen_program {
	char *runtime, *name; /* owned */
	pid_t pid;
	uint64_t handle;
};

struct seen_programs {
	struct seen_program items[SEEN_MAX];
	size_t count;
	bool more, nameless; /* nameless: some bear only their handle */
};

/* "0x7f3a10002b40" is a handle, anything else a name; "name=0x12" is the name 0x12. False: neither (reason). */
bool choice_parse(const char *text, struct xpt_program_choice *choice, const char **reason);

/* Adds the programs that are there now; those that have gone stay. Is there one that fits one of the choices? */
bool seen_update(struct seen_programs *seen, struct xpt_session *session, const struct xpt_program_choice *choices,
		 size_t choice_count);
void seen_add(struct seen_programs *seen, const struct xpt_program_info *program);
/* Lists them on standard error, with a word on programs without a name. */
void seen_print(const struct seen_programs *seen);
void seen_free(struct seen_programs *seen);

#endif

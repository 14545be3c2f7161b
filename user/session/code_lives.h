/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads that have been handed out and may be unloaded yet, found by what the runtime gave for them. */
#ifndef XPT_SESSION_CODE_LIVES_H
#define XPT_SESSION_CODE_LIVES_H

#include "session/code_load.h"

#define CODE_LIVES_CHAINS 4096

struct code_lives { /* zeroed: none */
	struct code_load *chain[CODE_LIVES_CHAINS];
	size_t count;
};

void code_lives_add(struct code_lives *lives, struct code_load *load);
/* Takes out the latest load with a call that had ended by a time. NULL: there is none. */
struct code_load *code_lives_take(struct code_lives *lives, pid_t tgid, const struct description *runtime, __u64 handle,
				  __u64 by);
/* Takes out any of a process, 0: of all. NULL: there are no more. */
struct code_load *code_lives_take_any(struct code_lives *lives, pid_t tgid);

#endif

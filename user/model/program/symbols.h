/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of symbols at addresses of processes: for programs whose handle is the address of a function. */
#ifndef XPT_MODEL_PROGRAM_SYMBOLS_H
#define XPT_MODEL_PROGRAM_SYMBOLS_H

#include "model/program/processes.h"

struct symbols {
	struct map map; /* by process and address */
	struct link all;
};

void symbols_init(struct symbols *symbols);
void symbols_free(struct symbols *symbols);
/* name is copied; a later one for the same address replaces the first. -ENOSPC, -ENOMEM. */
int symbols_give(struct symbols *symbols, struct process *process, __u64 address, const char *name);
/* NULL: none */
const char *symbols_find(const struct symbols *symbols, const struct process *process, __u64 address);
/* Its memory is gone. */
void symbols_drop_process(struct symbols *symbols, struct process *process);

#endif

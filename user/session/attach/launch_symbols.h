/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Names of kernels that are launched by an address of the host: what the symbol there is called. A handle that lies in
 * a file that the process has mapped is such an address; any other one, made by the runtime at load, is not resolved
 * twice.
 */
#ifndef XPT_SESSION_ATTACH_LAUNCH_SYMBOLS_H
#define XPT_SESSION_ATTACH_LAUNCH_SYMBOLS_H

#include "describe/runtime/registry.h"
#include "session/reader/elf_cache.h"

#define LAUNCH_SYMBOLS_MAX 65536 /* handles known at once, of all processes; further ones are not named */

struct launch_symbols;

/* The registry is kept, and outlives it. NULL: no memory. */
struct launch_symbols *launch_symbols_create(const struct registry *registry);
void launch_symbols_free(struct launch_symbols *symbols); /* NULL is allowed */

/* Any call: whether it launches something with a handle that is seen for the first time in the process. */
bool launch_symbols_is_new(struct launch_symbols *symbols, const struct xpt_record_call *call);
/* Such a call; its file is one of files. The SYMBOL record for its handle, which the caller frees; time: its own. NULL: no symbol begins there. */
struct xpt_record_text *launch_symbols_name(struct launch_symbols *symbols, struct elf_cache *files, __u64 time,
					    const struct xpt_record_call *call);
/* The process has ended, runs another program, or has unmapped files: its handles may be others from here on. */
void launch_symbols_drop(struct launch_symbols *symbols, pid_t tgid);

#endif

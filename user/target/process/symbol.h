/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is at an address of a process, by the symbols of the file that is mapped there. Launches of CUDA and HIP name
 * their kernel by the address of a function, or of a variable, that the compiler made for it on the host.
 */
#ifndef XPT_TARGET_PROCESS_SYMBOL_H
#define XPT_TARGET_PROCESS_SYMBOL_H

#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"

/* Symbols of a few files, the latest that were asked for: processes that have the same file mapped share them. */
struct process_symbols;

struct process_symbols *process_symbols_create(const struct log *log); /* log is kept; NULL: no memory */
void process_symbols_free(struct process_symbols *symbols);	       /* NULL is allowed */

/*
 * Name of the function or data object at the address, one that begins there before one that only contains it; cut off
 * when it has size bytes or more. offset: bytes from its beginning to the address. Mappings are read anew each time.
 * -ENOENT: no file is mapped there, or it has no symbol for it; -ESRCH, -EACCES, -ENOMEM.
 */
int process_symbols_look(struct process_symbols *symbols, pid_t tgid, __u64 address, char *name, size_t size,
			 __u64 *offset);

/*
 * The kernel that a function of the host stands for, as it is registered with the runtime, in place: of clang's stubs
 * "_Z24__device_stub__vectoraddPfS_" becomes "_Z9vectoraddPfS_", and "__device_stub__vectoradd" becomes "vectoradd".
 * Any other name stays: that of a function (nvcc) or variable (clang, for HIP) is the kernel's own.
 */
void kernel_name_of_stub(char *name);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What is at an offset of a file, by its symbols. Launches of CUDA and HIP name
 * their kernel by the address of a function, or of a variable, that the compiler made for it on the host.
 */
#ifndef XPT_TARGET_PROCESS_SYMBOL_H
#define XPT_TARGET_PROCESS_SYMBOL_H

#include <linux/types.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/core/log.h"

/* Of one file. */
struct symbol_table;

/* The descriptor stays open while it lives. What is not ELF has none. Errors of reading, -ENOMEM. */
int symbol_table_read(const struct log *log, int descriptor, const char *name, struct symbol_table **result);
void symbol_table_free(struct symbol_table *table); /* NULL is allowed */

/*
 * Name of the function or data object at an offset of the file, one that begins there before one that only contains it; cut off
 * when it has size bytes or more. offset: bytes from its beginning. -ENOENT: there is none.
 */
int symbol_table_find(const struct symbol_table *table, __u64 at, char *name, size_t size, __u64 *offset);

/*
 * The kernel that a function of the host stands for, as it is registered with the runtime, in place: of clang's stubs
 * "_Z24__device_stub__vectoraddPfS_" becomes "_Z9vectoraddPfS_", and "__device_stub__vectoradd" becomes "vectoradd".
 * Any other name stays: that of a function (nvcc) or variable (clang, for HIP) is the kernel's own.
 */
void kernel_name_of_stub(char *name);

#endif

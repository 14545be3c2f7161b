/* SPDX-License-Identifier: BSD-2-Clause */
/* Operators of the runtimes that a mapped file holds: their probes, and what their classes are called in a process. */
#ifndef XPT_SESSION_READER_OPERATORS_H
#define XPT_SESSION_READER_OPERATORS_H

#include "describe/runtime/registry.h"
#include "kern/kern.h"
#include "target/probe/functions.h"
#include "target/process/objects.h"
#include "target/probe/operators.h"

/* Of one runtime. */
struct runtime_operators {
	const struct description *runtime;
	struct operators operators;
	__u64 first, last; /* of their classes' tables, addresses in the file */
};

/* Zero it to begin with. */
struct file_operators {
	struct runtime_operators *runtimes;
	size_t count;
	size_t functions; /* of all of them that probes can be put on */
};

/*
 * For each runtime of which found has functions in the file. What cannot be read is logged, and left out. -ENOMEM.
 */
int file_operators_find(const struct log *log, const struct registry *registry, const struct mapped_file *mapped,
			const struct found_functions *found, struct file_operators *result);
void file_operators_free(struct file_operators *file);

/* The site of each function to visit, with the index of its spec. */
void file_operators_visit(const struct file_operators *file,
			  void (*visit)(void *context, const struct site *site, unsigned int spec), void *context);

/* The runtime that has a class; class: address in the file of its table. NULL: none. */
const struct description *file_operators_runtime(const struct file_operators *file, __u64 class);

/*
 * Emits a CLASS record for each class, as its objects refer to it in the process: the file's addresses are moved by
 * bias. Returns the result of record(), or -ENOMEM.
 */
int file_operators_tell(const struct file_operators *file, pid_t tgid, __u64 bias,
			int (*record)(void *context, const struct xpt_record_header *record), void *context);

#endif

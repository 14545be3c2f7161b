/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of operator classes in each process: emitted once each, before records can refer to them. */
#ifndef XPT_SESSION_ATTACH_CLASS_NAMES_H
#define XPT_SESSION_ATTACH_CLASS_NAMES_H

#include "session/reader/elf_cache.h"

/* A file with classes that a process's records can refer to. */
struct class_file {
	pid_t tgid;
	const struct elf_entry *file;
	__u64 bias; /* from the file's addresses to the process's */
};

/* Zero it to begin with. */
struct class_names {
	struct class_file *files; /* that were emitted */
	size_t count;
};

void class_names_free(struct class_names *names);
/*
 * Emits the CLASS records of a file that the process has mapped, and the names of its functions that are regions, once.
 * Returns the result of record(), or -errno.
 */
int class_names_emit(struct class_names *names, const struct registry *registry, pid_t tgid,
		     const struct mapped_file *mapped, const struct elf_entry *file,
		     int (*record)(void *context, const struct xpt_record_header *record), void *context);
/* The process has ended, or runs another file: all has to be emitted anew. */
void class_names_renew(struct class_names *names, pid_t tgid);
/* The runtime of the class of an object, as it was fetched. NULL: not known. */
const struct description *class_names_runtime(const struct class_names *names, pid_t tgid, __u64 class);

#endif

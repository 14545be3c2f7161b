/* SPDX-License-Identifier: BSD-2-Clause */
/* What can be traced in one file, and its way from the process that reads the file to the collector. */
#ifndef XPT_SESSION_READER_CONTENTS_H
#define XPT_SESSION_READER_CONTENTS_H

#include <stdio.h>

#include "code/format/object.h"
#include "describe/runtime/registry.h"
#include "kern/kern.h"
#include "target/probe/functions.h"
#include "target/probe/operators.h"
#include "target/process/loaded_code.h"
#include "target/process/objects.h"

/* Operators of the runtimes that a mapped file holds: their probes, and what their classes are called in a process. */

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
int file_operators_emit(const struct file_operators *file, pid_t tgid, __u64 bias,
			int (*record)(void *context, const struct xpt_record_header *record), void *context);

#define FILE_EXTENTS_MAX 16 /* further ones are left out */

/* What is in a file that can be traced. */
struct file_contents {
	struct found_functions found;
	struct file_operators operators;
	bool has_loader;
	__u64 loader_offset;
	__s32 loader_state; /* as in struct kern_site */
	struct elf_extent extents[FILE_EXTENTS_MAX];
	size_t extent_count;
	char build_id[ELF_BUILD_ID_MAX + 1]; /* hexadecimal; empty: it has none */
	struct file_codes codes;
	char *interpreter; /* NULL: none */
	bool is_static;	   /* a program without one, and not the dynamic loader */
};

void file_contents_free(struct file_contents *contents);
/* Virtual address of an offset of the file; -ENOENT. */
int file_contents_address(const struct file_contents *contents, __u64 offset, __u64 *address);

struct file_search {
	const struct registry *registry;
	bool operators; /* they are searched for */
	bool loader;	/* so is the dynamic loader */
	bool codes;	/* so are code objects */
};

/* Searches the file for it. What memory does not suffice for is left out with a message. */
void file_contents_search(const struct log *log, const struct file_search *search, const struct mapped_file *mapped,
			  struct file_contents *contents);

/* Writes it to a stream in memory. */
void file_contents_write(FILE *out, const struct file_contents *contents);
/*
 * Reads it back, believing nothing: indices are in the registry's ranges, texts end, sums fit. -EPROTO, -ENOMEM; contents is
 * empty then.
 */
int file_contents_read(const void *bytes, size_t length, const struct registry *registry,
		       struct file_contents *contents);

/* The same for what is in a code object: believed are only texts that end, kinds that are known, and no more than code_read() keeps. */
void code_contents_write(FILE *out, const struct code_contents *contents);
int code_contents_read(const void *bytes, size_t length, struct code_contents *contents);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by the files of this folder. */
#ifndef XPT_STACK_PRIVATE_H
#define XPT_STACK_PRIVATE_H

#include <elfutils/libdwfl.h>
#include <stdbool.h>

#include "base/core/hashmap.h"
#include "base/core/link.h"
#include "base/core/text.h"
#include "stack/stack.h"

#define MODULES_MAX 2048  /* open files of all processes together */
#define PROCESSES_MAX 64  /* beyond, the one whose latest stack is oldest is forgotten */
#define FRAMES_MAX 262144 /* different ones; beyond, they are unknown */
#define STACKS_MAX 32768  /* different ones */
#define INLINED_MAX 32	  /* functions at one address */
#define NAMES_MAX 1048576 /* of code that a process has made */

/* A file with code, the same in all processes. */
struct module {
	struct map_node node; /* by device and inode */
	struct link link;
	struct unwinder *unwinder;
	char *path;
	int descriptor; /* -1: it is not open */
	__u32 id;	/* of its MODULE record; 0: there is none yet */
};

/* Memory of a process with code. */
struct code_range {
	__u64 start, end;
	struct module *module; /* NULL: of no file */
	bool executable, is_vdso;
};

/* A function that a process has made, by its perf map. */
struct made_name {
	__u64 start, size;
	size_t name; /* place in the process's text */
};

struct process {
	struct map_node node; /* by tgid */
	struct link link;     /* latest stack last */
	struct unwinder *unwinder;
	__u32 tgid;
	__u64 serial; /* of this one alone, also when its number is used again */
	Dwfl *dwfl;
	bool attached;
	bool is_javascript;	     /* code that it makes is */
	char *vdso;		     /* copy of the kernel's library; NULL */
	__u32 vdso_module;	     /* id of its MODULE record; 0: there is none yet */
	struct unwinding *unwinding; /* NULL: of another process, or none */
	__u64 read;		     /* when its mappings were read, ns */
	struct code_range *ranges;
	size_t range_count;
	struct made_name *names;
	size_t name_count;
	struct text name_text;
	__u64 names_read; /* ns; 0: they have not been looked for */
};

/* What is at an address: the innermost inlined function first. */
struct place {
	struct map_node node; /* by module and offset, or process and address */
	struct link link;
	unsigned int count;
	__u32 frame[]; /* ids */
};

struct known_stack {
	struct map_node node; /* by hash and flags */
	struct link link;
	__u64 id;
	__u32 count;
	__u32 frame[];
};

struct unwinder {
	struct unwinder_options options;
	struct map processes;
	struct link process_list;
	__u64 serials;
	struct map modules;
	struct link module_list;
	struct map places;
	struct link place_list;
	struct map stacks;
	struct link stack_list;
	__u32 next_module, next_frame;
	__u64 next_stack;
	__u32 unknown; /* id of the frame that nothing is known of; 0: there is none yet */
};

/* ---- modules.c: processes and their files ---- */

/* NULL: no memory. */
struct process *process_get(struct unwinder *unwinder, __u32 tgid);
/* Reads its mappings. */
void process_read(struct process *process);
void process_free(struct process *process);
/* What is executable at an address; NULL: nothing that is known. */
const struct code_range *process_range(const struct process *process, __u64 address);
void modules_free(struct unwinder *unwinder);

/* ---- names.c: what is at an address ---- */

/* NULL: no memory. */
const struct place *place_get(struct process *process, __u64 address);
/* The name of a symbol without parameters, as far as it is understood. */
void name_demangle(const char *symbol, char *text, size_t size);

#endif

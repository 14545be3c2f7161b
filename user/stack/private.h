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
	size_t text;   /* place in the process's names */
	size_t number; /* of the line */
};

/* Bytes from the begin of each structure of a Python interpreter to its members. */
struct python_layout {
	unsigned int minor; /* of version 3; 0: the process has no interpreter */
	__u64 runtime;	    /* in the runtime: the first interpreter */
	__u64 next_interpreter, threads;
	__u64 next_thread, thread_id, frame; /* in a thread's state */
	int inner;			     /* where frame points to: the frame; -1: it is the frame */
	__u64 previous, code, instruction;   /* in a frame, as is: */
	__u64 owner;			     /* a byte: who owns it; 3.11: not 0: the loop has begun with it */
	__u64 first_line, filename, name, lines, adaptive; /* in a code object */
};

struct process {
	struct map_node node; /* by tgid */
	struct link link;     /* latest stack last */
	struct unwinder *unwinder;
	__u32 tgid;
	__u64 serial; /* of this one alone, also when its number is used again */
	Dwfl *dwfl;
	bool attached;
	bool is_javascript; /* code that it makes is */
	int memory;	    /* -1: it is not open */
	struct python_layout python;
	__u64 python_runtime;	     /* address of _PyRuntime */
	__u64 loop_start, loop_end;  /* of the function that is the interpreter's loop; 0: unknown */
	char *vdso;		     /* copy of the kernel's library; NULL */
	__u32 vdso_module;	     /* id of its MODULE record; 0: there is none yet */
	struct unwinding *unwinding; /* NULL: of another process, or none */
	__u64 read;		     /* when its mappings were read, ns */
	struct code_range *ranges;
	size_t range_count;
	int names_file;		 /* what perf reads; -1: it is not open */
	__u64 names_read;	 /* when it was looked at, ns; 0: never */
	struct made_name *names; /* by start, older ones first */
	size_t name_count;
	struct text name_text;
	struct text name_rest; /* the begin of a line that is not complete */
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

/* Of a frame that is nothing known of; 0: no memory. */
__u32 frame_unknown(struct process *process);
/* Of a Python function that was given before under this hash or place; 0: none. */
__u32 frame_find(const struct process *process, __u64 hash);
__u32 frame_python(struct process *process, __u64 hash, __u64 place, const char *name, const char *file, int line);

/* ---- made.c: code that a process has made ---- */

/* What it says about an address: a terminated text; NULL: nothing. */
const char *made_find(struct process *process, __u64 address);
void made_free(struct process *process);

/* ---- python.c ---- */

/* A native frame on the stack. */
struct native_frame {
	__u64 address;	  /* in code */
	__u64 start, end; /* its place on the stack */
};

/* Whether the process has an interpreter, and where its frames are. */
void python_find(struct process *process);
/* Id of the FRAME record; 0: no memory. */
__u32 python_frame(struct process *process, const struct xpt_python_frame *frame);
/* A frame that stands for no function. */
bool python_is_shim(const struct process *process, const struct xpt_python_frame *frame);
/* Frames from number from on to below the result are what a native frame runs; from: it is no interpreter's loop. */
unsigned int python_end(const struct process *process, const struct xpt_record_python_copy *copy, unsigned int from,
			const struct native_frame *native);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What can be traced: described runtimes, where their functions are in a process or file, and where probes would go;
 * how programs are named and chosen.
 */
#ifndef XPUTRACE_TARGET_H
#define XPUTRACE_TARGET_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_target_options {
	size_t size;			  /* sizeof(struct xpt_target_options) */
	pid_t pid;			  /* 0: none */
	const char *file;		  /* an ELF file instead of a process; NULL: none */
	const char *const *runtime_files; /* added descriptions */
	size_t runtime_file_count;
	const char *const *runtimes; /* only these; none: all */
	size_t runtime_count;
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
};

/* A described runtime; strings are valid during the visit. */
struct xpt_runtime_info {
	size_t size; /* sizeof(struct xpt_runtime_info) of the library */
	const char *name;
	const char *title;
	size_t functions; /* described */
	const char *file; /* where it was found in the process or file; NULL: pid and file were not given */
	size_t found;	  /* functions found in that file */
	/* File names where it usually is, as glob patterns; it is found in others, too. */
	const char *const *libraries;
	size_t library_count;
};

/* A function of a runtime and its probe; strings are valid during the visit. */
struct xpt_site_info {
	size_t size; /* sizeof(struct xpt_site_info) of the library */
	const char *file;
	const char *runtime;
	const char *function; /* as described */
	const char *symbol;   /* under which it was found */
	const char *role;
	uint64_t function_offset; /* of the function's entry in the file */
	uint64_t offset;	  /* of the probe */
	const char *site_class;	  /* "optimised", "emulated", "stepped" */
	unsigned int cost;	  /* expected, ns a recorded call */
	const char *found_by;	  /* "symbol", "table", "table in memory", "resolved", "probe", "string", "class" */
	int shared;		  /* another function has the same place: this one is not distinguished */
	const char *code; /* how a code object is given to it: "bytes", "parts", "path", "descriptor"; NULL: none is */
};

/*
 * Visits the described runtimes; with pid or file only those found, once for each file. A non-zero return of visit ends the walk
 * and is returned. -EINVAL: wrong options, -E2BIG: options of a newer library, -ESRCH, -EACCES, -ENOENT, -ENOEXEC (not ELF), -ENOTSUP
 * (32-bit).
 */
XPT_API int xpt_target_runtimes(const struct xpt_target_options *options,
				int (*visit)(void *context, const struct xpt_runtime_info *runtime), void *context);

/* Visits every function found in the process or file, in order of file and offset. */
XPT_API int xpt_target_sites(const struct xpt_target_options *options,
			     int (*visit)(void *context, const struct xpt_site_info *site), void *context);

/* A class of operators that a runtime executes, and the probe of its method; strings are valid during the visit. */
struct xpt_operator_info {
	size_t size; /* sizeof(struct xpt_operator_info) of the library */
	const char *file;
	const char *runtime;
	const char
		*name; /* of the class, as in its source: "onnxruntime::Gemm<float>"; mangled where that is not known */
	const char *method;	  /* as described: "Compute" */
	uint64_t function_offset; /* of the method's entry in the file */
	uint64_t offset;	  /* of the probe */
	const char *site_class;	  /* as in xpt_site_info */
	unsigned int cost;
	size_t shared; /* classes that have this very function, the one in hand included */
};

/*
 * Visits the operators of runtimes that have them described, in order of file, function and class. How many classes there are
 * goes to the log. Errors as above.
 */
XPT_API int xpt_target_operators(const struct xpt_target_options *options,
				 int (*visit)(void *context, const struct xpt_operator_info *operator_info),
				 void *context);

/*
 * A name for a program whose load was not seen, or for those with a fingerprint: of the operators of an inference, as traces have it
 * that were recorded at XPT_LEVEL_DETAILED. One that fits no program is logged as a warning at the end.
 */
struct xpt_handle_name {
	pid_t pid; /* 0: in any process; always with a fingerprint */
	uint64_t handle;
	const char *name;
	uint32_t fingerprint; /* 0: the handle is meant */
};

/* Which programs are meant: a name, a handle or both; pid narrows it to one process. */
struct xpt_program_choice {
	size_t size; /* sizeof(struct xpt_program_choice), or the library's where it hands one out; not read in arrays */
	pid_t pid;   /* 0: in any process */
	const char *name; /* the whole name, with or without the number of those with one name; NULL: any */
	uint64_t handle;  /* 0: any */
};

/* One program that was seen. Strings live as long as the recording; those of a session during the visit. */
struct xpt_program_info {
	size_t size; /* sizeof(struct xpt_program_info) of the library */
	pid_t pid;
	const char *runtime;
	const char *name; /* where none is known: "onnxruntime model 1" */
	uint64_t handle;
	uint64_t calls; /* of a finished recording: exact; before, and of a session: those recorded so far */
	uint64_t errors;
	double mean; /* ns; 0: no call has ended */
};

/* How probes are linked. */
enum xpt_link {
	XPT_LINK_AUTO = 0,    /* the best that the kernel has */
	XPT_LINK_SESSION = 1, /* uprobe session link, Linux 6.13 or so */
	XPT_LINK_MULTI = 2,   /* uprobe multi link, Linux 6.6 or so */
	XPT_LINK_PERF = 3,    /* one perf event a probe */
};

/* Of a budget (recording.h), in percent: its range, no budget at all, and what continuous profiling has where none is given. */
#define XPT_BUDGET_MIN 0.1
#define XPT_BUDGET_MAX 100.0
#define XPT_BUDGET_NONE (-1.0)
#define XPT_BUDGET_CONTINUOUS 2.0

/* The longest limit, in ns, for threads that wait for their probes or for a code object to be read (recording.h). */
#define XPT_WAIT_LIMIT_MAX 60000000000

#ifdef __cplusplus
}
#endif
#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Code objects: what was loaded onto devices, when, and what is in it. After the code object capture of ROCm's profiler, for every
 * described runtime, from outside the process, at the moment of loading:
 *
 *	XPT_OPTS(xpt_codeobj_options, options, .pids = &pid, .pid_count = 1);
 *	struct xpt_codeobj_capture *record;
 *	const struct xpt_codeobj_list *list;
 *
 *	if (!xpt_codeobj_capture_create(&record, XPT_CODEOBJ_COPY_MEMORY, 0, &options)) {
 *		xpt_codeobj_capture_start(record);
 *		...
 *		xpt_codeobj_capture_stop(record);
 *		xpt_codeobj_capture_get(record, &list);
 *		...
 *		xpt_codeobj_capture_free(record);
 *	}
 *
 * What is recorded are the bytes that the runtime was given, as they were when the call began. Small ones are copied by the kernel
 * while the call is on its way in; for large ones, and where the size is not known beforehand, the thread waits at the call's
 * entry until its memory has been read: some milliseconds, unless no_wait is set. Other threads run on. The capture keeps 256 MB
 * of memory ready for such copies, or a sixteenth of the machine's where that is less.
 */
#ifndef XPUTRACE_CODEOBJ_H
#define XPUTRACE_CODEOBJ_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <xputrace/error.h>
#include <xputrace/session.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_codeobj_capture;

/* What is kept of objects. Hashes and functions are always. */
enum xpt_codeobj_mode {
	XPT_CODEOBJ_SYMBOLS = 0,     /* no bytes */
	XPT_CODEOBJ_COPY_MEMORY = 1, /* bytes of those that were given in memory */
	XPT_CODEOBJ_COPY_ALL = 2,    /* and of those that were given as files */
};

/* size must be set to sizeof(struct xpt_codeobj_options). Zeros mean the defaults. */
struct xpt_codeobj_options {
	size_t size;
	/* Exactly one of: processes by PID or name, a command, all processes; as in xpt_session_options. */
	const pid_t *pids;
	size_t pid_count;
	const char *const *process_names;
	size_t process_name_count;
	char *const *command;
	int all_processes;
	/* Runtimes, as in xpt_session_options. */
	const char *const *runtime_files;
	size_t runtime_file_count;
	const char *const *runtimes;
	size_t runtime_count;
	enum xpt_link link;
	/*
	 * Folder for the bytes, a file an object named by its hash, and for index.json, written when the capture stops. Made when missing. NULL:
	 * bytes are kept in memory, and xpt_codeobj.data has them.
	 */
	const char *output;
	int no_wait; /* no call waits: what the kernel cannot copy at once is missing */
	/*
	 * Limits, in bytes: of one object (default 1 GiB), of all of a process (4 GiB), of all (16 GiB). Beyond them an object is recorded
	 * with its hash and functions where those can be had, its bytes are not kept, and it is counted.
	 */
	uint64_t object_limit, process_limit, total_limit;
	uint64_t code_wait_limit; /* ns that a call waits until its object has been read; default 500 ms */
	uid_t user; /* owner of the folder, if it is created, and of its files; default: the user that runs this */
	gid_t group;
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
	uint64_t wait_limit; /* ns that a thread waits for its probes; default 1 s (recording.h) */
	/*
	 * Captures what the processes of this session load, beside its recordings, profiles and other captures; NULL: a session of its
	 * own. Targets, runtimes, link, no_wait, wait_limit and log are the session's and not set here. Begins with xpt_session_start(),
	 * or if that was before with xpt_codeobj_capture_start(); after xpt_codeobj_capture_stop() the session goes on. To be freed before it.
	 */
	struct xpt_session *session;
};

/* A function in an object. */
struct xpt_codeobj_function {
	const char *name;
	uint64_t offset;  /* of its first byte in the object; 0: it has none (source text) */
	uint64_t size;	  /* bytes; 0: not known */
	uint64_t address; /* virtual address in the object, where it has such; else 0 */
	int kernel;	  /* may be launched by the host */
};

/* An object inside another one, or a file that belongs to it. */
struct xpt_codeobj_part {
	const char *name; /* its target, or its path */
	const char *kind;
	int external; /* it is a file of its own */
	uint64_t offset, length;
};

/* One object that was loaded, or found loaded. Strings are valid UTF-8 only by luck. */
struct xpt_codeobj {
	size_t size; /* of this struct */
	/*
	 * Where the bytes came from: "file:///opt/kernels.hsaco#offset=4096&size=8192", or "memory://PID#offset=0x7f00&size=8192", both as ROCm
	 * writes them: bytes outside the unreserved ones of URIs are percent-encoded, offset and size of a whole file are left out.
	 */
	const char *uri;
	/*
	 * "elf", "hsaco", "cubin", "fatbin", "bundle", "ptx", "spirv", "bitcode", "opencl", "neff", "qpc", "onnx", "gguf", "hlo", "mlir",
	 * "unknown"
	 */
	const char *kind;
	const char *machine;  /* "gfx90a", "sm_80", "x86_64"; NULL: unknown */
	const char *name;     /* what it calls itself; NULL: unknown */
	const char *runtime;  /* "hip"; NULL: found in a file */
	const char *function; /* that was called: "hipModuleLoadData"; NULL: found */
	pid_t pid;
	pid_t tid;	       /* thread that loaded it; 0: found */
	uint64_t handle;       /* that the runtime gave; 0: none, or not seen */
	int64_t device;	       /* that it was loaded onto; -1: unknown */
	uint64_t load_address; /* in the process: of the bytes that were given, or where the file is mapped; 0: not mapped */
	uint64_t load_size; /* bytes there */
	const void *data;   /* copy; NULL: not kept, or in the output folder */
	uint64_t data_size; /* bytes of the object */
	uint64_t missing;   /* of them that could not be copied: their hash is not known */
	char sha256[65];    /* lower case; "": not known, since bytes are missing */
	uint64_t loaded;    /* ns of CLOCK_MONOTONIC: when the call began; 0: before the capture */
	uint64_t unloaded;  /* ns; 0: still there when the capture stopped */
	int64_t status;	    /* what the call answered; 0: success, or found */
	uint64_t waited;    /* ns that the call waited until it had been read; 0: it did not */
	const char *error;  /* what is wrong with the object, or why bytes are missing; NULL: nothing */
	const struct xpt_codeobj_function *functions;
	size_t function_count;
	size_t function_size; /* of one of them: XPT_AT() in error.h */
	uint64_t functions_left_out;
	const struct xpt_codeobj_part *parts;
	size_t part_count;
	size_t part_size; /* of one of them: XPT_AT() in error.h */
	const char *file; /* in the output folder, with the bytes; NULL: there is none */
};

struct xpt_codeobj_list {
	size_t size;				  /* of this struct */
	const struct xpt_codeobj *const *objects; /* in the order of loading; found ones first */
	size_t count;
	uint64_t userdata;
	uint64_t over_limit; /* loads whose bytes were not kept for a limit */
	uint64_t incomplete; /* loads with bytes missing */
	uint64_t lost;	     /* loads of which nothing is known but their number */
};

/*
 * Checks the options and loads the kernel side. userdata comes back in the list. -EINVAL: bad options (see the log), -E2BIG: options of
 * a newer library, -ENODATA, as xpt_recording_create(), -EPERM, -EOPNOTSUPP, -ENOMEM, the errors of folders.
 */
XPT_API int xpt_codeobj_capture_create(struct xpt_codeobj_capture **record, enum xpt_codeobj_mode mode,
				       uint64_t userdata, const struct xpt_codeobj_options *options);
/*
 * Records what is loaded already, as far as it can be found, and every load from here on. A thread of the library does the work.
 * Where the session is another's: as xpt_recording_start(). -ESRCH: no such process; -EBUSY: started already; -ENOEXEC: the command cannot be run.
 */
XPT_API int xpt_codeobj_capture_start(struct xpt_codeobj_capture *record);
/*
 * Returns when all targets have ended: 1; after timeout_ns, or when xpt_codeobj_capture_stop() was called: 0; after
 * xpt_codeobj_capture_interrupt(): -EINTR; -EINVAL before the start; another negative errno when recording cannot go on.
 * XPT_FOREVER: no limit.
 */
XPT_API int xpt_codeobj_capture_wait(struct xpt_codeobj_capture *record, uint64_t timeout_ns);
/* Ends a wait, or the next one; recording goes on until xpt_codeobj_capture_stop(). Safe in signal handlers. */
XPT_API void xpt_codeobj_capture_interrupt(struct xpt_codeobj_capture *record);
/* Ends recording, and writes the index. Right after start: a snapshot. Safe to repeat. 0, or the first error of writing. */
XPT_API int xpt_codeobj_capture_stop(struct xpt_codeobj_capture *record);
/*
 * What was recorded up to now; it belongs to the record, and lives until the next call of this function with the record, or its
 * end. -EINVAL, -ENOMEM.
 */
XPT_API int xpt_codeobj_capture_get(struct xpt_codeobj_capture *record, const struct xpt_codeobj_list **list);
XPT_API void xpt_codeobj_capture_free(struct xpt_codeobj_capture *record); /* stops it; NULL is allowed */
/* What the command answered: as wait() gives it; -1: there was none, or it still runs. */
XPT_API int xpt_codeobj_capture_command_status(const struct xpt_codeobj_capture *record);

/*
 * Reads an object from a file, or the index of a folder that a capture has written, without any process. The list is freed with
 * xpt_codeobj_list_free(). Objects of an index lie beside it; links are not followed. -ENOENT, -EBADMSG: an index that
 * is none, ... A bad object is in the list with its error.
 */
XPT_API int xpt_codeobj_read(const char *path, xpt_log_fn log, void *log_context, struct xpt_codeobj_list **list);
/* Writes a list that the library has handed out to a descriptor, as JSON in the form of index.json. 0 or -errno. */
XPT_API int xpt_codeobj_list_write(const struct xpt_codeobj_list *list, int descriptor);
XPT_API void xpt_codeobj_list_free(struct xpt_codeobj_list *list); /* of xpt_codeobj_read() only; NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif

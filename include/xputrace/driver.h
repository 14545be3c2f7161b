/* SPDX-License-Identifier: BSD-2-Clause */
/* Drivers of accelerators: which of their described events the running kernel has. Nothing is attached. */
#ifndef XPUTRACE_DRIVER_H
#define XPUTRACE_DRIVER_H

#include <stddef.h>

#include <xputrace/error.h>

#ifdef __cplusplus
extern "C" {
#endif

struct xpt_driver_options {
	size_t size;			 /* sizeof(struct xpt_driver_options) */
	const char *const *driver_files; /* added descriptions; one with the name of a built-in replaces it */
	size_t driver_file_count;
	/*
	 * Root folder of a tracefs; NULL: one that only the library sees, which needs CAP_SYS_ADMIN, else the first that is mounted.
	 */
	const char *tracefs;
	xpt_log_fn log;
	void *log_context;
	enum xpt_log_level log_level;
};

enum xpt_driver_state {
	XPT_DRIVER_COMPLETE = 0, /* the kernel has all events that are not optional */
	XPT_DRIVER_PARTIAL = 1,	 /* it has some */
	XPT_DRIVER_ABSENT = 2,	 /* none: the driver is not loaded, or has no device */
	XPT_DRIVER_UNKNOWN = 3,	 /* there is no tracefs, or it cannot be read */
};

/* A tracepoint of a driver. Strings are valid during the visit. */
struct xpt_driver_event {
	const char *system; /* of tracepoints: "gpu_scheduler" */
	const char *name;   /* "drm_sched_job_run" */
	const char *role;   /* what it says of a job: "run"; "enter" and "leave" of ioctls */
	int optional;	    /* depends on how the kernel was configured */
	int found;
	const char *reason; /* why it was not found: names driver, event, field and kernel; "" when it was */
};

/* Strings and arrays are valid during the visit. */
struct xpt_driver_info {
	size_t size; /* sizeof(struct xpt_driver_info) of the library */
	const char *name;
	const char *title;
	enum xpt_driver_state state;
	const char *set; /* which of its alternative sets of events was taken, for people; "" when there is only one */
	const struct xpt_driver_event *events;
	size_t event_count;
	size_t event_size;	    /* of one of them: XPT_AT() in error.h */
	size_t found;		    /* of the events */
	const char *const *devices; /* device nodes whose ioctls are followed */
	size_t device_count;
};

/*
 * Visits every described driver. A non-zero return of visit ends the walk and is returned. Without a tracefs that can be
 * read, every driver is XPT_DRIVER_UNKNOWN, and a message of level XPT_LOG_WARN says what to do. -EINVAL: options or a
 * description are wrong; -ENOENT, -EACCES: a file of a description cannot be read; -ENOMEM.
 */
XPT_API int xpt_driver_list(const struct xpt_driver_options *options,
			    int (*visit)(void *context, const struct xpt_driver_info *driver), void *context);

#ifdef __cplusplus
}
#endif
#endif

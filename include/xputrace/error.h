/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors, messages and versions.
 *
 * Functions of this library return 0 or a positive count on success and a negative errno value on failure, or a
 * pointer that is NULL with errno set. What exactly went wrong and what to do about it is said once, through the log
 * callback, at the place where it is known. The library never prints and never exits.
 *
 * Structs of options begin with their size, as the caller's header has it: fields of a newer library that the caller does not know are
 * zero, and an older library refuses those that it does not know with -E2BIG, unless they are zero.
 */
#ifndef XPUTRACE_ERROR_H
#define XPUTRACE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#define XPT_API __attribute__((visibility("default")))

/* Version of the library that is loaded: "0.1.0". Static. */
XPT_API const char *xpt_version(void);

#ifndef __cplusplus
/*
 * Declares a struct with its size and what follows, everything else zero: XPT_OPTS(xpt_report_options, options, .input = "run.xpt").
 */
#define XPT_OPTS(type, ...) XPT_OPTS_(type, __VA_ARGS__, )
/* The comma above stands in for missing initialisers: C99 wants an argument for the dots. */
#define XPT_OPTS_(type, name, ...) struct type name = { .size = sizeof(struct type), __VA_ARGS__ }
#endif

enum xpt_log_level {
	XPT_LOG_DEBUG = 0,
	XPT_LOG_INFO = 1,
	XPT_LOG_WARN = 2,
	XPT_LOG_ERROR = 3,
};

/*
 * Receives one message without a trailing newline; text is valid during the call only. Called on the thread that met
 * the condition. Must not call back into the library.
 */
typedef void (*xpt_log_fn)(void *context, enum xpt_log_level level, const char *text);

#ifdef __cplusplus
}
#endif
#endif

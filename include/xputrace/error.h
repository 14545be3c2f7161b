/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors and messages.
 *
 * Functions of this library return 0 or a positive count on success and a negative errno value on failure, or a
 * pointer that is NULL with errno set. What exactly went wrong and what to do about it is said once, through the log
 * callback, at the place where it is known. The library never prints and never exits.
 */
#ifndef XPUTRACE_ERROR_H
#define XPUTRACE_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

#define XPT_API __attribute__((visibility("default")))

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

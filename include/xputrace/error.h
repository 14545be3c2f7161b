/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Errors, messages and versions.
 *
 * Functions of this library return 0 or a positive count on success and a negative errno value on failure, or a
 * pointer that is NULL with errno set. What exactly went wrong and what to do about it comes once, through the log
 * callback, at the place where it is known. The library never prints and never exits.
 *
 * Structs begin with their size and grow at their ends only, so that programs and libraries of different versions fit together:
 *   - Options have sizeof() of the caller's header. Fields that the caller does not know are zero; -E2BIG: one that the library does not
 *     know is not zero.
 *   - What the library fills in has sizeof() of the caller's header, too; afterwards how much of it the library has filled in.
 *   - What the library hands out has sizeof() of the library: fields behind that are not there.
 *
 * Beside an array of structs is the size of one element: names, name_count, name_size. For the caller's arrays it is sizeof() of the
 * caller's header, or 0 for that of the first version, and -E2BIG means the same. The library's arrays are read with XPT_AT().
 */
#ifndef XPUTRACE_ERROR_H
#define XPUTRACE_ERROR_H

#include <stddef.h>

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

/* An element of an array that the library has handed out: XPT_AT(report->programs, report->program_size, i)->name. */
#define XPT_AT(array, element_size, index) \
	((__typeof__(&(array)[0]))(const void *)((const char *)(array) + (size_t)(element_size) * (size_t)(index)))

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

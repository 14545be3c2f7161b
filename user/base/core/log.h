/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors, and messages: they leave the library through one callback; nothing below cli/ prints. */
#ifndef XPT_BASE_CORE_LOG_H
#define XPT_BASE_CORE_LOG_H

#include <errno.h>
#include <stdbool.h>
#include <xputrace/error.h>

struct log {
	xpt_log_fn write;	  /* NULL: messages are dropped */
	void *context;		  /* handed to write, owned by the caller */
	enum xpt_log_level level; /* messages below it are dropped */
};

/* Formats one message, without a newline, and hands it to the callback. log may be NULL. */
void log_write(const struct log *log, enum xpt_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#define log_error(log, ...) log_write(log, XPT_LOG_ERROR, __VA_ARGS__)
#define log_warn(log, ...) log_write(log, XPT_LOG_WARN, __VA_ARGS__)
#define log_info(log, ...) log_write(log, XPT_LOG_INFO, __VA_ARGS__)
#define log_debug(log, ...) log_write(log, XPT_LOG_DEBUG, __VA_ARGS__)

/* The machine lacks something, or fails, whatever the input is. Such an error is never passed over in silence. */
static inline bool error_is_shortage(int error)
{
	return error == -ENOMEM || error == -EMFILE || error == -ENFILE || error == -EIO;
}

#endif

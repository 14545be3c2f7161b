/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages leave the library through one callback; nothing below cli/ prints. */
#ifndef XPT_BASE_CORE_LOG_H
#define XPT_BASE_CORE_LOG_H

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

#endif

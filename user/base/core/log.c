/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/core/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_write(const struct log *log, enum xpt_log_level level, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	if (!log || !log->write || level < log->level)
		return;
	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	log->write(log->context, level, text);
}

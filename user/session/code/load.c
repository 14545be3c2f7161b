/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/load.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void code_load_set_error(struct code_load *load, const char *format, ...)
{
	va_list arguments;

	if (load->error)
		return;
	va_start(arguments, format);
	if (vasprintf(&load->error, format, arguments) < 0)
		load->error = NULL;
	va_end(arguments);
}

void code_load_free(struct code_load *load)
{
	if (!load)
		return;
	code_copy_free(&load->copy);
	if (load->file >= 0)
		close(load->file);
	free(load->path);
	free(load->error);
	free(load);
}

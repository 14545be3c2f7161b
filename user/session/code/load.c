/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code/load.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

void code_load_set_file_error(struct code_load *load, int error)
{
	load->in_file = false;
	load->incomplete = true;
	code_load_set_error(load, "the file cannot be opened: %s",
			    error == -ETIMEDOUT ? "its file system does not answer" :
			    error == -EPROTO	? "the process that read it has ended" :
						  strerror(-error));
}

void code_load_free(struct code_load *load)
{
	if (!load)
		return;
	code_copy_free(&load->copy);
	file_reader_close(load->reader);
	if (load->place >= 0)
		close(load->place);
	free(load->path);
	free(load->error);
	free(load);
}

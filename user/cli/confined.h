/* SPDX-License-Identifier: BSD-2-Clause */
/* Commands that read files which strangers may have written, and need no rights for what they do with them. */
#ifndef XPT_CLI_CONFINED_H
#define XPT_CLI_CONFINED_H

#include <stdbool.h>

/* One that the user has named. */
struct confined_file {
	const char *path; /* NULL: none; "-": the standard one */
	bool output;
	bool folder; /* what is directly in it may be looked at, without opening it (O_PATH), too */
};

/*
 * Gives up all rights (base/confine.h) but those to read and write what is open. Another process, which reads nothing, keeps them and
 * opens the files in the list whenever they are asked for: inputs for reading, outputs as
 * output_open() or output_begin(). Until the end. That it is not possible is a warning. To be called before any file is read, by the only thread.
 */
void confined_begin(const struct confined_file *files, unsigned int count);

/* Bytes of an output that was opened since; -1: it is no regular file. */
long long confined_output_size(const char *path);

#endif

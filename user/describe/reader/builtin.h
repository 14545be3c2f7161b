/* SPDX-License-Identifier: BSD-2-Clause */
/* The descriptions that are shipped, embedded by embed.sh when the program is built. */
#ifndef XPT_DESCRIBE_READER_BUILTIN_H
#define XPT_DESCRIBE_READER_BUILTIN_H

#include <stddef.h>

struct builtin_file {
	const char *name; /* "nrt.json" */
	const char *text; /* not terminated */
	size_t length;	  /* bytes */
};

extern const struct builtin_file builtin_files[]; /* of runtimes */
extern const size_t builtin_file_count;
extern const struct builtin_file builtin_drivers[];
extern const size_t builtin_driver_count;

#endif

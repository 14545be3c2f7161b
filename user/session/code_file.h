/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the files that a program gives to a runtime, without being led elsewhere, held up, or made to do harm. */
#ifndef XPT_SESSION_CODE_FILE_H
#define XPT_SESSION_CODE_FILE_H

#include <sys/types.h>

/*
 * Opens the regular file at path as the process sees it, with its rights; links do not lead out of its root. absolute
 * gets the path from its root, to be freed. Gives a descriptor, or -ENOENT, -EACCES and so on; -ENOTSUP: it is no
 * regular file, or one that the kernel makes up; -ENOMEM. absolute is set after an error, too, but for -ENOMEM and
 * -ESRCH.
 */
int code_file_open(pid_t tgid, const char *path, char **absolute);
/* The same of an open file of the process. -EBADF: it has none of that number. */
int code_file_open_descriptor(pid_t tgid, int number, char **absolute);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the files that a program gives to a runtime, without being led elsewhere, held up, or made to do harm. */
#ifndef XPT_SESSION_CODE_FILE_H
#define XPT_SESSION_CODE_FILE_H

#include <stdbool.h>
#include <sys/types.h>

/* Rights to files that a thread had when it made the call. */
struct code_rights {
	uid_t uid;
	gid_t gid;
	bool reads_all; /* every file of the machine */
};

/*
 * Opens the regular file at path as the process sees it, with its rights, and its supplementary groups if it is still the same
 * user; links do not lead out of its root. absolute
 * gets the path from its root, to be freed. Gives a descriptor, or -ENOENT, -EACCES and so on; -ENOTSUP: it is no
 * regular file, or one that the kernel makes up; -ENOMEM. absolute is set after an error, too, but for -ENOMEM and
 * -ESRCH.
 */
int code_file_open(pid_t tgid, const struct code_rights *rights, const char *path, char **absolute);
/* The same of an open file of the process: the very descriptor. -EBADF: it has none of that number, or may not read from it. */
int code_file_open_descriptor(pid_t tgid, int number, char **absolute);

#endif

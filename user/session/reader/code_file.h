/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opens the files that a program gives to a runtime, without being led elsewhere or made to do harm. By a process of its own, as file
 * systems may hang (file_reader_code_start()).
 */
#ifndef XPT_SESSION_READER_CODE_FILE_H
#define XPT_SESSION_READER_CODE_FILE_H

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
/*
 * The same of an open file of the process: the very descriptor, which gives no more rights than it has. Waits for nobody. -EBADF: it
 * has none of that number.
 */
int code_file_take(pid_t tgid, int number, char **absolute);
/* The descriptor, if it is to be read from; else it is closed. -EBADF: it may not be; -ENOTSUP as above. */
int code_file_check(int descriptor);
/* What place, which is closed, stands for (O_PATH, so that nothing has happened to what is there). As code_file_open(). */
int code_file_open_place(int place);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* Single files at a path given by the user: xputrace/output.h. */
#ifndef XPT_BASE_FILE_OUTPUT_H
#define XPT_BASE_FILE_OUTPUT_H

#include <stdbool.h>
#include <sys/types.h>

void output_set_owner(uid_t user, gid_t group);

/*
 * Who called sudo, by SUDO_UID and SUDO_GID. False: nobody did, this is not root, or one of them is no number of a user or group:
 * only decimal digits, and at most 4294967294, as -1 stands for nobody in particular.
 */
bool sudo_caller(uid_t *user, gid_t *group);
/*
 * Opens the file for writing, creates it if it is not there; flags: O_NONBLOCK, O_RDWR: to be read, too; and O_TRUNC: a regular file with anything in it becomes
 * PATH.old, and a new one takes its place, but where its directory does not allow that: then it is made empty. A descriptor, or -ELOOP, -EPERM (see there),
 * -EISDIR, -ENOENT, -EACCES, -EROFS ...
 */
int output_open(const char *path, int flags);
/*
 * The temporary file, in the same directory, becomes path; what is there becomes PATH.old as above. 0 or -errno, also as above: the
 * temporary one is still there.
 */
int output_replace(const char *temporary, const char *path);
/*
 * A new file beside path, mode 0600, under a name that nobody else has: it becomes path by rename() or output_replace(). Returns its
 * descriptor, or -errno; the caller frees *name.
 */
int output_temporary(const char *path, char **name);

/*
 * A file that appears when it is complete: written under another name, brought to the disk, renamed. It has the mode of the file that
 * it replaces, else 0600.
 */
struct output_file {
	int descriptor;	 /* -1: closed */
	char *path;	 /* what it becomes: links are followed; NULL: a device or a pipe, which is written as it is */
	char *temporary; /* what it is called until then; NULL with a path: the opener knows */
};

/* 0 or -errno as output_open(). */
int output_begin(const char *path, struct output_file *file);
/* error: 0 when all has been written; else the file is removed. Returns the first error. */
int output_end(struct output_file *file, int error);

/*
 * xpt_output_set_opener(): open_named() opens what the caller has named to be read, open_inside() what is in a directory that was
 * named so (descriptor folder), open_temporary() a file without a name; all as output_open() and output_begin() through the opener, if
 * there is one. A descriptor or -errno.
 */
void output_set_opener(int (*open)(void *context, const char *path, int flags), void *context);
int open_named(const char *path, int flags);
int open_inside(int folder, const char *path, const char *name, int flags);
int open_temporary(void);
/* Root, who runs this, or the owner. */
bool output_is_trusted(uid_t user);
/* Gives a file that was created otherwise to the owner. Where that is impossible, it stays as it is. */
void output_give(int descriptor);
/* For messages: why a path cannot be written. error: negative. Valid as strerror()'s. */
const char *output_reason(int error);

#endif

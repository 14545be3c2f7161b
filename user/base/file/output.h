/* SPDX-License-Identifier: BSD-2-Clause */
/* Single files at a path given by the user: xputrace/output.h. */
#ifndef XPT_BASE_FILE_OUTPUT_H
#define XPT_BASE_FILE_OUTPUT_H

#include <limits.h>
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
 * The directory in which what path names is, or would be made: O_PATH, of the caller, who closes it; and its name there. Links are followed
 * as by output_open(). -errno as there.
 */
int output_directory(const char *path, char name[NAME_MAX + 1]);

/*
 * A file that appears when it is complete: written under another name, then renamed. The directory is held open: whatever becomes of the
 * path meanwhile, nothing is written elsewhere.
 */
struct output_file {
	int descriptor;		 /* -1: none, or closed */
	int directory;		 /* O_PATH; with a temporary name */
	char name[NAME_MAX + 1]; /* that it gets: what is there becomes PATH.old as above */
	char temporary[NAME_MAX +
		       1]; /* that it has until then; "": a device or a pipe, written as it is, or the opener's file */
	char *path;	   /* of the opener's */
	bool over;	   /* set by the caller: what is there goes, and does not become PATH.old */
	bool synced;	   /* brought to the disk before it gets its name */
};

/* An empty file beside path, mode 0600, whatever is there. 0 or -errno as output_open(). */
int output_temporary(const char *path, struct output_file *file);
/* The same, with the mode of the regular file that it replaces, and synced at the end. A device or a pipe is opened as it is. */
int output_begin(const char *path, struct output_file *file);
/* error: 0 when all has been written; else the file is removed. Returns the first error, -EPERM as above. */
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

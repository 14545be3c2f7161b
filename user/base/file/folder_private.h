/* SPDX-License-Identifier: BSD-2-Clause */
/* What folder.c, folder_file.c and output.c share. */
#ifndef XPT_BASE_FILE_FOLDER_PRIVATE_H
#define XPT_BASE_FILE_FOLDER_PRIVATE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/file/folder.h"

struct folder {
	struct log log;
	struct folder *parent; /* of a sub-folder; else NULL */
	char *path;
	const char *name; /* last part of path; of a sub-folder only */
	int start; /* O_PATH: where a relative path begins, whatever the working directory becomes; -1: a sub-folder */
	int descriptor;
	uid_t uid;
	gid_t gid;
	bool named;	   /* files have a hidden name until they are whole: there is no O_TMPFILE here */
	bool owner_logged; /* that files cannot change their owner */
};

/* ---- folder.c ---- */

/* The last component of a path, which is missing, or no link a moment ago; "." for the directory itself. */
struct folder_place {
	int above; /* O_PATH; the caller closes */
	char name[NAME_MAX + 1];
};

/* Finds where folder's path leads. 0 or -errno, logged. */
int folder_walk(const struct folder *folder, struct folder_place *place);
/* Whether what belongs to uid is not in the hands of a stranger. */
bool folder_trusts(const struct folder *folder, uid_t uid);

#define FOLDER_TEMPORARY_SIZE 64

/* A hidden name that no other process of this machine uses, and this one did not before. */
void folder_temporary_name(char name[FOLDER_TEMPORARY_SIZE]);

/* ---- folder_file.c ---- */

/* folder_file_begin() without a second try. Logs nothing. */
int folder_file_create(struct folder *folder, struct folder_file **result);
/* Gives something that this process has made to the folder's owner. Where that is impossible, it stays as it is. */
int folder_give(struct folder *folder, int descriptor);

#endif

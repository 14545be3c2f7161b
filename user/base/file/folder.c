/* SPDX-License-Identifier: BSD-2-Clause */
/* Opening folders: what is made, what is refused. */
#include "base/file/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/folder_private.h"
#include "base/core/text.h"

#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

/* ---- a directory within one that is open ---- */

/* 1 or 0, or -errno. */
static int is_empty(int directory)
{
	int descriptor = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = descriptor < 0 ? NULL : fdopendir(descriptor);
	struct dirent *entry;
	int result = 1;

	if (!entries) {
		result = -errno;
		if (descriptor >= 0)
			close(descriptor);
		return result;
	}
	while (result && (entry = readdir(entries)))
		result = !strcmp(entry->d_name, ".") || !strcmp(entry->d_name, "..");
	closedir(entries);
	return result;
}

/*
 * Others with write access to the directory above may have replaced the new directory, perhaps by one with files of
 * root: only an empty one changes its owner.
 */
static int give_new(struct folder *folder, int directory)
{
	struct stat status;
	int empty = is_empty(directory);

	if (empty < 0 || fstat(directory, &status))
		return empty < 0 ? empty : -errno;
	if (status.st_uid != geteuid() || !empty) {
		log_error(&folder->log, "%s: was changed by another process while it was created: create it first",
			  folder->path);
		return -EPERM;
	}
	return folder_give(folder, directory);
}

static int check_writers(const struct folder *folder, int directory)
{
	struct stat status;

	if (fstat(directory, &status))
		return -errno;
	if (!(status.st_mode & (S_IWGRP | S_IWOTH)) || status.st_mode & S_ISVTX)
		return 0;
	log_error(&folder->log,
		  "%s: others than its owner may write into it: take that from them (chmod go-w), or name another",
		  folder->path);
	return -EPERM;
}

/* In a sticky directory others may have made the next component; what they own, they may change at any time. */
static int check_owner(const struct folder *folder, int directory)
{
	struct stat status, parent;

	if (fstat(directory, &status) || fstatat(directory, "..", &parent, 0))
		return -errno;
	/* Who owns the directory above could have put it there in any case. */
	if (folder_trusts(folder, status.st_uid) || status.st_uid == parent.st_uid)
		return 0;
	if (!folder->parent && !(parent.st_mode & (S_IWGRP | S_IWOTH)))
		return 0;
	log_error(&folder->log, "%s: belongs to another user (%u): remove it, or name another directory above it",
		  folder->path, (unsigned int)status.st_uid);
	return -EPERM;
}

/* Whether files can be made, before anything is done for them. */
static int try_file(struct folder *folder)
{
	struct folder_file *file;
	int error = folder_file_create(folder, &file);

	if (!error)
		folder_file_abandon(file);
	else if (error == -EROFS)
		log_error(&folder->log, "%s: is on a file system that is read-only: name a directory elsewhere",
			  folder->path);
	else if (error == -EACCES || error == -EPERM)
		log_error(&folder->log, "%s: no permission to write into it: name another, or change its permissions",
			  folder->path);
	else if (error == -ENOSPC || error == -EDQUOT)
		log_error(&folder->log, "%s: no space for a file: %s: make room, or name a directory elsewhere",
			  folder->path, strerror(-error));
	else
		log_error(&folder->log, "cannot create a file in %s: %s", folder->path, strerror(-error));
	return error;
}

/* Takes directory over for folder if it is good enough. */
static int accept_directory(struct folder *folder, int directory, bool made)
{
	int before = folder->descriptor;
	int error = made ? give_new(folder, directory) : 0;

	if (!error)
		error = check_writers(folder, directory);
	if (!error)
		error = check_owner(folder, directory);
	if (error)
		return error;
	folder->descriptor = directory;
	error = try_file(folder);
	if (error) {
		folder->descriptor = before;
		return error;
	}
	if (before >= 0)
		close(before);
	folder_sweep(folder);
	return 0;
}

static int explain_open(const struct folder *folder, int above, const char *name, int error)
{
	struct stat status;

	if (error == -ENOTDIR && !fstatat(above, name, &status, AT_SYMLINK_NOFOLLOW) && S_ISLNK(status.st_mode)) {
		log_error(&folder->log, "%s: is a symbolic link, which is not followed: remove it", folder->path);
		return -ELOOP;
	}
	if (error == -ENOTDIR)
		log_error(&folder->log, "%s: is not a directory: name another, or move it away", folder->path);
	else
		log_error(&folder->log, "%s: cannot be opened: %s", folder->path, strerror(-error));
	return error;
}

/* Opens name in the directory above for folder, or makes it. Logs errors, unless above itself has been removed. */
static int open_in(struct folder *folder, int above, const char *name)
{
	int directory = openat(above, name, OPEN_DIRECTORY);
	bool made = false;
	int error;

	if (directory < 0 && errno == ENOENT) {
		made = !mkdirat(above, name, 0700);
		if (!made && errno == ENOENT)
			return -ENOENT;
		if (!made && errno != EEXIST) {
			error = -errno;
			log_error(&folder->log, "cannot create %s: %s", folder->path, strerror(-error));
			return error;
		}
		directory = openat(above, name, OPEN_DIRECTORY);
	}
	if (directory < 0)
		return explain_open(folder, above, name, -errno);
	error = accept_directory(folder, directory, made);
	if (error) {
		close(directory);
		if (made)
			unlinkat(above, name, AT_REMOVEDIR);
	}
	return error;
}

static int tell_removed(const struct folder *folder, int error)
{
	if (error == -ENOENT)
		log_error(&folder->log, "%s: what is above it has just been removed: make it again", folder->path);
	return error;
}

int folder_reopen(struct folder *folder)
{
	struct folder_place place;
	int error;

	if (folder->parent) {
		error = open_in(folder, folder->parent->descriptor, folder->name);
		if (error != -ENOENT)
			return error;
		error = folder_reopen(folder->parent);
		if (error)
			return error;
		return tell_removed(folder, open_in(folder, folder->parent->descriptor, folder->name));
	}
	error = folder_walk(folder, &place);
	if (error)
		return error;
	error = tell_removed(folder, open_in(folder, place.above, place.name));
	close(place.above);
	return error;
}

/* ---- folders ---- */

void folder_close(struct folder *folder)
{
	if (!folder)
		return;
	if (folder->descriptor >= 0)
		close(folder->descriptor);
	if (folder->start >= 0)
		close(folder->start);
	free(folder->path);
	free(folder);
}

const char *folder_path(const struct folder *folder)
{
	return folder->path;
}

/* Opens what has been filled in; it is freed when that fails. */
static int open_filled(struct folder *folder, struct folder **result)
{
	int error = folder_reopen(folder);

	if (error)
		folder_close(folder);
	else
		*result = folder;
	return error;
}

int folder_open(const struct log *log, const char *path, uid_t uid, gid_t gid, struct folder **result)
{
	struct folder *folder;
	int error;

	if (!path[0]) {
		log_error(log, "no directory for the output is given: name one, \".\" is the one you are in");
		return -EINVAL;
	}
	folder = calloc(1, sizeof(*folder));
	if (!folder)
		return -ENOMEM;
	folder->log = log ? *log : (struct log){ 0 };
	folder->descriptor = -1;
	folder->uid = uid;
	folder->gid = gid;
	folder->start = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	folder->path = strdup(path);
	if (folder->start < 0 || !folder->path) {
		error = folder->path ? -errno : -ENOMEM;
		folder_close(folder);
		return error;
	}
	return open_filled(folder, result);
}

int folder_sub(struct folder *folder, const char *name, struct folder **result)
{
	char clean[FOLDER_NAME_MAX + 1];
	struct text path = { 0 };
	struct folder *sub = calloc(1, sizeof(*sub));

	if (!sub)
		return -ENOMEM;
	*sub = *folder;
	sub->parent = folder;
	sub->start = -1;
	sub->descriptor = -1;
	text_string(&path, folder->path);
	text_literal(&path, "/");
	text_bytes(&path, clean, folder_clean_name(name, clean, sizeof(clean)) + 1);
	sub->path = path.data;
	if (path.error) {
		folder_close(sub);
		return -ENOMEM;
	}
	sub->name = strrchr(sub->path, '/') + 1;
	return open_filled(sub, result);
}

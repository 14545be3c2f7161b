/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/output.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/folder_private.h"

#define OLD ".old"

static int (*opener)(void *context, const char *path, int flags);
static void *opener_context;
static uid_t owner_user = (uid_t)-1;
static gid_t owner_group = (gid_t)-1;

void output_set_owner(uid_t user, gid_t group)
{
	owner_user = user;
	owner_group = group;
}

/* Nothing but the decimal digits of one that a file can have. */
static bool parse_id(const char *text, unsigned int *id)
{
	unsigned long value;
	char *end;

	errno = 0;
	value = strtoul(text, &end, 10);
	if (!isdigit((unsigned char)*text) || *end || errno || value >= UINT_MAX)
		return false;
	*id = value;
	return true;
}

bool sudo_caller(uid_t *user, gid_t *group)
{
	const char *uid = getenv("SUDO_UID"), *gid = getenv("SUDO_GID");
	unsigned int its_user, its_group;

	if (!uid || !gid)
		return false;
	if (geteuid() || !parse_id(uid, &its_user) || !parse_id(gid, &its_group))
		return false;
	*user = its_user;
	*group = its_group;
	return true;
}

bool output_is_trusted(uid_t user)
{
	return !user || user == geteuid() || user == owner_user;
}

void output_give(int descriptor)
{
	if ((owner_user != (uid_t)-1 || owner_group != (gid_t)-1) && fchown(descriptor, owner_user, owner_group))
		return;
}

const char *output_reason(int error)
{
	if (error == -ELOOP)
		return "a symbolic link on the way belongs to another user: give the path that it leads to";
	if (error == -EPERM)
		return "others may write into the directory, and what is there may be theirs: remove it, or name another";
	return strerror(-error);
}

/* Whether others may put files into the directory. */
static bool is_shared(const struct folder *folder, int directory)
{
	struct stat status;

	return fstat(directory, &status) || status.st_mode & (S_IWGRP | S_IWOTH) ||
	       !folder_trusts(folder, status.st_uid);
}

static bool may_be_theirs(const struct folder *folder, int directory, const struct stat *status)
{
	return is_shared(folder, directory) &&
	       (!folder_trusts(folder, status->st_uid) || (S_ISREG(status->st_mode) && status->st_nlink != 1));
}

static int error_or(int descriptor)
{
	return descriptor < 0 ? -errno : descriptor;
}

/*
 * The file becomes NAME.old, over what has that name. 0: it was moved; -EPERM: what has that name may be a stranger's; -EEXIST: it
 * stays: it is no file with anything in it, or its directory does not allow it.
 */
static int move_old(const struct folder *folder, const struct folder_place *place, const struct stat *status)
{
	char old[NAME_MAX + sizeof(OLD)];
	struct stat there;

	snprintf(old, sizeof(old), "%s" OLD, place->name);
	if (!S_ISREG(status->st_mode) || !status->st_size || strlen(old) > NAME_MAX)
		return -EEXIST;
	if (!fstatat(place->above, old, &there, AT_SYMLINK_NOFOLLOW) && may_be_theirs(folder, place->above, &there))
		return -EPERM;
	return renameat(place->above, place->name, place->above, old) ? -EEXIST : 0;
}

static int open_existing(const struct folder *folder, const struct folder_place *place, int flags)
{
	int there = openat(place->above, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC), result;
	struct stat status;
	char path[64];

	if (there < 0)
		return -errno;
	/* The very file that was opened. Links that are left are the kernel's, as /proc/self/fd/1. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", there);
	if (fstat(there, &status))
		result = -errno;
	else if (S_ISLNK(status.st_mode))
		result = error_or(openat(place->above, place->name, flags));
	else if (may_be_theirs(folder, place->above, &status))
		result = -EPERM;
	else
		result = flags & O_TRUNC ? move_old(folder, place, &status) : -EEXIST;
	if (!result)
		result = -ENOENT; /* as if it had not been there */
	else if (result == -EEXIST)
		result = error_or(open(path, flags));
	close(there);
	return result;
}

static int open_in(const struct folder *folder, const struct folder_place *place, int flags)
{
	int descriptor = open_existing(folder, place, flags);

	if (descriptor != -ENOENT)
		return descriptor;
	descriptor = openat(place->above, place->name, (flags & O_ACCMODE) | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			    0600);
	if (descriptor < 0)
		return errno == EEXIST ? open_existing(folder, place, flags) : -errno;
	output_give(descriptor);
	return descriptor;
}

/* Finds the place where the path leads; the caller closes place->above. 0 or -errno. */
static int find(const char *path, struct folder *folder, struct folder_place *place)
{
	int error;

	place->above = -1;
	place->name[0] = '\0';
	*folder = (struct folder){ .path = (char *)path, .uid = owner_user, .descriptor = -1 };
	if (!*path)
		return -ENOENT;
	folder->start = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder->start < 0)
		return -errno;
	error = folder_walk(folder, place);
	close(folder->start);
	return error;
}

int output_directory(const char *path, char name[NAME_MAX + 1])
{
	struct folder_place place;
	struct folder folder;
	int error = find(path, &folder, &place);

	if (!error)
		strcpy(name, place.name);
	return error ?: place.above;
}

int output_open(const char *path, int flags)
{
	int all = O_CLOEXEC | (flags & O_RDWR ? 0 : O_WRONLY) | flags, result;
	struct folder_place place;
	struct folder folder;

	if (opener)
		return opener(opener_context, path, O_CREAT | all);
	result = find(path, &folder, &place);
	if (!result) {
		result = open_in(&folder, &place, all);
		close(place.above);
	}
	return result;
}

void output_set_opener(int (*open)(void *context, const char *path, int flags), void *context)
{
	opener = open;
	opener_context = context;
}

int open_named(const char *path, int flags)
{
	return opener ? opener(opener_context, path, flags) : error_or(open(path, flags));
}

int open_inside(int folder, const char *path, const char *name, int flags)
{
	char whole[PATH_MAX];

	if (!opener)
		return error_or(openat(folder, name, flags));
	if (snprintf(whole, sizeof(whole), "%s/%s", path, name) >= (int)sizeof(whole))
		return -ENAMETOOLONG;
	return opener(opener_context, whole, flags);
}

int open_temporary(void)
{
	FILE *file = opener ? NULL : tmpfile();
	int descriptor;

	if (opener)
		return opener(opener_context, "", O_TMPFILE | O_RDWR | O_CLOEXEC);
	descriptor = file ? fcntl(fileno(file), F_DUPFD_CLOEXEC, 3) : -1;
	descriptor = error_or(descriptor);
	if (file)
		fclose(file);
	return descriptor;
}

/* ---- files that appear when they are complete ---- */

static int end_with(struct output_file *file, int error)
{
	if (file->temporary[0])
		close(file->directory);
	free(file->path);
	*file = (struct output_file){ .descriptor = -1 };
	return error;
}

/* In the directory of the place, which becomes the file's. Through /proc, no part of the path is looked up again. */
static int create_beside(const struct folder_place *place, struct output_file *file)
{
	char path[64 + NAME_MAX];
	int length = snprintf(path, sizeof(path), "/proc/self/fd/%d/%s.XXXXXX", place->above, place->name);

	if (strlen(place->name) + strlen(".XXXXXX") > NAME_MAX || length >= (int)sizeof(path))
		return -ENAMETOOLONG;
	file->descriptor = error_or(mkostemp(path, O_CLOEXEC));
	if (file->descriptor < 0)
		return file->descriptor;
	strcpy(file->temporary, strrchr(path, '/') + 1);
	strcpy(file->name, place->name);
	file->directory = place->above;
	output_give(file->descriptor);
	return 0;
}

int output_temporary(const char *path, struct output_file *file)
{
	struct folder_place place;
	struct folder folder;
	int error;

	*file = (struct output_file){ .descriptor = -1 };
	error = find(path, &folder, &place);
	if (error)
		return error;
	error = create_beside(&place, file);
	if (error)
		close(place.above);
	return error;
}

/* What is there is opened, as it must not be another user's. A device or a pipe is written as it is. */
static int begin_in(const struct folder *folder, const struct folder_place *place, struct output_file *file)
{
	struct stat status = { .st_mode = 0600 };
	int there = openat(place->above, place->name, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;

	if (there >= 0) {
		close(there);
		file->descriptor = open_in(folder, place, O_WRONLY | O_CLOEXEC);
		if (file->descriptor < 0)
			return file->descriptor;
		if (fstat(file->descriptor, &status) || !S_ISREG(status.st_mode))
			return 0;
		close(file->descriptor);
		file->descriptor = -1;
	}
	error = create_beside(place, file);
	file->synced = true;
	return error ?: fchmod(file->descriptor, status.st_mode & 0777) ? -errno : 0;
}

int output_begin(const char *path, struct output_file *file)
{
	struct folder_place place;
	struct folder folder;
	int error;

	*file = (struct output_file){ .descriptor = -1 };
	if (opener) {
		file->path = strdup(path);
		file->descriptor = file->path ? opener(opener_context, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC) :
						-ENOMEM;
		return file->descriptor < 0 ? end_with(file, file->descriptor) : 0;
	}
	error = find(path, &folder, &place);
	if (error)
		return error;
	error = begin_in(&folder, &place, file);
	if (!file->temporary[0])
		close(place.above);
	return error ? output_end(file, error) : 0;
}

/* What has the name becomes NAME.old, unless the file goes over it. -EPERM: it may be a stranger's. */
static int make_way(const struct output_file *file)
{
	const struct folder folder = { .uid = owner_user };
	struct folder_place place = { .above = file->directory };
	struct stat status;

	strcpy(place.name, file->name);
	if (fstatat(place.above, place.name, &status, AT_SYMLINK_NOFOLLOW))
		return 0;
	if (may_be_theirs(&folder, place.above, &status))
		return -EPERM;
	return file->over || move_old(&folder, &place, &status) != -EPERM ? 0 : -EPERM;
}

static int put_in_place(const struct output_file *file)
{
	int error = make_way(file);

	if (error)
		return error;
	return renameat(file->directory, file->temporary, file->directory, file->name) ? -errno : 0;
}

int output_end(struct output_file *file, int error)
{
	if (!error && file->synced && fsync(file->descriptor))
		error = -errno;
	if (file->descriptor >= 0 && close(file->descriptor) && errno != EINTR && !error)
		error = -errno;
	if (file->temporary[0]) {
		error = error ?: put_in_place(file);
		if (error)
			unlinkat(file->directory, file->temporary, 0);
	} else if (file->path && opener) {
		int ended = opener(opener_context, file->path, error ? O_EXCL : O_CREAT | O_EXCL | O_TRUNC);

		error = error ?: ended;
	}
	return end_with(file, error);
}

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

static int move_in(const struct folder *folder, const struct folder_place *place, int flags)
{
	struct stat status;
	int error = fstatat(place->above, place->name, &status, AT_SYMLINK_NOFOLLOW) ? -errno : 0;

	(void)flags;
	if (!error)
		error = may_be_theirs(folder, place->above, &status) ? -EPERM : move_old(folder, place, &status);
	return error == -EPERM ? error : 0;
}

/* Does something at the place where the path leads. */
static int walk(const char *path, int (*act)(const struct folder *, const struct folder_place *, int flags), int flags)
{
	struct folder folder = { .path = (char *)path, .uid = owner_user, .descriptor = -1 };
	struct folder_place place;
	int result;

	if (!*path)
		return -ENOENT;
	folder.start = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (folder.start < 0)
		return -errno;
	result = folder_walk(&folder, &place);
	if (!result) {
		result = act(&folder, &place, flags);
		close(place.above);
	}
	close(folder.start);
	return result;
}

int output_open(const char *path, int flags)
{
	if (opener)
		return opener(opener_context, path, O_CREAT | O_CLOEXEC | (flags & O_RDWR ? 0 : O_WRONLY) | flags);
	return walk(path, open_in, O_CLOEXEC | (flags & O_RDWR ? 0 : O_WRONLY) | flags);
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

int output_replace(const char *temporary, const char *path)
{
	int error = walk(path, move_in, 0);

	if (error && error != -ENOENT)
		return error;
	return rename(temporary, path) ? -errno : 0;
}

int output_temporary(const char *path, char **name)
{
	int descriptor;

	if (asprintf(name, "%s.XXXXXX", path) < 0) {
		*name = NULL;
		return -ENOMEM;
	}
	descriptor = error_or(mkostemp(*name, O_CLOEXEC));
	if (descriptor >= 0) {
		output_give(descriptor);
	} else {
		free(*name);
		*name = NULL;
	}
	return descriptor;
}

int output_begin(const char *path, struct output_file *file)
{
	struct stat status;
	bool there;

	*file = (struct output_file){ .descriptor = -1 };
	if (opener) {
		file->path = strdup(path);
		file->descriptor = file->path ? opener(opener_context, path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC) :
						-ENOMEM;
		return file->descriptor < 0 ? output_end(file, file->descriptor) : 0;
	}
	there = !stat(path, &status);
	if (there && !S_ISREG(status.st_mode)) {
		file->descriptor = open(path, O_WRONLY | O_CLOEXEC);
		return file->descriptor < 0 ? -errno : 0;
	}
	/* What is replaced must not be another user's. */
	if (there) {
		file->descriptor = output_open(path, 0);
		if (file->descriptor < 0)
			return file->descriptor;
		close(file->descriptor);
		file->descriptor = -1;
	}
	file->path = there ? realpath(path, NULL) : strdup(path);
	if (!file->path)
		return -errno;
	file->descriptor = output_temporary(file->path, &file->temporary);
	if (file->descriptor < 0)
		return output_end(file, file->descriptor);
	return there && fchmod(file->descriptor, status.st_mode & 07777) ? output_end(file, -errno) : 0;
}

int output_end(struct output_file *file, int error)
{
	int ended = 0;

	if (!error && file->temporary && fsync(file->descriptor))
		error = -errno;
	if (file->descriptor >= 0 && close(file->descriptor) && errno != EINTR && !error)
		error = -errno;
	if (file->path && file->temporary)
		ended = error ? 0 : output_replace(file->temporary, file->path);
	else if (file->path && opener)
		ended = opener(opener_context, file->path, error ? O_EXCL : O_CREAT | O_EXCL | O_TRUNC);
	error = error ?: ended;
	if (error && file->temporary)
		unlink(file->temporary);
	free(file->temporary);
	free(file->path);
	*file = (struct output_file){ .descriptor = -1 };
	return error;
}

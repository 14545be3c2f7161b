/* SPDX-License-Identifier: BSD-2-Clause */
/* Files on their way into a folder. */
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/folder_private.h"

#define NUMBER_MAX (1u << 30) /* of files with the same name */

struct folder_file {
	struct folder *folder;
	int descriptor;
	char temporary[FOLDER_TEMPORARY_SIZE]; /* "": it has no name */
};

/* ---- beginning and abandoning ---- */

void folder_file_abandon(struct folder_file *file)
{
	if (!file)
		return;
	if (file->temporary[0])
		unlinkat(file->folder->descriptor, file->temporary, 0);
	if (file->descriptor >= 0)
		close(file->descriptor);
	free(file);
}

/* The lock shows folder_sweep() in other containers that it is in use. */
static int create_named(struct folder_file *file)
{
	int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

	do {
		folder_temporary_name(file->temporary);
		file->descriptor = openat(file->folder->descriptor, file->temporary, flags, 0600);
	} while (file->descriptor < 0 && errno == EEXIST);
	if (file->descriptor < 0) {
		file->temporary[0] = '\0';
		return -errno;
	}
	flock(file->descriptor, LOCK_EX | LOCK_NB);
	return 0;
}

static int create_unnamed(struct folder_file *file)
{
	file->descriptor = openat(file->folder->descriptor, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	return file->descriptor < 0 ? -errno : 0;
}

static int create(struct folder *folder, bool named, struct folder_file **result)
{
	struct folder_file *file = calloc(1, sizeof(*file));
	int error;

	if (!file)
		return -ENOMEM;
	file->folder = folder;
	file->descriptor = -1;
	error = named ? create_named(file) : create_unnamed(file);
	if (error)
		folder_file_abandon(file);
	else
		*result = file;
	return error;
}

int folder_file_create(struct folder *folder, struct folder_file **result)
{
	int error;

	if (!folder->named) {
		error = create(folder, false, result);
		if (error != -EOPNOTSUPP && error != -EISDIR)
			return error;
		folder->named = true;
	}
	return create(folder, true, result);
}

/* Files without a name can be made even there, or not, with an unrelated error. */
static bool is_removed(const struct folder *folder)
{
	struct stat status;

	return fstat(folder->descriptor, &status) || !status.st_nlink;
}

int folder_file_begin(struct folder *folder, struct folder_file **result)
{
	int error = is_removed(folder) ? -ENOENT : folder_file_create(folder, result);

	if (error == -ENOENT) {
		error = folder_reopen(folder);
		if (!error)
			error = folder_file_create(folder, result);
	}
	if (error)
		log_error(&folder->log, "%s: no file can be begun: %s", folder->path, strerror(-error));
	return error;
}

int folder_file_descriptor(const struct folder_file *file)
{
	return file->descriptor;
}

/* ---- from no name to a name ---- */

int folder_give(struct folder *folder, int descriptor)
{
	if ((folder->uid == (uid_t)-1 && folder->gid == (gid_t)-1) || !fchown(descriptor, folder->uid, folder->gid))
		return 0;
	/* Without the right to, and on file systems that know no owners, the contents matter more than the owner. */
	if (errno != EPERM && errno != EINVAL && errno != EOPNOTSUPP)
		return -errno;
	if (!folder->owner_logged)
		log_warn(&folder->log, "%s: files cannot be given to user %u: %s", folder->path,
			 (unsigned int)folder->uid, strerror(errno));
	folder->owner_logged = true;
	return 0;
}

/* All that may fail while nobody can see the file yet. */
static int finish(struct folder_file *file)
{
	int error = folder_give(file->folder, file->descriptor);

	if (!error && fdatasync(file->descriptor))
		error = -errno;
	return error;
}

static int sync_directory(const struct folder *folder)
{
	/* Some file systems have nothing to sync there. */
	return fsync(folder->descriptor) && errno != EINVAL ? -errno : 0;
}

static int link_unnamed(const struct folder_file *file, const char *name)
{
	char path[64];

	if (!linkat(file->descriptor, "", file->folder->descriptor, name, AT_EMPTY_PATH))
		return 0;
	if (errno != ENOENT)
		return -errno;
	/* Also the error without the capability for it. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", file->descriptor);
	return linkat(AT_FDCWD, path, file->folder->descriptor, name, AT_SYMLINK_FOLLOW) ? -errno : 0;
}

/* Gives the file a name that nothing has yet: -EEXIST. */
static int link_as(struct folder_file *file, const char *name)
{
	int directory = file->folder->descriptor;

	if (!file->temporary[0])
		return link_unnamed(file, name);
	if (renameat2(directory, file->temporary, directory, name, RENAME_NOREPLACE)) {
		if (errno != EINVAL && errno != ENOSYS)
			return -errno;
		/* Such as NFS, which has links. */
		if (linkat(directory, file->temporary, directory, name, 0))
			return -errno;
		unlinkat(directory, file->temporary, 0);
	}
	file->temporary[0] = '\0';
	return 0;
}

/* ---- numbered names ---- */

struct wanted {
	char name[FOLDER_NAME_MAX + 1];
	const char *extension;
	bool only; /* this name, or none */
};

static void number_name(const struct wanted *wanted, unsigned int number, char result[FOLDER_RESULT_SIZE])
{
	const char *dot = wanted->extension[0] ? "." : "";

	if (number == 1)
		snprintf(result, FOLDER_RESULT_SIZE, "%s%s%s", wanted->name, dot, wanted->extension);
	else
		snprintf(result, FOLDER_RESULT_SIZE, "%s-%u%s%s", wanted->name, number, dot, wanted->extension);
}

static bool is_taken(const struct folder *folder, const struct wanted *wanted, unsigned int number)
{
	char name[FOLDER_RESULT_SIZE];
	struct stat status;

	number_name(wanted, number, name);
	return !fstatat(folder->descriptor, name, &status, AT_SYMLINK_NOFOLLOW);
}

/* The first free number as long as there are no gaps, else one after a gap, with few checks even at many thousands. */
static unsigned int find_free(const struct folder *folder, const struct wanted *wanted)
{
	unsigned int taken = 1, free = 2;

	while (free < NUMBER_MAX && is_taken(folder, wanted, free)) {
		taken = free;
		free *= 2;
	}
	while (free - taken > 1) {
		unsigned int middle = taken + (free - taken) / 2;

		if (is_taken(folder, wanted, middle))
			taken = middle;
		else
			free = middle;
	}
	return free;
}

static int link_free(struct folder_file *file, const struct wanted *wanted, char result[FOLDER_RESULT_SIZE])
{
	unsigned int number = 1;
	int error;

	for (;;) {
		number_name(wanted, number, result);
		error = link_as(file, result);
		if (error != -EEXIST || wanted->only || number >= NUMBER_MAX)
			return error;
		/* From there one by one: others may take names at the same time. */
		number = number == 1 ? find_free(file->folder, wanted) : number + 1;
	}
}

/* ---- committing ---- */

static int copy(int from, int to)
{
	char bytes[65536];
	off_t offset = 0;
	ssize_t length;
	int error;

	while ((length = pread(from, bytes, sizeof(bytes), offset))) {
		if (length < 0 && errno == EINTR)
			continue;
		error = length < 0 ? -errno : file_write(to, bytes, length);
		if (error)
			return error;
		offset += length;
	}
	return 0;
}

/* The directory was removed, and the file's hidden name with it: its bytes are copied to a new file in a new directory. */
static int begin_again(struct folder_file *file)
{
	struct folder_file *fresh, old = *file;
	int error = folder_reopen(file->folder);

	if (!error)
		error = folder_file_create(file->folder, &fresh);
	if (error)
		return error;
	error = copy(old.descriptor, fresh->descriptor);
	if (!error) {
		*file = *fresh;
		*fresh = old;
	}
	folder_file_abandon(fresh);
	return error;
}

static int put_under_name(struct folder_file *file, const struct wanted *wanted, char final[FOLDER_RESULT_SIZE])
{
	int error = finish(file);

	if (!error)
		error = link_free(file, wanted, final);
	if (error == -ENOENT) {
		error = begin_again(file);
		if (!error)
			error = finish(file);
		if (!error)
			error = link_free(file, wanted, final);
	}
	if (error)
		return error;
	error = sync_directory(file->folder);
	if (error)
		unlinkat(file->folder->descriptor, final, 0);
	return error;
}

static bool is_clean(const char *name, size_t longest)
{
	char clean[FOLDER_NAME_MAX + 1];

	folder_clean_name(name, clean, sizeof(clean));
	return !strcmp(name, clean) && strlen(name) <= longest;
}

int folder_file_commit(struct folder_file *file, const char *name, const char *extension, char *result, size_t size)
{
	const struct folder *folder = file->folder;
	struct wanted wanted = { .extension = extension };
	char final[FOLDER_RESULT_SIZE];
	int error = -EINVAL;

	folder_clean_name(name, wanted.name, sizeof(wanted.name));
	if (!extension[0] || is_clean(extension, FOLDER_EXTENSION_MAX))
		error = put_under_name(file, &wanted, final);
	if (error)
		log_error(&folder->log, "%s: '%s' cannot be saved: %s", folder->path, wanted.name, strerror(-error));
	else if (result)
		snprintf(result, size, "%s", final);
	folder_file_abandon(file);
	return error;
}

int folder_file_commit_only(struct folder_file *file, const char *name)
{
	const struct folder *folder = file->folder;
	struct wanted wanted = { .extension = "", .only = true };
	char final[FOLDER_RESULT_SIZE];
	int error = -EINVAL;

	folder_clean_name(name, wanted.name, sizeof(wanted.name));
	if (is_clean(name, FOLDER_NAME_MAX))
		error = put_under_name(file, &wanted, final);
	if (error && error != -EEXIST)
		log_error(&folder->log, "%s: '%s' cannot be saved: %s", folder->path, wanted.name, strerror(-error));
	folder_file_abandon(file);
	return error;
}

/* ---- what is there already ---- */

/* In a sticky directory others may have put something there which is theirs. */
static int check_owner(const struct folder *folder, const struct stat *status)
{
	struct stat directory;

	if (fstat(folder->descriptor, &directory))
		return -errno;
	return folder_trusts(folder, status->st_uid) || status->st_uid == directory.st_uid ? 0 : -EEXIST;
}

int folder_has_file(const struct folder *folder, const char *name, __u64 size)
{
	struct stat status;
	int error;

	if (!is_clean(name, FOLDER_NAME_MAX))
		return -EINVAL;
	if (fstatat(folder->descriptor, name, &status, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? 0 : -errno;
	error = check_owner(folder, &status);
	if (error)
		return error;
	return S_ISREG(status.st_mode) && (__u64)status.st_size == size ? 1 : -EEXIST;
}

/* ---- replacing ---- */

static int rename_over(struct folder_file *file, const char *name)
{
	int directory = file->folder->descriptor;
	struct stat old;
	int error;

	if (fstatat(directory, name, &old, AT_SYMLINK_NOFOLLOW))
		return errno == ENOENT ? link_as(file, name) : -errno;
	error = S_ISDIR(old.st_mode) ? -EISDIR : check_owner(file->folder, &old);
	if (error)
		return error;
	if (renameat(directory, file->temporary, directory, name))
		return -errno;
	file->temporary[0] = '\0';
	return 0;
}

static int replace_once(struct folder *folder, const char *name, const void *bytes, size_t length)
{
	struct folder_file *file;
	int error = create(folder, true, &file);

	if (error)
		return error;
	error = file_write(file->descriptor, bytes, length);
	if (!error)
		error = finish(file);
	if (!error) {
		error = rename_over(file, name);
		/* Created by another process in between. */
		if (error == -EEXIST)
			error = rename_over(file, name);
	}
	if (!error)
		error = sync_directory(folder);
	folder_file_abandon(file);
	return error;
}

int folder_replace(struct folder *folder, const char *name, const void *bytes, size_t length)
{
	int error = -EINVAL;

	if (is_clean(name, FOLDER_NAME_MAX))
		error = replace_once(folder, name, bytes, length);
	if (error == -ENOENT) {
		error = folder_reopen(folder);
		if (!error)
			error = replace_once(folder, name, bytes, length);
	}
	if (error)
		log_error(&folder->log, "%s: '%s' cannot be written: %s", folder->path, name, strerror(-error));
	return error;
}

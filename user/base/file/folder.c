/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/core/text.h"
#include "base/file/folder_private.h"

/* ---- names: harmless ones, and hidden ones of processes that may have ended ---- */

/* Process, its start time, number within it. */
#define TEMPORARY_FORMAT ".xputrace-%u-%llu-%u.part"
#define TEMPORARY_PARSED ".xputrace-%9u-%19llu-%9u.part"

size_t folder_clean_name(const char *name, char *result, size_t size)
{
	size_t room = size - 1 < FOLDER_NAME_MAX ? size - 1 : FOLDER_NAME_MAX;
	size_t left = strlen(name), used = 0;

	while (left) {
		__u32 character;
		size_t read = text_decode(name, left, &character);
		bool good = read && character != '/' && !text_hidden(character) &&
			    (used || (character != '.' && character != '-'));
		size_t written = good ? read : 1;

		if (used + written > room)
			break;
		memcpy(result + used, good ? name : "_", written);
		used += written;
		read = read ? read : 1;
		name += read;
		left -= read;
	}
	if (!used)
		result[used++] = '_';
	result[used] = '\0';
	return used;
}

/* Field 22 of /proc/PID/stat, clock ticks after boot; the name in field 2 may hold anything, its last ')' ends it. */
static bool read_start_time(unsigned int pid, unsigned long long *result)
{
	char path[32], text[1024], *end;
	ssize_t length;
	int descriptor;

	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0)
		return false;
	length = read(descriptor, text, sizeof(text) - 1);
	close(descriptor);
	text[length < 0 ? 0 : length] = '\0';
	end = strrchr(text, ')');
	return end &&
	       sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
		      result) == 1;
}

void folder_temporary_name(char name[FOLDER_TEMPORARY_SIZE])
{
	static _Atomic unsigned int numbers;
	unsigned long long start_time = 0;
	unsigned int pid = getpid();

	read_start_time(pid, &start_time);
	snprintf(name, FOLDER_TEMPORARY_SIZE, TEMPORARY_FORMAT, pid, start_time,
		 atomic_fetch_add(&numbers, 1) % 1000000000);
}

/* A name of ours, to the letter, of a process that has ended. */
static bool is_of_the_dead(const char *name)
{
	char expected[FOLDER_TEMPORARY_SIZE];
	unsigned long long start_time, now;
	unsigned int pid, number;

	if (sscanf(name, TEMPORARY_PARSED, &pid, &start_time, &number) != 3)
		return false;
	snprintf(expected, sizeof(expected), TEMPORARY_FORMAT, pid, start_time, number);
	if (strcmp(name, expected) != 0)
		return false;
	return !read_start_time(pid, &now) || now != start_time;
}

/* Processes of other containers cannot be seen, but the lock that they hold as long as they live can. */
static bool is_left_behind(const struct folder *folder, const char *name)
{
	int descriptor = openat(folder->descriptor, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat status;
	bool result;

	if (descriptor < 0)
		return false;
	result = !fstat(descriptor, &status) && S_ISREG(status.st_mode) && status.st_nlink == 1 &&
		 (status.st_uid == geteuid() || status.st_uid == folder->uid) && !flock(descriptor, LOCK_EX | LOCK_NB);
	close(descriptor);
	return result;
}

/* Removes hidden files of processes that have ended. */
static void folder_sweep(struct folder *folder)
{
	int descriptor = openat(folder->descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *directory = descriptor < 0 ? NULL : fdopendir(descriptor);
	struct dirent *entry;

	if (!directory) {
		if (descriptor >= 0)
			close(descriptor);
		return;
	}
	while ((entry = readdir(directory))) {
		if (is_of_the_dead(entry->d_name) && is_left_behind(folder, entry->d_name) &&
		    !unlinkat(folder->descriptor, entry->d_name, 0))
			log_info(&folder->log, "%s: removed an incomplete file of a process that was killed",
				 folder->path);
	}
	closedir(directory);
}

/* ---- paths: followed by component, so that each symbolic link is checked before ---- */

#define LINKS_MAX 40 /* as the kernel has it */
#define OPEN_ABOVE (O_PATH | O_DIRECTORY | O_CLOEXEC)

struct walk {
	const struct folder *folder;
	int at; /* O_PATH: what has been reached */
	unsigned int links;
	char name[NAME_MAX + 1]; /* the component in hand */
	char rest[PATH_MAX];	 /* what comes behind it */
};

bool folder_trusts(const struct folder *folder, uid_t uid)
{
	return uid == 0 || uid == geteuid() || uid == folder->uid;
}

/* Takes the next component off the rest; "" at its end. */
static int next_name(struct walk *walk)
{
	const char *from = walk->rest + strspn(walk->rest, "/");
	size_t length = strcspn(from, "/");

	if (length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(walk->name, from, length);
	walk->name[length] = '\0';
	from += length;
	from += strspn(from, "/");
	memmove(walk->rest, from, strlen(from) + 1);
	return 0;
}

static int go_to(struct walk *walk, int next)
{
	if (next < 0)
		return -errno;
	if (walk->at >= 0)
		close(walk->at);
	walk->at = next;
	return 0;
}

/* The link's text takes the place of its name. */
static int take_text(struct walk *walk, int link)
{
	char text[PATH_MAX];
	ssize_t length = readlinkat(link, "", text, sizeof(text));
	size_t rest = strlen(walk->rest);

	if (length < 0)
		return -errno;
	if (length + 1 + rest >= sizeof(walk->rest))
		return -ENAMETOOLONG;
	memmove(walk->rest + length + 1, walk->rest, rest + 1);
	memcpy(walk->rest, text, length);
	walk->rest[length] = '/';
	return text[0] == '/' ? go_to(walk, open("/", OPEN_ABOVE)) : 0;
}

/* The kernel alone knows where links like /proc/self/cwd lead, and nobody can make any there. */
static bool is_of_the_kernel(int link)
{
	struct statfs status;

	return !fstatfs(link, &status) && status.f_type == PROC_SUPER_MAGIC;
}

static int follow_opened(struct walk *walk, int link)
{
	const struct folder *folder = walk->folder;
	struct stat status;

	if (fstat(link, &status))
		return -errno;
	if (!S_ISLNK(status.st_mode))
		return 0;
	if (!folder_trusts(folder, status.st_uid)) {
		log_error(&folder->log,
			  "%s: '%s' is a symbolic link of another user (%u), who may change it at any time: give the "
			  "path that it leads to",
			  folder->path, walk->name, (unsigned int)status.st_uid);
		return -ELOOP;
	}
	if (++walk->links > LINKS_MAX) {
		log_error(&folder->log, "%s: too many symbolic links: give the path that they lead to", folder->path);
		return -ELOOP;
	}
	if (is_of_the_kernel(link)) {
		int next = openat(walk->at, walk->name, OPEN_ABOVE);

		/* To a file, a pipe: nobody but the kernel can follow it. */
		return next < 0 && errno == ENOTDIR ? 0 : go_to(walk, next) ?: 1;
	}
	return take_text(walk, link) ?: 1;
}

/* 1: the component in hand was a link, which has been followed; 0: it is none. */
static int follow(struct walk *walk)
{
	int link = openat(walk->at, walk->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	int result;

	if (link < 0)
		return -errno;
	result = follow_opened(walk, link);
	close(link);
	return result;
}

/* Into a directory that is not the last component. */
static int enter(struct walk *walk)
{
	int next = openat(walk->at, walk->name, OPEN_ABOVE | O_NOFOLLOW);
	int result;

	if (next >= 0 || errno != ENOTDIR)
		return go_to(walk, next);
	result = follow(walk);
	return result > 0 ? 0 : result ?: -ENOTDIR;
}

/* Until the component in hand is the last one, and no link. */
static int walk_to_last(struct walk *walk)
{
	int error = next_name(walk);

	while (!error && walk->name[0]) {
		if (walk->rest[0]) {
			error = enter(walk);
		} else {
			int result = follow(walk);

			if (result == 0 || result == -ENOENT)
				return 0;
			error = result < 0 ? result : 0;
		}
		if (!error)
			error = next_name(walk);
	}
	/* The path's end, after a slash or a link, is the directory that has been reached. */
	if (!error)
		strcpy(walk->name, ".");
	return error;
}

static void explain(const struct walk *walk, int error)
{
	const struct log *log = &walk->folder->log;
	const char *path = walk->folder->path;

	if (error == -ENOENT)
		log_error(log, "%s: '%s' does not exist: create it first, only the last part of the path is created",
			  path, walk->name);
	else if (error == -ENOTDIR)
		log_error(log, "%s: '%s' is not a directory: name another, or move it away", path, walk->name);
	else if (error == -EACCES)
		log_error(log, "%s: no permission to search the parent of '%s': use another directory", path,
			  walk->name);
	else if (error == -ENAMETOOLONG)
		log_error(log, "the path of the directory for the output is too long: name one with a shorter path");
	else if (error != -ELOOP) /* which was logged where it was found */
		log_error(log, "%s: cannot be reached: %s", path, strerror(-error));
}

int folder_walk(const struct folder *folder, struct folder_place *place)
{
	struct walk walk = { .folder = folder, .at = -1 };
	size_t length = strlen(folder->path);
	int error;

	if (length < sizeof(walk.rest)) {
		memcpy(walk.rest, folder->path, length + 1);
		error = go_to(&walk,
			      walk.rest[0] == '/' ? open("/", OPEN_ABOVE) : openat(folder->start, ".", OPEN_ABOVE));
		if (!error)
			error = walk_to_last(&walk);
	} else {
		error = -ENAMETOOLONG;
	}
	if (error) {
		explain(&walk, error);
		if (walk.at >= 0)
			close(walk.at);
		return error;
	}
	place->above = walk.at;
	strcpy(place->name, walk.name);
	return 0;
}

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

static int log_removed(const struct folder *folder, int error)
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
		return log_removed(folder, open_in(folder, folder->parent->descriptor, folder->name));
	}
	error = folder_walk(folder, &place);
	if (error)
		return error;
	error = log_removed(folder, open_in(folder, place.above, place.name));
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

/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows a path component by component, so that each symbolic link is checked before it is followed. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/folder_private.h"

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

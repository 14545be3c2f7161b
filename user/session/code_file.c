/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/code_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Reading them may do something, or block. */
static bool is_made_up(int descriptor)
{
	static const unsigned int kinds[] = { PROC_SUPER_MAGIC,	   SYSFS_MAGIC,	     DEBUGFS_MAGIC,
					      TRACEFS_MAGIC,	   SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC,
					      CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,     PSTOREFS_MAGIC };
	struct statfs system;

	if (fstatfs(descriptor, &system))
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if ((unsigned int)system.f_type == kinds[i])
			return true;
	}
	return false;
}

/* place is open as a place only (O_PATH), so that nothing has happened to what is there; it is closed. */
static int open_place(int place)
{
	char path[64];
	struct stat status;
	int descriptor = -ENOTSUP;

	if (fstat(place, &status)) {
		descriptor = -errno;
	} else if (S_ISREG(status.st_mode) && !is_made_up(place)) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", place);
		descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
		if (descriptor < 0)
			descriptor = -errno;
	}
	close(place);
	return descriptor;
}

/* What the link leads to, "" when that cannot be told. */
static void read_link(pid_t tgid, const char *name, char target[PATH_MAX])
{
	char path[64];
	ssize_t length;

	snprintf(path, sizeof(path), "/proc/%d/%s", tgid, name);
	length = readlink(path, target, PATH_MAX - 1);
	target[length < 0 ? 0 : length] = 0;
}

/* The working directory as seen from its root. */
static const char *working_directory(pid_t tgid, char target[PATH_MAX])
{
	char root[PATH_MAX];
	size_t length;

	read_link(tgid, "root", root);
	read_link(tgid, "cwd", target);
	length = strlen(root);
	if (length > 1 && !strncmp(target, root, length) && (target[length] == '/' || !target[length]))
		return target + length;
	return target;
}

/* Who the process is for files. */
static int read_owner(pid_t tgid, uid_t *uid, gid_t *gid)
{
	char path[32], line[256];
	int found = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tgid);
	file = fopen(path, "re");
	if (!file)
		return -ESRCH;
	while (found != 3 && fgets(line, sizeof(line), file)) {
		if (sscanf(line, "Uid: %*u %*u %*u %u", uid) == 1)
			found |= 1;
		else if (sscanf(line, "Gid: %*u %*u %*u %u", gid) == 1)
			found |= 2;
	}
	fclose(file);
	return found == 3 ? 0 : -ESRCH;
}

/*
 * With the process's rights, of this thread only: the name is the program's, and what it may not read is not copied
 * for it. Its supplementary groups are not taken on: what only they may read is missing.
 */
static int open_as(int root, const char *path, uid_t uid, gid_t gid)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	gid_t own_gid = setfsgid(gid);
	uid_t own_uid = setfsuid(uid);
	int descriptor = syscall(SYS_openat2, root, path, &how, sizeof(how));

	descriptor = descriptor < 0 ? -errno : open_place(descriptor);
	setfsuid(own_uid);
	setfsgid(own_gid);
	return descriptor;
}

int code_file_open(pid_t tgid, const char *path, char **absolute)
{
	char directory[PATH_MAX], root_path[32];
	const char *base = "";
	int root, descriptor;
	uid_t uid;
	gid_t gid;

	*absolute = NULL;
	if (*path != '/')
		base = working_directory(tgid, directory);
	if (asprintf(absolute, "%s%s%s", base, *path == '/' ? "" : "/", path) < 0) {
		*absolute = NULL;
		return -ENOMEM;
	}
	snprintf(root_path, sizeof(root_path), "/proc/%d/root", tgid);
	root = open(root_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	descriptor = read_owner(tgid, &uid, &gid);
	if (!descriptor)
		descriptor = open_as(root, *absolute, uid, gid);
	close(root);
	return descriptor;
}

int code_file_open_descriptor(pid_t tgid, int number, char **absolute)
{
	char name[32], path[64], target[PATH_MAX];
	int place;

	snprintf(name, sizeof(name), "fd/%d", number);
	read_link(tgid, name, target);
	*absolute = strdup(target);
	if (!*absolute)
		return -ENOMEM;
	snprintf(path, sizeof(path), "/proc/%d/%s", tgid, name);
	place = open(path, O_PATH | O_CLOEXEC);
	return place < 0 ? -EBADF : open_place(place);
}

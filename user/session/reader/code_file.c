/* SPDX-License-Identifier: BSD-2-Clause */
#include "session/reader/readers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
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

int code_file_open_place(int place)
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

/* Target of the link; "": unknown. */
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

#define GROUPS_MAX 65536 /* as in the kernel */

struct groups {
	gid_t *list;
	int count;
};

/* The supplementary groups of the process, if it is still who it was. */
static int read_groups(pid_t tgid, const struct code_rights *rights, struct groups *groups)
{
	char path[32], *line = NULL, *at, *end;
	uid_t uid = (uid_t)-1;
	gid_t gid = (gid_t)-1;
	size_t size = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/status", tgid);
	file = fopen(path, "re");
	if (!file)
		return -ESRCH;
	while (getline(&line, &size, file) > 0) {
		if (sscanf(line, "Uid: %*u %*u %*u %u", &uid) == 1 || sscanf(line, "Gid: %*u %*u %*u %u", &gid) == 1)
			continue;
		if (groups->list || strncmp(line, "Groups:", 7) || uid != rights->uid || gid != rights->gid)
			continue;
		groups->list = malloc(strlen(line) * sizeof(*groups->list));
		for (at = line + 7; groups->list && groups->count < GROUPS_MAX; at = end) {
			groups->list[groups->count] = strtoul(at, &end, 10);
			if (end == at)
				break;
			groups->count++;
		}
	}
	free(line);
	fclose(file);
	return 0;
}

/* Of this thread only, as the functions of the C library are of all. */
static int set_groups(const struct groups *groups)
{
	return syscall(SYS_setgroups, (long)groups->count, groups->list) ? -errno : 0;
}

static int own_groups(struct groups *groups)
{
	int count = getgroups(0, NULL);

	if (count < 0)
		return -errno;
	groups->list = malloc((count + 1) * sizeof(*groups->list));
	if (!groups->list)
		return -ENOMEM;
	groups->count = getgroups(count, groups->list);
	return groups->count < 0 ? -errno : 0;
}

#define READS_ALL (1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH)

/* This thread's rights to files of others; *before: as they were. */
static int set_reads_all(bool reads_all, struct __user_cap_data_struct before[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, before))
		return -errno;
	memcpy(data, before, sizeof(data));
	if (!reads_all)
		data[0].effective &= ~READS_ALL;
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static void restore_rights(const struct __user_cap_data_struct before[2])
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };

	syscall(SYS_capset, &header, before);
}

static int open_in_root(int root, const char *path)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	int descriptor = syscall(SYS_openat2, root, path, &how, sizeof(how));

	return descriptor < 0 ? -errno : code_file_open_place(descriptor);
}

/* With the process's rights, of this thread only: the name is the program's, and what it may not read is not copied for it. */
static int open_as(int root, const char *path, const struct code_rights *rights, const struct groups *groups)
{
	struct __user_cap_data_struct before[2];
	struct groups own = { 0 };
	int descriptor = own_groups(&own);
	gid_t own_gid;
	uid_t own_uid;

	if (!descriptor)
		descriptor = set_groups(groups);
	if (descriptor) {
		free(own.list);
		return descriptor;
	}
	own_gid = setfsgid(rights->gid);
	own_uid = setfsuid(rights->uid);
	/* What setfsuid() takes from others than root by itself. */
	descriptor = set_reads_all(rights->reads_all && !rights->uid, before);
	if (!descriptor && ((uid_t)setfsuid(rights->uid) != rights->uid || (gid_t)setfsgid(rights->gid) != rights->gid))
		descriptor = -EPERM;
	if (!descriptor)
		descriptor = open_in_root(root, path);
	restore_rights(before);
	setfsuid(own_uid);
	setfsgid(own_gid);
	set_groups(&own);
	free(own.list);
	return descriptor;
}

int code_file_open(pid_t tgid, const struct code_rights *rights, const char *path, char **absolute)
{
	char directory[PATH_MAX], root_path[32];
	struct groups groups = { 0 };
	const char *base = "";
	int root, descriptor;

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
	descriptor = read_groups(tgid, rights, &groups);
	if (!descriptor)
		descriptor = open_as(root, *absolute, rights, &groups);
	free(groups.list);
	close(root);
	return descriptor;
}

int code_file_take(pid_t tgid, int number, char **absolute)
{
	char name[32], target[PATH_MAX];
	int process, descriptor;

	snprintf(name, sizeof(name), "fd/%d", number);
	read_link(tgid, name, target);
	*absolute = strdup(target);
	if (!*absolute)
		return -ENOMEM;
	process = syscall(SYS_pidfd_open, tgid, 0);
	if (process < 0)
		return -EBADF;
	descriptor = syscall(SYS_pidfd_getfd, process, number, 0);
	if (descriptor < 0)
		descriptor = errno == EMFILE || errno == ENFILE ? -errno : -EBADF;
	close(process);
	return descriptor;
}

int code_file_check(int descriptor)
{
	struct stat status;
	int flags = fcntl(descriptor, F_GETFL), error = 0;

	if (flags < 0 || fstat(descriptor, &status))
		error = -errno;
	else if (flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		error = -EBADF;
	else if (!S_ISREG(status.st_mode) || is_made_up(descriptor))
		error = -ENOTSUP;
	if (!error)
		return descriptor;
	close(descriptor);
	return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/tracepoint/tracefs.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <mntent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/file/file.h"

#define FORMAT_MAX (256 << 10) /* bytes; the longest ones are some 10 KB, nearly all of it for printing */

/* Where distributions mount it; the second one is mounted when it is first accessed. */
static const char *const usual[] = { "/sys/kernel/tracing", "/sys/kernel/debug/tracing" };

static bool is_tracefs(const char *path)
{
	struct statfs status;

	return statfs(path, &status) == 0 && status.f_type == TRACEFS_MAGIC;
}

/* Where the first tracefs is mounted; NULL with errno. */
static char *find_mounted(void)
{
	char *found = NULL;
	struct mntent *mount;
	FILE *mounts;

	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (is_tracefs(usual[i]))
			return strdup(usual[i]);
	errno = ENOENT;
	mounts = setmntent("/proc/self/mounts", "re");
	if (!mounts)
		return NULL;
	while (!found && (mount = getmntent(mounts)))
		if (strcmp(mount->mnt_type, "tracefs") == 0 && is_tracefs(mount->mnt_dir))
			found = strdup(mount->mnt_dir);
	endmntent(mounts);
	if (!found)
		errno = ENOENT;
	return found;
}

static int open_folder(const char *path)
{
	int folder = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);

	return folder < 0 ? -errno : folder;
}

/* One of its own is there wherever it is mounted or not; without CAP_SYS_ADMIN the mounted one has to do. */
static int open_found(struct tracefs *tracefs)
{
	int folder = file_mount_detached("tracefs");

	if (folder >= 0 || folder == -ENODEV)
		return folder;
	tracefs->mounted = find_mounted();
	if (!tracefs->mounted)
		return errno ? -errno : -ENOMEM;
	return open_folder(tracefs->mounted);
}

int tracefs_open(const char *path, struct tracefs *tracefs)
{
	struct utsname name;
	int error = 0;

	memset(tracefs, 0, sizeof(*tracefs));
	if (uname(&name) || asprintf(&tracefs->kernel, "%s %s", name.sysname, name.release) < 0) {
		tracefs->kernel = NULL;
		return -ENOMEM;
	}
	tracefs->folder = path ? open_folder(path) : open_found(tracefs);
	if (tracefs->folder < 0)
		error = tracefs->folder;
	else if (faccessat(tracefs->folder, "events", R_OK | X_OK, 0))
		error = -errno;
	if (error)
		tracefs_close(tracefs);
	return error;
}

void tracefs_close(struct tracefs *tracefs)
{
	if (tracefs->kernel && tracefs->folder >= 0)
		close(tracefs->folder);
	free(tracefs->mounted);
	free(tracefs->kernel);
	memset(tracefs, 0, sizeof(*tracefs));
}

const char *tracefs_advice(int error)
{
	switch (error) {
	case -ENOENT:
		if (access("/sys/kernel", F_OK))
			return "/sys is not mounted: mount -t sysfs sysfs /sys";
		return "tracefs is not mounted, or has no events, and only root (CAP_SYS_ADMIN) can do without: try sudo, or "
		       "mount -t tracefs tracefs /sys/kernel/tracing";
	case -ENODEV:
		return "this kernel has no tracefs: it was built without CONFIG_TRACING";
	case -EACCES:
		return "tracefs can be read by root only: try sudo";
	case -EPERM:
		return "the kernel does not let tracefs be read: it is locked down (see kernel_lockdown(7))";
	default:
		return "tracefs cannot be read";
	}
}

/* The whole file, at most FORMAT_MAX bytes of it: what is cut is the format for printing. */
static int read_format(const struct tracefs *tracefs, const char *path, char **text, size_t *length)
{
	int file = openat(tracefs->folder, path, O_RDONLY | O_CLOEXEC), error = 0;
	char *buffer = NULL;
	size_t used = 0;
	ssize_t count;

	if (file < 0)
		return -errno;
	buffer = malloc(FORMAT_MAX);
	if (!buffer) {
		error = -ENOMEM;
		goto out;
	}
	do {
		count = read(file, buffer + used, FORMAT_MAX - used);
		if (count > 0)
			used += count;
	} while (count > 0 || (count < 0 && errno == EINTR));
	if (count < 0)
		error = -errno;
out:
	close(file);
	if (error) {
		free(buffer);
		return error;
	}
	*text = buffer;
	*length = used;
	return 0;
}

int tracefs_id(const struct tracefs *tracefs, const char *system, size_t length, const char *event)
{
	char path[PATH_MAX], text[16];
	ssize_t count;
	int file, id;

	if (snprintf(path, sizeof(path), "events/%.*s/%s/id", (int)length, system, event) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	file = openat(tracefs->folder, path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -errno;
	count = read(file, text, sizeof(text) - 1);
	id = count < 0 ? -errno : 0;
	close(file);
	if (count > 0) {
		text[count] = '\0';
		id = atoi(text);
	}
	return id ? id : -ENOENT;
}

int tracefs_find(const struct tracefs *tracefs, const struct driver_event *event, struct tracepoint *tracepoint)
{
	char path[PATH_MAX], *text = NULL;
	size_t length = 0;
	int error;

	memset(tracepoint, 0, sizeof(*tracepoint));
	tracepoint->event = event;
	if (snprintf(path, sizeof(path), "events/%s/%s/format", event->system, event->name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	error = read_format(tracefs, path, &text, &length);
	/* The second one: its module was unloaded while it was read. */
	if (error == -ENOENT || error == -ENODEV) {
		snprintf(tracepoint->reason, sizeof(tracepoint->reason), "no such tracepoint");
		return 0;
	}
	if (error)
		return error;
	error = tracepoint_parse(event, text, length, tracepoint);
	free(text);
	return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/machine/fd_owners.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "counter/machine/sysfs_file.h"

static bool has_perf_event(const char *process)
{
	char path[PATH_MAX], target[64];
	struct dirent *entry;
	bool found = false;
	ssize_t length;
	DIR *folder;

	snprintf(path, sizeof(path), "/proc/%s/fd", process);
	folder = opendir(path);
	while (folder && !found && (entry = readdir(folder))) {
		length = readlinkat(dirfd(folder), entry->d_name, target, sizeof(target) - 1);
		target[length < 0 ? 0 : length] = '\0';
		found = !strcmp(target, "anon_inode:[perf_event]");
	}
	if (folder)
		closedir(folder);
	return found;
}

/* Of a process that may call itself anything. */
static void plain(char *name)
{
	for (; *name; name++)
		if (!isprint((unsigned char)*name))
			*name = '?';
}

void fd_owners_of_perf_events(char text[FD_OWNERS_TEXT_MAX])
{
	DIR *processes = opendir("/proc");
	char name[SYSFS_FILE_MAX];
	struct dirent *entry;
	size_t used = 0;

	text[0] = '\0';
	while (processes && used < FD_OWNERS_TEXT_MAX - 1 && (entry = readdir(processes))) {
		if (!isdigit((unsigned char)entry->d_name[0]) || atoi(entry->d_name) == getpid() ||
		    !has_perf_event(entry->d_name))
			continue;
		if (sysfs_read(name, "/proc/%s/comm", entry->d_name) <= 0)
			continue;
		plain(name);
		used += (size_t)snprintf(text + used, FD_OWNERS_TEXT_MAX - used, "%s%.16s (%.10s)", used ? ", " : "",
					 name, entry->d_name);
	}
	if (processes)
		closedir(processes);
}

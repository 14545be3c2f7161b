/* SPDX-License-Identifier: BSD-2-Clause */
/* Names in folders: harmless ones, and hidden ones of processes that may have ended. */
#include <dirent.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file/folder_private.h"
#include "base/core/text.h"

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

void folder_sweep(struct folder *folder)
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

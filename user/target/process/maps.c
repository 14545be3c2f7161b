/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * "7f0000000000-7f0000001000 r-xp 00001000 08:01 1234     /path with spaces (deleted)"
 *
 * The path is the rest of the line and may hold anything; the kernel writes a newline in it as \012. It is not decoded:
 * a backslash is not escaped, so the text could also be a file that is really named so.
 */
#include "target/process/maps.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

/* A number that begins right here and is followed by the given character. */
static bool take_number(char **at, int base, char follows, __u64 *value)
{
	char *end;

	if (!isxdigit((unsigned char)**at))
		return false;
	errno = 0;
	*value = strtoull(*at, &end, base);
	if (errno || end == *at || *end != follows)
		return false;
	*at = end + 1;
	return true;
}

static void cut_deleted(char *path, struct maps_entry *entry)
{
	static const char mark[] = " (deleted)";
	size_t length = strlen(path), mark_length = sizeof(mark) - 1;

	entry->deleted = length > mark_length && !strcmp(path + length - mark_length, mark);
	if (entry->deleted)
		path[length - mark_length] = '\0';
}

int maps_entry_parse(char *line, struct maps_entry *entry)
{
	__u64 major_number, minor_number;
	char *at = line, *end = line + strlen(line);

	if (end > line && end[-1] == '\n')
		end[-1] = '\0';
	if (!take_number(&at, 16, '-', &entry->start) || !take_number(&at, 16, ' ', &entry->end) ||
	    entry->start >= entry->end || strnlen(at, 5) < 5 || at[4] != ' ')
		return -EINVAL;
	entry->executable = at[2] == 'x';
	at += 5;
	if (!take_number(&at, 16, ' ', &entry->offset) || !take_number(&at, 16, ':', &major_number) ||
	    !take_number(&at, 16, ' ', &minor_number) || !isdigit((unsigned char)*at))
		return -EINVAL;
	entry->device = makedev((unsigned int)major_number, (unsigned int)minor_number);
	errno = 0;
	entry->inode = strtoull(at, &at, 10);
	if (errno || (*at && *at != ' '))
		return -EINVAL;
	at += strspn(at, " ");
	cut_deleted(at, entry);
	entry->path = at;
	return 0;
}

int maps_each(pid_t pid, int (*visit)(void *context, const struct maps_entry *entry), void *context)
{
	size_t capacity = 0;
	char *line = NULL;
	char path[64];
	int result = 0;
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "re");
	if (!maps)
		return errno == ENOENT ? -ESRCH : errno == EPERM ? -EACCES : -errno;
	errno = 0;
	while (!result && getline(&line, &capacity, maps) > 0) {
		struct maps_entry entry;

		if (maps_entry_parse(line, &entry) == 0)
			result = visit(context, &entry);
		errno = 0;
	}
	/* Not for want of memory, either. */
	if (!result && !feof(maps))
		result = errno == EPERM ? -EACCES : errno ? -errno : -EIO;
	free(line);
	fclose(maps);
	return result;
}

bool maps_entry_has_file(const struct maps_entry *entry)
{
	return entry->inode && entry->path[0] && entry->path[0] != '[';
}

void maps_entry_open_path(const struct maps_entry *entry, pid_t pid, char path[MAP_FILE_PATH_MAX])
{
	snprintf(path, MAP_FILE_PATH_MAX, "/proc/%d/map_files/%llx-%llx", (int)pid, (unsigned long long)entry->start,
		 (unsigned long long)entry->end);
}

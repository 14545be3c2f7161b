/* SPDX-License-Identifier: BSD-2-Clause */
/* Text of /proc with names of a process's choice in it: /proc/PID/stat, and the lines of /proc/PID/maps, of the same input. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/process/process.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* The line has size bytes and its end. */
static void check_mapping(char *line, size_t size)
{
	struct maps_entry entry;
	char path[MAP_FILE_PATH_MAX];
	int error = maps_entry_parse(line, &entry);

	require(error == 0 || error == -EINVAL);
	if (error)
		return;
	require(entry.start < entry.end && entry.path >= line && entry.path + strlen(entry.path) <= line + size);
	require(!maps_entry_has_file(&entry) || (entry.inode && entry.path[0]));
	maps_entry_open_path(&entry, 1, path);
	require(memchr(path, 0, sizeof(path)) != NULL && strlen(path) < sizeof(path) - 1);
}

static void check_stat(const char *text)
{
	struct process_stat stat;
	int error = process_stat_parse(text, &stat);

	require(error == 0 || error == -ESRCH);
	require(error || memchr(stat.name, 0, sizeof(stat.name)) != NULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = strndup((const char *)data, size), *line, *end;

	require(text != NULL);
	check_stat(text);
	for (line = text; line; line = end) {
		size_t length = strcspn(line, "\n");
		char *one =
			strndup(line,
				length +
					1); /* with its newline, as getline() gives it; nothing behind it may be read */

		require(one != NULL);
		check_mapping(one, strlen(one));
		free(one);
		end = line[length] ? line + length + 1 : NULL;
	}
	free(text);
	return 0;
}

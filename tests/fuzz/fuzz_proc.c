/* SPDX-License-Identifier: BSD-2-Clause */
/* Lines of /proc/PID/maps, and the text of /proc/PID/stat: what names the process gives in them is up to it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/process/process.h"
#include "tests/fuzz/require.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

/* A line of its own allocation, so that every byte that is read or written beside it is found. */
static void parse_entry(const char *text, size_t length)
{
	struct maps_entry entry = { 0 };
	char *line = malloc(length + 1);
	int error;

	require(line != NULL);
	memcpy(line, text, length);
	line[length] = '\0';
	error = maps_entry_parse(line, &entry);
	require(error == 0 || error == -EINVAL);
	if (!error) {
		require(entry.start < entry.end);
		require(entry.path >= line && entry.path + strlen(entry.path) <= line + length);
		require(maps_entry_has_file(&entry) == (entry.inode && entry.path[0] && entry.path[0] != '['));
	}
	free(line);
}

static void parse_stat(const char *text)
{
	struct process_stat stat;
	int error = process_stat_parse(text, &stat);

	require(error == 0 || error == -ESRCH);
	if (!error)
		require(memchr(stat.name, 0, sizeof(stat.name)) != NULL);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	char *text = malloc(size + 1), *end;

	require(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	for (const char *line = text; *line; line = *end ? end + 1 : end) {
		end = strchrnul(line, '\n');
		parse_entry(line, (size_t)(end - line) + (*end == '\n'));
	}
	parse_stat(text);
	free(text);
	return 0;
}

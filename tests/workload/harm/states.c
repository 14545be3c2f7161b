/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * states SESSION COUNT: looks at all processes of a session, again and again, until standard input ends. A line says
 * when it sees COUNT of them at once. The last one, in JSON, says how often it has looked, how many processes it saw at
 * once, how many of these were stopped (T) or traced (t), and which one was the first.
 */
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_MS 2

static struct {
	unsigned int looks, processes, stopped;
	char first[64];
} seen;

/* State and session; the name, in brackets, may hold anything. */
static int read_process(const char *pid, char *state, long *session, char *name)
{
	char path[300], text[512];
	ssize_t length;
	char *end;
	int file;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return -1;
	length = read(file, text, sizeof(text) - 1);
	close(file);
	if (length <= 0)
		return -1;
	text[length] = '\0';
	end = strrchr(text, ')');
	if (!end || sscanf(end, ") %c %*d %*d %ld", state, session) != 2)
		return -1;
	*end = '\0';
	snprintf(name, 32, "%.31s", strchr(text, '(') + 1);
	return 0;
}

static void look(DIR *folder, long session, unsigned int enough)
{
	unsigned int processes = 0, stopped = 0;
	struct dirent *entry;

	rewinddir(folder);
	while ((entry = readdir(folder))) {
		char state, name[32];
		long its;

		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		if (read_process(entry->d_name, &state, &its, name) || its != session)
			continue;
		processes++;
		if (state != 'T' && state != 't')
			continue;
		stopped++;
		if (!seen.first[0])
			snprintf(seen.first, sizeof(seen.first), "%.15s %.31s", entry->d_name, name);
	}
	seen.looks++;
	if (seen.processes < enough && processes >= enough) {
		puts("enough");
		fflush(stdout);
	}
	if (processes > seen.processes)
		seen.processes = processes;
	if (stopped > seen.stopped)
		seen.stopped = stopped;
}

int main(int count, char **words)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	DIR *folder = opendir("/proc");
	long session = count == 3 ? strtol(words[1], NULL, 10) : 0;

	if (!folder || !session)
		return 2;
	do
		look(folder, session, strtoul(words[2], NULL, 10));
	while (!poll(&input, 1, PAUSE_MS));
	printf("{\"looks\":%u,\"processes\":%u,\"stopped\":%u,\"first\":\"%s\"}\n", seen.looks, seen.processes,
	       seen.stopped, seen.first);
	closedir(folder);
	return 0;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/process_state.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char *append_number(char *end, pid_t value)
{
	char digits[12], *at = digits + sizeof(digits);

	do
		*--at = '0' + value % 10;
	while (value /= 10);
	memcpy(end, at, digits + sizeof(digits) - at);
	return end + (digits + sizeof(digits) - at);
}

__u64 process_state_number(const char *text)
{
	__u64 value = 0;

	while (*text >= '0' && *text <= '9')
		value = value * 10 + (*text++ - '0');
	return value;
}

bool process_each_number(const char *path, bool (*visit)(void *context, pid_t number), void *context)
{
	_Alignas(8) char entries[8192];
	int directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool found = false;
	long length;

	if (directory < 0)
		return false;
	while (!found && (length = syscall(SYS_getdents64, directory, entries, sizeof(entries))) > 0) {
		long at = 0;

		while (!found && at < length) {
			/* struct linux_dirent64: inode, offset, record length, type, name */
			unsigned short size;
			const char *name = entries + at + 19;

			memcpy(&size, entries + at + 16, sizeof(size));
			found = *name >= '1' && *name <= '9' && visit(context, process_state_number(name));
			at += size;
		}
	}
	close(directory);
	return found;
}

/* What /proc/PID/name holds, as far as there is room; NULL: nothing. */
static char *read_about(pid_t pid, const char *name, char *text, size_t size)
{
	char path[40] = "/proc/";
	ssize_t length;
	int descriptor;

	memcpy(append_number(path + 6, pid), name, strlen(name) + 1);
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0)
		return NULL;
	length = read(descriptor, text, size - 1);
	close(descriptor);
	if (length <= 0)
		return NULL;
	text[length] = 0;
	return text;
}

/* Fields 3, 4 and 22 of /proc/PID/stat; the name in field 2 may hold anything, its last ')' ends it. */
bool process_state_read(pid_t pid, struct process_state *result)
{
	char text[1024], *at;
	int field;

	if (!read_about(pid, "/stat", text, sizeof(text)))
		return false;
	at = strrchr(text, ')');
	if (!at || at[1] != ' ' || !at[2] || at[3] != ' ')
		return false;
	result->state = at[2];
	result->parent = process_state_number(at + 4);
	at += 2;
	for (field = 3; field < 22; field++) {
		at = strchr(at, ' ');
		if (!at)
			return false;
		at++;
	}
	result->start_time = process_state_number(at);
	return true;
}

static bool thread_is_stopped(void *context, pid_t tid)
{
	struct process_state thread;

	(void)context;
	return process_state_read(tid, &thread) && thread.state == 'T';
}

bool process_is_stopped(pid_t pid, char state)
{
	char path[32] = "/proc/";

	if (state != 'Z')
		return state == 'T';
	memcpy(append_number(path + 6, pid), "/task", 6);
	return process_each_number(path, thread_is_stopped, NULL);
}

bool process_stop_pending(pid_t pid)
{
	const __u64 stops = 1ull << (SIGSTOP - 1) | 1ull << (SIGTSTP - 1) | 1ull << (SIGTTIN - 1) |
			    1ull << (SIGTTOU - 1);
	char text[4096], *at;

	if (!read_about(pid, "/status", text, sizeof(text)))
		return false;
	at = strstr(text, "\nShdPnd:");
	return at && strtoull(at + 8, NULL, 16) & stops;
}

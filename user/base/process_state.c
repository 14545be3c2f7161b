/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/process_state.h"

#include <fcntl.h>
#include <string.h>
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

/* Fields 3, 4 and 22 of /proc/PID/stat; the name in field 2 may hold anything, its last ')' ends it. */
bool process_state_read(pid_t pid, struct process_state *result)
{
	char path[32] = "/proc/", text[1024], *at;
	ssize_t length;
	int descriptor, field;

	memcpy(append_number(path + 6, pid), "/stat", 6);
	descriptor = open(path, O_RDONLY | O_CLOEXEC);
	if (descriptor < 0)
		return false;
	length = read(descriptor, text, sizeof(text) - 1);
	close(descriptor);
	if (length <= 0)
		return false;
	text[length] = 0;
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

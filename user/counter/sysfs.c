/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/sysfs.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/core/log.h"
#include "base/core/vec.h"

static int read_at(char *text, const char *format, va_list list)
{
	char path[PATH_MAX];
	ssize_t length = vsnprintf(path, sizeof(path), format, list);
	int file;

	text[0] = '\0';
	if (length < 0 || (size_t)length >= sizeof(path))
		return -ENAMETOOLONG;
	file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (file < 0)
		return -errno;
	length = read(file, text, SYSFS_FILE_MAX);
	if (length < 0)
		length = -errno;
	close(file);
	if (length < 0 || length == SYSFS_FILE_MAX) {
		text[0] = '\0';
		return length < 0 ? (int)length : -EFBIG;
	}
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	text[length] = '\0';
	return (int)length;
}

int sysfs_read(char *text, const char *format, ...)
{
	va_list list;
	int length;

	va_start(list, format);
	length = read_at(text, format, list);
	va_end(list);
	return length;
}

int sysfs_read_number(__u64 *number, const char *format, ...)
{
	char text[SYSFS_FILE_MAX], *end;
	va_list list;
	int length;

	va_start(list, format);
	length = read_at(text, format, list);
	va_end(list);
	if (length < 0)
		return length;
	if (!isdigit((unsigned char)text[0]))
		return -EINVAL;
	errno = 0;
	*number = strtoull(text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

/* ---- lists of CPUs ---- */

static int add_range(struct cpus *cpus, long first, long last)
{
	int error = 0;

	if (last < first || (cpus->count && first <= cpus->items[cpus->count - 1]))
		return -EINVAL;
	for (; first <= last && !error; first++)
		error = vec_push(cpus->items, cpus->count, (int)first);
	return error;
}

static bool read_number(const char **text, long *number)
{
	char *end;

	if (**text < '0' || **text > '9')
		return false;
	*number = strtol(*text, &end, 10);
	*text = end;
	return *number >= 0 && *number < CPUS_MAX;
}

int cpus_parse(const char *text, struct cpus *cpus)
{
	long first = 0, last;
	int error = 0;

	*cpus = (struct cpus){ 0 };
	while (*text && !error) {
		error = read_number(&text, &first) ? 0 : -EINVAL;
		last = first;
		if (!error && *text == '-') {
			text++;
			error = read_number(&text, &last) ? 0 : -EINVAL;
		}
		if (!error)
			error = add_range(cpus, first, last);
		if (!error && *text == ',' && text[1])
			text++;
		else if (!error && *text)
			error = -EINVAL;
	}
	if (error)
		cpus_free(cpus);
	return error;
}

int cpus_online(const char *sysfs, struct cpus *cpus)
{
	char text[SYSFS_FILE_MAX];
	int error = sysfs_read(text, "%s/devices/system/cpu/online", sysfs);

	*cpus = (struct cpus){ 0 };
	if (error > 0)
		error = cpus_parse(text, cpus) ?: 1;
	return error == 1 ? 0 : error_is_shortage(error) ? error : -EIO;
}

int cpus_copy(const struct cpus *from, struct cpus *to)
{
	*to = (struct cpus){ 0 };
	if (!from->count)
		return 0;
	to->items = reallocarray(NULL, from->count, sizeof(*to->items));
	if (!to->items)
		return -ENOMEM;
	memcpy(to->items, from->items, from->count * sizeof(*to->items));
	to->count = from->count;
	return 0;
}

bool cpus_have(const struct cpus *cpus, int cpu)
{
	for (size_t i = 0; i < cpus->count; i++)
		if (cpus->items[i] == cpu)
			return true;
	return false;
}

void cpus_free(struct cpus *cpus)
{
	free(cpus->items);
	*cpus = (struct cpus){ 0 };
}

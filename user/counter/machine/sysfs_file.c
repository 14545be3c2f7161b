/* SPDX-License-Identifier: BSD-2-Clause */
#include "counter/machine/sysfs_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

int sysfs_read(char *text, const char *format, ...)
{
	char path[PATH_MAX];
	ssize_t length;
	va_list list;
	int file;

	text[0] = '\0';
	va_start(list, format);
	length = vsnprintf(path, sizeof(path), format, list);
	va_end(list);
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

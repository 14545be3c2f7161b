/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/latency/report_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/output.h"
#include "base/core/text.h"

#define DIGITS_LEAST 6

static char *finish(struct text *text)
{
	text_bytes(text, "", 1);
	if (text->error) {
		text_free(text);
		return NULL;
	}
	return text->data;
}

/* Where the extension begins: at the last dot of the last component, unless that is its first byte; else at the end. */
static size_t extension_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *component = slash ? slash + 1 : path;
	const char *dot = strrchr(component, '.');

	/* "trace.json.gz": both. */
	if (dot && dot > component && !strcmp(dot, ".gz")) {
		const char *inner = memrchr(component, '.', dot - component);

		dot = inner && inner != component ? inner : dot;
	}
	return dot && dot != component ? (size_t)(dot - path) : strlen(path);
}

char *report_name_numbered(const char *path, __u64 number)
{
	size_t extension = extension_of(path);
	struct text text = { 0 };
	__u64 power = 10;
	unsigned int digits;

	text_bytes(&text, path, extension);
	text_literal(&text, "-");
	for (digits = 1; digits < DIGITS_LEAST; digits++) {
		if (number < power)
			text_literal(&text, "0");
		power *= 10;
	}
	text_unsigned(&text, number);
	text_string(&text, path + extension);
	return finish(&text);
}

char *report_name_rotated(const char *path, __u64 number)
{
	struct text text = { 0 };

	text_string(&text, path);
	text_literal(&text, ".");
	text_unsigned(&text, number);
	return finish(&text);
}

/* 1: there is something of that name; 0: there is not. */
static int exists(const char *path, __u64 number)
{
	char *name = report_name_rotated(path, number);
	struct stat status;
	int result = 1;

	if (!name)
		return -ENOMEM;
	if (lstat(name, &status))
		result = errno == ENOENT ? 0 : -errno;
	free(name);
	return result;
}

/* path.NUMBER becomes path.(NUMBER + 1); number 0 is path. What is not there (any more) need not be moved. */
static int move_up(const char *path, __u64 number)
{
	char *from = number ? report_name_rotated(path, number) : strdup(path);
	char *to = report_name_rotated(path, number + 1);
	int error = from && to ? 0 : -ENOMEM;

	if (!error && rename(from, to) && errno != ENOENT)
		error = -errno;
	free(from);
	free(to);
	return error;
}

int report_names_shift(const char *path)
{
	__u64 number = 1;
	int found, error = 0;

	while ((found = exists(path, number)) > 0)
		number++;
	if (found)
		return found;
	while (number-- && !error)
		error = move_up(path, number);
	return error;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/appended_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/output.h"

#define HEAD_MAX 256

static bool has(int descriptor, off_t offset, const char *bytes, size_t length)
{
	char there[HEAD_MAX];

	return length <= sizeof(there) && pread(descriptor, there, length, offset) == (ssize_t)length &&
	       !memcmp(there, bytes, length);
}

/* size: of the file, more than 0. Whether it is one of those lines, and in *cut whether the last one has no end. */
static int look(const char *path, off_t size, const char *head, bool *cut)
{
	int descriptor = output_open(path, O_RDWR);
	bool ours;

	if (descriptor < 0)
		return descriptor;
	ours = has(descriptor, 0, head, strlen(head));
	*cut = !has(descriptor, size - 1, "\n", 1);
	close(descriptor);
	return ours ? 0 : -EEXIST;
}

static int go_behind(int descriptor, const char *path, const char *head)
{
	struct stat status;
	bool cut = false;
	int error = 0;

	if (fstat(descriptor, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || !status.st_size)
		return 0;
	error = look(path, status.st_size, head, &cut);
	if (!error && lseek(descriptor, 0, SEEK_END) < 0)
		error = -errno;
	return error || !cut ? error : file_write(descriptor, "\n", 1);
}

int appended_file_open(const char *path, const char *head)
{
	int descriptor = output_open(path, 0), error;

	if (descriptor < 0)
		return descriptor;
	error = go_behind(descriptor, path, head);
	if (error)
		close(descriptor);
	return error ?: descriptor;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

static int read_all(int descriptor, char *bytes, size_t length, const __u64 *offset, size_t *done)
{
	ssize_t got;

	for (*done = 0; *done < length; *done += (size_t)got) {
		if (offset)
			got = pread(descriptor, bytes + *done, length - *done, (off_t)(*offset + *done));
		else
			got = read(descriptor, bytes + *done, length - *done);
		if (!got)
			break;
		if (got < 0 && errno != EINTR)
			return -errno;
		if (got < 0)
			got = 0;
	}
	return 0;
}

int file_read(int descriptor, void *bytes, size_t length, size_t *done)
{
	return read_all(descriptor, bytes, length, NULL, done);
}

int file_read_at(int descriptor, void *bytes, size_t length, __u64 offset, size_t *done)
{
	return read_all(descriptor, bytes, length, &offset, done);
}

static int wait_writable(int descriptor)
{
	struct pollfd poll_descriptor = { .fd = descriptor, .events = POLLOUT };

	if (poll(&poll_descriptor, 1, -1) < 0 && errno != EINTR)
		return -errno;
	return 0;
}

/* What a write that has not gone forward means: 0 to try again. */
static int check_result(int descriptor, ssize_t written)
{
	if (written > 0)
		return 0;
	if (written == 0)
		return -EIO;
	if (errno == EINTR)
		return 0;
	if (errno == EAGAIN)
		return wait_writable(descriptor);
	return -errno;
}

int file_write_while(int descriptor, const void *bytes, size_t length, bool (*go_on)(void *context), void *context)
{
	const char *at = bytes;

	while (length) {
		ssize_t written;
		int error;

		if (go_on && !go_on(context))
			return -EINTR;
		written = write(descriptor, at, length);
		error = check_result(descriptor, written);
		if (error)
			return error;
		if (written > 0) {
			at += written;
			length -= written;
		}
	}
	return 0;
}

int file_write(int descriptor, const void *bytes, size_t length)
{
	return file_write_while(descriptor, bytes, length, NULL, NULL);
}

int file_write_at(int descriptor, const void *bytes, size_t length, __u64 offset)
{
	const char *at = bytes;

	while (length) {
		ssize_t written = pwrite(descriptor, at, length, offset);
		int error = check_result(descriptor, written);

		if (error)
			return error;
		if (written > 0) {
			at += written;
			offset += written;
			length -= written;
		}
	}
	return 0;
}

int file_standard_output(void)
{
	int descriptor = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);

	return descriptor < 0 ? -errno : descriptor;
}

int file_mount_detached(const char *type)
{
	int context = (int)syscall(SYS_fsopen, type, FSOPEN_CLOEXEC), mount = -1, folder, error;

	if (context < 0)
		return -errno;
	if (!syscall(SYS_fsconfig, context, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
		mount = (int)syscall(SYS_fsmount, context, FSMOUNT_CLOEXEC,
				     MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC);
	error = errno;
	close(context);
	if (mount < 0)
		return -error;
	folder = openat(mount, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	error = errno;
	close(folder < 0 ? mount : folder);
	return folder < 0 ? -error : mount;
}

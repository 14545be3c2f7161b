/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A pipe that takes nothing for the moment is waited for. */
Test(base_file_file, non_blocking_pipe_gets_everything)
{
	size_t size = 1 << 20, done = 0;
	char *bytes = malloc(size), *back = malloc(size);
	int pipes[2], status;
	pid_t writer;

	for (done = 0; done < size; done++)
		bytes[done] = done * 31 >> 3;
	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(fcntl(pipes[1], F_SETFL, O_NONBLOCK), 0);
	writer = fork();
	if (!writer)
		_exit(-file_write(pipes[1], bytes, size));
	close(pipes[1]);
	for (done = 0; done < size;) {
		ssize_t got = read(pipes[0], back + done, size - done);

		cr_assert_gt(got, 0);
		done += got;
	}
	cr_assert_eq(waitpid(writer, &status, 0), writer);
	cr_assert_eq(status, 0);
	cr_assert(!memcmp(bytes, back, size));
	close(pipes[0]);
	free(bytes);
	free(back);
}

Test(base_file_file, at_an_offset)
{
	char path[] = "/tmp/base_file.XXXXXX", text[16];
	int descriptor = mkstemp(path);

	cr_assert_eq(file_write(descriptor, "0123456789", 10), 0);
	cr_assert_eq(file_write_at(descriptor, "abc", 3, 4), 0);
	cr_assert_eq(file_write_at(descriptor, NULL, 0, 4), 0);
	cr_assert_eq(pread(descriptor, text, sizeof(text), 0), 10);
	cr_assert_arr_eq(text, "0123abc789", 10);
	close(descriptor);
	unlink(path);
}

Test(base_file_file, errors)
{
	int full = open("/dev/full", O_WRONLY);

	cr_assert_eq(file_write(full, "a", 1), -ENOSPC);
	close(full);
	cr_assert_eq(file_write(-1, "a", 1), -EBADF);
	cr_assert_eq(file_write_at(-1, "a", 1, 0), -EBADF);
}

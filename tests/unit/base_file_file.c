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

/* A writer that gives a pipe its bytes one by one: all are read, and no more than there are. */
Test(base_file_file, reads_what_comes_in_pieces)
{
	char bytes[16] = "";
	size_t done = 99;
	int pipe_ends[2];
	pid_t child;

	cr_assert_eq(pipe(pipe_ends), 0);
	child = fork();
	cr_assert_geq(child, 0);
	if (!child) {
		for (const char *at = "abcdef"; *at; at++)
			if (write(pipe_ends[1], at, 1) != 1)
				_exit(1);
		_exit(0);
	}
	close(pipe_ends[1]);
	cr_expect_eq(file_read(pipe_ends[0], bytes, 4, &done), 0);
	cr_expect_eq(done, 4);
	cr_expect_eq(file_read(pipe_ends[0], bytes + 4, sizeof(bytes) - 4, &done), 0);
	cr_expect_eq(done, 2, "up to the end");
	cr_expect_str_eq(bytes, "abcdef");
	cr_expect_eq(waitpid(child, NULL, 0), child);
	close(pipe_ends[0]);
}

Test(base_file_file, reads_at_an_offset)
{
	char path[] = "/tmp/xputrace-test-XXXXXX", bytes[8] = "";
	int descriptor = mkstemp(path);
	size_t done = 99;

	cr_assert_geq(descriptor, 0);
	unlink(path);
	cr_assert_eq(file_write(descriptor, "0123456789", 10), 0);
	cr_expect_eq(file_read_at(descriptor, bytes, 4, 3, &done), 0);
	cr_expect_eq(done, 4);
	cr_expect_str_eq(bytes, "3456");
	cr_expect_eq(file_read_at(descriptor, bytes, 4, 8, &done), 0);
	cr_expect_eq(done, 2);
	cr_expect_eq(file_read_at(descriptor, bytes, 4, 10, &done), 0);
	cr_expect_eq(done, 0);
	close(descriptor);
	cr_expect_eq(file_read_at(descriptor, bytes, 4, 0, &done), -EBADF);
	cr_expect_eq(done, 0);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/tailed_file.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static char path[32];

static void make(void)
{
	strcpy(path, "/tmp/tailed_file.XXXXXX");
	close(mkstemp(path));
}

static void clean(void)
{
	unlink(path);
}

TestSuite(base_file_tailed_file, .init = make, .fini = clean);

static void expect(const char *expected)
{
	char text[4096];
	FILE *file = fopen(path, "r");
	size_t length;

	cr_assert_not_null(file);
	length = fread(text, 1, sizeof(text), file);
	fclose(file);
	cr_assert_eq(length, strlen(expected), "'%.*s' is not '%s'", (int)length, text, expected);
	cr_assert_arr_eq(text, expected, length, "'%.*s' is not '%s'", (int)length, text, expected);
}

static int append(struct tailed_file *file, const char *bytes, const char *tail, bool last)
{
	struct text text = { 0 };
	int error;

	text_string(&text, bytes);
	error = tailed_file_append(file, &text, tail, strlen(tail), last);
	text_free(&text);
	return error;
}

Test(base_file_tailed_file, tails_replace_one_another)
{
	struct tailed_file file;

	cr_assert_eq(tailed_file_open(&file, path, -1), 0);
	cr_assert_eq(append(&file, "head[", "]long tail", false), 0);
	expect("head[]long tail");
	cr_assert_eq(append(&file, "1", "]", false), 0);
	expect("head[1]");
	cr_assert_eq(append(&file, "", "]tail", true), 0);
	expect("head[1]tail");
	cr_assert_eq(tailed_file_close(&file), 0);
	expect("head[1]tail");
}

Test(base_file_tailed_file, begins_where_the_descriptor_stands)
{
	int descriptor = open(path, O_RDWR), copy;
	struct tailed_file file;

	cr_assert_eq(write(descriptor, "before ", 7), 7);
	copy = dup(descriptor);
	cr_assert_eq(tailed_file_open(&file, NULL, descriptor), 0);
	cr_assert(file.seekable);
	cr_assert_eq(append(&file, "a", "]", false), 0);
	cr_assert_eq(append(&file, "b", "]", true), 0);
	cr_assert_eq(tailed_file_close(&file), 0);
	cr_assert_eq(write(copy, " after", 6), 6);
	close(copy);
	expect("before ab] after");
}

/* With O_APPEND nothing can be overwritten, so the tail must wait. */
Test(base_file_tailed_file, appending_descriptor_is_a_stream)
{
	int descriptor = open(path, O_RDWR | O_APPEND);
	struct tailed_file file;

	cr_assert_eq(tailed_file_open(&file, NULL, descriptor), 0);
	cr_assert_not(file.seekable);
	cr_assert_eq(append(&file, "a", "]", false), 0);
	cr_assert_eq(append(&file, "b", "]", false), 0);
	expect("ab");
	cr_assert_eq(append(&file, "c", "]", true), 0);
	cr_assert_eq(tailed_file_close(&file), 0);
	expect("abc]");
}

Test(base_file_tailed_file, failed_append_leaves_what_was)
{
	struct rlimit limit = { 20, 20 };
	struct tailed_file file;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_eq(tailed_file_open(&file, path, -1), 0);
	cr_assert_eq(append(&file, "0123456789", "]end", false), 0);
	cr_assert_eq(append(&file, "abcdefghij", "]end", false), -EFBIG);
	expect("0123456789]end");
	/* Something smaller still fits, e.g. a tail that says what happened. */
	cr_assert_eq(append(&file, "", "]failed", true), 0);
	expect("0123456789]failed");
	cr_assert_eq(tailed_file_close(&file), -EFBIG);
}

Test(base_file_tailed_file, first_append_that_fails_leaves_nothing)
{
	struct rlimit limit = { 5, 5 };
	struct tailed_file file;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	cr_assert_eq(tailed_file_open(&file, path, -1), 0);
	cr_assert_eq(append(&file, "0123456789", "]", false), -EFBIG);
	expect("");
	cr_assert_eq(tailed_file_close(&file), -EFBIG);
}

Test(base_file_tailed_file, stream_that_has_failed_takes_nothing_more)
{
	int pipes[2];
	struct tailed_file file;

	signal(SIGPIPE, SIG_IGN);
	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(tailed_file_open(&file, NULL, pipes[1]), 0);
	close(pipes[0]);
	cr_assert_eq(append(&file, "a", "]", false), -EPIPE);
	cr_assert_eq(append(&file, "b", "]", true), -EPIPE);
	cr_assert_eq(tailed_file_close(&file), -EPIPE);
}

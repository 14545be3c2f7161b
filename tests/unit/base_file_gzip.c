/* SPDX-License-Identifier: BSD-2-Clause */
/* Compressed files that grow: read by zlib's own reader, and by hand where the number of members matters. */
#include "base/file/gzip.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/file/tailed_file.h"

static char path[64];

static void set_up(void)
{
	signal(SIGXFSZ, SIG_IGN);
	strcpy(path, "/tmp/xputrace-gzip-XXXXXX.gz");
	close(mkstemps(path, 3));
}

static void tear_down(void)
{
	unlink(path);
}

TestSuite(base_file_gzip, .init = set_up, .fini = tear_down);

/* What is in the file: one member and nothing behind it. */
static void expect_inside(const char *expected, size_t length)
{
	int file = open(path, O_RDONLY);
	struct stat status;
	z_stream stream = { 0 };
	unsigned char *packed, *inside = malloc(length + 1);
	ssize_t got;

	fstat(file, &status);
	packed = malloc(status.st_size + 1);
	got = read(file, packed, status.st_size);
	close(file);
	cr_assert_eq(inflateInit2(&stream, MAX_WBITS + 16), Z_OK);
	stream.next_in = packed;
	stream.avail_in = got;
	stream.next_out = inside;
	stream.avail_out = length + 1;
	cr_assert_eq(inflate(&stream, Z_FINISH), Z_STREAM_END, "%s", stream.msg ?: "it has no end");
	cr_assert_eq(stream.total_out, length);
	cr_assert_arr_eq(inside, expected, length);
	cr_assert_eq(stream.avail_in, 0, "something is behind the end");
	inflateEnd(&stream);
	free(packed);
	free(inside);
}

/* Text that compresses, and some that does not. */
static char *make_text(size_t length)
{
	char *text = malloc(length);
	unsigned int seed = 1;

	for (size_t i = 0; i < length; i++)
		text[i] = i / 50000 % 2 ? rand_r(&seed) : "one word "[i % 9];
	return text;
}

static void append(struct tailed_file *file, const char *bytes, size_t length, const char *tail, bool last,
		   int expected)
{
	struct text text = { 0 };

	text_bytes(&text, bytes, length);
	cr_assert_eq(tailed_file_append(file, &text, tail, strlen(tail), last), expected);
	text_free(&text);
}

static void grow(bool detached)
{
	static const size_t steps[] = { 0, 1, 10, 100000, 3, 700000, 0, 70000 };
	size_t at = 0;
	uint64_t stopped = 0;
	struct tailed_file file;
	char *text = make_text(1000000), *whole = malloc(1000100);

	cr_assert_eq(tailed_file_open(&file, path, -1), 0);
	if (detached)
		cr_assert_eq(tailed_file_detach(&file, &stopped), 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		append(&file, text + at, steps[i], i % 2 ? "]end" : "] another end", false, 0);
		at += steps[i];
		if (detached)
			cr_assert_eq(tailed_file_settle(&file), 0);
		memcpy(whole, text, at);
		strcpy(whole + at, i % 2 ? "]end" : "] another end");
		expect_inside(whole, at + strlen(whole + at));
	}
	append(&file, "", 0, "]}", true, 0);
	cr_assert_eq(tailed_file_close(&file), 0);
	memcpy(whole + at, "]}", 2);
	expect_inside(whole, at + 2);
	free(text);
	free(whole);
}

Test(base_file_gzip, whole_after_each_append)
{
	grow(false);
}

Test(base_file_gzip, whole_after_each_append_of_a_process)
{
	grow(true);
}

/* Longer than what an end can have; it is compressed, too. */
Test(base_file_gzip, a_last_tail_of_any_length)
{
	struct tailed_file file;
	char *text = calloc(1, 300001);
	struct stat status;

	memset(text, 'x', 300000);
	cr_assert_eq(tailed_file_open(&file, path, -1), 0);
	append(&file, "begin", 5, "]", false, 0);
	append(&file, "", 0, text, true, 0);
	cr_assert_eq(tailed_file_close(&file), 0);
	stat(path, &status);
	cr_expect_lt(status.st_size, 10000);
	memmove(text + 5, text, 299995);
	memcpy(text, "begin", 5);
	text = realloc(text, 300006);
	memset(text + 299995, 'x', 10);
	expect_inside(text, 300005);
	free(text);
}

/* A disk that is full: what was there stays whole, and nothing comes behind it. */
Test(base_file_gzip, no_room)
{
	struct rlimit limit = { 40000, RLIM_INFINITY };
	struct tailed_file file;
	char *text = make_text(200000);

	cr_assert_eq(tailed_file_open(&file, path, -1), 0);
	append(&file, text, 1000, "]end", false, 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	append(&file, text + 50000, 100000, "]end", false, -EFBIG);
	append(&file, text, 10, "]end", false, -EFBIG);
	append(&file, "", 0, "]totals", true, -EFBIG);
	cr_assert_eq(tailed_file_close(&file), -EFBIG);
	memcpy(text + 1000, "]end", 4);
	expect_inside(text, 1004);
	free(text);
}

Test(base_file_gzip, through_a_pipe)
{
	int pipes[2], file = open(path, O_WRONLY | O_TRUNC);
	struct tailed_file stream;
	char bytes[4096];
	ssize_t got;

	cr_assert_eq(pipe2(pipes, O_CLOEXEC), 0);
	cr_assert_eq(tailed_file_open(&stream, NULL, pipes[1]), 0);
	cr_assert_eq(tailed_file_compress(&stream), 0);
	append(&stream, "first", 5, "]end", false, 0);
	append(&stream, "second", 6, "]end", false, 0);
	append(&stream, "", 0, "]", true, 0);
	cr_assert_eq(tailed_file_close(&stream), 0);
	while ((got = read(pipes[0], bytes, sizeof(bytes))) > 0)
		cr_assert_eq(write(file, bytes, got), got);
	close(file);
	expect_inside("firstsecond]", 12);
}

Test(base_file_gzip, back_again)
{
	char *text = make_text(200000), *read_back = malloc(200001);
	struct gzip *gzip = gzip_create();
	int file = open(path, O_RDWR | O_TRUNC), unpacked;

	cr_assert_eq(gzip_write(gzip, file, text, 150000), 0);
	cr_assert_eq(gzip_write(gzip, file, text + 150000, 50000), 0);
	cr_assert_eq(gzip_finish(gzip, file), 0);
	gzip_free(gzip);
	expect_inside(text, 200000);
	cr_assert(gzip_is_packed(file));
	unpacked = gzip_unpack(file);
	cr_assert_geq(unpacked, 0);
	cr_assert_eq(read(unpacked, read_back, 200001), 200000);
	cr_assert_arr_eq(read_back, text, 200000);
	close(unpacked);
	cr_assert_eq(ftruncate(file, 100000), 0);
	cr_assert_eq(gzip_unpack(file), -EBADMSG, "it is cut");
	cr_assert_eq(pwrite(file, "no", 2, 0), 2);
	cr_assert_not(gzip_is_packed(file));
	close(file);
	free(text);
	free(read_back);
}

Test(base_file_gzip, names)
{
	cr_expect(gzip_is_name("trace.json.gz"));
	cr_expect_not(gzip_is_name(".gz"));
	cr_expect_not(gzip_is_name("trace.gz.json"));
	cr_expect_not(gzip_is_name("-"));
}

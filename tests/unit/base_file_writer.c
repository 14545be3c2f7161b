/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/writer.h"

#include <criterion/criterion.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core/clock.h"
#include "base/core/process.h"

#define BLOCK (100u << 10) /* bytes, each an item */

static char path[32];
static uint64_t stopped;

static void make(void)
{
	strcpy(path, "/tmp/writer.XXXXXX");
	close(mkstemp(path));
	stopped = 0;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	/* The process that writes becomes a child of this one. */
	cr_assert_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
}

static void clean(void)
{
	unlink(path);
}

TestSuite(base_file_writer, .init = make, .fini = clean, .timeout = 60);

static int append(struct tailed_file *file, const char *bytes, const char *tail, bool last)
{
	struct text text = { 0 };
	int error;

	text_string(&text, bytes);
	error = tailed_file_append(file, &text, tail, strlen(tail), last);
	text_free(&text);
	return error;
}

/* One item of BLOCK bytes; false: it was refused. */
static bool add_block(struct tailed_file *file)
{
	static char bytes[BLOCK];
	struct text text = { .data = bytes, .length = BLOCK, .capacity = BLOCK };

	memset(bytes, 'x', sizeof(bytes));
	if (!tailed_file_admit(file, 1))
		return false;
	cr_assert_eq(tailed_file_append(file, &text, NULL, 0, false), 0);
	return true;
}

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

static struct tailed_file detached(int descriptor)
{
	struct tailed_file file;

	cr_assert_eq(tailed_file_open(&file, descriptor < 0 ? path : NULL, descriptor), 0);
	cr_assert_eq(tailed_file_detach(&file, &stopped), 0);
	return file;
}

/* The one that writes. */
static pid_t find_process(void)
{
	FILE *children = fopen("/proc/thread-self/children", "r");
	pid_t pid = 0;

	cr_assert_not_null(children);
	cr_assert_eq(fscanf(children, "%d", &pid), 1, "there is no process that writes");
	fclose(children);
	return pid;
}

static size_t read_all(int descriptor)
{
	static char bytes[1 << 16];
	size_t sum = 0;
	ssize_t got;

	while ((got = read(descriptor, bytes, sizeof(bytes))) > 0)
		sum += got;
	return sum;
}

Test(base_file_writer, every_append_leaves_a_whole_document)
{
	struct tailed_file file = detached(-1);

	cr_assert_eq(append(&file, "head[", "]a long tail", false), 0);
	cr_assert_eq(tailed_file_settle(&file), 0);
	expect("head[]a long tail");
	cr_assert_eq(append(&file, "1", "]", false), 0);
	cr_assert_eq(append(&file, ",2", "]", false), 0);
	cr_assert_eq(tailed_file_settle(&file), 0);
	expect("head[1,2]");
	cr_assert_eq(tailed_file_bytes(&file), strlen("head[1,2]"));
	cr_assert_eq(append(&file, "", "]tail", true), 0);
	cr_assert_eq(tailed_file_close(&file), 0);
	expect("head[1,2]tail");
	cr_assert_eq(tailed_file_bytes(&file), strlen("head[1,2]tail"));
	cr_assert_eq(tailed_file_lost(&file), 0);
	cr_assert_gt(waitpid(-1, NULL, 0), 0, "nobody has written");
}

static void skip_with_sanitizers(void)
{
#if defined(__SANITIZE_ADDRESS__)
	cr_skip_test("the sanitizers need what a confined process has not");
#endif
}

/* The file is handed to a process that was started before; no other one can be by then. */
static int write_confined(void)
{
	struct tailed_file file, other;

	if (writer_prepare() || tailed_file_open(&file, path, -1) || append(&file, "head[1", "]", false))
		return 1;
	if (tailed_file_open(&other, "/dev/null", -1) || confine(-1))
		return 2;
	if (fork() >= 0 || tailed_file_detach(&file, NULL) || tailed_file_detach(&other, NULL) != -EPERM)
		return 3;
	if (append(&file, ",2", "]", false) || tailed_file_settle(&file) ||
	    tailed_file_bytes(&file) != strlen("head[1,2]"))
		return 4;
	return append(&file, ",3", "]tail", true) || tailed_file_close(&file) ? 5 : 0;
}

Test(base_file_writer, one_that_was_prepared)
{
	int status;
	pid_t pid;

	skip_with_sanitizers();
	pid = fork();
	if (!pid)
		_exit(write_confined());
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0, "status %d", WEXITSTATUS(status));
	expect("head[1,2,3]tail");
	cr_assert_gt(waitpid(-1, NULL, 0), 0, "nobody has written");
}

Test(base_file_writer, one_that_was_prepared_and_got_no_file)
{
	int status;
	pid_t pid;

	skip_with_sanitizers();
	pid = fork();
	if (!pid)
		_exit(writer_prepare() ? 1 : 0);
	cr_assert_eq(waitpid(pid, &status, 0), pid);
	cr_assert_eq(status, 0);
	cr_assert_gt(waitpid(-1, &status, 0), 0, "it was not started");
	cr_assert_eq(status, 0);
}

Test(base_file_writer, blocks_of_any_size)
{
	static const size_t sizes[] = { 0, 1, 262143, 262144, 262145, 1000000, 20000000 };
	size_t sum = 0, capacity = 20000000;
	char *bytes = malloc(capacity), *read_back;
	struct tailed_file file = detached(-1);
	FILE *written;

	for (size_t i = 0; i < capacity; i++)
		bytes[i] = (char)(i * 7 + i / 251);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct text text = { .data = bytes, .length = sizes[i], .capacity = sizes[i] };

		cr_assert_eq(tailed_file_append(&file, &text, NULL, 0, false), 0);
		sum += sizes[i];
	}
	cr_assert_eq(tailed_file_close(&file), 0);
	cr_assert_eq(tailed_file_bytes(&file), sum);
	written = fopen(path, "r");
	read_back = malloc(capacity);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cr_assert_eq(fread(read_back, 1, sizes[i], written), sizes[i]);
		cr_assert_eq(memcmp(read_back, bytes, sizes[i]), 0, "size %zu", sizes[i]);
	}
	fclose(written);
	free(read_back);
	free(bytes);
}

/* A tail may begin in one slot of the queue and end in the next. */
Test(base_file_writer, a_tail_is_put_back_when_the_disk_is_full)
{
	const size_t before = 262144 - 3; /* what is in front of the tail: it is cut in two */
	struct rlimit limit = { 300000, RLIM_INFINITY };
	struct tailed_file file = detached(-1);
	char *bytes = calloc(1, before), end[6] = "";
	struct text text = { 0 };
	int written;

	text_bytes(&text, bytes, before);
	cr_assert_eq(tailed_file_append(&file, &text, "]tail", 5, false), 0);
	cr_assert_eq(tailed_file_settle(&file), 0);
	file.patient = false;
	prlimit(find_process(), RLIMIT_FSIZE, &limit, NULL);
	cr_assert(add_block(&file));
	cr_assert_eq(tailed_file_settle(&file), -EFBIG);
	cr_assert_eq(tailed_file_check(&file), -EFBIG);
	cr_assert_eq(tailed_file_lost(&file), 1);
	cr_assert_eq(append(&file, "1", "]", false), -EFBIG);
	/* With luck there is room for what says so. */
	cr_assert_eq(append(&file, "1", "]end", true), 0);
	cr_assert_eq(tailed_file_close(&file), -EFBIG);
	written = open(path, O_RDONLY);
	cr_assert_eq(pread(written, end, 6, before), 5);
	cr_assert_arr_eq(end, "1]end", 5);
	close(written);
	text_free(&text);
	free(bytes);
}

/* Whatever is in the way, nothing waits; what was refused is counted, and the rest comes out whole. */
Test(base_file_writer, a_pipe_that_nobody_reads)
{
	struct tailed_file file;
	uint64_t taken = 0, begin = clock_monotonic();
	unsigned int again = 0;
	size_t sum;
	pid_t reader;
	int ends[2], status;

	cr_assert_eq(pipe(ends), 0);
	file = detached(ends[1]);
	while (add_block(&file))
		cr_assert_lt(++taken, 1000, "there is no end to the queue");
	cr_assert(!add_block(&file));
	cr_assert_eq(tailed_file_lost(&file), 2);
	cr_assert(tailed_file_busy(&file));
	/* What cannot be left out still fits. */
	cr_assert_eq(append(&file, "important", "", false), 0);
	cr_assert_lt(clock_monotonic() - begin, 5000000000ull);
	reader = fork();
	if (!reader)
		_exit(read_all(ends[0]) == (taken + 1) * BLOCK + strlen("important[]") ? 0 : 1);
	close(ends[0]);
	while (!add_block(&file) && ++again < 1000)
		usleep(10000);
	cr_assert_eq(append(&file, "[", "]", true), 0);
	sum = tailed_file_lost(&file);
	cr_assert_eq(tailed_file_close(&file), 0);
	cr_assert_eq(tailed_file_lost(&file), sum);
	cr_assert_eq(sum, 2 + again);
	cr_assert_eq(waitpid(reader, &status, 0), reader);
	cr_assert_eq(status, 0, "not all of it came out");
}

Test(base_file_writer, an_append_that_finds_no_room_is_not_taken_in_part)
{
	char *bytes = calloc(1, 8 << 20);
	struct text text = { .data = bytes, .length = 8 << 20, .capacity = 8 << 20 };
	struct tailed_file file;
	size_t taken = 0;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	file = detached(ends[1]);
	while (!tailed_file_append(&file, &text, NULL, 0, false))
		cr_assert_lt(++taken, 100);
	cr_assert_eq(text.length, 8 << 20);
	cr_assert_eq(taken, 8, "the queue has 64 MiB");
	cr_assert_eq(file.error, 0, "it is no error of the output");
	stopped = 1;
	cr_assert_eq(tailed_file_close(&file), -ETIMEDOUT);
	free(bytes);
	close(ends[0]);
}

Test(base_file_writer, the_end_waits_until_somebody_stops_it)
{
	struct tailed_file file;
	uint64_t begin, took;
	pid_t writer;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	file = detached(ends[1]);
	for (int i = 0; i < 10; i++)
		cr_assert(add_block(&file));
	writer = find_process();
	stopped = begin = clock_monotonic();
	cr_assert_eq(tailed_file_settle(&file), -ETIMEDOUT);
	took = clock_monotonic() - begin;
	cr_assert(took >= WRITER_GRACE && took < WRITER_GRACE + 500000000, "%llu", (unsigned long long)took);
	cr_assert_eq(tailed_file_lost(&file), 10);
	/* From here on nothing waits. */
	begin = clock_monotonic();
	cr_assert_eq(append(&file, "[", "]", true), -ETIMEDOUT);
	cr_assert_eq(tailed_file_close(&file), -ETIMEDOUT);
	cr_assert_lt(clock_monotonic() - begin, 500000000);
	/* The process has been reported, and leaves the pipe alone. */
	cr_assert_eq(waitpid(writer, NULL, 0), writer);
	cr_assert_leq(read_all(ends[0]), 65536);
	close(ends[0]);
}

Test(base_file_writer, a_reader_that_has_gone)
{
	struct tailed_file file;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	file = detached(ends[1]);
	close(ends[0]);
	cr_assert(add_block(&file));
	cr_assert_eq(tailed_file_settle(&file), -EPIPE);
	cr_assert_eq(append(&file, "1", "", false), -EPIPE);
	cr_assert_eq(tailed_file_lost(&file), 1);
	cr_assert_eq(tailed_file_close(&file), -EPIPE);
}

Test(base_file_writer, the_process_is_killed)
{
	struct tailed_file file = detached(-1);
	pid_t writer = find_process();

	cr_assert_eq(append(&file, "1", "]", false), 0);
	cr_assert_eq(tailed_file_settle(&file), 0);
	kill(writer, SIGKILL);
	cr_assert_eq(waitpid(writer, NULL, 0), writer);
	cr_assert_eq(tailed_file_check(&file), -EIO);
	cr_assert_eq(append(&file, "2", "]", false), -EIO);
	cr_assert_eq(tailed_file_close(&file), -EIO);
	expect("1]");
}

Test(base_file_writer, the_collector_is_killed)
{
	int ready[2], status;
	char byte;
	pid_t collector;

	cr_assert_eq(pipe(ready), 0);
	collector = fork();
	if (!collector) {
		struct tailed_file file = detached(-1);

		for (int i = 0; i < 100; i++)
			append(&file, "0123456789", "]", false);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	kill(collector, SIGKILL);
	cr_assert_eq(waitpid(collector, &status, 0), collector);
	/* The process that writes, which ends in order. */
	cr_assert_gt(waitpid(-1, &status, 0), 0);
	cr_assert_eq(status, 0);
	{
		char expected[1002] = "";

		for (int i = 0; i < 100; i++)
			strcat(expected, "0123456789");
		strcat(expected, "]");
		expect(expected);
	}
}

/* It would block for ever, with nobody left to stop it. */
Test(base_file_writer, the_collector_is_killed_while_the_output_blocks)
{
	int ready[2], ends[2], status;
	uint64_t begin;
	pid_t collector;
	char byte;

	cr_assert_eq(pipe(ready), 0);
	cr_assert_eq(pipe(ends), 0);
	collector = fork();
	if (!collector) {
		struct tailed_file file = detached(ends[1]);

		for (int i = 0; i < 10; i++)
			add_block(&file);
		if (write(ready[1], "", 1) == 1)
			pause();
		_exit(1);
	}
	cr_assert_eq(read(ready[0], &byte, 1), 1);
	kill(collector, SIGKILL);
	begin = clock_monotonic();
	cr_assert_eq(waitpid(collector, &status, 0), collector);
	cr_assert_gt(waitpid(-1, &status, 0), 0);
	cr_assert_lt(clock_monotonic() - begin, WRITER_ORPHANED + 1000000000);
}

static unsigned int count_descriptors(pid_t pid)
{
	unsigned int count = 0;
	char name[64];
	DIR *folder;

	snprintf(name, sizeof(name), "/proc/%d/fd", pid);
	folder = opendir(name);
	cr_assert_not_null(folder);
	for (const struct dirent *entry; (entry = readdir(folder));)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

/* Else whoever reads another pipe of this program would wait for this process, too. */
Test(base_file_writer, the_process_keeps_nothing_else)
{
	struct tailed_file file = detached(-1);
	pid_t writer = find_process();
	char name[64], target[64] = "";

	cr_assert_eq(append(&file, "1", "]", false), 0);
	cr_assert_eq(tailed_file_settle(&file), 0);
	cr_assert_leq(count_descriptors(writer), 3);
	cr_assert_eq(getsid(writer), writer);
	snprintf(name, sizeof(name), "/proc/%d/cwd", writer);
	cr_assert_gt(readlink(name, target, sizeof(target) - 1), 0);
	cr_assert_str_eq(target, "/");
	/* A terminal's signals, and those of a service manager, are for the collector. */
	kill(writer, SIGTERM);
	kill(writer, SIGINT);
	kill(writer, SIGHUP);
	cr_assert_eq(append(&file, "2", "]", false), 0);
	cr_assert_eq(tailed_file_close(&file), 0);
	expect("12]");
}

Test(base_file_writer, tails_that_are_too_long)
{
	char *tail = calloc(1, WRITER_TAIL_MAX + 1);
	struct tailed_file file = detached(-1);
	struct text text = { 0 };

	memset(tail, 'x', WRITER_TAIL_MAX + 1);
	cr_assert_eq(tailed_file_append(&file, &text, tail, WRITER_TAIL_MAX, false), 0);
	text_clear(&text, 0);
	cr_assert_eq(tailed_file_append(&file, &text, tail, WRITER_TAIL_MAX + 1, false), -E2BIG);
	text_clear(&text, 0);
	file.error = 0;
	cr_assert_eq(tailed_file_append(&file, &text, tail, WRITER_TAIL_MAX + 1, true), 0);
	cr_assert_eq(tailed_file_close(&file), 0);
	cr_assert_eq(tailed_file_bytes(&file), WRITER_TAIL_MAX + 1);
	text_free(&text);
	free(tail);
}

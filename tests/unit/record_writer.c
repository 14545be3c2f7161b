/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "record_recording.h"

Test(record_writer, round_trip_over_many_chunks)
{
	char *path = test_path();
	int result;

	test_make(path, 50000, 1000000); /* about 3.5 MB: chunks of their own accord */
	cr_assert_eq(test_read_calls(path, &result), 50000);
	cr_assert_eq(result, 0);
	test_remove(path);
}

Test(record_writer, only_the_owner_may_read_it)
{
	char *path = test_path();
	struct stat status;

	unlink(path);
	test_make(path, 1, 1);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode & 0777, 0600);
	test_remove(path);
}

Test(record_writer, what_was_flushed_can_be_read)
{
	char *path = test_path();
	struct recording_writer *writer;
	union test_call record;
	struct stat status;
	unsigned int i;
	int result;

	cr_assert_eq(recording_writer_create(NULL, path, -1, &test_info, &writer), 0);
	for (i = 0; i < 10; i++) {
		cr_assert_eq(test_read_calls(path, &result), i);
		cr_assert_eq(result, 0);
		cr_assert_eq(recording_writer_add(writer, test_call_make(&record, i)), 0);
		cr_assert_eq(recording_writer_flush(writer), 0);
		cr_assert_eq(stat(path, &status), 0);
		cr_assert_eq(recording_writer_bytes(writer), (__u64)status.st_size);
	}
	cr_assert_eq(recording_writer_close(writer), 0);
	test_remove(path);
}

Test(record_writer, record_that_is_none)
{
	char *path = test_path();
	struct recording_writer *writer;
	struct xpt_record_header record = { .kind = 1, .size = 8 };

	cr_assert_eq(recording_writer_create(NULL, path, -1, &test_info, &writer), 0);
	cr_assert_eq(recording_writer_add(writer, &record), -EINVAL);
	record.size = 17;
	cr_assert_eq(recording_writer_add(writer, &record), -EINVAL);
	cr_assert_eq(recording_writer_close(writer), 0);
	test_remove(path);
}

/* A limit on the size of files stands for a full disk. */
Test(record_writer, full_disk_leaves_complete_chunks)
{
	char *path = test_path();
	struct rlimit limit = { 20000, 20000 };
	struct recording_writer *writer;
	union test_call record;
	struct stat status;
	unsigned int i;
	int error = 0, result;

	signal(SIGXFSZ, SIG_IGN);
	cr_assert_eq(recording_writer_create(NULL, path, -1, &test_info, &writer), 0);
	cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (i = 0; !error && i < 100000; i++) {
		error = recording_writer_add(writer, test_call_make(&record, i));
		if (!error && i % 30 == 29)
			error = recording_writer_flush(writer);
	}
	cr_assert_eq(error, -EFBIG);
	cr_assert_eq(recording_writer_add(writer, test_call_make(&record, 0)), -EFBIG);
	cr_assert_eq(recording_writer_flush(writer), -EFBIG);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(recording_writer_bytes(writer), (__u64)status.st_size, "not cut back");
	cr_assert_eq(recording_writer_close(writer), -EFBIG);
	cr_assert_eq(test_read_calls(path, &result), i - 30);
	cr_assert_eq(result, 0, "the file ends in an incomplete chunk");
	test_remove(path);
}

Test(record_writer, output_that_takes_nothing)
{
	struct recording_writer *writer;

	cr_assert_eq(recording_writer_create(NULL, "/dev/full", -1, &test_info, &writer), -ENOSPC);
	cr_assert_eq(recording_writer_create(NULL, "/nonexistent/x.xpt", -1, &test_info, &writer), -ENOENT);
	cr_assert_eq(recording_writer_create(NULL, NULL, -1, &test_info, &writer), -EBADF);
}

Test(record_writer, through_a_pipe)
{
	char path[64];
	struct recording_writer *writer;
	union test_call record;
	int pipes[2], result;
	unsigned int i;

	cr_assert_eq(pipe(pipes), 0);
	cr_assert_eq(recording_writer_create(NULL, NULL, pipes[1], &test_info, &writer), 0);
	for (i = 0; i < 500; i++)
		cr_assert_eq(recording_writer_add(writer, test_call_make(&record, i)), 0);
	cr_assert_eq(recording_writer_close(writer), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", pipes[0]);
	cr_assert_eq(test_read_calls(path, &result), 500);
	cr_assert_eq(result, 0);
	close(pipes[0]);
}

static void *close_writer(void *writer)
{
	cr_assert_eq(recording_writer_close(writer), 0);
	return NULL;
}

/* What there is no room for is counted; the chunks that come out are whole and in their order. */
Test(record_writer, a_pipe_that_nobody_reads)
{
	const struct xpt_record_header *record;
	const struct xpt_record_call *call;
	struct recording_writer *writer;
	struct recording_reader *reader;
	uint64_t stopped = 0, lost;
	union test_call made;
	unsigned int i, count = 0, named = 0, last = 0;
	int ends[2], result;
	char path[64];
	pthread_t closing;

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(recording_writer_create(NULL, NULL, ends[1], &test_info, &writer), 0);
	cr_assert_eq(recording_writer_detach(writer, &stopped), 0);
	for (i = 0; !recording_writer_lost(writer); i++)
		cr_assert_eq(recording_writer_add(writer, test_call_make(&made, i)), 0);
	cr_assert_gt(i, 100000);
	for (; i % 10000; i++)
		cr_assert_eq(recording_writer_add(writer, test_call_make(&made, i)), 0);
	lost = recording_writer_lost(writer);
	/* What others depend on still fits. */
	test_call_make(&made, i);
	made.call.header.kind = XPT_RECORD_PASS;
	cr_assert_eq(recording_writer_add(writer, &made.call.header), 0);
	cr_assert_eq(recording_writer_lost(writer), lost);
	cr_assert_eq(pthread_create(&closing, NULL, close_writer, writer), 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", ends[0]);
	cr_assert_eq(recording_reader_open(NULL, path, &reader), 0);
	while ((result = recording_reader_next(reader, &record)) == 1) {
		call = (const void *)record;
		named += record->kind == XPT_RECORD_PASS;
		count += record->kind == XPT_RECORD_CALL;
		cr_assert(!count || record->time / 1000 >= last, "out of order");
		last = call->header.time / 1000;
	}
	cr_assert_eq(result, 0);
	cr_assert_eq(named, 1);
	cr_assert_eq(count + lost, i);
	recording_reader_close(reader);
	cr_assert_eq(pthread_join(closing, NULL), 0);
	close(ends[0]);
}

Test(record_writer, a_pipe_that_is_given_up)
{
	struct recording_writer *writer;
	uint64_t stopped = 1;
	union test_call made;
	int ends[2];

	cr_assert_eq(pipe(ends), 0);
	cr_assert_eq(recording_writer_create(NULL, NULL, ends[1], &test_info, &writer), 0);
	cr_assert_eq(recording_writer_detach(writer, &stopped), 0);
	for (unsigned int i = 0; i < 10000; i++)
		cr_assert_eq(recording_writer_add(writer, test_call_make(&made, i)), 0);
	cr_assert_eq(recording_writer_settle(writer), -ETIMEDOUT);
	cr_assert_eq(recording_writer_lost(writer), 10000);
	cr_assert_eq(recording_writer_close(writer), -ETIMEDOUT);
	close(ends[0]);
}

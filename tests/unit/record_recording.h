/* SPDX-License-Identifier: BSD-2-Clause */
/* Files and records for the tests of writer and reader. */
#ifndef XPT_TESTS_RECORD_RECORDING_H
#define XPT_TESTS_RECORD_RECORDING_H

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "record/recording.h"

static const struct recording_info test_info = {
	.monotonic_time = 9007199254740993,
	.realtime = 1790000000123456789,
	.host = "a \"host\"",
	.kernel = "6.1.0",
	.machine = "x86_64",
	.version = "0.1",
	.command = "xputrace record -p 1 \xc3\xa9",
	.boot_id = "01234567",
	.cpus = 64,
};

static inline char *test_path(void)
{
	char *path = strdup("/tmp/recording.XXXXXX");

	close(mkstemp(path));
	return path;
}

static inline void test_remove(char *path)
{
	unlink(path);
	free(path);
}

/* A call whose contents follow from its number, so that a reader can tell whether it is the right one. */
union test_call {
	struct xpt_record_call call;
	__u64 words[sizeof(struct xpt_record_call) / 8 + 8];
};

static inline const struct xpt_record_header *test_call_make(union test_call *record, __u64 number)
{
	size_t values = number % 9, i;

	memset(record, 0, sizeof(*record));
	record->call.header.kind = XPT_RECORD_CALL;
	record->call.header.size = sizeof(record->call) + values * 8;
	record->call.header.tgid = number * 7;
	record->call.header.time = number * 1000;
	record->call.values = values;
	record->call.spec = number;
	for (i = 0; i < values; i++)
		record->call.value[i] = number ^ i << 40;
	return &record->call.header;
}

static inline void test_call_check(const struct xpt_record_header *record, __u64 number)
{
	union test_call expected;

	test_call_make(&expected, number);
	cr_assert_eq(record->size, expected.call.header.size, "record %llu", number);
	cr_assert_arr_eq((const char *)record, (const char *)&expected, record->size, "record %llu", number);
}

static inline char *test_read_file(const char *path, size_t *length)
{
	FILE *file = fopen(path, "r");
	char *bytes;

	cr_assert_not_null(file);
	fseek(file, 0, SEEK_END);
	*length = ftell(file);
	rewind(file);
	bytes = malloc(*length + 1);
	cr_assert_eq(fread(bytes, 1, *length, file), *length);
	fclose(file);
	return bytes;
}

static inline void test_write_file(const char *path, const char *bytes, size_t length)
{
	FILE *file = fopen(path, "w");

	cr_assert_not_null(file);
	cr_assert_eq(fwrite(bytes, 1, length, file), length);
	cr_assert_eq(fclose(file), 0);
}

/* Calls 0 to count - 1 in chunks of per_chunk. */
static inline void test_make(const char *path, unsigned int count, unsigned int per_chunk)
{
	struct recording_writer *writer;
	union test_call record;
	unsigned int i;

	cr_assert_eq(recording_writer_create(NULL, path, -1, &test_info, &writer), 0);
	for (i = 0; i < count; i++) {
		cr_assert_eq(recording_writer_add(writer, test_call_make(&record, i)), 0);
		if (i % per_chunk == per_chunk - 1)
			cr_assert_eq(recording_writer_flush(writer), 0);
	}
	cr_assert_eq(recording_writer_close(writer), 0);
}

/* Reads to the end; result is what ended it. Returns how many of the calls 0, 1, 2... there were. */
static inline unsigned int test_read_calls(const char *path, int *result)
{
	const struct xpt_record_header *record;
	struct recording_reader *reader;
	unsigned int count = 0;

	*result = recording_reader_open(NULL, path, &reader);
	if (*result)
		return 0;
	while ((*result = recording_reader_next(reader, &record)) == 1)
		test_call_check(record, count++);
	cr_assert_eq(recording_reader_next(reader, &record), *result, "the end is not the end");
	recording_reader_close(reader);
	return count;
}

#endif

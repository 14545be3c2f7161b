/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recording.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "record/format.h"
#include "record_recording.h"

/* ---- writing ---- */

Test(record_recording, round_trip_over_many_chunks)
{
	char *path = test_path();
	int result;

	test_make(path, 50000, 1000000); /* about 3.5 MB: chunks of their own accord */
	cr_assert_eq(test_read_calls(path, &result), 50000);
	cr_assert_eq(result, 0);
	test_remove(path);
}

Test(record_recording, only_the_owner_may_read_it)
{
	char *path = test_path();
	struct stat status;

	unlink(path);
	test_make(path, 1, 1);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(status.st_mode & 0777, 0600);
	test_remove(path);
}

Test(record_recording, what_was_flushed_can_be_read)
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

Test(record_recording, record_that_is_none)
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
Test(record_recording, full_disk_leaves_complete_chunks)
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

Test(record_recording, output_that_takes_nothing)
{
	struct recording_writer *writer;

	cr_assert_eq(recording_writer_create(NULL, "/dev/full", -1, &test_info, &writer), -ENOSPC);
	cr_assert_eq(recording_writer_create(NULL, "/nonexistent/x.xpt", -1, &test_info, &writer), -ENOENT);
	cr_assert_eq(recording_writer_create(NULL, NULL, -1, &test_info, &writer), -EBADF);
}

Test(record_recording, through_a_pipe)
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
Test(record_recording, a_pipe_that_nobody_reads)
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

Test(record_recording, a_pipe_that_is_given_up)
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

/* ---- reading ---- */

Test(record_recording, info_comes_back)
{
	char *path = test_path();
	struct recording_reader *reader;
	const struct recording_info *info;
	struct stat status;

	test_make(path, 1, 1);
	cr_assert_eq(recording_reader_open(NULL, path, &reader), 0);
	info = recording_reader_info(reader);
	cr_assert_eq(info->monotonic_time, test_info.monotonic_time);
	cr_assert_eq(info->realtime, test_info.realtime);
	cr_assert_str_eq(info->host, test_info.host);
	cr_assert_str_eq(info->kernel, test_info.kernel);
	cr_assert_str_eq(info->machine, test_info.machine);
	cr_assert_str_eq(info->version, test_info.version);
	cr_assert_str_eq(info->command, test_info.command);
	cr_assert_str_eq(info->boot_id, test_info.boot_id);
	cr_assert_eq(info->cpus, 64);
	cr_assert_eq(stat(path, &status), 0);
	cr_assert_eq(recording_reader_size(reader), (__u64)status.st_size);
	cr_assert_gt(recording_reader_position(reader), 0);
	recording_reader_close(reader);
	recording_reader_close(NULL);
	test_remove(path);
}

/* Where the header and each of the chunks ends. */
static size_t chunk_ends(const char *bytes, size_t length, size_t *ends, size_t most)
{
	size_t at, count = 0;

	at = ((const struct recording_header *)bytes)->header_length;
	ends[count++] = at;
	while (at < length && count < most) {
		at += sizeof(struct recording_chunk) + ((const struct recording_chunk *)(bytes + at))->length;
		ends[count++] = at;
	}
	return count;
}

Test(record_recording, cut_off_at_every_byte)
{
	char *path = test_path(), *bytes;
	size_t length, cut, ends[16], count, whole;
	int result;

	test_make(path, 20, 4);
	bytes = test_read_file(path, &length);
	count = chunk_ends(bytes, length, ends, 16);
	cr_assert_eq(count, 6);
	cr_assert_eq(ends[5], length);
	for (cut = 0; cut <= length; cut++) {
		unsigned int calls;

		test_write_file(path, bytes, cut);
		calls = test_read_calls(path, &result);
		if (cut < ends[0]) {
			cr_assert_eq(result, -EBADMSG, "%zu", cut);
			continue;
		}
		for (whole = 0; whole + 1 < count && ends[whole + 1] <= cut;)
			whole++;
		cr_assert_eq(calls, whole * 4, "%zu", cut);
		cr_assert_eq(result, ends[whole] == cut ? 0 : -ENODATA, "%zu", cut);
	}
	free(bytes);
	test_remove(path);
}

/* Every single bit of the file; what is before the damaged chunk must come, and nothing that is wrong. */
Test(record_recording, flipped_bits_are_found)
{
	char *path = test_path(), *bytes;
	size_t length, at, ends[16], count, before;
	int result;

	test_make(path, 9, 3);
	bytes = test_read_file(path, &length);
	count = chunk_ends(bytes, length, ends, 16);
	for (at = 0; at < length; at++) {
		unsigned int calls;

		bytes[at] ^= 1 << at % 8;
		test_write_file(path, bytes, length);
		bytes[at] ^= 1 << at % 8;
		calls = test_read_calls(path, &result);
		if (at < ends[0]) {
			cr_assert(result == -EBADMSG || result == -EPROTO, "byte %zu gives %d", at, result);
			continue;
		}
		for (before = 0; before + 1 < count && ends[before + 1] <= at;)
			before++;
		cr_assert_eq(result, -ENODATA, "byte %zu gives %d", at, result);
		cr_assert_eq(calls, before * 3, "byte %zu", at);
	}
	free(bytes);
	test_remove(path);
}

static int open_changed(void (*change)(struct recording_header *header))
{
	char *path = test_path(), *bytes;
	struct recording_header *header;
	struct crc32c crc;
	size_t length;
	int result;

	test_make(path, 1, 1);
	bytes = test_read_file(path, &length);
	header = (struct recording_header *)bytes;
	change(header);
	crc32c_init(&crc);
	header->crc = 0;
	if (header->header_length <= length)
		header->crc = crc32c_add(&crc, 0, bytes, header->header_length);
	test_write_file(path, bytes, length);
	test_read_calls(path, &result);
	free(bytes);
	test_remove(path);
	return result;
}

static void other_magic(struct recording_header *header)
{
	header->magic[0] = 'Y';
}

static void other_byte_order(struct recording_header *header)
{
	header->byte_order = 0x04030201;
}

static void other_version(struct recording_header *header)
{
	header->version = 2;
}

static void huge_header(struct recording_header *header)
{
	header->header_length = 0xfffffff8;
}

static void info_outside(struct recording_header *header)
{
	header->info_offset = header->header_length;
	header->info_length = 8;
}

static void info_wraps(struct recording_header *header)
{
	header->info_offset = 0xffffffff;
	header->info_length = 2;
}

static void info_no_json(struct recording_header *header)
{
	header->info_offset += 1;
	header->info_length -= 1;
}

Test(record_recording, headers_that_are_refused)
{
	struct recording_reader *reader;

	cr_assert_eq(open_changed(other_magic), -EBADMSG);
	cr_assert_eq(open_changed(other_byte_order), -ENOTSUP);
	cr_assert_eq(open_changed(other_version), -EPROTO);
	cr_assert_eq(open_changed(huge_header), -EBADMSG);
	cr_assert_eq(open_changed(info_outside), -EBADMSG);
	cr_assert_eq(open_changed(info_wraps), -EBADMSG);
	cr_assert_eq(open_changed(info_no_json), -EBADMSG);
	cr_assert_eq(recording_reader_open(NULL, "/nonexistent/x.xpt", &reader), -ENOENT);
	cr_assert_eq(recording_reader_open(NULL, "/tmp", &reader), -EISDIR);
	cr_assert_eq(recording_reader_open(NULL, "/dev/null", &reader), -EBADMSG);
}

/* A recording with one chunk that holds these bytes and has the right sum: what only a hostile writer makes. */
static int read_payload(const void *payload, __u32 length, __u32 claimed, __u32 records,
			const struct xpt_record_header **first, struct recording_reader **reader)
{
	struct recording_chunk chunk = {
		.magic = RECORDING_CHUNK_MAGIC,
		.length = claimed,
		.records = records,
	};
	char *path = test_path();
	struct crc32c crc;
	FILE *file;
	int result;

	test_make(path, 0, 1);
	crc32c_init(&crc);
	chunk.crc = crc32c_add(&crc, crc32c_add(&crc, 0, &chunk, sizeof(chunk)), payload, length);
	file = fopen(path, "a");
	fwrite(&chunk, sizeof(chunk), 1, file);
	fwrite(payload, length, 1, file);
	fclose(file);
	cr_assert_eq(recording_reader_open(NULL, path, reader), 0);
	result = recording_reader_next(*reader, first);
	test_remove(path);
	return result;
}

static int read_record(const void *payload, __u32 length)
{
	const struct xpt_record_header *record;
	struct recording_reader *reader;
	int result = read_payload(payload, length, length, 1, &record, &reader);

	recording_reader_close(reader);
	return result;
}

Test(record_recording, hostile_sizes)
{
	union {
		struct xpt_record_header header;
		struct xpt_record_call call;
		struct xpt_record_string string;
		struct xpt_record_text text;
		struct xpt_record_total total;
		__u64 words[16];
	} record;
	const struct xpt_record_header *first;
	struct recording_reader *reader;

	memset(&record, 0, sizeof(record));
	cr_assert_eq(read_record(&record, 128), -ENODATA, "a size of 0 would never end");
	record.header = (struct xpt_record_header){ .kind = XPT_RECORD_PASS, .size = 20 };
	cr_assert_eq(read_record(&record, 128), -ENODATA, "not a multiple of 8");
	record.header.size = 136;
	cr_assert_eq(read_record(&record, 128), -ENODATA, "beyond the chunk");
	record.header.size = 128;
	cr_assert_eq(read_record(&record, 128), 1);
	record.header.kind = 999;
	cr_assert_eq(read_record(&record, 128), 1, "a kind of a newer version");
	cr_assert_eq(read_record(&record, 8), -ENODATA, "not even a header");

	record.header.kind = XPT_RECORD_CALL;
	record.call.values = 11;
	cr_assert_eq(read_record(&record, 128), 1);
	record.call.values = 12;
	cr_assert_eq(read_record(&record, 128), -ENODATA);
	record.header.size = 32;
	record.call.values = 0;
	cr_assert_eq(read_record(&record, 32), -ENODATA);

	memset(&record, 0, sizeof(record));
	record.header = (struct xpt_record_header){ .kind = XPT_RECORD_STRING, .size = 128 };
	record.string.length = 88;
	cr_assert_eq(read_record(&record, 128), 1);
	record.string.length = 89;
	cr_assert_eq(read_record(&record, 128), -ENODATA);
	record.string.length = 0xffffffff;
	cr_assert_eq(read_record(&record, 128), -ENODATA);

	memset(&record, 0, sizeof(record));
	record.header = (struct xpt_record_header){ .kind = XPT_RECORD_END, .size = 128 };
	record.text.length = 96;
	cr_assert_eq(read_record(&record, 128), 1);
	record.text.length = 97;
	cr_assert_eq(read_record(&record, 128), -ENODATA);
	record.header.kind = XPT_RECORD_TOTAL;
	cr_assert_eq(read_record(&record, 128), 1);
	record.header.size = 56;
	cr_assert_eq(read_record(&record, 56), -ENODATA);

	record.header = (struct xpt_record_header){ .kind = XPT_RECORD_PASS, .size = 16 };
	cr_assert_eq(read_payload(&record, 16, 16, 2, &first, &reader), 1);
	cr_assert_eq(recording_reader_next(reader, &first), -ENODATA, "fewer records than it says");
	recording_reader_close(reader);
	cr_assert_eq(read_payload(&record, 16, RECORDING_CHUNK_MAX + 8, 1, &first, &reader), -ENODATA);
	recording_reader_close(reader);
	cr_assert_eq(read_payload(&record, 16, 0xfffffff8, 1, &first, &reader), -ENODATA);
	recording_reader_close(reader);
}

Test(record_recording, chunks_out_of_order_or_missing)
{
	char *path = test_path(), *bytes;
	size_t length, ends[8];
	int result;

	test_make(path, 9, 3);
	bytes = test_read_file(path, &length);
	chunk_ends(bytes, length, ends, 8);
	memmove(bytes + ends[1], bytes + ends[2], length - ends[2]);
	test_write_file(path, bytes, length - (ends[2] - ends[1]));
	cr_assert_eq(test_read_calls(path, &result), 3);
	cr_assert_eq(result, -ENODATA);
	free(bytes);
	test_remove(path);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/gzip.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"
#include "base/core/text.h"
#include "record/crc32c.h"
#include "record/format.h"
#include "record/recording.h"

struct recording_writer {
	struct log log;
	struct tailed_file file; /* with no tail: an incomplete chunk is taken back */
	int error;		 /* the first one; given by every later call */
	struct crc32c crc;
	struct recording_chunk *chunk; /* room behind it: RECORDING_CHUNK_SIZE and one record of the largest size */
	__u32 filled;		       /* payload bytes */
};

static void info_string(struct text *text, const char *name, const char *value)
{
	text_literal(text, ",\"");
	text_string(text, name);
	text_literal(text, "\":");
	text_json_string(text, value);
}

/* Times are strings: as JSON numbers many readers would round them. */
static void info_write(struct text *text, const struct recording_info *info)
{
	text_literal(text, "{\"monotonic_ns\":\"");
	text_unsigned(text, info->monotonic_time);
	text_literal(text, "\",\"realtime_ns\":\"");
	text_unsigned(text, info->realtime);
	text_literal(text, "\"");
	info_string(text, "host", info->host);
	info_string(text, "kernel", info->kernel);
	info_string(text, "machine", info->machine);
	info_string(text, "version", info->version);
	info_string(text, "command", info->command);
	info_string(text, "boot_id", info->boot_id);
	text_literal(text, ",\"cpus\":");
	text_unsigned(text, info->cpus);
	text_literal(text, "}");
}

static int write_header(struct recording_writer *writer, const struct recording_info *info)
{
	struct recording_header header = {
		.byte_order = RECORDING_BYTE_ORDER,
		.version = RECORDING_VERSION,
		.wire_version = XPT_WIRE_VERSION,
		.info_offset = sizeof(header),
	};
	struct text text = { 0 };
	int error;

	memcpy(header.magic, RECORDING_MAGIC, sizeof(header.magic));
	text_bytes(&text, &header, sizeof(header));
	info_write(&text, info);
	header.info_length = text.length - sizeof(header);
	while (text.length % 8 && !text.error)
		text_literal(&text, "\0");
	error = text.error;
	if (!error && text.length > RECORDING_HEADER_MAX)
		error = -E2BIG;
	if (error)
		goto out;
	header.header_length = text.length;
	memcpy(text.data, &header, sizeof(header));
	header.crc = crc32c_add(&writer->crc, 0, text.data, text.length);
	memcpy(text.data, &header, sizeof(header));
	error = tailed_file_append(&writer->file, &text, NULL, 0, false);
out:
	text_free(&text);
	return error;
}

static void writer_free(struct recording_writer *writer)
{
	tailed_file_close(&writer->file);
	free(writer->chunk);
	free(writer);
}

int recording_writer_create(const struct log *log, const char *path, int descriptor, const struct recording_info *info,
			    struct recording_writer **result)
{
	struct recording_writer *writer = calloc(1, sizeof(*writer));
	int error;

	if (!writer) {
		if (!path)
			close(descriptor);
		return -ENOMEM;
	}
	writer->log = log ? *log : (struct log){ 0 };
	if (path && gzip_is_name(path)) {
		log_error(log, "%s: a recording is not compressed: leave .gz out", path);
		free(writer);
		return -EINVAL;
	}
	if (path)
		descriptor = output_open(path, O_TRUNC);
	error = path && descriptor < 0 ? descriptor : tailed_file_open(&writer->file, NULL, descriptor);
	if (error) {
		writer->file.descriptor = -1;
		log_error(log, "%s: cannot be created: %s", path ? path : "output", output_reason(error));
		goto out;
	}
	writer->chunk = calloc(1, sizeof(*writer->chunk) + RECORDING_CHUNK_SIZE + UINT16_MAX + 1);
	if (!writer->chunk) {
		error = -ENOMEM;
		goto out;
	}
	crc32c_init(&writer->crc);
	error = write_header(writer, info);
	if (error) {
		log_error(log, "%s: cannot be written: %s", path ? path : "output", strerror(-error));
		goto out;
	}
	*result = writer;
	return 0;
out:
	writer_free(writer);
	return error;
}

static int failed(struct recording_writer *writer, int error)
{
	writer->error = error;
	if (error != -ETIMEDOUT) /* cancelled by the waiter, which reports it */
		log_error(&writer->log, "recording: cannot be written: %s", strerror(-error));
	return error;
}

/* Where there is no room for it, it stays for the next time. */
static int write_chunk(struct recording_writer *writer)
{
	struct recording_chunk *chunk = writer->chunk;
	struct text text = { .data = (char *)chunk, .length = sizeof(*chunk) + writer->filled };
	int error;

	if (writer->error || !writer->filled)
		return writer->error;
	text.capacity = text.length;
	chunk->magic = RECORDING_CHUNK_MAGIC;
	chunk->length = writer->filled;
	chunk->reserved = 0;
	chunk->crc = 0;
	chunk->crc = crc32c_add(&writer->crc, 0, chunk, text.length);
	error = tailed_file_append(&writer->file, &text, NULL, 0, false);
	if (error == -ENOBUFS)
		return 0;
	if (error)
		return failed(writer, error);
	writer->filled = 0;
	chunk->records = 0;
	chunk->sequence++;
	return 0;
}

/* Those of which there are many. The others define these, and are left out only when there is no room at all. */
static bool can_be_left_out(const struct xpt_record_header *record)
{
	switch (record->kind) {
	case XPT_RECORD_CALL:
	case XPT_RECORD_EVENT:
	case XPT_RECORD_IOCTL:
	case XPT_RECORD_REGION:
	case XPT_RECORD_READING:
		return true;
	default:
		return false;
	}
}

int recording_writer_add(struct recording_writer *writer, const struct xpt_record_header *record)
{
	if (writer->error)
		return writer->error;
	if (record->size < sizeof(*record) || record->size % 8)
		return -EINVAL;
	if (writer->filled >= RECORDING_CHUNK_SIZE && write_chunk(writer))
		return writer->error;
	if (writer->filled >= RECORDING_CHUNK_SIZE) {
		writer->file.refused++; /* no room for the chunk, and none in it */
		return 0;
	}
	if (can_be_left_out(record) && !tailed_file_admit(&writer->file, 1))
		return 0;
	memcpy((char *)(writer->chunk + 1) + writer->filled, record, record->size);
	writer->filled += record->size;
	writer->chunk->records++;
	return writer->filled >= RECORDING_CHUNK_SIZE ? write_chunk(writer) : 0;
}

int recording_writer_flush(struct recording_writer *writer)
{
	int error = tailed_file_check(&writer->file);

	if (error && !writer->error)
		return failed(writer, error);
	return tailed_file_busy(&writer->file) ? writer->error : write_chunk(writer);
}

int recording_writer_detach(struct recording_writer *writer, const uint64_t *stopped)
{
	return tailed_file_detach(&writer->file, stopped);
}

int recording_writer_settle(struct recording_writer *writer)
{
	int error = tailed_file_settle(&writer->file);

	if (!error)
		error = write_chunk(writer);
	if (!error)
		error = tailed_file_settle(&writer->file);
	return error && !writer->error ? failed(writer, error) : error;
}

int recording_writer_close(struct recording_writer *writer)
{
	int error, closed;

	if (!writer)
		return 0;
	error = recording_writer_settle(writer);
	/* Where the file system reports a failed write only now, it must not be taken for success. */
	closed = tailed_file_close(&writer->file);
	writer_free(writer);
	return error ?: closed;
}

__u64 recording_writer_bytes(const struct recording_writer *writer)
{
	return tailed_file_bytes(&writer->file);
}

__u64 recording_writer_lost(const struct recording_writer *writer)
{
	return tailed_file_lost(&writer->file);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "record/crc32c.h"
#include "record/format.h"
#include "record/recording.h"

struct recording_writer {
	struct log log;
	int descriptor;
	bool can_cut;	/* a regular file: an incomplete chunk can be taken back */
	__u64 start;	/* file offset at which the recording begins */
	__u64 complete; /* bytes of it that are header or complete chunks */
	int error;	/* the first one; given by every later call */
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
	error = file_write(writer->descriptor, text.data, text.length);
	if (!error)
		writer->complete = text.length;
out:
	text_free(&text);
	return error;
}

static void writer_free(struct recording_writer *writer)
{
	if (writer->descriptor >= 0)
		close(writer->descriptor);
	free(writer->chunk);
	free(writer);
}

int recording_writer_create(const struct log *log, const char *path, int descriptor, const struct recording_info *info,
			    struct recording_writer **result)
{
	struct recording_writer *writer = calloc(1, sizeof(*writer));
	struct stat status;
	off_t position;
	int error;

	if (!writer) {
		if (!path)
			close(descriptor);
		return -ENOMEM;
	}
	writer->log = log ? *log : (struct log){ 0 };
	writer->descriptor = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : descriptor;
	if (writer->descriptor < 0) {
		error = path ? -errno : -EBADF;
		log_error(log, "%s: cannot be created: %s", path ? path : "output", strerror(-error));
		goto out;
	}
	writer->chunk = calloc(1, sizeof(*writer->chunk) + RECORDING_CHUNK_SIZE + UINT16_MAX + 1);
	if (!writer->chunk) {
		error = -ENOMEM;
		goto out;
	}
	if (fstat(writer->descriptor, &status)) {
		error = -errno;
		goto out;
	}
	position = lseek(writer->descriptor, 0, SEEK_CUR);
	if (fcntl(writer->descriptor, F_GETFL) & O_APPEND)
		position = status.st_size;
	writer->can_cut = S_ISREG(status.st_mode) && position >= 0;
	writer->start = writer->can_cut ? position : 0;
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

int recording_writer_add(struct recording_writer *writer, const struct xpt_record_header *record)
{
	if (writer->error)
		return writer->error;
	if (record->size < sizeof(*record) || record->size % 8)
		return -EINVAL;
	memcpy((char *)(writer->chunk + 1) + writer->filled, record, record->size);
	writer->filled += record->size;
	writer->chunk->records++;
	return writer->filled >= RECORDING_CHUNK_SIZE ? recording_writer_flush(writer) : 0;
}

/* What is in the file beyond its last complete chunk would only be reported as damage by every reader. */
static void cut_back(struct recording_writer *writer)
{
	__u64 end = writer->start + writer->complete;

	if (!writer->can_cut)
		return;
	if (ftruncate(writer->descriptor, end) || lseek(writer->descriptor, end, SEEK_SET) < 0)
		log_warn(&writer->log, "recording: ends in an incomplete chunk: %s", strerror(errno));
}

int recording_writer_flush(struct recording_writer *writer)
{
	struct recording_chunk *chunk = writer->chunk;
	size_t length = sizeof(*chunk) + writer->filled;

	if (writer->error || !writer->filled)
		return writer->error;
	chunk->magic = RECORDING_CHUNK_MAGIC;
	chunk->length = writer->filled;
	chunk->reserved = 0;
	chunk->crc = 0;
	chunk->crc = crc32c_add(&writer->crc, 0, chunk, length);
	writer->error = file_write(writer->descriptor, chunk, length);
	if (writer->error) {
		log_error(&writer->log, "recording: cannot be written: %s", strerror(-writer->error));
		cut_back(writer);
		return writer->error;
	}
	writer->complete += length;
	writer->filled = 0;
	chunk->records = 0;
	chunk->sequence++;
	return 0;
}

int recording_writer_close(struct recording_writer *writer)
{
	int error;

	if (!writer)
		return 0;
	error = recording_writer_flush(writer);
	/* Where the file system reports a failed write only now, it must not be taken for success. */
	if (close(writer->descriptor) && !error && errno != EINTR)
		error = -errno;
	writer->descriptor = -1;
	writer_free(writer);
	return error;
}

__u64 recording_writer_bytes(const struct recording_writer *writer)
{
	return writer->complete;
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recording.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/core/json.h"
#include "base/file/gzip.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"
#include "model/stream/records.h"
#include "record/format.h"

#define PIPE_WAIT 1000 /* ms */

/* ---- writing ---- */

struct recording_writer {
	struct log log;
	struct tailed_file file; /* with no tail: an incomplete chunk is taken back */
	int error;		 /* the first one; given by every later call */
	struct crc32c crc;
	struct recording_chunk *chunk; /* room behind it: RECORDING_CHUNK_SIZE and one record of the largest size */
	__u32 filled;		       /* payload bytes */
};

static void info_write(struct text *text, const struct recording_info *info)
{
	text_literal(text, "{");
	json_add_long(text, "monotonic_ns", info->monotonic_time);
	json_add_long(text, "realtime_ns", info->realtime);
	if (info->boot_time)
		json_add_long(text, "boottime_ns", info->boot_time);
	json_add_text(text, "host", info->host ?: "");
	json_add_text(text, "kernel", info->kernel ?: "");
	json_add_text(text, "machine", info->machine ?: "");
	json_add_text(text, "version", info->version ?: "");
	json_add_text(text, "command", info->command ?: "");
	json_add_text(text, "boot_id", info->boot_id ?: "");
	json_add_unsigned(text, "cpus", info->cpus);
	json_end(text, '}');
}

static int header_write(struct recording_writer *writer, const struct recording_info *info)
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
	error = header_write(writer, info);
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
static int chunk_write(struct recording_writer *writer)
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
	case XPT_RECORD_OFF_CPU:
	case XPT_RECORD_REGION:
	case XPT_RECORD_READING:
	case XPT_RECORD_STACK_SAMPLE:
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
	if (writer->filled >= RECORDING_CHUNK_SIZE && chunk_write(writer))
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
	return writer->filled >= RECORDING_CHUNK_SIZE ? chunk_write(writer) : 0;
}

int recording_writer_flush(struct recording_writer *writer)
{
	int error = tailed_file_check(&writer->file);

	if (error && !writer->error)
		return failed(writer, error);
	return tailed_file_busy(&writer->file) ? writer->error : chunk_write(writer);
}

int recording_writer_detach(struct recording_writer *writer, const uint64_t *stopped)
{
	return tailed_file_detach(&writer->file, stopped);
}

int recording_writer_settle(struct recording_writer *writer)
{
	int error = tailed_file_settle(&writer->file);

	if (!error)
		error = chunk_write(writer);
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

/* ---- reading ---- */

struct recording_reader {
	struct log log;
	char *name; /* for messages */
	int descriptor;
	__u64 size;	/* of the file; 0: a pipe */
	__u64 position; /* bytes read */
	cJSON *json;	/* owns the strings of info */
	struct recording_info info;
	struct crc32c crc;
	struct recording_chunk chunk; /* with its payload in memory */
	__u32 next_sequence;
	char *payload; /* RECORDING_CHUNK_MAX bytes */
	__u32 at;      /* of the next record in payload */
	__u32 records; /* returned from this chunk */
	int end;       /* 1: there may be more; else what next() returns from now on */
};

/* Bytes read, less than length only at the end of the file; or -errno. */
static ssize_t read_all(struct recording_reader *reader, void *buffer, size_t length)
{
	size_t done = 0;

	while (done < length) {
		char *to = (char *)buffer + done;
		ssize_t got = reader->size ?
				      pread(reader->descriptor, to, length - done, (off_t)(reader->position + done)) :
				      read(reader->descriptor, to, length - done);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			break;
		done += got;
	}
	reader->position += done;
	return done;
}

/* ---- header ---- */

static const char *info_string(const cJSON *json, const char *name)
{
	const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, name));

	return value ? value : "";
}

static __u64 info_time(const cJSON *json, const char *name)
{
	return strtoull(info_string(json, name), NULL, 10);
}

static int info_read(struct recording_reader *reader, const char *text, size_t length)
{
	const cJSON *cpus;
	int error = json_parse(text, length, &reader->json);

	if (error)
		return error;
	reader->info = (struct recording_info){
		.monotonic_time = info_time(reader->json, "monotonic_ns"),
		.realtime = info_time(reader->json, "realtime_ns"),
		.boot_time = info_time(reader->json, "boottime_ns"),
		.host = info_string(reader->json, "host"),
		.kernel = info_string(reader->json, "kernel"),
		.machine = info_string(reader->json, "machine"),
		.version = info_string(reader->json, "version"),
		.command = info_string(reader->json, "command"),
		.boot_id = info_string(reader->json, "boot_id"),
	};
	cpus = cJSON_GetObjectItemCaseSensitive(reader->json, "cpus");
	if (cJSON_IsNumber(cpus) && cpus->valueint > 0)
		reader->info.cpus = cpus->valueint;
	return 0;
}

static int header_check(struct recording_reader *reader, const struct recording_header *header)
{
	if (memcmp(header->magic, RECORDING_MAGIC, sizeof(header->magic))) {
		log_error(&reader->log, "%s: is not a recording of xputrace", reader->name);
		return -EBADMSG;
	}
	if (header->byte_order == __builtin_bswap32(RECORDING_BYTE_ORDER)) {
		log_error(&reader->log, "%s: was made on a machine of the other byte order", reader->name);
		return -ENOTSUP;
	}
	if (header->byte_order != RECORDING_BYTE_ORDER)
		goto damaged;
	if (header->version != RECORDING_VERSION || header->wire_version != XPT_WIRE_VERSION) {
		log_error(&reader->log, "%s: has format version %u.%u, this xputrace reads %u.%u", reader->name,
			  header->version, header->wire_version, RECORDING_VERSION, XPT_WIRE_VERSION);
		return -EPROTO;
	}
	if (header->header_length % 8 || header->header_length > RECORDING_HEADER_MAX ||
	    header->info_offset < sizeof(*header) || header->info_offset > header->header_length ||
	    header->info_length > header->header_length - header->info_offset)
		goto damaged;
	return 0;
damaged:
	log_error(&reader->log, "%s: the header is damaged", reader->name);
	return -EBADMSG;
}

static int header_read(struct recording_reader *reader)
{
	struct recording_header header;
	char *text = NULL;
	ssize_t got;
	__u32 crc;
	int error;

	memset(&header, 0, sizeof(header));
	got = read_all(reader, &header, sizeof(header));
	if (got < 0)
		return got;
	if (got != sizeof(header)) {
		log_error(&reader->log, "%s: is too short for a recording of xputrace", reader->name);
		return -EBADMSG;
	}
	error = header_check(reader, &header);
	if (error)
		return error;
	text = malloc(header.header_length);
	if (!text)
		return -ENOMEM;
	got = read_all(reader, text + sizeof(header), header.header_length - sizeof(header));
	if (got < 0) {
		error = got;
		goto out;
	}
	crc = header.crc;
	header.crc = 0;
	memcpy(text, &header, sizeof(header));
	error = -EBADMSG;
	if (got == (ssize_t)(header.header_length - sizeof(header)) &&
	    crc32c_add(&reader->crc, 0, text, header.header_length) == crc)
		error = info_read(reader, text + header.info_offset, header.info_length);
	if (error == -EBADMSG)
		log_error(&reader->log, "%s: the header is damaged", reader->name);
out:
	free(text);
	return error;
}

static int open_waiting(const char *path)
{
	int descriptor = open_named(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC), error = 0;
	struct pollfd ready = { .fd = descriptor, .events = POLLIN };
	struct stat status;

	if (descriptor < 0)
		return descriptor;
	if (fstat(descriptor, &status) || fcntl(descriptor, F_SETFL, 0))
		error = -errno;
	else if (!S_ISREG(status.st_mode) && poll(&ready, 1, PIPE_WAIT) <= 0)
		error = -ETIMEDOUT;
	if (!error)
		return descriptor;
	close(descriptor);
	return error;
}

int recording_open(const struct log *log, const char *path)
{
	int descriptor = open_waiting(path);

	if (descriptor < 0)
		log_error(log, "%s: cannot be opened: %s", path,
			  descriptor == -ETIMEDOUT ? "it is not a regular file, and nothing writes to it" :
						     strerror(-descriptor));
	return descriptor;
}

int recording_reader_create(const struct log *log, const char *name, int descriptor, struct recording_reader **result)
{
	struct recording_reader *reader = calloc(1, sizeof(*reader));
	struct stat status = { 0 };
	int error = -ENOMEM;

	if (!reader)
		return -ENOMEM;
	reader->log = log ? *log : (struct log){ 0 };
	reader->descriptor = -1;
	reader->end = 1;
	reader->name = strdup(name);
	reader->payload = malloc(RECORDING_CHUNK_MAX);
	if (!reader->name || !reader->payload)
		goto out;
	reader->descriptor = fcntl(descriptor, F_DUPFD_CLOEXEC, 3);
	if (reader->descriptor < 0 || fstat(reader->descriptor, &status)) {
		error = -errno;
		goto out;
	}
	reader->size = S_ISREG(status.st_mode) ? status.st_size : 0;
	crc32c_init(&reader->crc);
	error = header_read(reader);
	if (error)
		goto out;
	*result = reader;
	return 0;
out:
	recording_reader_close(reader);
	return error;
}

int recording_reader_open(const struct log *log, const char *path, struct recording_reader **result)
{
	int descriptor = recording_open(log, path), error;

	if (descriptor < 0)
		return descriptor;
	error = recording_reader_create(log, path, descriptor, result);
	close(descriptor);
	return error;
}

/* ---- chunks ---- */

static int damaged(struct recording_reader *reader, const char *what)
{
	log_warn(&reader->log, "%s: %s at byte %llu; what came before is good", reader->name, what,
		 (unsigned long long)reader->position);
	return -ENODATA;
}

static bool chunk_header_good(struct recording_reader *reader)
{
	const struct recording_chunk *chunk = &reader->chunk;

	return chunk->magic == RECORDING_CHUNK_MAGIC && chunk->sequence == reader->next_sequence &&
	       chunk->length % 8 == 0 && chunk->length <= RECORDING_CHUNK_MAX;
}

/* 1: a chunk is in memory; 0: the end; -ENODATA or -errno. */
static int chunk_read(struct recording_reader *reader)
{
	struct recording_chunk *chunk = &reader->chunk;
	__u32 crc, sum;
	ssize_t got;

	got = read_all(reader, chunk, sizeof(*chunk));
	if (got <= 0)
		return got;
	if (got != sizeof(*chunk))
		return damaged(reader, "ends in an incomplete chunk");
	if (!chunk_header_good(reader))
		return damaged(reader, "a chunk is damaged");
	got = read_all(reader, reader->payload, chunk->length);
	if (got < 0)
		return got;
	if (got != (ssize_t)chunk->length)
		return damaged(reader, "ends in an incomplete chunk");
	crc = chunk->crc;
	chunk->crc = 0;
	sum = crc32c_add(&reader->crc, 0, chunk, sizeof(*chunk));
	if (crc32c_add(&reader->crc, sum, reader->payload, chunk->length) != crc)
		return damaged(reader, "a chunk is damaged");
	reader->next_sequence++;
	reader->at = 0;
	reader->records = 0;
	return 1;
}

int recording_reader_next(struct recording_reader *reader, const struct xpt_record_header **record)
{
	const struct xpt_record_header *next;

	while (reader->end > 0 && reader->at == reader->chunk.length) {
		if (reader->records != reader->chunk.records)
			reader->end = damaged(reader, "a chunk has another number of records than it says");
		else
			reader->end = chunk_read(reader);
	}
	if (reader->end <= 0)
		return reader->end;
	next = (const struct xpt_record_header *)(reader->payload + reader->at);
	if (!record_validate(next, reader->chunk.length - reader->at) || next->size % 8) {
		reader->end = damaged(reader, "a record is malformed");
		return reader->end;
	}
	reader->at += next->size;
	reader->records++;
	*record = next;
	return 1;
}

const struct recording_info *recording_reader_info(const struct recording_reader *reader)
{
	return &reader->info;
}

__u64 recording_reader_position(const struct recording_reader *reader)
{
	return reader->position;
}

__u64 recording_reader_size(const struct recording_reader *reader)
{
	return reader->size;
}

void recording_reader_close(struct recording_reader *reader)
{
	if (!reader)
		return;
	if (reader->descriptor >= 0)
		close(reader->descriptor);
	cJSON_Delete(reader->json);
	free(reader->payload);
	free(reader->name);
	free(reader);
}

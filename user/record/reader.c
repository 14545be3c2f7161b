/* SPDX-License-Identifier: BSD-2-Clause */
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
#include "base/file/output.h"
#include "model/stream/records.h"
#include "record/crc32c.h"
#include "record/format.h"
#include "record/recording.h"

#define PIPE_WAIT 1000 /* ms */

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

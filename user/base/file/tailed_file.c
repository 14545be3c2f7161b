/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/file/tailed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/gzip.h"
#include "base/file/output.h"
#include "base/file/writer.h"

int tailed_file_open(struct tailed_file *file, const char *path, int descriptor)
{
	struct stat status;
	off_t position;
	int flags, error;

	*file = (struct tailed_file){
		.descriptor = path && descriptor < 0 ? output_open(path, O_TRUNC) : descriptor,
	};
	if (file->descriptor < 0)
		return path ? file->descriptor : -EBADF;
	flags = fcntl(file->descriptor, F_GETFL);
	if (flags < 0 || fstat(file->descriptor, &status)) {
		error = -errno;
		close(file->descriptor);
		file->descriptor = -1;
		return error;
	}
	position = lseek(file->descriptor, 0, SEEK_CUR);
	/* With O_APPEND every write is appended, whatever its offset: then it is a stream like a pipe. */
	file->seekable = S_ISREG(status.st_mode) && !(flags & O_APPEND) && position >= 0;
	if (file->seekable)
		file->start = position;
	file->length = file->end = file->start;
	error = path && gzip_is_name(path) ? tailed_file_compress(file) : 0;
	if (error)
		tailed_file_close(file);
	return error;
}

int tailed_file_compress(struct tailed_file *file)
{
	file->gzip = gzip_create();
	file->packed = malloc(GZIP_END);
	return file->gzip && file->packed ? 0 : -ENOMEM;
}

static void free_packed(struct tailed_file *file)
{
	if (file->forked)
		return;
	gzip_free(file->gzip);
	free(file->packed);
	file->gzip = NULL;
	file->packed = NULL;
}

int tailed_file_detach(struct tailed_file *file, const uint64_t *stopped)
{
	int error = writer_start(file, &file->writer);

	if (error)
		return error;
	close(file->descriptor);
	file->descriptor = -1;
	file->stopped = stopped;
	file->bytes = file->end - file->start;
	free_packed(file); /* the process has its own */
	return 0;
}

/* The tail first, over bytes that the file has already and that a full disk cannot refuse; then the rest is cut off. */
static int restore(struct tailed_file *file)
{
	int error = file->gzip ? file_write_at(file->descriptor, file->packed, file->packed_length, file->length) :
				 file_write_at(file->descriptor, file->tail, file->tail_length, file->length);

	if (error)
		return error;
	return ftruncate(file->descriptor, file->end) ? -errno : 0;
}

static int write_part(struct tailed_file *file, const struct iovec *part, __u64 offset)
{
	if (file->seekable)
		return file_write_at(file->descriptor, part->iov_base, part->iov_len, offset);
	return file_write_while(file->descriptor, part->iov_base, part->iov_len, file->go_on, file->go_on_context);
}

/* Where compressed bytes go. */
struct packing {
	struct tailed_file *file;
	__u64 end;
};

static int put_packed(void *context, const void *bytes, size_t length)
{
	struct packing *packing = context;
	const struct iovec part = { (void *)bytes, length };
	int error = write_part(packing->file, &part, packing->end);

	packing->end += length;
	return error;
}

/*
 * The tail is the end of the file, not compressed: it is overwritten. One that is too long for that is the last one,
 * and is never overwritten. A pipe gets its end when it is closed.
 */
static int put_compressed(struct tailed_file *file, const struct iovec *parts, size_t count, size_t tail_length)
{
	struct packing packing = { file, file->length };
	size_t body = 0, packed, tail = 0;
	unsigned char end[GZIP_END];
	char text[GZIP_END_TEXT];
	int error = 0;

	for (size_t i = 0; i < count; i++)
		body += parts[i].iov_len;
	if (file->seekable && tail_length <= GZIP_END_TEXT)
		body -= tail_length;
	for (size_t i = 0; i < count && !error; i++) {
		size_t length = parts[i].iov_len < body ? parts[i].iov_len : body, rest = parts[i].iov_len - length;

		error = gzip_add(file->gzip, parts[i].iov_base, length, false, put_packed, &packing);
		memcpy(text + tail, (char *)parts[i].iov_base + length, rest);
		tail += rest;
		body -= length;
	}
	error = error ?: gzip_add(file->gzip, NULL, 0, true, put_packed, &packing);
	if (error || !file->seekable) {
		file->length = error ? file->length : packing.end;
		file->end = error ? file->end : packing.end;
		return error;
	}
	packed = gzip_end(file->gzip, text, tail, end);
	error = file_write_at(file->descriptor, end, packed, packing.end);
	if (!error && packing.end + packed < file->end && ftruncate(file->descriptor, packing.end + packed))
		error = -errno;
	if (error)
		return error;
	memcpy(file->packed, end, packed);
	file->packed_length = packed;
	file->length = packing.end;
	file->end = packing.end + packed;
	return 0;
}

/* Of a pipe. */
static int end_compressed(struct tailed_file *file)
{
	const struct iovec end = { file->packed, gzip_end(file->gzip, "", 0, file->packed) };
	int error = write_part(file, &end, file->end);

	if (!error)
		file->end += end.iov_len;
	return error;
}

int tailed_file_put(struct tailed_file *file, const struct iovec *parts, size_t count, size_t tail_length)
{
	__u64 end = file->length;
	int error = 0;

	/* After a failed write a stream has lost its place; a file is whole and may be tried again. */
	if (file->error && (!file->seekable || file->gzip))
		return file->error;
	if (file->gzip) {
		error = put_compressed(file, parts, count, tail_length);
		if (error && file->seekable)
			restore(file);
		file->error = error;
		return error;
	}
	for (size_t i = 0; i < count && !error; i++) {
		error = write_part(file, &parts[i], end);
		end += parts[i].iov_len;
	}
	/* A new tail may be shorter than what it was written over. */
	if (!error && file->seekable && end < file->end && ftruncate(file->descriptor, end))
		error = -errno;
	if (error) {
		if (file->seekable)
			restore(file);
		file->error = file->error ?: error;
		return error;
	}
	file->end = end;
	file->length = end - tail_length;
	return 0;
}

/* The queue takes it, now or, when it is time for that, once there is room. */
static int send(struct tailed_file *file, const struct text *text, size_t tail_length, bool last)
{
	const struct writer_block block = {
		.bytes = text->data,
		.length = text->length,
		.tail_length = tail_length,
		.items = file->items - file->sent,
		.last = last,
	};
	int error;

	for (;;) {
		error = writer_append(file->writer, &block);
		if (error != -ENOBUFS || !file->patient)
			break;
		error = writer_wait_room(file->writer, file->stopped);
		if (error)
			break;
	}
	if (error) {
		file->error = file->error ?: error == -ENOBUFS ? 0 : error;
		return error;
	}
	file->sent = file->items;
	file->end = file->length + text->length;
	file->length = file->end - tail_length;
	return 0;
}

int tailed_file_append(struct tailed_file *file, struct text *text, const char *tail, size_t tail_length, bool last)
{
	size_t length = text->length;
	struct iovec part;
	int error;

	if (!file->seekable && !last)
		tail_length = 0;
	text_bytes(text, tail, tail_length);
	if (text->error)
		return text->error;
	if (file->writer) {
		error = send(file, text, tail_length, last);
		if (error == -ENOBUFS)
			text->length = length;
		return error;
	}
	part = (struct iovec){ text->data, text->length };
	error = tailed_file_put(file, &part, 1, tail_length);
	if (error)
		return error;
	file->tail = tail;
	file->tail_length = tail_length;
	return 0;
}

static int close_detached(struct tailed_file *file)
{
	int error = writer_end(file->writer, file->stopped, &file->written, &file->bytes);

	file->writer = NULL;
	file->patient = true;
	return file->error ?: error;
}

int tailed_file_close(struct tailed_file *file)
{
	int error = file->error;

	if (file->writer)
		return close_detached(file);
	if (file->descriptor < 0) {
		free_packed(file);
		return error;
	}
	if (file->gzip && !file->seekable && !error)
		error = end_compressed(file);
	free_packed(file);
	/* Others that share the descriptor continue behind the document. */
	if (file->seekable)
		lseek(file->descriptor, file->end, SEEK_SET);
	file->bytes = file->end - file->start;
	if (close(file->descriptor) && errno != EINTR && !error)
		error = -errno;
	file->descriptor = -1;
	return error;
}

/* ---- detached ---- */

#define ROOM_LEAST 8 /* part of the queue that is for what cannot be left out */
#define ROOM_AGAIN 4 /* free part from which on items are taken again */

bool tailed_file_admit(struct tailed_file *file, unsigned int items)
{
	if (file->writer && !file->patient) {
		if (file->congested || file->items == file->sent)
			file->congested = !writer_has_room(file->writer, file->congested ? ROOM_AGAIN : ROOM_LEAST);
		if (file->congested) {
			file->refused += items;
			return false;
		}
	}
	file->items += items;
	return true;
}

void tailed_file_drop(struct tailed_file *file)
{
	file->refused += file->items - file->sent;
	file->items = file->sent;
}

int tailed_file_check(struct tailed_file *file)
{
	if (file->writer && !file->error)
		file->error = writer_error(file->writer);
	return file->writer ? file->error : 0;
}

bool tailed_file_busy(const struct tailed_file *file)
{
	return file->writer && !file->patient && writer_is_busy(file->writer);
}

int tailed_file_settle(struct tailed_file *file)
{
	int error;

	if (!file->writer)
		return file->error;
	error = writer_wait(file->writer, file->stopped);
	file->patient = true;
	file->error = file->error ?: error;
	return file->error;
}

__u64 tailed_file_lost(const struct tailed_file *file)
{
	__u64 written = file->writer ? writer_items(file->writer) : file->written;

	return file->refused + (file->patient ? file->items - written : 0);
}

__u64 tailed_file_bytes(const struct tailed_file *file)
{
	if (file->writer)
		return writer_bytes(file->writer);
	return file->descriptor < 0 ? file->bytes : file->end - file->start;
}

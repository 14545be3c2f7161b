/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/tailed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/output.h"
#include "base/writer.h"

int tailed_file_open(struct tailed_file *file, const char *path, int descriptor)
{
	struct stat status;
	off_t position;
	int flags, error;

	*file = (struct tailed_file){
		.descriptor = path ? output_open(path, O_TRUNC) : descriptor,
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
	/* With O_APPEND every write goes to the end, whatever its offset: then it is a stream like a pipe. */
	file->seekable = S_ISREG(status.st_mode) && !(flags & O_APPEND) && position >= 0;
	if (file->seekable)
		file->start = position;
	file->length = file->end = file->start;
	return 0;
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
	return 0;
}

/* The tail first, over bytes that the file has already and that a full disk cannot refuse; then the rest goes. */
static int restore(struct tailed_file *file)
{
	int error = file_write_at(file->descriptor, file->tail, file->tail_length, file->length);

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

int tailed_file_put(struct tailed_file *file, const struct iovec *parts, size_t count, size_t tail_length)
{
	__u64 end = file->length;
	int error = 0;

	/* After a failed write a stream has lost its place; a file is whole and may be tried again. */
	if (file->error && !file->seekable)
		return file->error;
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
		error = writer_wait(file->writer, file->stopped);
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
	if (file->descriptor < 0)
		return error;
	/* Whoever shares the descriptor goes on behind the document. */
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

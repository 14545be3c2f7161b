/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/tailed_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

int tailed_file_open(struct tailed_file *file, const char *path, int descriptor)
{
	struct stat status;
	off_t position;
	int flags, error;

	*file = (struct tailed_file){
		.descriptor = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : descriptor,
	};
	if (file->descriptor < 0)
		return path ? -errno : -EBADF;
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

/* The tail first, over bytes that the file has already and that a full disk cannot refuse; then the rest goes. */
static int restore(struct tailed_file *file)
{
	int error = file_write_at(file->descriptor, file->tail, file->tail_length, file->length);

	if (error)
		return error;
	return ftruncate(file->descriptor, file->end) ? -errno : 0;
}

static int append_seekable(struct tailed_file *file, const struct text *text, size_t length)
{
	int error = file_write_at(file->descriptor, text->data, text->length, file->length);

	/* A new tail may be shorter than what it was written over. */
	if (!error && file->length + text->length < file->end &&
	    ftruncate(file->descriptor, file->length + text->length))
		error = -errno;
	if (error) {
		restore(file);
		return error;
	}
	file->end = file->length + text->length;
	file->length += length;
	return 0;
}

static int append_stream(struct tailed_file *file, const struct text *text, size_t length)
{
	int error = file_write(file->descriptor, text->data, text->length);

	if (error)
		return error;
	file->end += text->length;
	file->length += length;
	return 0;
}

int tailed_file_append(struct tailed_file *file, struct text *text, const char *tail, size_t tail_length, bool last)
{
	size_t length = text->length;
	int error;

	if (file->seekable || last)
		text_bytes(text, tail, tail_length);
	if (text->error)
		return text->error;
	/* After a failed write a stream has lost its place; a file is whole and may be tried again. */
	if (file->error && !file->seekable)
		return file->error;
	error = file->seekable ? append_seekable(file, text, length) : append_stream(file, text, length);
	if (error) {
		file->error = file->error ? file->error : error;
		return error;
	}
	file->tail = tail;
	file->tail_length = tail_length;
	return 0;
}

int tailed_file_close(struct tailed_file *file)
{
	int error = file->error;

	if (file->descriptor < 0)
		return error;
	/* Whoever shares the descriptor goes on behind the document. */
	if (file->seekable)
		lseek(file->descriptor, file->end, SEEK_SET);
	if (close(file->descriptor) && errno != EINTR && !error)
		error = -errno;
	file->descriptor = -1;
	return error;
}

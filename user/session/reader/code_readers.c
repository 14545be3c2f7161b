/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector's side of the processes that read code objects, and copy them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/file.h"
#include "session/reader/readers_private.h"

/* ---- what is in one ---- */

int file_reader_code(struct file_readers *readers, int bytes, __u64 size, enum code_kind hint,
		     struct code_contents *contents)
{
	struct file_reader_request request = { .kind = FILE_CODE, .code = { size, hint, 0 } };
	struct file_reader *reader = calloc(1, sizeof(*reader));
	size_t length;
	char *answer;
	int error;

	*contents = (struct code_contents){ 0 };
	if (!reader)
		return -ENOMEM;
	*reader = (struct file_reader){ .readers = readers, .socket = -1, .process = -1, .local = -1, .file = bytes };
	error = reader_start(readers, READ_FILES, -1, reader);
	if (error) {
		free(reader);
		return error;
	}
	error = reader_ask(reader, &request, "", NULL, &answer, &length);
	reader_end(reader);
	if (error)
		return error;
	error = code_contents_read(answer, length, contents);
	free(answer);
	return error;
}

/* ---- in the memory of a process ---- */

void file_readers_lend(struct file_readers *readers, struct code_spare *spare)
{
	readers->lent = spare;
	/* No call is to wait for it; without it, the first one tries again. */
	reader_start_memory(readers);
}

static int ask_source(struct file_readers *readers, struct file_reader_request *request, int file,
		      struct source_answer *answer)
{
	size_t length;
	char *bytes;
	int error = reader_ask_memory(readers, request, request->source.source.tgid, "", file, &bytes, &length);

	if (error)
		return error;
	if (length == sizeof(*answer))
		memcpy(answer, bytes, length);
	free(bytes);
	return length == sizeof(*answer) ? 0 : -EPROTO;
}

int file_reader_source_size(struct file_readers *readers, const struct code_source *source, __u64 *size)
{
	struct file_reader_request request = { .kind = FILE_SOURCE_SIZE, .source.source = *source };
	struct source_answer answer;
	int error;

	error = ask_source(readers, &request, -1, &answer);
	if (!error && answer.size > source->limit)
		error = -EFBIG;
	if (!error)
		*size = answer.size;
	return error;
}

int file_reader_header_size(struct file_readers *readers, const void *bytes, size_t length, __u64 *size)
{
	struct file_reader_request request = {
		.kind = FILE_SOURCE_SIZE,
		.source.source = { .kind = CODE_SOURCE_SHARED, .limit = ~0ull >> 1 },
		.source.size = length < CODE_READY_SIZE ? length : CODE_READY_SIZE,
	};
	struct code_spare *lent = reader_lent(readers);
	struct source_answer answer;
	int error;

	if (!lent || !lent->ready)
		return -EBUSY;
	memcpy(lent->ready, bytes, request.source.size);
	error = ask_source(readers, &request, -1, &answer);
	if (!error)
		*size = answer.size;
	return error;
}

int file_reader_source_copy(struct file_readers *readers, const struct code_source *source, size_t size,
			    struct code_copy *copy)
{
	struct file_reader_request request = { .kind = FILE_SOURCE_COPY, .source.source = *source };
	struct source_answer answer = { 0 };
	struct code_shared shared;
	int error = code_copy_share(reader_lent(readers), size, copy, &shared);

	if (error || !size)
		return error;
	request.source.size = size;
	request.source.offset = shared.offset;
	error = ask_source(readers, &request, shared.memory, &answer);
	if (shared.memory >= 0)
		close(shared.memory);
	if (!error && (answer.missing > size || (answer.missing && answer.first_missing >= size)))
		error = -EPROTO;
	if (error) {
		code_copy_free(copy);
		return error;
	}
	copy->missing = answer.missing;
	copy->first_missing = answer.first_missing;
	return 0;
}

/* ---- in a file ---- */

int file_reader_code_start(struct file_readers *readers, const struct code_file_wanted *wanted,
			   struct file_reader **result)
{
	struct code_file_request request = {
		.rights = wanted->rights,
		.tgid = wanted->tgid,
		.descriptor = wanted->descriptor,
		.path = wanted->path ? strlen(wanted->path) : 0,
		.is_place = wanted->place >= 0,
	};
	struct file_reader *reader = calloc(1, sizeof(*reader));
	char byte;
	int error;

	if (!reader)
		return -ENOMEM;
	*reader = (struct file_reader){ .readers = readers, .socket = -1, .process = -1, .local = -1, .file = -1 };
	reader->tgid = wanted->tgid;
	error = reader_start(readers, READ_CODE, wanted->place, reader);
	if (error) {
		free(reader);
		return error;
	}
	error = socket_send(reader->socket, &request, sizeof(request), NULL, 0);
	if (!error && request.path)
		error = socket_send(reader->socket, wanted->path, request.path, NULL, 0);
	/* The process has it, whatever becomes of the call. */
	if (!error && wanted->descriptor >= 0)
		error = reader_receive(reader, &byte, sizeof(byte));
	if (error)
		reader_end(reader);
	else
		*result = reader;
	return error;
}

static int receive_path(struct file_reader *reader, char **path)
{
	struct code_file_path head;
	int error = reader_receive(reader, &head, sizeof(head));

	if (error)
		return error;
	if (head.length > CODE_PATH_MAX)
		return -EPROTO;
	*path = malloc(head.length + 1);
	if (!*path)
		return -ENOMEM;
	error = reader_receive(reader, *path, head.length);
	(*path)[error ? 0 : head.length] = '\0';
	return error;
}

#define FILES_SILENT "code objects in files are left out: a file system does not answer"

static int note_timeout(struct file_reader *reader, int error)
{
	if (error == -ETIMEDOUT && !reader_is_silent(reader->readers, reader->tgid))
		reader_note_silent(reader->readers, reader->tgid, FILES_SILENT);
	return error;
}

int file_reader_code_opened(struct file_readers *readers, struct file_reader *reader, struct stat *status, char **path)
{
	struct file_reader_opened answer;
	int error;

	*path = NULL;
	reader->readers = readers;
	if (reader_is_silent(readers, reader->tgid))
		return -ETIMEDOUT;
	error = reader_wait(reader) ?: receive_path(reader, path);
	if (!error)
		error = reader_wait(reader) ?:
					      socket_receive(reader->socket, &answer, sizeof(answer), &reader->local, 1);
	if (error)
		return note_timeout(reader, error);
	if (answer.error)
		return answer.error < 0 ? answer.error : -EPROTO;
	if (answer.local && reader->local < 0)
		return -EMFILE;
	reader->is_remote = !answer.local;
	*status = answer.status;
	return 0;
}

int file_reader_code_bytes(struct file_reader *reader, __u64 offset, unsigned char *bytes, size_t length, size_t *done)
{
	const struct code_file_range range = { offset, length };
	struct code_file_block block;
	int error;

	*done = 0;
	if (reader->local >= 0)
		return file_read_at(reader->local, bytes, length, offset, done);
	error = socket_send(reader->socket, &range, sizeof(range), NULL, 0);
	while (!error && *done < length) {
		error = reader_receive(reader, &block, sizeof(block));
		if (error || block.error || !block.length)
			return note_timeout(reader, error ?: block.error > 0 ? -EPROTO : block.error);
		if (block.length > length - *done)
			return -EPROTO;
		error = reader_receive(reader, bytes + *done, block.length);
		*done += error ? 0 : block.length;
	}
	return note_timeout(reader, error);
}

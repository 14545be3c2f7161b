/* SPDX-License-Identifier: BSD-2-Clause */
/* Code objects without any process: one in a file, or those of a folder that a capture has written. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xputrace/codeobj.h>

#include "base/file/file.h"
#include "base/file/output.h"
#include "code/store/store.h"
#include "code/store/index.h"

#define FILE_MAX (4ull << 30) /* bytes: what is larger has a hash, and is not analysed */
#define BLOCK_BYTES (1u << 20)
#define MEMORY_MAX (1ull << 30) /* bytes of a list */

/* ---- one object ---- */

struct file {
	int descriptor;
	__u64 size;
	char *bytes; /* all of them; of a file that is too large, the latest block */
	bool large;
};

/* At most length bytes; 0: the end. */
static ssize_t read_some(int descriptor, char *bytes, size_t length)
{
	ssize_t got;

	do
		got = read(descriptor, bytes, length);
	while (got < 0 && errno == EINTR);
	return got < 0 ? -errno : got;
}

/* Its size becomes that of what could be read: it may be truncated while it is read. */
static int read_file(struct file *file, struct code_hash *hash)
{
	__u64 done = 0;
	ssize_t got;

	while (done < file->size) {
		char *to = file->bytes + (file->large ? 0 : done);
		size_t length = file->size - done < BLOCK_BYTES ? file->size - done : BLOCK_BYTES;

		got = read_some(file->descriptor, to, length);
		if (got < 0)
			return (int)got;
		if (!got)
			break;
		code_hash_add(hash, to, (size_t)got);
		done += (__u64)got;
	}
	file->size = done;
	return 0;
}

static int read_and_hash(struct file *file, char sha256[CODE_HASH_SIZE])
{
	struct code_hash *hash;
	int error;

	file->large = file->size > FILE_MAX;
	file->bytes = malloc(file->large ? BLOCK_BYTES : file->size + 1);
	error = file->bytes ? code_hash_begin(&hash) : -ENOMEM;
	if (error)
		return error;
	error = read_file(file, hash);
	if (!error)
		return code_hash_end(hash, sha256);
	code_hash_free(hash);
	return error;
}

static int set_uri(struct code_list *list, const char *path, struct xpt_codeobj *object)
{
	char *whole = realpath(path, NULL);
	struct text uri = { 0 };

	code_uri_file(&uri, whole ?: path, 0, 0);
	if (!uri.error)
		object->uri = code_list_text(list, uri.data, uri.length);
	text_free(&uri);
	free(whole);
	return object->uri ? 0 : -ENOMEM;
}

static int set_contents(struct code_list *list, const char *path, const struct file *file, struct xpt_codeobj *object)
{
	struct code_contents contents;
	int error;

	if (file->large) {
		object->error = "larger than 4 GiB: nothing was looked for in it";
		return 0;
	}
	error = code_read(file->bytes, file->size, code_store_kind(path), &contents);
	if (error)
		return error;
	error = code_list_contents(list, &contents, object);
	code_contents_free(&contents);
	return error;
}

static int read_object(const char *path, struct file *file, struct code_list **result)
{
	struct code_list *list = code_list_new(MEMORY_MAX);
	struct xpt_codeobj *object = list ? code_list_add(list) : NULL;
	int error = object ? set_uri(list, path, object) : -ENOMEM;

	if (!error)
		error = read_and_hash(file, object->sha256);
	if (!error) {
		object->data_size = file->size;
		error = set_contents(list, path, file, object);
	}
	free(file->bytes);
	if (error)
		code_list_free(list);
	else
		*result = list;
	return error;
}

/* ---- a folder ---- */

struct folder_read {
	const char *path;
	int descriptor;
};

static const char *check_file(void *context, const char *file, __u64 size)
{
	const struct folder_read *folder = context;
	int place = open_inside(folder->descriptor, folder->path, file, O_PATH | O_NOFOLLOW | O_CLOEXEC), error;
	struct stat status;

	if (place < 0)
		return strerror(-place);
	error = fstat(place, &status) ? errno : 0;
	close(place);
	if (error)
		return strerror(error);
	if (!S_ISREG(status.st_mode))
		return "it is no regular file";
	return (__u64)status.st_size == size ? NULL : "its size is not that of the index";
}

static int read_text(int descriptor, struct text *text)
{
	char block[65536];
	ssize_t got;

	while ((got = read_some(descriptor, block, sizeof(block))) > 0 && text->length <= CODE_INDEX_MAX)
		text_bytes(text, block, (size_t)got);
	return got < 0 ? (int)got : text->error;
}

static int read_folder(const struct log *log, const char *path, int folder, struct code_list **result)
{
	int descriptor = open_inside(folder, path, CODE_STORE_INDEX, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct folder_read context = { path, folder };
	struct text text = { 0 };
	char name[PATH_MAX];
	struct stat status;
	int error;

	if (descriptor < 0)
		return descriptor;
	error = fstat(descriptor, &status) ? -errno : S_ISREG(status.st_mode) ? read_text(descriptor, &text) : -EINVAL;
	close(descriptor);
	snprintf(name, sizeof(name), "%s/" CODE_STORE_INDEX, path);
	if (!error)
		error = code_index_read(log, name, text.data, text.length, check_file, &context, result);
	text_free(&text);
	return error;
}

/* ---- both ---- */

static int read_path(const struct log *log, const char *path, int descriptor, struct code_list **result)
{
	struct file file = { .descriptor = descriptor };
	struct stat status;

	if (fstat(descriptor, &status))
		return -errno;
	if (S_ISDIR(status.st_mode))
		return read_folder(log, path, descriptor, result);
	if (!S_ISREG(status.st_mode))
		return -EINVAL;
	file.size = (__u64)status.st_size;
	return read_object(path, &file, result);
}

static const char *reason(int error, bool opened)
{
	if (error == -EINVAL)
		return "it is no file of bytes, nor a folder with an index";
	if (error == -ENOENT && opened)
		return "the folder has no " CODE_STORE_INDEX ": no capture has ended in it";
	return strerror(-error);
}

int xpt_codeobj_read(const char *path, xpt_log_fn log, void *log_context, struct xpt_codeobj_list **list)
{
	const struct log messages = { log, log_context, XPT_LOG_INFO };
	int descriptor = open_named(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;
	struct code_list *found = NULL;

	error = descriptor < 0 ? descriptor : read_path(&messages, path, descriptor, &found);
	if (!error)
		*list = &found->list;
	else if (error != -EBADMSG) /* else reported already */
		log_error(&messages, "%s: cannot be read: %s", path, reason(error, descriptor >= 0));
	if (descriptor >= 0)
		close(descriptor);
	return error;
}

int xpt_codeobj_list_write(const struct xpt_codeobj_list *list, int descriptor)
{
	struct text text = { 0 };
	int error;

	code_index_write(&text, list, NULL);
	error = text.error ?: file_write(descriptor, text.data, text.length);
	text_free(&text);
	return error;
}

/* It is the first member of what it belongs to. */
void xpt_codeobj_list_free(struct xpt_codeobj_list *list)
{
	code_list_free((struct code_list *)list);
}

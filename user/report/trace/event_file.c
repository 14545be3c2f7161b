/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/event_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/trace/appended_file.h"
#include "base/file/gzip.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"

#define BUFFER_SIZE (1u << 20)
#define BUFFER_KEPT (4u << 20)

struct event_file {
	struct log log;
	const struct event_format *format;
	struct tailed_file file;
	struct text text;
	__u64 begin;
	int error; /* the first one: the sink has failed */
	void *state;
};

/* Where a detached file has no room, the text stays for the next time, but for what is more than a buffer may be. */
static int append(struct event_file *file, bool last)
{
	int error = tailed_file_append(&file->file, &file->text, file->format->tail, strlen(file->format->tail), last);

	if (error == -ENOBUFS && file->text.length < BUFFER_KEPT)
		return 0;
	if (error == -ENOBUFS) {
		tailed_file_drop(&file->file);
		error = 0;
	}
	text_clear(&file->text, BUFFER_KEPT);
	return error;
}

static int open_file(struct event_file *file, const char *path, int descriptor)
{
	int error;

	if (path && file->format->append) {
		descriptor = appended_file_open(path, file->format->head);
		if (descriptor < 0)
			return descriptor;
		path = NULL;
	}
	error = tailed_file_open(&file->file, path, descriptor);
	if (!error && !(file->format->append && file->file.start))
		text_string(&file->text, file->format->head);
	return error ?: file->text.error ?: append(file, false);
}

static void file_free(struct event_file *file)
{
	if (file->format->clear && file->state)
		file->format->clear(file->state);
	text_free(&file->text);
	free(file->state);
	free(file);
}

int event_file_create(const struct log *log, const struct event_format *format, const char *path, int descriptor,
		      __u64 begin, struct event_file **result)
{
	struct event_file *file = calloc(1, sizeof(*file));
	int error = -ENOMEM;

	if (!file) {
		if (!path)
			close(descriptor);
		return -ENOMEM;
	}
	file->log = log ? *log : (struct log){ 0 };
	if (path && format->append && gzip_is_name(path)) {
		log_error(log, "%s: nothing can be appended to a compressed file: leave .gz out", path);
		free(file);
		return -EINVAL;
	}
	file->format = format;
	file->begin = begin;
	file->file.descriptor = -1;
	file->state = calloc(1, format->state_size);
	if (file->state && format->begin)
		format->begin(file->state);
	if (file->state)
		error = open_file(file, path, descriptor);
	else if (!path)
		close(descriptor);
	if (error) {
		log_error(log, "%s: cannot be written: %s", path ? path : "output",
			  error == -EEXIST ? "it is there, and not of this format" : output_reason(error));
		tailed_file_close(&file->file);
		file_free(file);
		return error;
	}
	*result = file;
	return 0;
}

static int failed(struct event_file *file, int error)
{
	file->error = error;
	text_clear(&file->text, BUFFER_KEPT);
	if (error != -ETIMEDOUT) /* cancelled by the waiter, which reports it */
		log_error(&file->log, "no more events are written: %s", strerror(-error));
	return error;
}

static int write_buffer(struct event_file *file)
{
	int error = file->error ?: file->text.error;

	if (!error && file->text.length)
		error = append(file, false);
	return error && !file->error ? failed(file, error) : error;
}

int event_file_flush(struct event_file *file)
{
	int error = tailed_file_check(&file->file);

	if (error && !file->error)
		return failed(file, error);
	return tailed_file_busy(&file->file) ? file->error : write_buffer(file);
}

static int write_event(void *context, const struct event *event)
{
	struct event_file *file = context;
	int losses = event_losses(event);

	if (file->error)
		return file->error;
	if (losses >= 0 && !tailed_file_admit(&file->file, losses))
		return 0;
	file->format->add(file->state, &file->text, event, file->begin);
	if (file->text.error)
		return failed(file, file->text.error);
	return file->text.length < BUFFER_SIZE ? 0 : write_buffer(file);
}

struct event_sink event_file_sink(struct event_file *file)
{
	return (struct event_sink){ .write = write_event, .context = file };
}

int event_file_detach(struct event_file *file, const uint64_t *stopped)
{
	return tailed_file_detach(&file->file, stopped);
}

int event_file_settle(struct event_file *file)
{
	int error = tailed_file_settle(&file->file);

	if (!error)
		error = write_buffer(file);
	if (!error)
		error = tailed_file_settle(&file->file);
	return error && !file->error ? failed(file, error) : error;
}

int event_file_close(struct event_file *file)
{
	int error, closed;

	if (!file)
		return 0;
	error = event_file_settle(file);
	if (!error)
		error = append(file, true);
	if (!error && file->format->tell)
		file->format->tell(file->state, &file->log);
	closed = tailed_file_close(&file->file);
	file_free(file);
	return error ?: closed;
}

__u64 event_file_bytes(const struct event_file *file)
{
	return tailed_file_bytes(&file->file);
}

__u64 event_file_lost(const struct event_file *file)
{
	return tailed_file_lost(&file->file);
}

/* SPDX-License-Identifier: BSD-2-Clause */
#include "report/trace/event_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/gzip.h"
#include "base/file/output.h"
#include "base/file/tailed_file.h"

#define BUFFER_SIZE (1u << 20)
#define BUFFER_KEPT (4u << 20) /* one huge event must not hold its memory for ever */
#define HEAD_MAX 256

struct event_file {
	struct log log;
	const struct event_format *format;
	struct tailed_file file;
	struct text text;
	int error;     /* the first one: the sink has failed */
	bool any;      /* events are in the file */
	__u64 written; /* bytes of events, uncompressed */
	__u64 warn_at; /* 0: already warned, or not requested */
	void *state;
};

/* ---- a file of lines that is appended to ---- */

static bool has(int descriptor, off_t offset, const char *bytes, size_t length)
{
	char there[HEAD_MAX];

	return length <= sizeof(there) && pread(descriptor, there, length, offset) == (ssize_t)length &&
	       !memcmp(there, bytes, length);
}

/* size: of the file, more than 0. Whether it is one of those lines, and in *cut whether the last one has no end. */
static int check_lines(const char *path, off_t size, const char *head, bool *cut)
{
	int descriptor = output_open(path, O_RDWR);
	bool ours;

	if (descriptor < 0)
		return descriptor;
	ours = has(descriptor, 0, head, strlen(head));
	*cut = !has(descriptor, size - 1, "\n", 1);
	close(descriptor);
	return ours ? 0 : -EEXIST;
}

/* A line that was cut in the middle gets its end, so that what follows has lines of its own. */
static int seek_end(int descriptor, const char *path, const char *head)
{
	struct stat status;
	bool cut = false;
	int error = 0;

	if (fstat(descriptor, &status))
		return -errno;
	if (!S_ISREG(status.st_mode) || !status.st_size)
		return 0;
	error = check_lines(path, status.st_size, head, &cut);
	if (!error && lseek(descriptor, 0, SEEK_END) < 0)
		error = -errno;
	return error || !cut ? error : file_write(descriptor, "\n", 1);
}

int appended_file_open(const char *path, const char *head)
{
	int descriptor = output_open(path, 0), error;

	if (descriptor < 0)
		return descriptor;
	error = seek_end(descriptor, path, head);
	if (error)
		close(descriptor);
	return error ?: descriptor;
}

/* ---- opening ---- */

/* Where a detached file has no room, the text stays for the next time, but for what is more than a buffer may be. */
static int append(struct event_file *file, const char *tail, size_t tail_length, bool last)
{
	size_t length = file->text.length;
	int error = tailed_file_append(&file->file, &file->text, tail, tail_length, last);

	if (error == -ENOBUFS && file->text.length < BUFFER_KEPT)
		return 0;
	if (error == -ENOBUFS) {
		tailed_file_drop(&file->file);
		if (file->format->dropped)
			file->format->dropped(file->state, file->any);
	} else if (!error) {
		file->written += length;
	}
	text_clear(&file->text, BUFFER_KEPT);
	return error == -ENOBUFS ? 0 : error;
}

static int open_file(struct event_file *file, const char *path, int descriptor)
{
	const struct event_format *format = file->format;
	int error;

	if (path && format->append) {
		descriptor = appended_file_open(path, format->head);
		if (descriptor < 0)
			return descriptor;
		path = NULL;
	}
	error = tailed_file_open(&file->file, path, descriptor);
	if (!error && format->head && !(format->append && file->file.start))
		text_string(&file->text, format->head);
	return error ?: file->text.error ?: append(file, format->tail, strlen(format->tail), false);
}

static void file_free(struct event_file *file)
{
	if (file->format->clear && file->state)
		file->format->clear(file->state);
	text_free(&file->text);
	free(file->state);
	free(file);
}

static struct event_file *file_create(const struct log *log, const struct event_format *format,
				      const struct recording_info *info)
{
	struct event_file *file = calloc(1, sizeof(*file));

	if (!file)
		return NULL;
	file->log = log ? *log : (struct log){ 0 };
	file->format = format;
	file->file.descriptor = -1;
	file->state = calloc(1, format->state_size);
	if (file->state && (!format->begin || !format->begin(file->state, info, &file->text)))
		return file;
	file_free(file);
	return NULL;
}

int event_file_create(const struct log *log, const struct event_format *format, const char *path, int descriptor,
		      const struct recording_info *info, struct event_file **result)
{
	struct event_file *file;
	int error;

	if (path && format->append && gzip_is_name(path)) {
		log_error(log, "%s: nothing can be appended to a compressed file: leave .gz out", path);
		return -EINVAL;
	}
	file = file_create(log, format, info);
	if (!file) {
		if (!path && descriptor >= 0)
			close(descriptor);
		return -ENOMEM;
	}
	error = open_file(file, path, descriptor);
	if (error) {
		log_error(log, "%s: cannot be written: %s", path ? path : "output",
			  error == -EEXIST ? "it is there, and not of this format" : output_reason(error));
		tailed_file_close(&file->file);
		file_free(file);
		return error;
	}
	file->written = 0;
	*result = file;
	return 0;
}

int event_file_open(const struct log *log, const struct event_format *format, const char *path,
		    const struct recording_info *info, struct model *model, struct event_file **result)
{
	bool output = !strcmp(path, "-");
	int descriptor = output ? file_standard_output() : -1, error;

	if (output && descriptor < 0)
		return descriptor;
	error = event_file_create(log, format, output ? NULL : path, descriptor, info, result);
	if (error)
		return error;
	error = model_add_sink(model, event_file_sink(*result));
	if (error) {
		tailed_file_close(&(*result)->file);
		file_free(*result);
		*result = NULL;
	}
	return error;
}

/* ---- writing ---- */

static int failed(struct event_file *file, int error)
{
	file->error = error;
	text_clear(&file->text, BUFFER_KEPT);
	if (error != -ETIMEDOUT) /* cancelled by the waiter, which reports it */
		log_error(&file->log, "trace: no more events are written: %s", strerror(-error));
	return error;
}

void event_file_warn_at(struct event_file *file, __u64 bytes)
{
	file->warn_at = file->format->warn_size ? bytes : 0;
}

static int write_buffer(struct event_file *file)
{
	const char *tail = file->format->tail;
	int error = file->text.error;

	if (file->error || (!error && !file->text.length))
		return file->error;
	if (file->warn_at && file->written + file->text.length > file->warn_at) {
		file->format->warn_size(&file->log, file->warn_at);
		file->warn_at = 0;
	}
	error = error ?: append(file, tail, strlen(tail), false);
	if (error)
		return failed(file, error);
	file->any |= file->written > 0;
	return 0;
}

int event_file_flush(struct event_file *file)
{
	int error = tailed_file_check(&file->file);

	if (error && !file->error)
		return failed(file, error);
	if (tailed_file_busy(&file->file))
		return file->error;
	if (!file->error && file->format->flush)
		file->format->flush(file->state, &file->text);
	return write_buffer(file);
}

static bool admit(struct event_file *file, const struct event *event)
{
	const struct event_format *format = file->format;
	int losses = event_losses(event);

	if (losses < 0)
		return true;
	if (format->accepts && !format->accepts(file->state, event))
		return false;
	if (tailed_file_admit(&file->file, losses))
		return true;
	if (format->refused)
		format->refused(file->state, event);
	return false;
}

static int write_event(void *context, const struct event *event)
{
	struct event_file *file = context;

	if (file->error)
		return file->error;
	if (!admit(file, event))
		return 0;
	file->format->add(file->state, &file->text, event);
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

/* Also after a failure: the totals have what is missing, and with luck there is room for them. */
static int write_end(struct event_file *file, const struct model *model)
{
	const struct event_format *format = file->format;
	struct text tail = { 0 };
	int error;

	if (format->finish)
		format->finish(file->state, &tail, model, file->error);
	else
		text_string(&tail, format->tail);
	error = tail.error ?: append(file, tail.data, tail.length, true);
	text_free(&tail);
	if (error && !file->error)
		log_error(&file->log, "trace: its end cannot be written: %s", strerror(-error));
	return file->error ?: error;
}

int event_file_close(struct event_file *file, const struct model *model)
{
	int error, closed;

	if (!file)
		return 0;
	if (!file->error && file->format->end) {
		file->format->end(file->state, &file->text);
		write_buffer(file);
	}
	event_file_settle(file); /* the totals report what was not written */
	error = write_end(file, model);
	if (!error && file->format->report)
		file->format->report(file->state, &file->log);
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

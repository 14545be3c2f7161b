/* SPDX-License-Identifier: BSD-2-Clause */
#include "analysis/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/file.h"
#include "base/file/output.h"

#define PROGRESS_STEP (4u << 20) /* bytes between two calls of progress */

/* ---- inputs ---- */

const char *reading_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

/* A copy without a name, which can be read twice; a descriptor or -errno. */
static int copy_input(const struct log *log)
{
	int copy = open_temporary(), error = copy < 0 ? copy : 0;
	char bytes[65536];
	ssize_t got;

	while (!error && (got = read(STDIN_FILENO, bytes, sizeof(bytes)))) {
		if (got < 0 && errno != EINTR)
			error = -errno;
		else if (got > 0)
			error = file_write(copy, bytes, got);
	}
	if (!error)
		return copy;
	log_error(log, "standard input cannot be copied to a temporary file: %s", strerror(-error));
	if (copy >= 0)
		close(copy);
	return error;
}

int reading_open_input(const struct log *log, const char *path, unsigned int times)
{
	struct pollfd ready = { .fd = STDIN_FILENO, .events = POLLIN };
	struct stat status;
	int descriptor;

	if (strcmp(path, "-"))
		return recording_open(log, path);
	if (fstat(STDIN_FILENO, &status))
		return -errno;
	if (times > 1 && !S_ISREG(status.st_mode))
		return copy_input(log);
	poll(&ready, 1, -1); /* the writer may be slow */
	descriptor = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	return descriptor < 0 ? -errno : descriptor;
}

/* ---- reading ---- */

int reading_open(struct reading *reading, const struct log *log, const char *name, int input)
{
	int error = recording_reader_create(log, name, input, &reading->reader);

	reading->name = name;
	error = error ?: model_create(log, &reading->model);
	error = error ?: chooser_create(&(struct chooser_options){ .log = log }, &reading->chooser);
	return error ?: chooser_join(reading->chooser, reading->model);
}

void reading_close(struct reading *reading)
{
	model_free(reading->model);
	chooser_free(reading->chooser);
	recording_reader_close(reading->reader);
}

int reading_all(struct reading *reading, const struct reading_pass *pass)
{
	const struct xpt_record_header *record;
	struct recording_reader *reader = reading->reader;
	__u64 next = PROGRESS_STEP, position;
	int result, error;

	while ((result = recording_reader_next(reader, &record)) == 1) {
		position = recording_reader_position(reader);
		if (pass->progress && position >= next) {
			pass->progress(pass->progress_context, pass->before + position,
				       pass->before + recording_reader_size(reader) + pass->after);
			next = position + PROGRESS_STEP;
		}
		error = chooser_record(reading->chooser, record);
		if (error == -EINVAL || error == -ENOSPC) {
			log_error(pass->log, "%s: the choice of programs in it is damaged", reading->name);
			return -EBADMSG;
		}
		if (!error && pass->takes && !pass->takes(pass->context, record))
			continue;
		error = error ?: model_feed(reading->model, record);
		if (error && error != -EBADMSG)
			return error;
	}
	/* Of a recording without an end only this delivers what came last: what is malformed is dropped here, too. */
	error = model_flush(reading->model);
	return error && error != -EBADMSG ? error : result;
}
